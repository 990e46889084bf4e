//! A folder that was renamed, and a work tree that git moved: the session is located, relocated where the version needs it,
//! and continued by the CLI.

use std::path::Path;

use rejoin::core::Lifecycle;
use rejoin::core::decide::{Reach, Workdir};
use rejoin::{Answer, Refusal, Relocated, Relocation, Route, Seek, Wanted};

use crate::begun::Begun;
use crate::pinned::Pinned;
use crate::stage::{Stage, reply};

pub(super) async fn relocated_after_a_rename(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    rename_and_follow(&stage, &stage.lifecycle(true)).await;

    let stage = Stage::new(cli);
    let lifecycle = stage.lifecycle(true).state_dirs(false);
    lifecycle.run(stage.request("alpha")).await.unwrap();
    rename_and_follow(&stage, &lifecycle).await;
}

async fn rename_and_follow(stage: &Stage, lifecycle: &Lifecycle) {
    let renamed = stage.place.root.join("renamed");
    std::fs::rename(stage.place.project(), &renamed).unwrap();
    follow(stage, lifecycle, &renamed).await;
    std::fs::rename(renamed, stage.place.project()).unwrap();
}

pub(super) async fn relocated_after_git_worktree_move(cli: &Pinned) {
    for state_dirs in [true, false] {
        let stage = Stage::new(cli);
        let lifecycle = stage.lifecycle(true).state_dirs(state_dirs);
        let tree = stage.place.root.join("tree");
        stage.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
        lifecycle.run(stage.request_in(&tree, "alpha")).await.unwrap();
        let moved = stage.place.root.join("moved");
        stage.git(&["worktree", "move", tree.to_str().unwrap(), moved.to_str().unwrap()]);
        follow(&stage, &lifecycle, &moved).await;
    }
}

/// Locates the mailbox's session by its id, from the folder that is now its own, and continues it there.
async fn follow(stage: &Stage, lifecycle: &Lifecycle, to: &Path) {
    let reach = stage.cli.under_test().rules(&stage.cli).reach;
    let bound = lifecycle.record(&stage.key()).await.unwrap().unwrap().binding.unwrap().native_id;
    let seek = Seek::new(Wanted::Id(bound.clone()), to);
    let located = lifecycle.locate(&seek).await.unwrap();
    let hit = located.hit().unwrap_or_else(|| panic!("{located:?}"));
    assert_eq!((hit.workdir, hit.session.bound), (Workdir::Moved, true), "{located:?}");
    match &located.answer {
        Answer::Found { .. } => assert_eq!(reach, Reach::Anywhere),
        Answer::Moved { proposal, .. } => {
            assert_ne!(reach, Reach::Anywhere);
            let wish = Relocation::new(hit.session.clone(), &proposal.to);
            match lifecycle.relocate(&wish).await.unwrap() {
                // In a database, the folder alone is another one.
                Relocated::Done { from, to, split: false, .. } => {
                    assert!((from == to || !from.exists()) && to.is_file());
                }
                // It goes by the project, which is the same.
                Relocated::Already { path } => assert!(reach == Reach::Repository && path.is_file()),
                // Said, and nothing weaker done.
                Relocated::Refused(Refusal::Unsupported(_)) => return,
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    }
    let second = lifecycle.run(stage.request_in(to, "beta")).await.unwrap();
    assert_eq!((second.route, second.session_id.as_ref()), (Route::Resumed, Some(&bound)));
    let seen = reply(&second);
    assert_eq!((seen.user_turns, seen.last.as_str()), (2, "beta"), "the model saw the earlier turn");
    let third = lifecycle.run(stage.request_in(to, "gamma")).await.unwrap();
    assert_eq!((third.route, reply(&third).user_turns), (Route::Resumed, 3));
}
