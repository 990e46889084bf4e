//! A version that finds a session only from its own folder, whose folder is moved: found, relocated, continued.

use std::path::Path;

use rejoin::core::Lifecycle;
use rejoin::core::decide::{Sign, Workdir};
use rejoin::{Answer, LlmRequest, Refusal, Relocated, Relocation, Route, Seek, Wanted, Way, Why};
use rejoin_test_support::ContextReply;
use serde_json::json;

use crate::stage::{Stage, key, works};

pub(crate) fn git(folder: &Path, args: &[&str]) {
    let mut git = std::process::Command::new("git");
    git.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args);
    git.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
    assert!(git.status().unwrap().success(), "git {args:?}");
}

/// A repository with a session in it, of 2.0.14.
async fn old_version() -> Stage {
    let stage = Stage::new();
    let script = json!({
        "version": "2.0.14 (Claude Code)",
        "log": stage.path("calls.jsonl"),
        "cases": [works()],
    });
    std::fs::write(stage.path("script.json"), script.to_string()).unwrap();
    git(&stage.path("project"), &["init", "-q"]);
    git(&stage.path("project"), &["commit", "-q", "--allow-empty", "-m", "root"]);
    stage
}

fn at(stage: &Stage, folder: &Path, prompt: &str) -> LlmRequest {
    stage.request(prompt).cwd(folder)
}

/// Finds the mailbox's session from a folder, has it relocated there, and continues it.
async fn follow(stage: &Stage, lifecycle: &Lifecycle, to: &Path, expected: Workdir) {
    let seek = Seek::new(Wanted::Key(key()), to);
    let located = lifecycle.locate(&seek).await.unwrap();
    let Answer::Moved { hit, how: Sign::Key, proposal } = &located.answer else { panic!("{located:?}") };
    assert_eq!((hit.workdir, proposal.way, proposal.to.as_path()), (expected, Way::Move, to));
    let old = hit.session.entry.source.path.clone();
    let side = old.with_extension("").join("tool-results/r1.txt");
    std::fs::create_dir_all(side.parent().unwrap()).unwrap();
    std::fs::write(&side, "result").unwrap();
    let wish = Relocation::new(hit.session.clone(), &proposal.to);
    let done = lifecycle.relocate(&wish).await.unwrap();
    let Relocated::Done { from, to: new, split: false, .. } = &done else { panic!("{done:?}") };
    assert_eq!((from, old.exists(), side.exists()), (&old, false, false));
    assert!(new.with_extension("").join("tool-results/r1.txt").is_file());
    let next = lifecycle.run(at(stage, to, "beta")).await.unwrap();
    assert_eq!(next.route, Route::Resumed);
    assert_eq!(ContextReply::parse(&next.text).unwrap().user_turns, 2, "the model saw the earlier turn");
    let log = lifecycle.audit(&key(), None).await.unwrap();
    let kinds: Vec<_> = log.iter().map(|entry| entry.event.kind.as_str()).collect();
    assert_eq!(kinds, ["run_finished", "session_relocated", "run_finished"]);
}

#[tokio::test]
async fn a_folder_that_was_renamed_is_followed() {
    for state_dirs in [true, false] {
        let stage = old_version().await;
        let lifecycle = stage.lifecycle().state_dirs(state_dirs);
        lifecycle.run(stage.request("alpha")).await.unwrap();
        let moved = stage.path("moved");
        std::fs::rename(stage.path("project"), &moved).unwrap();
        follow(&stage, &lifecycle, &moved, Workdir::Moved).await;
    }
}

#[tokio::test]
async fn another_work_tree_is_followed() {
    for state_dirs in [true, false] {
        let stage = old_version().await;
        let lifecycle = stage.lifecycle().state_dirs(state_dirs);
        lifecycle.run(stage.request("alpha")).await.unwrap();
        let tree = stage.path("tree");
        git(&stage.path("project"), &["worktree", "add", "-q", tree.to_str().unwrap()]);
        follow(&stage, &lifecycle, &tree, Workdir::SameRepository).await;
        // Back again, by its id.
        let id = stage.bound().await.unwrap();
        let seek = Seek::new(Wanted::Text(id), stage.path("project"));
        let back = lifecycle.locate(&seek).await.unwrap();
        assert!(matches!(&back.answer, Answer::Moved { how: Sign::Id, .. }), "{back:?}");
    }
}

#[tokio::test]
async fn without_a_relocation_the_run_says_why_it_is_fresh() {
    let stage = old_version().await;
    stage.run("alpha").await;
    let moved = stage.path("moved");
    std::fs::rename(stage.path("project"), &moved).unwrap();
    let fresh = stage.lifecycle().run(at(&stage, &moved, "beta")).await.unwrap();
    assert_eq!(fresh.route, Route::FellBack(Why::WorkdirDiffers));
}

/// A program that writes by path would begin a new file at the old place.
#[tokio::test]
async fn a_session_that_somebody_writes_to_is_not_moved_and_moves_once_it_is_idle() {
    use std::io::Write as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    let stage = old_version().await;
    let lifecycle = stage.lifecycle();
    lifecycle.run(stage.request("alpha")).await.unwrap();
    let tree = stage.path("tree");
    git(&stage.path("project"), &["worktree", "add", "-q", tree.to_str().unwrap()]);
    let located = lifecycle.locate(&Seek::new(Wanted::Key(key()), &tree)).await.unwrap();
    let session = located.hit().unwrap().session.clone();
    let (path, idle) = (session.entry.source.path.clone(), Arc::new(AtomicBool::new(false)));
    let (file, stop) = (path.clone(), Arc::clone(&idle));
    let writer = std::thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            let mut file = std::fs::File::options().append(true).open(&file).unwrap();
            file.write_all(b"{\"type\":\"mode\",\"mode\":\"x\"}\n").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    let wish = Relocation::new(session, &tree);
    let growing = lifecycle.relocate(&wish).await.unwrap();
    idle.store(true, Ordering::SeqCst);
    writer.join().unwrap();
    assert_eq!(growing, Relocated::Refused(Refusal::Growing));
    assert!(path.is_file());
    assert!(matches!(lifecycle.relocate(&wish).await.unwrap(), Relocated::Done { split: false, .. }));
    assert!(!path.exists());
}

#[tokio::test]
async fn a_session_that_a_process_has_open_is_not_moved() {
    let stage = old_version().await;
    let lifecycle = stage.lifecycle();
    lifecycle.run(stage.request("alpha")).await.unwrap();
    let id = stage.bound().await.unwrap();
    let tree = stage.path("tree");
    git(&stage.path("project"), &["worktree", "add", "-q", tree.to_str().unwrap()]);
    let located = lifecycle.locate(&Seek::new(Wanted::Key(key()), &tree)).await.unwrap();
    let session = located.hit().unwrap().session.clone();
    let notes = session.entry.source.state_dir.clone().unwrap().join("sessions");
    std::fs::create_dir_all(&notes).unwrap();
    let pid = std::process::id();
    let note = json!({ "pid": pid, "sessionId": id, "cwd": "/w" });
    std::fs::write(notes.join(format!("{pid}.json")), note.to_string()).unwrap();
    let wish = Relocation::new(session, &tree);
    assert_eq!(lifecycle.relocate(&wish).await.unwrap(), Relocated::Refused(Refusal::Live { pid }));
    // The same number of another process.
    let note = json!({ "pid": pid, "sessionId": id, "procStart": "1" });
    std::fs::write(notes.join(format!("{pid}.json")), note.to_string()).unwrap();
    assert!(matches!(lifecycle.relocate(&wish).await.unwrap(), Relocated::Done { .. }));
}
