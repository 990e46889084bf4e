//! Sessions that another version began, where that version is installed, too. Not in the matrix, which tells of one version
//! at a time.

use libtest_mimic::Trial;
use rejoin::core::Mend;
use rejoin::{Route, Warning, Why};

use super::versions;
use crate::pinned::{self, Pinned};
use crate::stage::{Stage, agent, reply};
use crate::trial;

const FILES: &str = "1.1.65";
const ONE_DATABASE: &str = "1.2.1";
const NEWEST: &str = "1.18.33";

/// The trials for which the other version is installed, too.
pub(super) fn trials(cli: &Pinned) -> Vec<Trial> {
    let mut trials = Vec::new();
    if cli.at_least([1, 15, 13]) && installed(FILES).is_some() {
        trials.push(trial!(cli, versions::files_of_1_1));
    }
    if cli.at_least([1, 15, 13]) && installed(ONE_DATABASE).is_some() {
        trials.push(trial!(cli, versions::a_database_of_1_2));
    }
    if cli.version != NEWEST && installed(NEWEST).is_some() {
        trials.push(trial!(cli, versions::a_database_of_the_newest));
    }
    trials
}

fn installed(version: &str) -> Option<Pinned> {
    pinned::installed().into_iter().find(|cli| cli.agent == "opencode" && cli.version == version)
}

/// Begins a session of this version in the stage.
async fn begin(stage: &Stage, version: &str) {
    let lifecycle = stage.lifecycle_of(agent(&installed(version).unwrap(), &stage.place));
    assert_eq!(lifecycle.run(stage.request("alpha")).await.unwrap().route, Route::Fresh(Why::NoPriorSession));
}

/// 1.15.13 reads what 1.1 left into the session's own database.
pub(super) async fn files_of_1_1(cli: &Pinned) {
    let stage = Stage::new(cli);
    begin(&stage, FILES).await;
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
    begin(&stage, ONE_DATABASE).await;
    let second = stage.run("beta").await.unwrap();
    assert_eq!((second.route, reply(&second).first.as_str()), (Route::Resumed, "alpha"));
    assert!(second.warnings.contains(&Warning::Mended(Mend::PutInPlace)), "{:?}", second.warnings);
    let third = stage.run("gamma").await.unwrap();
    assert_eq!((third.route, reply(&third).user_turns), (Route::Resumed, 3));
}

/// What the newest wrote, an older one cannot open: its own session stands aside, and the newest goes on where it was.
pub(super) async fn a_database_of_the_newest(cli: &Pinned) {
    let stage = Stage::new(cli);
    begin(&stage, NEWEST).await;
    let bound = stage.bound().await;
    let second = stage.run("beta").await.unwrap();
    assert!(matches!(second.route, Route::FellBack(_)), "{:?}", second.route);
    assert_eq!(reply(&second).user_turns, 1);
    assert_eq!(stage.bound().await, bound, "the binding is kept");
}
