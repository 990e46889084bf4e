//! Turns that go well.

use rejoin::{LlmRequest, LlmResult, ResumePolicy, Route, RunError, SessionRef, Why};

use crate::agents::{Damage, Fate};
use crate::begun::Begun;
use crate::pinned::Pinned;
use crate::stage::{Stage, reply, scenario};

pub(super) async fn fresh_resume_fork(cli: &Pinned) {
    for look in [true, false] {
        let stage = Stage::new(cli);
        let first = stage.row(&scenario("fresh", look), look, stage.request("alpha")).await.unwrap();
        assert_eq!(first.route, Route::Fresh(Why::NoPriorSession));
        assert_eq!((reply(&first).user_turns, reply(&first).last.as_str()), (1, "alpha"));
        assert!(first.recorded.is_saved());
        assert_eq!(first.warnings, []);

        let second = stage.row(&scenario("resume", look), look, stage.request("beta")).await.unwrap();
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
        .cwd(stage.place.project())
        .session(SessionRef::new("issue-42-b", &*stage.cli.agent))
        .fork_of(SessionRef::new("issue-42", &*stage.cli.agent));
    let id = stage.bound().await;
    let original = stage.kept(&id);
    let before = stage.turns();
    let outcome = stage.row("fork", true, request).await;
    if !stage.rules.forks {
        assert!(matches!(outcome, Err(RunError::Refused { .. } | RunError::Agent(_))), "{outcome:?}");
        assert_eq!(stage.turns(), before, "nothing is started");
        return;
    }
    let forked = outcome.unwrap();
    assert_eq!(forked.route, Route::Forked);
    assert_ne!(forked.session_id, first.session_id);
    assert_eq!(reply(&forked).user_turns, 3, "the fork knows what was said before");
    assert_eq!(stage.kept(&id), original, "the original is untouched");
}

pub(super) async fn usage_is_of_the_run(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    let second = stage.run("beta").await.unwrap();
    let third = stage.run("gamma").await.unwrap();
    for result in [first, &second, &third] {
        assert_eq!(result.usage, stage.rules.usage, "one call each");
    }
    assert_eq!(third.totals.usage.input_tokens, 3 * stage.rules.usage.input_tokens);
    assert_eq!(third.cost_usd.is_some(), stage.rules.has_cost);
    if !stage.rules.has_cost {
        return;
    }
    let costs: Vec<f64> = [first, &second, &third].map(|result| result.cost_usd.unwrap()).to_vec();
    // An agent may make calls of its own for titles, which cost; none may add the runs up.
    let sum: f64 = costs.iter().sum();
    assert!(costs.iter().all(|cost| *cost > 0.0 && *cost < 0.7 * sum), "{costs:?}");
    assert!((third.totals.cost_usd - sum).abs() < 1e-9);
}

pub(super) async fn a_required_resume_is_refused_when_the_session_is_gone(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let id = stage.bound().await;
    stage.damage(&id, Damage::Deleted);
    let request = || stage.request("beta").resume(ResumePolicy::Require);
    let refused = stage.row("deleted, resume required", true, request()).await;
    assert!(matches!(refused, Err(RunError::Refused { why: Why::SessionMissing })), "{refused:?}");
    let failed = stage.row("deleted, resume required, nobody looks", false, request()).await;
    let deleted = stage.rules.damages.iter().find(|(damage, ..)| *damage == Damage::Deleted);
    let Some((_, _, Fate::Lost(expected) | Fate::StandsAside(expected))) = deleted else {
        panic!("{deleted:?}")
    };
    assert!(matches!(&failed, Err(RunError::Failed { why, .. }) if why == expected), "{failed:?}");
    assert_eq!(stage.bound().await, id, "the binding is kept");
}
