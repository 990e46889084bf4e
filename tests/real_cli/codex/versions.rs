//! One mailbox, two versions of Codex. There is no cell of these: the document compares versions, it does not mix them.

use std::sync::Arc;

use rejoin::core::{Lifecycle, Mend};
use rejoin::process::SystemHost;
use rejoin::{Route, Warning, Why};

use super::own::{dir_of, without_a_lease};
use crate::begun::Begun;
use crate::pinned::{self, Pinned};
use crate::stage::{Stage, agent, reply};

/// The oldest version that is installed beside this one.
pub(super) fn older(cli: &Pinned) -> Option<Pinned> {
    let others = pinned::installed().into_iter().filter(|other| other.agent == cli.agent);
    others.rev().find(|other| !other.at_least([0, 148, 0]))
}

fn lifecycle_of(stage: &Stage, cli: &Pinned) -> Lifecycle {
    Lifecycle::new(Arc::new(stage.store()), Arc::new(SystemHost::new())).agent(agent(cli, &stage.place))
}

pub(super) async fn a_session_of_an_older_version_goes_on(cli: &Pinned) {
    let stage = Stage::new(cli);
    let older = lifecycle_of(&stage, &older(cli).unwrap());
    let first = older.run(stage.request("alpha")).await.unwrap();
    let second = stage.run("beta").await.unwrap();
    assert_eq!((second.route, &second.session_id), (Route::Resumed, &first.session_id));
    assert_eq!((reply(&second).user_turns, second.usage.output_tokens), (2, 20));
    // Such a session stays in the older format, so it can go back as well.
    let third = older.run(stage.request("gamma")).await.unwrap();
    assert_eq!((third.route, reply(&third).user_turns), (Route::Resumed, 3));
    assert_eq!(third.usage.output_tokens, 20);
}

/// An older version would go on with the session, and the newer one would then refuse it.
pub(super) async fn an_older_version_stands_aside(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    let kept = stage.kept(first.session_id.as_ref().unwrap());
    let second = lifecycle_of(&stage, &older(cli).unwrap()).run(stage.request("beta")).await.unwrap();
    assert_eq!((second.route, reply(&second).user_turns), (Route::FellBack(Why::VersionCannotResume), 1));
    assert_eq!(stage.kept(first.session_id.as_ref().unwrap()), kept);
    let third = stage.run("gamma").await.unwrap();
    assert_eq!((third.route, &third.session_id), (Route::Resumed, &first.session_id));
    assert_eq!(reply(&third).user_turns, 2);
}

/// Somebody else went on with the session by an older version, outside of Rejoin.
pub(super) async fn what_an_older_version_added_is_mended(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    let (id, dir) = (first.session_id.clone().unwrap(), dir_of(&stage).await);
    let older = agent(&older(cli).unwrap(), &stage.place);
    let report = without_a_lease(&older, &stage.place.project(), &dir, &id, "beta").await;
    assert_eq!(report.evidence.observation.session.as_ref(), Some(&id));
    let third = stage.run("gamma").await.unwrap();
    assert_eq!((third.route, &third.session_id), (Route::Resumed, &first.session_id));
    assert_eq!(reply(&third).user_turns, 3, "what the older version added is there");
    assert!(third.warnings.contains(&Warning::Mended(Mend::NumberRecords)), "{:?}", third.warnings);
    let fourth = stage.run("delta").await.unwrap();
    assert_eq!((fourth.route, reply(&fourth).user_turns), (Route::Resumed, 4));
}
