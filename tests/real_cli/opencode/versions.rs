//! Sessions that another version began, where that version is installed, too. Not in the matrix, which tells of one version
//! at a time.

use rejoin::core::Mend;
use rejoin::{Route, Warning, Why};

use crate::pinned::{self, Pinned};
use crate::stage::{Stage, agent, reply};

/// A session of this older version, begun in the stage.
async fn begun_by(stage: &Stage, version: &str) -> bool {
    let Some(older) =
        pinned::installed().into_iter().find(|cli| cli.agent == "opencode" && cli.version == version)
    else {
        return false;
    };
    let lifecycle = stage.lifecycle_of(agent(&older, &stage.place));
    assert_eq!(lifecycle.run(stage.request("alpha")).await.unwrap().route, Route::Fresh(Why::NoPriorSession));
    true
}

/// 1.15.13 reads what 1.1 left into the session's own database.
pub(super) async fn files_of_1_1(cli: &Pinned) {
    let stage = Stage::new(cli);
    if !begun_by(&stage, "1.1.65").await {
        return;
    }
    let bound = stage.bound().await;
    let second = stage.run("beta").await.unwrap();
    if cli.at_least([1, 18, 33]) {
        // The newest does not: a session of its own stands aside.
        assert_eq!(second.route, Route::FellBack(Why::SessionUnreadable));
        assert_eq!(stage.bound().await, bound);
        return;
    }
    assert_eq!((second.route, reply(&second).first.as_str()), (Route::Resumed, "alpha"));
    let third = stage.run("gamma").await.unwrap();
    assert_eq!((third.route, reply(&third).user_turns), (Route::Resumed, 3));
}

/// The one database of 1.2 is given the session's name.
pub(super) async fn a_database_of_1_2(cli: &Pinned) {
    let stage = Stage::new(cli);
    if !begun_by(&stage, "1.2.1").await {
        return;
    }
    let second = stage.run("beta").await.unwrap();
    assert_eq!((second.route, reply(&second).first.as_str()), (Route::Resumed, "alpha"));
    assert!(second.warnings.contains(&Warning::Mended(Mend::PutInPlace)), "{:?}", second.warnings);
    let third = stage.run("gamma").await.unwrap();
    assert_eq!((third.route, reply(&third).user_turns), (Route::Resumed, 3));
}

/// What the newest wrote, an older one cannot open: its own session stands aside, and the newest goes on where it was.
pub(super) async fn a_database_of_the_newest(cli: &Pinned) {
    let stage = Stage::new(cli);
    if cli.version == "1.18.33" || !begun_by(&stage, "1.18.33").await {
        return;
    }
    let bound = stage.bound().await;
    let second = stage.run("beta").await.unwrap();
    assert!(matches!(second.route, Route::FellBack(_)), "{:?}", second.route);
    assert_eq!(reply(&second).user_turns, 1);
    assert_eq!(stage.bound().await, bound, "the binding is kept");
}
