//! What only opencode has: permissions that nobody can give, databases that are locked, and errors with exit 0.

use rejoin::adapters::opencode as adapter;
use rejoin::core::Program;
use rejoin::{
    FailedRun, LlmRequest, LlmResult, Route, RunError, SessionRef, SessionStore as _, Warning, Why,
};
use rusqlite::Connection;

use super::{OpencodeCli, configuration, options, own_database, sessions};
use crate::agents::AgentUnderTest as _;
use crate::begun::Begun;
use crate::matrix::Turns;
use crate::pinned::Pinned;
use crate::stage::{Stage, reply};

fn failed(outcome: Result<LlmResult, RunError>, expected: Why) -> FailedRun {
    match outcome {
        Err(RunError::Failed { why, run }) if why == expected => *run,
        other => panic!("{other:?}, expected {expected:?}"),
    }
}

pub(super) async fn the_state_dir_holds_the_session_and_the_home_does_not(cli: &Pinned) {
    let stage = Stage::new(cli);
    let data = stage.place.home().join(".local/share/opencode");
    std::fs::create_dir_all(&data).unwrap();
    let login = r#"{"other":{"type":"api","key":"from the user's login"}}"#;
    std::fs::write(data.join("auth.json"), login).unwrap();
    let id = stage.run("alpha").await.unwrap().session_id.unwrap();
    sessions::find(&stage.place, &id);
    for none in ["opencode.db", "storage/session"] {
        assert!(!data.join(none).exists(), "the home has no part in it: {none}");
    }
    assert_eq!(std::fs::read_to_string(data.join("auth.json")).unwrap(), login);
    if !cli.at_least([1, 18, 33]) {
        let state = stage.store().state_dir(&stage.key()).await.unwrap().unwrap();
        let link = state.join("opencode/auth.json");
        assert_eq!(std::fs::read_link(link).unwrap(), data.join("auth.json"));
    }
}

/// Without leave, nobody can be asked: the turn ends, and the run says what it was about.
pub(super) async fn a_rejected_permission_is_named(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let bound = stage.bound().await;
    let environment = OpencodeCli.environment(&stage.place, stage.place.bare(cli));
    let agent = adapter().options(options(Program::new(&cli.program))).environment(environment);
    let lifecycle = stage.lifecycle_of(agent.into());
    let outside = stage.place.root.join("outside.txt");
    let arguments = serde_json::json!({"filePath": outside, "content": "x"});
    let before = stage.turns();
    let outcome = lifecycle.run(stage.request(&format!("[[tool write {arguments}]]"))).await;
    stage.note("a permission that nobody can give", &outcome, Turns::Counted(stage.turns() - before));
    let run = failed(outcome, Why::AgentMisconfigured);
    let said = run.attempts[0].said.clone().unwrap();
    assert!(said.contains("external_directory"), "{said}");
    assert!(!outside.exists());
    assert_eq!(run.session_id, Some(bound.clone()));
    let next = stage.run("gamma").await.unwrap();
    assert_eq!((next.route, next.session_id), (Route::Resumed, Some(bound)));
}

/// Where the CLI makes the conversation shorter and goes on, the run has its answer, whatever the exit.
pub(super) async fn a_conversation_that_is_too_long_once(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let bound = stage.bound().await;
    let request = stage.request("beta [[status 413 once]]");
    let outcome = stage.row("too long once", true, request).await;
    if cli.at_least([1, 15, 13]) {
        let result = outcome.unwrap();
        assert_eq!((result.route, result.session_id.as_ref()), (Route::Resumed, Some(&bound)));
        let next = stage.run("gamma").await.unwrap();
        assert_eq!((next.route, next.session_id), (Route::Resumed, Some(bound)));
        return;
    }
    failed(outcome, Why::ContextOverflow);
    let next = stage.row("too long once, then run again", true, stage.request("gamma")).await.unwrap();
    assert_eq!(next.route, Route::FellBack(Why::LastRunPoisoned));
}

/// A lock that lasts: one database a session stands aside, one for all fails; nothing is lost.
pub(super) async fn a_database_that_is_locked(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let bound = stage.bound().await;
    let sessions::Kept::Database(path) = sessions::find(&stage.place, &bound) else { panic!("no database") };
    let lock = Connection::open(path).unwrap();
    lock.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let mut limits = rejoin::Limits::default();
    limits.busy = std::time::Duration::from_millis(500);
    let outcome = stage.row("locked database", true, stage.request("beta").limits(limits)).await;
    match (cli.at_least([1, 15, 13]), cli.at_least([1, 17, 0])) {
        (true, true) => assert_eq!(outcome.unwrap().route, Route::FellBack(Why::SessionBusy)),
        (true, false) => assert_eq!(outcome.unwrap().route, Route::FellBack(Why::SessionUnindexed)),
        (false, _) => drop(failed(outcome, Why::SessionBusy)),
    }
    assert_eq!(stage.bound().await, bound, "the binding is kept");
    drop(lock);
    let next = stage.run("gamma").await.unwrap();
    assert_eq!((next.route, &next.session_id), (Route::Resumed, &Some(bound)));
    assert_eq!(reply(&next).first, "alpha");
}

