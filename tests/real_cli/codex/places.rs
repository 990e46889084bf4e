//! Where Codex keeps what: state dirs that move, are copied, or are not used at all.

use std::path::Path;
use std::sync::Arc;

use rejoin::core::Lifecycle;
use rejoin::process::SystemHost;
use rejoin::stores::FsStore;
use rejoin::{LlmRequest, Route, SessionRef, Why};

use super::transcript;
use crate::matrix::Turns;
use crate::pinned::Pinned;
use crate::stage::{Stage, reply};

pub(super) async fn the_state_dir_holds_the_session_and_the_home_does_not(cli: &Pinned) {
    let stage = Stage::new(cli);
    let user = stage.place.home().join(".codex");
    std::fs::write(user.join("AGENTS.md"), "from the user's own rules").unwrap();
    std::fs::write(user.join("auth.json"), "{\"OPENAI_API_KEY\":\"none\"}").unwrap();
    let config = std::fs::read(user.join("config.toml")).unwrap();
    let first = stage.run("alpha").await.unwrap();
    let file = transcript(&stage.place, &first.session_id.unwrap());
    assert!(file.starts_with(stage.place.store().join(".agent-sessions/state")), "{file:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("from the user's own rules"), "the user's configuration is seen");
    let left: Vec<_> = std::fs::read_dir(&user).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "the home has no part in it: {left:?}");
    assert_eq!(std::fs::read(user.join("config.toml")).unwrap(), config);
    let state_dir = super::state_dir(&file);
    let is_link = |name: &str| state_dir.join(name).is_symlink();
    assert!(is_link("config.toml") && is_link("auth.json") && is_link("AGENTS.md"), "nothing is copied");
}

fn lifecycle_in(stage: &Stage, store: &Path) -> Lifecycle {
    let store = Arc::new(FsStore::open(store).unwrap());
    Lifecycle::new(store, Arc::new(SystemHost::new())).agent(stage.agent())
}

pub(super) async fn a_store_that_was_moved(cli: &Pinned) {
    let stage = Stage::new(cli);
    let first = stage.run("alpha").await.unwrap();
    let moved = stage.place.root.join("moved");
    std::fs::rename(stage.place.store(), &moved).unwrap();
    let before = stage.turns();
    let outcome = lifecycle_in(&stage, &moved).run(stage.request("beta")).await;
    stage.note("a store that was moved", &outcome, Turns::Counted(stage.turns() - before));
    let second = outcome.unwrap();
    assert_eq!((second.route, &second.session_id), (Route::Resumed, &first.session_id));
    assert_eq!(reply(&second).user_turns, 2);
}

/// Without its index, a copy has no way back to the original's file.
pub(super) async fn a_store_that_was_copied(cli: &Pinned) {
    let stage = Stage::new(cli);
    let first = stage.run("alpha").await.unwrap();
    let id = first.session_id.clone().unwrap();
    let copy = stage.place.root.join("copy");
    let copied = std::process::Command::new("cp").arg("-a").args([&stage.place.store(), &copy]).status();
    assert!(copied.unwrap().success());
    let original = stage.kept(&id);
    let before = stage.turns();
    let outcome = lifecycle_in(&stage, &copy).run(stage.request("in the copy")).await;
    stage.note("a store that was copied", &outcome, Turns::Counted(stage.turns() - before));
    let in_copy = outcome.unwrap();
    assert_eq!((in_copy.route, reply(&in_copy).user_turns), (Route::Resumed, 2));
    assert_eq!(stage.kept(&id), original, "the original is untouched");
    let second = stage.run("beta").await.unwrap();
    assert_eq!((second.route, reply(&second).user_turns), (Route::Resumed, 2));
}

pub(super) async fn the_users_own_home(cli: &Pinned) {
    let stage = Stage::new(cli);
    let lifecycle = stage.lifecycle(true).state_dirs(false);
    let first = lifecycle.run(stage.request("alpha")).await.unwrap();
    let sessions = stage.place.home().join(".codex/sessions");
    assert!(sessions.is_dir(), "its sessions lie where a person's do");
    assert_eq!(stage.place.state_files(), [0; 0].map(|_: u8| std::path::PathBuf::new()));
    let before = stage.turns();
    let outcome = lifecycle.run(stage.request("beta")).await;
    stage.note("in the user's own home", &outcome, Turns::Counted(stage.turns() - before));
    let second = outcome.unwrap();
    assert_eq!((second.route, &second.session_id), (Route::Resumed, &first.session_id));
    assert_eq!(reply(&second).user_turns, 2);
}

pub(super) async fn a_fork_in_the_users_own_home(cli: &Pinned) {
    let stage = Stage::new(cli);
    let lifecycle = stage.lifecycle(true).state_dirs(false);
    let first = lifecycle.run(stage.request("alpha")).await.unwrap();
    let other = SessionRef::new("issue-42-b", "codex");
    let request = |prompt: &str| LlmRequest::new(prompt).cwd(stage.place.project()).session(other.clone());
    let before = stage.turns();
    let fork = request("beta").fork_of(SessionRef::new("issue-42", "codex"));
    let outcome = lifecycle.run(fork).await;
    stage.note("fork in the user's own home", &outcome, Turns::Counted(stage.turns() - before));
    let forked = outcome.unwrap();
    assert_eq!((forked.route, reply(&forked).user_turns), (Route::Forked, 2));
    assert_ne!(forked.session_id, first.session_id);
    assert_eq!(forked.usage.output_tokens, 20, "the tokens of the original are not counted again");
    let again = lifecycle.run(request("gamma")).await.unwrap();
    assert_eq!((again.route, reply(&again).user_turns), (Route::Resumed, 3));
    let original = lifecycle.run(stage.request("delta")).await.unwrap();
    assert_eq!((original.route, reply(&original).user_turns), (Route::Resumed, 2));
}

/// A fork holds only what is its own: without the original, nothing of it can be continued.
pub(super) async fn a_fork_whose_original_is_gone(cli: &Pinned) {
    let stage = Stage::new(cli);
    let lifecycle = stage.lifecycle(true).state_dirs(false);
    let first = lifecycle.run(stage.request("alpha")).await.unwrap();
    let other = SessionRef::new("issue-42-b", "codex");
    let request = |prompt: &str| LlmRequest::new(prompt).cwd(stage.place.project()).session(other.clone());
    lifecycle.run(request("beta").fork_of(SessionRef::new("issue-42", "codex"))).await.unwrap();
    let name = format!("-{}.jsonl", first.session_id.unwrap());
    let sessions = stage.place.home().join(".codex/sessions");
    let found =
        std::process::Command::new("find").arg(&sessions).args(["-name", &format!("*{name}")]).output();
    let original = String::from_utf8(found.unwrap().stdout).unwrap();
    std::fs::remove_file(original.trim()).unwrap();
    let before = stage.turns();
    let outcome = lifecycle.run(request("gamma")).await;
    stage.note("fork, its original is gone", &outcome, Turns::Counted(stage.turns() - before));
    let third = outcome.unwrap();
    assert_eq!((third.route, reply(&third).user_turns), (Route::FellBack(Why::SessionIncompatible), 1));
}
