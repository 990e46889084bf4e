//! Turns that go well.

use rejoin::{LlmRequest, LlmResult, ResumePolicy, Route, RunError, SessionRef, Why};

use crate::pinned::Pinned;
use crate::stage::{Stage, reply};

pub(crate) async fn fresh_resume_fork(cli: &Pinned) {
    for look in [true, false] {
        let stage = Stage::new(cli);
        let scenario = |name: &str| if look { name.to_owned() } else { format!("{name}, nobody looks") };
        let first = stage.row(&scenario("fresh"), look, stage.request("alpha")).await.unwrap();
        assert_eq!(first.route, Route::Fresh(Why::NoPriorSession));
        assert_eq!((reply(&first).user_turns, reply(&first).last.as_str()), (1, "alpha"));
        assert!(first.recorded.is_saved());
        assert_eq!(first.warnings, []);

        let second = stage.row(&scenario("resume"), look, stage.request("beta")).await.unwrap();
        assert_eq!(second.route, Route::Resumed);
        let seen = reply(&second);
        assert_eq!((seen.user_turns, seen.first.as_str(), seen.last.as_str()), (2, "alpha", "beta"));
        assert_eq!(second.session_id, first.session_id);

        if look {
            fork(&stage, &first).await;
        }
        let third = stage.run("delta").await.unwrap();
        assert_eq!((third.route, reply(&third).user_turns), (Route::Resumed, 3));
        assert_eq!(third.session_id, first.session_id);
    }
}

/// Forks the conversation of the stage, which lies in a state dir of its own.
async fn fork(stage: &Stage, first: &LlmResult) {
    let request = LlmRequest::new("gamma")
        .cwd(&stage.project)
        .session(SessionRef::new("issue-42-b", "claude"))
        .fork_of(SessionRef::new("issue-42", "claude"));
    let id = stage.bound().await;
    let original = std::fs::read(stage.transcript(&id)).unwrap();
    let forked = stage.row("fork", true, request).await.unwrap();
    assert_eq!(forked.route, Route::Forked);
    assert_ne!(forked.session_id, first.session_id);
    assert_eq!(reply(&forked).user_turns, 3, "the fork knows what was said before");
    assert_eq!(std::fs::read(stage.transcript(&id)).unwrap(), original, "the original is untouched");
}

pub(crate) async fn the_state_dir_holds_the_session_and_the_home_does_not(cli: &Pinned) {
    let stage = Stage::new(cli);
    let user = stage.root().join("home/.claude");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("settings.json"), r#"{"env":{"REJOIN_PROBE":"from the user's settings"}}"#)
        .unwrap();
    let first = stage.run("alpha").await.unwrap();
    let id = first.session_id.unwrap();
    let transcript = stage.transcript(&id);
    assert!(transcript.starts_with(stage.root().join("store/.agent-sessions/state")), "{transcript:?}");
    assert!(!user.join("projects").exists(), "the home has no part in it");
    assert_eq!(
        std::fs::read_to_string(user.join("settings.json")).unwrap(),
        r#"{"env":{"REJOIN_PROBE":"from the user's settings"}}"#
    );
}

pub(crate) async fn cost_and_usage_are_of_the_run(cli: &Pinned) {
    let stage = Stage::new(cli);
    let first = stage.run("alpha").await.unwrap();
    let second = stage.run("beta").await.unwrap();
    let third = stage.run("gamma").await.unwrap();
    for result in [&first, &second, &third] {
        let usage = result.usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (100, 20), "one call each");
        assert_eq!((usage.cache_write_tokens, usage.cache_read_tokens), (7, 3));
    }
    let costs: Vec<f64> = [&first, &second, &third].map(|result| result.cost_usd.unwrap()).to_vec();
    // 2.0.14 makes calls of its own for titles, which cost; none of the versions may add the runs up.
    let sum: f64 = costs.iter().sum();
    assert!(costs.iter().all(|cost| *cost > 0.0 && *cost < 0.7 * sum), "{costs:?}");
    assert!((third.totals.cost_usd - sum).abs() < 1e-9);
    assert_eq!(third.totals.usage.input_tokens, 300);
}

pub(crate) async fn a_required_resume_is_refused_when_the_session_is_gone(cli: &Pinned) {
    let stage = Stage::new(cli);
    stage.run("alpha").await.unwrap();
    let id = stage.bound().await;
    std::fs::remove_file(stage.transcript(&id)).unwrap();
    let request = || stage.request("beta").resume(ResumePolicy::Require);
    let refused = stage.row("deleted, resume required", true, request()).await;
    assert!(matches!(refused, Err(RunError::Refused { why: Why::SessionMissing })));
    let failed = stage.row("deleted, resume required, nobody looks", false, request()).await;
    assert!(matches!(failed, Err(RunError::Failed { why: Why::SessionMissing, .. })));
    assert_eq!(stage.bound().await, id, "the binding is kept");
}
