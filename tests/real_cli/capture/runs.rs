//! The runs that are worth a fixture.

use std::time::Duration;

use rejoin::core::{ForkSupport, Mode, SessionQuery, TurnReport};
use rejoin::{Cancel, Limits, NativeId, SessionKey, SessionStore as _};

use rejoin_test_support::recorder;

use super::{Recording, at_most};
use crate::agents::{Damage, Fault, Place};
use crate::pinned::Pinned;
use crate::stage::{PATIENCE, Stage};

pub(super) async fn fresh(cli: &Pinned) {
    let recording = Recording::new(cli).await;
    let report = recording.fresh("alpha").await;
    recording.keep("fresh", &report);
}

async fn continued(cli: &Pinned, name: &str, between: impl FnOnce(&Recording, &NativeId), prompt: &str) {
    let recording = Recording::new(cli).await;
    let id = recording.begun().await;
    between(&recording, &id);
    let report = resumed(&recording, &id, prompt, &Limits::default()).await;
    recording.keep(name, &report);
}

async fn resumed(recording: &Recording, id: &NativeId, prompt: &str, limits: &Limits) -> TurnReport {
    recording.run(Mode::Resume { id }, prompt, limits, &Cancel::new()).await
}

pub(super) async fn resume(cli: &Pinned) {
    continued(cli, "resume", |_, _| {}, "beta").await;
}

pub(super) async fn tool_run(cli: &Pinned) {
    let prompt = cli.under_test().tool_call(cli, "echo hello > made.txt");
    continued(cli, "tool-run", |_, _| {}, &prompt).await;
}

pub(super) async fn resume_damaged(cli: &Pinned, name: &str, damage: Damage) {
    let recording = Recording::new(cli).await;
    let id = recording.begun().await;
    // A second turn, so that there is something left of a session that loses its last record.
    resumed(&recording, &id, "beta", &Limits::default()).await;
    recording.stage.damage(&id, damage);
    let report = resumed(&recording, &id, "gamma", &Limits::default()).await;
    recording.keep(name, &report);
}

pub(super) async fn resume_unknown(cli: &Pinned) {
    let recording = Recording::new(cli).await;
    // So that the place is not the cause: it has sessions.
    recording.begun().await;
    let id = NativeId::new(recording.stage.rules.unknown_id);
    let report = resumed(&recording, &id, "beta", &Limits::default()).await;
    recording.keep("resume-unknown", &report);
}

/// A fork for another mailbox, as the orchestration asks for it: out of the original's state dir into one of its own.
pub(super) async fn fork(cli: &Pinned) {
    let recording = Recording::new(cli).await;
    let source = &recording.begun().await;
    let Recording { stage, agent, installation, state_dir, .. } = &recording;
    let query = SessionQuery {
        id: source,
        cwd: &stage.place.project(),
        state_dir: Some(state_dir),
        version: installation.version.as_ref(),
    };
    let transcript = agent.catalog().unwrap().inspect(query).await.unwrap().path;
    let other = SessionKey::new("issue-42-b", &*cli.agent).unwrap();
    let own = stage.store().state_dir(&other).await.unwrap().unwrap();
    let id = recording.new_id(installation.capabilities.fork == ForkSupport::CallerChoosesId);
    let mode = Mode::Fork { source, transcript: transcript.as_deref(), id: id.as_ref() };
    let report = recording.run_in(&own, mode, "beta", &Limits::default(), &Cancel::new()).await;
    recording.keep("fork", &report);
}

pub(super) async fn fork_unknown(cli: &Pinned) {
    let recording = Recording::new(cli).await;
    recording.begun().await;
    let source = &NativeId::new(recording.stage.rules.unknown_id);
    let id = recording.new_id(recording.installation.capabilities.fork == ForkSupport::CallerChoosesId);
    let mode = Mode::Fork { source, transcript: None, id: id.as_ref() };
    let report = recording.run(mode, "beta", &Limits::default(), &Cancel::new()).await;
    recording.keep("fork-unknown", &report);
}

pub(super) async fn with_fault(cli: &Pinned, name: &str, fault: Fault, limits: &Limits) {
    let prompt = match fault {
        Fault::Status(status) => format!("[[status {status}]]"),
        Fault::Dropped => "[[drop]]".to_owned(),
        Fault::Cut => "[[cut]]".to_owned(),
    };
    let recording = Recording::new(cli).await;
    let report = recording.fresh_with(&prompt, limits, &Cancel::new()).await;
    recording.keep(name, &report);
}

