//! Sessions that are gone or damaged, and ids that are wrong.

use rejoin::{NativeId, Route, RunError, Why};

use crate::agents::{Damage, Fate};
use crate::begun::Begun;
use crate::pinned::Pinned;
use crate::stage::{Stage, reply, scenario};

/// The session is damaged in this way; with and without a look, the next run does what the rules say.
pub(super) async fn damaged(cli: &Pinned, damage: Damage, looked_at: Fate, unseen: Fate) {
    assert_ne!(looked_at, Fate::Forgets, "a look tells whether there is something to forget");
    let stage = Begun::alpha_and_beta(cli).await;
    let old = stage.last().session_id.clone().unwrap();
    for (look, fate) in [(true, looked_at), (false, unseen)] {
        stage.again();
        one(&stage, (damage, look, fate), (&old, stage.fresh_turns())).await;
    }
}

async fn one(
    stage: &Stage,
    (damage, look, fate): (Damage, bool, Fate),
    (old, fresh_turns): (&NativeId, usize),
) {
    let name = &scenario(damage.name(), look);
    match damage {
        Damage::UnknownId => stage.tamper_id(stage.rules.unknown_id).await,
        _ => stage.damage(old, damage),
    }
    let bound = stage.bound().await;
    let before = stage.turns();
    let outcome = stage.row(name, look, stage.request("gamma")).await;
    let turns = stage.turns() - before;
    if let Fate::Fails(expected) = fate {
        match outcome {
            Err(RunError::Failed { why, .. }) => assert_eq!(why, expected, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(stage.bound().await, bound, "{name}: the binding is kept");
        return;
    }
    if let Fate::StandsAside(why) = fate {
        let third = outcome.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!((third.route, reply(&third).user_turns), (Route::FellBack(why), 1), "{name}");
        assert_eq!(turns, fresh_turns, "{name}: a failed resume costs nothing");
        assert_ne!(third.session_id, Some(bound.clone()), "{name}");
        assert_eq!(stage.bound().await, bound, "{name}: the binding is kept");
        return;
    }
    let third = outcome.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let seen = reply(&third);
    assert_eq!(seen.last, "gamma", "{name}");
    if let Fate::Lost(why) = fate {
        assert_eq!(third.route, Route::FellBack(why), "{name}");
        assert_eq!(seen.user_turns, 1, "{name}");
        assert_eq!(turns, fresh_turns, "{name}: a failed resume costs nothing");
        assert_ne!(third.session_id, Some(bound), "{name}");
        assert_ne!(third.session_id.as_ref(), Some(old), "{name}");
    } else {
        assert_eq!((third.route, third.session_id.as_ref()), (Route::Resumed, Some(&bound)), "{name}");
        let expected = if fate == Fate::Forgets { "gamma" } else { "alpha" };
        assert_eq!(seen.first, expected, "{name}");
    }
    if fate == Fate::ResumesOnce {
        return;
    }
    let fourth = stage.run("delta").await.unwrap();
    assert_eq!((fourth.route, &fourth.session_id), (Route::Resumed, &third.session_id), "{name}");
    assert_eq!(reply(&fourth).user_turns, seen.user_turns + 1, "{name}: the turn after the damage was kept");
}

/// What is no id never reaches the agent.
pub(super) async fn malformed_id(cli: &Pinned) {
    let malformed = cli.under_test().rules(cli).malformed_id;
    let stage = Begun::alpha(cli).await;
    for look in [true, false] {
        for (id, name) in
            [(malformed, "malformed id"), ("--help", "an id that looks like a flag"), ("", "empty id")]
        {
            stage.again();
            stage.tamper_id(id).await;
            let second = stage.row(&scenario(name, look), look, stage.request("beta")).await.unwrap();
            assert_eq!(second.route, Route::FellBack(Why::IdMalformed));
            assert_eq!(second.attempts.len(), 1, "it never reaches the agent");
        }
    }
}
