//! Other folders: what the version can reach, and what is another project.

use rejoin::core::decide::Reach;
use rejoin::{LlmResult, Route, RunError, Why};

use crate::begun::Begun;
use crate::pinned::Pinned;
use crate::stage::{Stage, reply, scenario};

fn reaches(cli: &Pinned, far: Reach) -> bool {
    let reach = cli.under_test().rules(cli).reach;
    reach == Reach::Anywhere || reach == far
}

/// The run resumed if the version can, else it fell back for this reason; in both cases it ran once.
fn check(result: &LlmResult, resumes: bool, why: Why, calls: usize) {
    let expected = if resumes { Route::Resumed } else { Route::FellBack(why) };
    assert_eq!(result.route, expected);
    assert_eq!(reply(result).user_turns, if resumes { 2 } else { 1 });
    assert_eq!(calls, 1);
}

pub(super) async fn unrelated_folder(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let other = stage.place.root.join("other");
    std::fs::create_dir(&other).unwrap();
    stage.repository(&other);
    let before = stage.turns();
    let yes = stage
        .row("another project, with a yes", true, stage.request_in(&other, "beta").enter_other_project(true))
        .await
        .unwrap();
    check(&yes, reaches(cli, Reach::Anywhere), Why::WorkdirDiffers, stage.turns() - before);

    stage.again();
    let before = stage.turns();
    let no = stage.row("another project", true, stage.request_in(&other, "beta")).await.unwrap();
    check(&no, false, Why::ProjectDiffers, stage.turns() - before);
    std::fs::remove_dir_all(other).unwrap();
}

/// A folder that belongs to no repository is as good as any.
pub(super) async fn a_folder_without_a_repository(cli: &Pinned) {
    let stage = Stage::new(cli);
    let plain = stage.place.root.join("plain");
    std::fs::create_dir(&plain).unwrap();
    let first = stage.row("no repository", true, stage.request_in(&plain, "alpha")).await;
    if !stage.rules.answers_anywhere {
        let Err(RunError::Failed { why: Why::NoResult, run }) = first else { panic!("{first:?}") };
        assert_eq!(run.session_id, Some(stage.bound().await), "the session is kept");
        return;
    }
    let first = first.unwrap();
    assert_eq!(reply(&first).last, "alpha");
    let second = stage.row("no repository, resumed", true, stage.request_in(&plain, "beta")).await.unwrap();
    assert_eq!((second.route, reply(&second).user_turns), (Route::Resumed, 2));
}

pub(super) async fn another_work_tree(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let tree = stage.place.root.join("tree");
    stage.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    for look in [true, false] {
        stage.again();
        let before = stage.turns();
        let name = scenario("another work tree", look);
        let result = stage.row(&name, look, stage.request_in(&tree, "beta")).await.unwrap();
        check(&result, reaches(cli, Reach::Repository), Why::WorkdirDiffers, stage.turns() - before);
    }
    stage.git(&["worktree", "remove", "--force", tree.to_str().unwrap()]);
    stage.git(&["branch", "-q", "-D", "tree"]);
}

pub(super) async fn a_work_tree_that_is_gone(cli: &Pinned) {
    let stage = Stage::new(cli);
    let tree = stage.place.root.join("tree");
    stage.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    stage.lifecycle(true).run(stage.request_in(&tree, "alpha")).await.unwrap();
    stage.git(&["worktree", "remove", "--force", tree.to_str().unwrap()]);
    let before = stage.turns();
    let result = stage.row("a work tree that is gone", true, stage.request("beta")).await.unwrap();
    check(&result, reaches(cli, Reach::Anywhere), Why::WorktreeGone, stage.turns() - before);
}

pub(super) async fn moved_folder(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let moved = stage.place.root.join("moved");
    std::fs::rename(stage.place.project(), &moved).unwrap();
    let before = stage.turns();
    let result = stage.row("moved folder", true, stage.request_in(&moved, "beta")).await.unwrap();
    check(&result, reaches(cli, Reach::Anywhere), Why::WorkdirDiffers, stage.turns() - before);
    std::fs::rename(moved, stage.place.project()).unwrap();
}