/// A fork begins in a copy of the original's database, and has one of its own from its first resume on.
pub(super) async fn a_fork_is_resumed(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let fork = |prompt: &str| {
        LlmRequest::new(prompt)
            .cwd(stage.place.project())
            .session(SessionRef::new("issue-42-b", "opencode"))
            .fork_of(SessionRef::new("issue-42", "opencode"))
    };
    let forked = stage.lifecycle(true).run(fork("beta")).await.unwrap();
    assert_eq!((forked.route, reply(&forked).user_turns), (Route::Forked, 2));
    let resumed = stage.row("a fork, resumed", true, fork("gamma")).await.unwrap();
    assert_eq!((resumed.route, &resumed.session_id), (Route::Resumed, &forked.session_id));
    assert_eq!((reply(&resumed).user_turns, reply(&resumed).first.as_str()), (3, "alpha"));
    let moved = |warning: &Warning| matches!(warning, Warning::Mended(rejoin::core::Mend::PutInPlace));
    assert!(resumed.warnings.iter().any(moved), "{:?}", resumed.warnings);
    own_database(&stage.place, &forked.session_id.unwrap());
    let again = stage.lifecycle(true).run(fork("delta")).await.unwrap();
    assert_eq!((again.route, reply(&again).user_turns, again.warnings.len()), (Route::Resumed, 4, 0));
}

/// What a person has to put right fails the run, and costs neither the session nor a call.
pub(super) async fn a_configuration_that_is_broken(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let bound = stage.bound().await;
    let path = stage.place.home().join(".config/opencode/opencode.json");
    std::fs::write(&path, "{\"model\": ").unwrap();
    let outcome = stage.row("broken configuration", true, stage.request("beta")).await;
    assert_eq!(failed(outcome, Why::AgentMisconfigured).session_id.as_ref(), Some(&bound));
    std::fs::write(&path, configuration(&stage.place).to_string()).unwrap();
    let next = stage.run("gamma").await.unwrap();
    assert_eq!((next.route, next.session_id), (Route::Resumed, Some(bound)));
}

/// 1.18.33 does not tell why it fails, so a fresh run is tried; it fails alike, and the session is acquitted. 1.15.13 tells it
/// in one of two lines, of which sometimes only the other one comes: there is no cell of it.
pub(super) async fn a_model_that_is_unknown(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let bound = stage.bound().await;
    let before = stage.turns();
    let request = stage.request("beta").model("fake/nope");
    let run = if cli.at_least([1, 15, 13]) && !cli.at_least([1, 17, 0]) {
        match stage.lifecycle(true).run(request).await {
            Err(RunError::Failed { why: Why::AgentMisconfigured | Why::UnrecognisedFailure, run }) => *run,
            other => panic!("{other:?}"),
        }
    } else {
        let outcome = stage.row("unknown model", true, request).await;
        let newest = cli.at_least([1, 17, 0]);
        failed(outcome, if newest { Why::UnrecognisedFailure } else { Why::AgentMisconfigured })
    };
    assert_eq!(run.session_id.as_ref(), Some(&bound));
    assert_eq!(stage.turns(), before);
    // The session keeps the model of its last prompt: it has to be named once.
    let request = stage.request("gamma").model("fake/fake-model");
    let next = stage.row("unknown model, then a known one", true, request).await.unwrap();
    assert_eq!((next.route, next.session_id.as_ref()), (Route::Resumed, Some(&bound)));
    let after = stage.run("delta").await.unwrap();
    assert_eq!((after.route, after.session_id), (Route::Resumed, Some(bound)));
}

/// The folder that counts is the real one, whatever way leads there.
pub(super) async fn a_folder_that_is_reached_by_a_link(cli: &Pinned) {
    let stage = Stage::new(cli);
    let link = stage.place.root.join("link");
    std::os::unix::fs::symlink(stage.place.project(), &link).unwrap();
    let first = stage.lifecycle(true).run(stage.request_in(&link, "alpha")).await.unwrap();
    for (folder, prompt, turns) in [(stage.place.project(), "beta", 2), (link, "gamma", 3)] {
        let next = stage.lifecycle(true).run(stage.request_in(&folder, prompt)).await.unwrap();
        assert_eq!((next.route, &next.session_id), (Route::Resumed, &first.session_id), "{prompt}");
        assert_eq!(reply(&next).user_turns, turns);
    }
}
