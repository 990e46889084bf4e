//! Kills in mid-turn, of the CLI and of the runner, and two runners at once.

use std::time::Duration;

use rejoin::{Cancel, LlmResult, Route, RunError, Why};

use crate::begun::Begun;
use crate::matrix::Turns;
use crate::pinned::Pinned;
use crate::runner;
use crate::stage::{PATIENCE, Stage, reply};

/// Starts a run that is held in its model call, and returns when the call is under way.
pub(crate) async fn in_mid_turn(
    stage: &Stage,
    prompt: &str,
) -> tokio::task::JoinHandle<Result<LlmResult, RunError>> {
    let (lifecycle, request) = (stage.lifecycle(true), stage.request(prompt));
    let running = tokio::spawn(async move { lifecycle.run(request).await });
    wait_for_turn(stage, prompt).await;
    running
}

pub(super) async fn wait_for_turn(stage: &Stage, prompt: &str) {
    let asked = |stage: &Stage| {
        stage
            .model
            .requests()
            .iter()
            .any(|r| r.is_turn() && r.user_texts.last().is_some_and(|t| t.contains(prompt)))
    };
    while !asked(stage) {
        let more = stage.model.model_calls() + 1;
        if !asked(stage) {
            stage.model.wait_for_calls(more, PATIENCE).await.unwrap();
        }
    }
}

/// Waits until a session holds this text.
async fn until_kept(stage: &Stage, text: &str) {
    let kept = async {
        while !stage.holds(text) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, kept).await.unwrap();
}

/// Kills the CLI in this turn and checks what the run says of it.
async fn kill_the_cli(stage: &Stage, scenario: &str, prompt: &str) {
    let before = stage.turns();
    let running = in_mid_turn(stage, prompt).await;
    if stage.rules.keeps_prompts_at_once {
        until_kept(stage, prompt).await;
    }
    stage.signal("KILL");
    let outcome = running.await.unwrap();
    stage.note(scenario, &outcome, Turns::Counted(stage.turns() - before));
    match outcome {
        Err(RunError::Failed { why, run }) => {
            assert_eq!(why, Why::AgentCrashed);
            assert_eq!(run.attempts.len(), 1, "the model was called: the prompt is not run again");
        }
        other => panic!("{other:?}"),
    }
    stage.model.release("turn");
}

pub(super) async fn the_cli_in_a_resumed_turn(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    kill_the_cli(&stage, "CLI killed in a resumed turn", "[[hold turn]] beta").await;
    assert_eq!(Some(stage.bound().await), first.session_id, "the binding is kept");
    let next = stage
        .row("CLI killed in a resumed turn, then run again", true, stage.request("gamma"))
        .await
        .unwrap();
    assert_eq!((next.route, &next.session_id), (Route::Resumed, &first.session_id));
    let seen = reply(&next);
    assert_eq!((seen.first.as_str(), seen.last.as_str()), ("alpha", "gamma"));
}

pub(super) async fn the_cli_in_the_first_turn(cli: &Pinned) {
    let stage = Stage::new(cli);
    kill_the_cli(&stage, "CLI killed in the first turn", "[[hold turn]] alpha").await;
    let next =
        stage.row("CLI killed in the first turn, then run again", true, stage.request("beta")).await.unwrap();
    assert_eq!(next.route, stage.rules.after_a_killed_first_turn);
    assert_eq!(reply(&next).last, "beta");
}

pub(super) async fn the_runner_in_mid_turn(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    let mut runner = runner::start(&stage, "[[hold turn]] beta");
    wait_for_turn(&stage, "[[hold turn]] beta").await;
    runner.kill().unwrap();
    runner.wait().unwrap();
    assert!(
        !stage.processes().is_empty(),
        "the CLI outlives its runner: that is what the next run must see to"
    );
    let next = stage.row("runner killed, then resumed", true, stage.request("gamma")).await.unwrap();
    assert_eq!((next.route, &next.session_id), (Route::Resumed, &first.session_id));
    let reclaimed =
        |warning: &rejoin::Warning| matches!(warning, rejoin::Warning::Reclaimed(ended) if *ended > 0);
    assert!(next.warnings.iter().any(reclaimed), "{:?}", next.warnings);
    assert_eq!(stage.processes(), [0; 0], "nothing is left of either run");
    assert_eq!(reply(&next).first, "alpha");
}

pub(super) async fn cancelled_in_mid_turn(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    let cancel = Cancel::new();
    let (lifecycle, request) =
        (stage.lifecycle(true), stage.request("[[hold turn]] beta").cancel(cancel.clone()));
    let before = stage.turns();
    let running = tokio::spawn(async move { lifecycle.run(request).await });
    wait_for_turn(&stage, "[[hold turn]] beta").await;
    cancel.cancel();
    let outcome = running.await.unwrap();
    stage.note("cancelled in mid-turn", &outcome, Turns::Counted(stage.turns() - before));
    assert!(matches!(outcome, Err(RunError::Failed { why: Why::Cancelled, .. })));
    assert_eq!(stage.processes(), [0; 0], "nothing is left");
    let next = stage.run("gamma").await.unwrap();
    assert_eq!((next.route, next.session_id), (Route::Resumed, first.session_id.clone()));
}

pub(super) async fn two_runners_at_once(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    let mut runner = runner::start(&stage, "[[hold turn]] beta");
    wait_for_turn(&stage, "[[hold turn]] beta").await;
    match stage.row("two runners at once", true, stage.request("gamma")).await {
        Err(RunError::Busy { key: busy, by: Some(by) }) => {
            assert_eq!((busy, by.pid), (stage.key(), runner.id()));
        }
        other => panic!("{other:?}"),
    }
    stage.model.release("turn");
    assert!(runner.wait().unwrap().success(), "the first runner is not disturbed");
    let next = stage.run("gamma").await.unwrap();
    assert_eq!((next.route, &next.session_id), (Route::Resumed, &first.session_id));
    assert_eq!(reply(&next).user_turns, 3);
}