pub(super) async fn connection_refused(cli: &Pinned) {
    // Nobody listens on the port for discarding here.
    let nowhere = |place: &Place| Place { model: "http://127.0.0.1:9".to_owned(), ..place.clone() };
    let recording = Recording::of(Stage::new(cli), nowhere, Some).await;
    let report = recording.fresh_with("alpha", &at_most(), &Cancel::new()).await;
    recording.keep("connection-refused", &report);
}

pub(super) async fn no_login(cli: &Pinned) {
    let logged_out = |environment| cli.under_test().logged_out(environment);
    let recording = Recording::of(Stage::new(cli), Place::clone, logged_out).await;
    let report = recording.fresh("alpha").await;
    recording.keep("no-login", &report);
}

/// A text that is in the command line of the tool and nowhere else.
const IN_TOOL: &str = "40.25";

fn in_tool(recording: &Recording) -> bool {
    let says = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(IN_TOOL.len()).any(|part| part == IN_TOOL.as_bytes())
    };
    recording.stage.processes().iter().any(says)
}

/// Runs until the moment has come, does something to the CLI, and keeps what came of it.
async fn interrupted(
    cli: &Pinned,
    name: &str,
    prompt: &str,
    moment: impl Fn(&Recording) -> bool,
    act: impl FnOnce(&Recording, &Cancel),
) {
    let recording = Recording::new(cli).await;
    let cancel = Cancel::new();
    let limits = Limits::default();
    let running = recording.fresh_with(prompt, &limits, &cancel);
    let acting = async {
        let come = async {
            while !moment(&recording) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, come).await.unwrap();
        // What the CLI says of its own accord at that moment, it says now; what is said later, nobody can wait for.
        tokio::time::sleep(Duration::from_secs(1)).await;
        act(&recording, &cancel);
    };
    let (report, ()) = tokio::join!(running, acting);
    recording.stage.model.release("turn");
    recording.keep(name, &report);
}

fn asks_the_model(recording: &Recording) -> bool {
    recording.stage.turns() > 0
}

fn signal(signal: &str, pids: &[u32]) {
    for pid in pids {
        std::process::Command::new("kill").args([signal, &pid.to_string()]).output().unwrap();
    }
}

/// Kills the CLI with all that belongs to it; the recorder is not a part of it.
fn kill(recording: &Recording) {
    let own = std::env::current_exe().unwrap();
    let is_recorder = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == own);
    let pids: Vec<_> = recording.stage.processes().into_iter().filter(|pid| !is_recorder(pid)).collect();
    assert!(!pids.is_empty());
    signal("-9", &pids);
}

fn tool(cli: &Pinned) -> String {
    // Agents refuse to sleep.
    cli.under_test().tool_call(cli, &format!("timeout {IN_TOOL} tail -f /dev/null"))
}

pub(super) async fn killed_in_model_call(cli: &Pinned) {
    interrupted(cli, "killed-in-model-call", "[[hold turn]]", asks_the_model, |recording, _| kill(recording))
        .await;
}

pub(super) async fn killed_in_tool(cli: &Pinned) {
    interrupted(cli, "killed-in-tool", &tool(cli), in_tool, |recording, _| kill(recording)).await;
}

pub(super) async fn terminated_in_tool(cli: &Pinned) {
    let end =
        |recording: &Recording, _: &Cancel| signal("-TERM", &[recorder::pid(&recording.calls).unwrap()]);
    interrupted(cli, "terminated-in-tool", &tool(cli), in_tool, end).await;
}

pub(super) async fn interrupted_in_model_call(cli: &Pinned) {
    let interrupt =
        |recording: &Recording, _: &Cancel| signal("-INT", &[recorder::pid(&recording.calls).unwrap()]);
    interrupted(cli, "interrupted-in-model-call", "[[hold turn]]", asks_the_model, interrupt).await;
}

pub(super) async fn cancelled_in_tool(cli: &Pinned) {
    interrupted(cli, "cancelled-in-tool", &tool(cli), in_tool, |_, cancel| cancel.cancel()).await;
}
