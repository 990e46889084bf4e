//! What only Codex has: providers, one writer a session, and answers that nobody keeps.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rejoin::adapters::{CodexOptions, CodexProvider};
use rejoin::core::{Lifecycle, Mode, NoSink, Program, RunId, Turn, TurnReport};
use rejoin::{Agent, Cancel, Limits, NativeId, Route, RunError, SessionStore as _, Warning, Why};

use super::{agent_with, transcript};
use crate::begun::Begun;
use crate::matrix::Turns;
use crate::pinned::Pinned;
use crate::scenarios::kills;
use crate::stage::{PATIENCE, Stage, reply};

/// The lifecycle of a stage, with options of the trial's own.
fn lifecycle_with(stage: &Stage, options: CodexOptions) -> Lifecycle {
    let environment = stage.place.bare(&stage.cli).set("FAKE_KEY", "none");
    let agent = agent_with(Program::new(&stage.cli.program), environment, options);
    stage.lifecycle(true).agent(agent.into())
}

pub(super) async fn a_byte_order_mark_reaches_the_model(cli: &Pinned) {
    let stage = Stage::new(cli);
    let result = stage.run("\u{feff}alpha").await.unwrap();
    assert_eq!(reply(&result).last, "\u{feff}alpha");
}

/// The run fails before it reaches the model, and the next one goes on.
async fn fails_and_goes_on(stage: &Stage, scenario: &str, lifecycle: Lifecycle, expected: Why) {
    let bound = stage.bound().await;
    let before = stage.turns();
    let outcome = lifecycle.run(stage.request("beta")).await;
    stage.note(scenario, &outcome, Turns::Counted(stage.turns() - before));
    let Err(RunError::Failed { why, run }) = outcome else { panic!("{scenario}: {outcome:?}") };
    assert_eq!((why, run.attempts.len()), (expected, 1), "{scenario}: {:?}", run.evidence);
    assert_eq!(stage.bound().await, bound, "{scenario}: the binding is kept");
}

pub(super) async fn a_key_that_is_not_there(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    let options = CodexOptions::new().program(Program::new(&cli.program));
    let agent = rejoin::adapters::codex().options(options).environment(stage.place.bare(cli));
    let without = stage.lifecycle(true).agent(agent.into());
    fails_and_goes_on(&stage, "the key is not in the environment", without, Why::Unauthenticated).await;
    let next = stage.run("gamma").await.unwrap();
    assert_eq!((next.route, &next.session_id), (Route::Resumed, &first.session_id));
    assert_eq!(
        next.usage, stage.rules.usage,
        "a failed run takes no tokens from the next one, and adds none"
    );
}

pub(super) async fn a_configuration_that_is_broken(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    let config = stage.place.home().join(".codex/config.toml");
    let good = std::fs::read(&config).unwrap();
    std::fs::write(&config, "x = [\n").unwrap();
    let lifecycle = stage.lifecycle(true);
    fails_and_goes_on(&stage, "a broken configuration", lifecycle, Why::AgentMisconfigured).await;
    std::fs::write(&config, good).unwrap();
    let next = stage.run("gamma").await.unwrap();
    assert_eq!((next.route, &next.session_id), (Route::Resumed, &first.session_id));
    assert_eq!(reply(&next).user_turns, 2);
}

/// By itself, 0.171 would try for ever.
pub(super) async fn an_address_that_nobody_serves(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    let dead = CodexProvider::new("fake", "http://127.0.0.1:9/v1").unwrap();
    let dead = CodexOptions::new().provider(dead.env_key("FAKE_KEY").unwrap().retries(1));
    let lifecycle = lifecycle_with(&stage, dead);
    fails_and_goes_on(&stage, "nobody serves the address", lifecycle, Why::TransientFailure).await;
    let next = stage.run("gamma").await.unwrap();
    assert_eq!((next.route, &next.session_id), (Route::Resumed, &first.session_id));
}

pub(super) async fn another_provider(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    let other = CodexProvider::new("other", format!("{}/v1", stage.place.model)).unwrap();
    let other = CodexOptions::new().provider(other.env_key("FAKE_KEY").unwrap());
    let before = stage.turns();
    let outcome = lifecycle_with(&stage, other).run(stage.request("beta")).await;
    stage.note("another provider", &outcome, Turns::Counted(stage.turns() - before));
    let second = outcome.unwrap();
    let keeps = cli.at_least([0, 148, 0]);
    let (route, turns) = if keeps { (Route::FellBack(Why::ProviderDiffers), 1) } else { (Route::Resumed, 2) };
    assert_eq!((second.route, reply(&second).user_turns), (route, turns));
    let third = stage.run("gamma").await.unwrap();
    assert_eq!((third.route, &third.session_id), (Route::Resumed, &first.session_id), "the binding is kept");
    assert_eq!(reply(&third).user_turns, turns + 1);
}

