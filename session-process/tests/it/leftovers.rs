//! Nothing is left: whatever the agent started, wherever that went, however the run ends.
#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use session_core::decide::Verdict;
use session_core::{AgentAdapter, EndedBy, NoSink};

use crate::support::{END, Heard, Stage, is_there, until};

/// Starts a process that leaves the session and loses its parent, and waits until it is there.
const ESCAPE: &str = r#"(setsid sh -c 'echo $$ > "$DIR/escaped"; exec sleep 1000' >/dev/null 2>&1 </dev/null &)
while [ ! -s "$DIR/escaped" ]; do :; done
"#;
const READY: &str = r#"echo '{"text":"ready"}'"#;

fn escaped(stage: &Stage) -> i32 {
    stage.read("escaped").trim().parse().expect("the process wrote its number")
}

#[tokio::test]
async fn an_escaped_process_is_ended_after_success() {
    let stage = Stage::new(&format!("{ESCAPE}{END}"));
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!((report.verdict, report.evidence.ended_by), (Verdict::Completed, None));
    assert_eq!(report.evidence.leftovers_ended, 1);
    assert!(!is_there(escaped(&stage)));
}

#[tokio::test]
async fn an_escaped_process_is_found_after_a_long_run_too() {
    // Past the time in which the short way of looking is allowed.
    let stage = Stage::new(&format!("{ESCAPE}sleep 1.1; {END}"));
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!(report.evidence.leftovers_ended, 1);
    assert!(!is_there(escaped(&stage)));
}

#[tokio::test]
async fn an_escaped_process_is_ended_on_cancel_and_by_a_limit() {
    let stage = Stage::new(&format!("{ESCAPE}{READY}; exec sleep 1000"));
    let report = stage.run(&mut Heard::cancelling(&stage, "ready")).await.unwrap();
    assert_eq!((report.verdict, report.evidence.leftovers_ended), (Verdict::Cancelled, 1));
    assert!(!is_there(escaped(&stage)));

    let mut stage = Stage::new(&format!("{ESCAPE}{READY}; exec sleep 1000"));
    stage.limits.idle = Duration::from_millis(50);
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!((report.verdict, report.evidence.ended_by), (Verdict::TimedOut, Some(EndedBy::IdleLimit)));
    assert!(!is_there(escaped(&stage)));
}

#[tokio::test]
async fn dropping_the_run_kills_everything_at_once() {
    let stage = Arc::new(Stage::new(&format!("trap '' TERM; {ESCAPE}{READY} > \"$DIR/ready\"; sleep 1000")));
    let run = tokio::spawn({
        let stage = Arc::clone(&stage);
        async move { stage.run(&mut NoSink).await.map(|_| ()) }
    });
    until("the agent is ready", || !stage.read("ready").is_empty()).await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    until("nothing is left", || stage.processes().is_empty() && !is_there(escaped(&stage))).await;
}

#[tokio::test]
async fn a_descendant_with_a_scrubbed_environment_is_found_by_its_parents() {
    let stage = Stage::new(
        r#"env -i DIR="$DIR" setsid sh -c 'echo $$ > "$DIR/escaped"; exec /bin/sleep 1000' &
        while [ ! -s "$DIR/escaped" ]; do :; done
        echo '{"text":"ready"}'; wait"#,
    );
    let report = stage.run(&mut Heard::cancelling(&stage, "ready")).await.unwrap();
    assert_eq!((report.verdict, report.evidence.leftovers_ended), (Verdict::Cancelled, 1));
    assert!(!is_there(escaped(&stage)));
}

#[tokio::test]
async fn an_orphan_with_a_scrubbed_environment_is_found_in_its_group() {
    let stage = Stage::new(&format!(
        r#"(env -i DIR="$DIR" sh -c 'echo $$ > "$DIR/escaped"; exec /bin/sleep 1000' >/dev/null 2>&1 &)
        while [ ! -s "$DIR/escaped" ]; do :; done; {END}"#
    ));
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!((report.verdict, report.evidence.leftovers_ended), (Verdict::Completed, 1));
    assert!(!is_there(escaped(&stage)));
}

#[tokio::test]
async fn a_leftover_that_ignores_the_request_to_end_is_killed() {
    let mut stage = Stage::new(&format!(
        r#"(setsid sh -c 'trap "" TERM; echo $$ > "$DIR/escaped"; while :; do sleep 0.05; done' >/dev/null 2>&1 &)
        while [ ! -s "$DIR/escaped" ]; do :; done; {END}"#
    ));
    stage.limits.grace = Duration::from_millis(50);
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!(report.verdict, Verdict::Completed);
    assert!(report.evidence.leftovers_ended >= 1);
    assert_eq!(stage.processes(), [0; 0]);
}

#[tokio::test]
async fn a_leftover_that_holds_stdout_does_not_hold_the_run() {
    let stage = Stage::new(&format!("setsid sleep 1000 & {END}"));
    let began = Instant::now();
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!((report.verdict, report.evidence.leftovers_ended), (Verdict::Completed, 1));
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(stage.processes(), [0; 0]);
}

#[tokio::test]
async fn even_a_holder_of_stdout_that_cannot_be_found_does_not_hold_the_run() {
    let stage = Stage::new(
        r#"(env -i DIR="$DIR" setsid sh -c 'echo $$ > "$DIR/escaped"; exec /bin/sleep 1000' &)
        while [ ! -s "$DIR/escaped" ]; do :; done; printf '{"text":"half"}'"#,
    );
    let mut heard = Heard::default();
    let report = stage.run(&mut heard).await.unwrap();
    let killed = Command::new("kill").arg(escaped(&stage).to_string()).status().unwrap();
    assert!(killed.success(), "this one is out of reach, as the documentation says");
    assert_eq!(report.evidence.leftovers_ended, 0);
    assert_eq!(heard.texts, ["half"], "what was said is not lost");
}

#[tokio::test]
async fn late_output_of_a_process_behind_a_launcher_is_heard() {
    let stage = Stage::new(&format!("(sleep 0.05; {END}) &"));
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!((report.verdict, report.evidence.leftovers_ended), (Verdict::Completed, 0));
}

#[tokio::test]
async fn reaping_ends_what_a_dead_run_left_and_nothing_else() {
    let (stage, other) = (Stage::new(""), Stage::new(""));
    let sleeper = |run: String| {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; (sleep 1000 & wait) & wait"]).env("REJOIN_RUN", run);
        command.spawn().unwrap()
    };
    let mut dead = sleeper(stage.run.to_string());
    let mut alive = sleeper(other.run.to_string());
    until("all are there", || stage.processes().len() == 3 && other.processes().len() == 3).await;
    assert_eq!(stage.agent().reap(stage.run).await, 3);
    assert_eq!((stage.processes().len(), other.processes().len()), (0, 3));
    assert_eq!(stage.agent().reap(stage.run).await, 0);
    assert_eq!(other.agent().reap(other.run).await, 3);
    dead.wait().unwrap();
    alive.wait().unwrap();
}