/// Something else holds the session, as a person's own Codex would: another process, without our lease.
pub(super) async fn another_writer(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    let id = first.session_id.clone().unwrap();
    let (agent, dir) = (stage.agent(), dir_of(&stage).await);
    let project = stage.place.project();
    let holder =
        tokio::spawn(async move { without_a_lease(&agent, &project, &dir, &id, "[[hold turn]] held").await });
    while !stage.model.requests().iter().any(|r| r.user_texts.last().is_some_and(|t| t.contains("[[hold"))) {
        let calls = stage.model.model_calls() + 1;
        stage.model.wait_for_calls(calls, PATIENCE).await.unwrap();
    }
    let mut limits = Limits::default();
    limits.busy = Duration::ZERO;
    let outcome = stage.row("another writer", true, stage.request("beta").limits(limits)).await;
    stage.model.release("turn");
    holder.await.unwrap();
    let second = outcome.unwrap();
    if cli.at_least([0, 148, 0]) {
        assert_eq!((second.route, reply(&second).user_turns), (Route::FellBack(Why::SessionBusy), 1));
    } else {
        // They know of no lock, and each appends its turn.
        assert_eq!(second.route, Route::Resumed);
    }
    let third = stage.run("gamma").await.unwrap();
    assert_eq!((third.route, &third.session_id), (Route::Resumed, &first.session_id), "the binding is kept");
    assert_eq!(reply(&third).first, "alpha");
}

/// npm's launcher dies without a word to the program below it, which holds the pipes and goes on.
pub(super) async fn the_launcher_killed_alone(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    let before = stage.turns();
    let running = kills::in_mid_turn(&stage, "[[hold turn]] beta").await;
    let (launcher, below): (Vec<u32>, Vec<u32>) =
        stage.processes().into_iter().partition(|pid| parent(*pid) == Some(std::process::id()));
    assert!(launcher.len() == 1 && !below.is_empty(), "{launcher:?} {below:?}");
    let killed = std::process::Command::new("kill").args(["-9", &launcher[0].to_string()]).status().unwrap();
    assert!(killed.success());
    let outcome = running.await.unwrap();
    stage.note("its launcher killed", &outcome, Turns::Counted(stage.turns() - before));
    let Err(RunError::Failed { why, run }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((why, run.attempts.len()), (Why::AgentCrashed, 1), "{:?}", run.evidence);
    assert_eq!(stage.processes(), [0; 0], "what was below it is ended, too");
    stage.model.release("turn");
    let next = stage.row("its launcher killed, then run again", true, stage.request("gamma")).await.unwrap();
    assert_eq!((next.route, &next.session_id), (Route::Resumed, &first.session_id));
    assert_eq!(reply(&next).first, "alpha");
}

/// The parent of a process, as long as that is there.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// The key's state dir.
pub(super) async fn dir_of(stage: &Stage) -> PathBuf {
    stage.store().state_dir(&stage.key()).await.unwrap().unwrap()
}

/// Continues a session as somebody does who knows nothing of our leases and records.
pub(super) async fn without_a_lease(
    agent: &Agent,
    cwd: &Path,
    state_dir: &Path,
    id: &NativeId,
    prompt: &str,
) -> TurnReport {
    let installation = agent.adapter().detect().await.unwrap();
    let turn = Turn {
        run: RunId::new(uuid::Uuid::new_v4()),
        prompt,
        cwd,
        mode: Mode::Resume { id },
        name: None,
        model: None,
        recipe: rejoin::core::TurnRecipe::default(),
        state_dir: Some(state_dir),
        installation: &installation,
        limits: &Limits::default(),
        cancel: &Cancel::new(),
    };
    agent.adapter().run(turn, &mut NoSink).await.unwrap()
}

/// The answer is there, and nothing of it was kept: no session is bound that could not be continued.
pub(super) async fn a_transcript_that_cannot_be_written(cli: &Pinned) {
    let stage = Stage::new(cli);
    let state_dir = dir_of(&stage).await;
    std::fs::create_dir_all(&state_dir).unwrap();
    // A file in the place of a folder cannot be written into, whoever the user is.
    std::fs::write(state_dir.join("sessions"), "").unwrap();
    let outcome = stage.row("sessions cannot be written", true, stage.request("alpha")).await;
    match outcome {
        Ok(first) => {
            assert_eq!(reply(&first).user_turns, 1);
            assert!(first.warnings.contains(&Warning::NotPersisted), "{:?}", first.warnings);
        }
        Err(RunError::Failed { why, .. }) => assert_eq!(why, Why::AgentMisconfigured),
        Err(other) => panic!("{other:?}"),
    }
    std::fs::remove_file(state_dir.join("sessions")).unwrap();
    let second =
        stage.row("sessions could not be written, then run again", true, stage.request("beta")).await;
    let second = second.unwrap();
    assert!(matches!(second.route, Route::Fresh(_) | Route::FellBack(_)), "{:?}", second.route);
    assert_eq!(reply(&second).user_turns, 1);
    let kept = transcript(&stage.place, &second.session_id.clone().unwrap());
    assert!(kept.starts_with(&state_dir));
    assert_eq!(stage.run("gamma").await.unwrap().route, Route::Resumed);
}
