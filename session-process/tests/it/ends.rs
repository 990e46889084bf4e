//! How a run ends: limits, cancel, and what is said about it.

use std::time::{Duration, Instant};

use session_core::decide::{Activity, Verdict};
use session_core::{Asked, EndedBy, Exit, NoSink};

use crate::support::{END, Heard, Stage};

const SOON: Duration = Duration::from_millis(60);

#[tokio::test]
async fn start_idle_and_total_limit_are_told_apart() {
    let mut silent = Stage::new("exec sleep 1000");
    silent.limits.start = SOON;
    let mut idle = Stage::new(r#"echo '{"text":"hi"}'; exec sleep 1000"#);
    idle.limits.idle = SOON;
    let mut talker = Stage::new("while :; do echo >&2; sleep 0.01; done");
    (talker.limits.start, talker.limits.idle) = (Duration::from_secs(20), Duration::from_secs(20));
    talker.limits.total = 4 * SOON;
    let cases = [(silent, EndedBy::StartLimit), (idle, EndedBy::IdleLimit), (talker, EndedBy::TotalLimit)];
    for (stage, by) in cases {
        let report = stage.run(&mut NoSink).await.unwrap();
        assert_eq!((report.verdict, report.evidence.ended_by), (Verdict::TimedOut, Some(by)));
        assert_eq!(report.evidence.exit, Exit::Signal(15), "{by:?}");
    }
}

#[tokio::test]
async fn output_on_stderr_is_a_sign_of_life() {
    let mut stage = Stage::new(&format!("for i in 1 2 3 4 5 6 7 8; do echo >&2; sleep 0.05; done; {END}"));
    (stage.limits.start, stage.limits.idle) = (6 * SOON, 6 * SOON);
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!((report.verdict, report.evidence.ended_by), (Verdict::Completed, None));
}

#[tokio::test]
async fn an_agent_that_ignores_the_request_to_end_is_killed_after_the_grace_period() {
    let mut stage = Stage::new(r#"trap '' TERM; echo '{"text":"ready"}'; while :; do sleep 0.05; done"#);
    stage.limits.grace = Duration::from_millis(100);
    let mut heard = Heard::cancelling(&stage, "ready");
    let began = Instant::now();
    let report = stage.run(&mut heard).await.unwrap();
    assert!(began.elapsed() >= stage.limits.grace);
    assert_eq!(report.verdict, Verdict::Cancelled);
    assert_eq!(report.evidence.ended_by, Some(EndedBy::Cancel));
    assert_eq!(report.evidence.exit, Exit::Signal(9));
    assert_eq!(stage.processes(), [0; 0]);
}

#[tokio::test]
async fn what_an_agent_says_in_its_grace_period_is_heard() {
    let mut stage = Stage::new(
        r#"trap 'echo "{\"text\":\"saved\"}"; echo bye >&2; exit 3' TERM
        echo '{"text":"ready"}'; while :; do sleep 0.01; done"#,
    );
    stage.limits.grace = Duration::from_secs(20);
    let mut heard = Heard::cancelling(&stage, "ready");
    let report = stage.run(&mut heard).await.unwrap();
    assert_eq!(heard.texts, ["ready", "saved"]);
    assert_eq!(report.evidence.exit, Exit::Code(3));
    assert!(report.evidence.stderr_tail.ends_with("bye\n"));
    assert_eq!(report.verdict, Verdict::Cancelled);
}

#[tokio::test]
async fn a_final_event_outweighs_the_cancel_that_came_after_it() {
    let stage = Stage::new(&format!(
        r#"trap 'exit 0' TERM; {END}; echo '{{"text":"ready"}}'; while :; do sleep 0.01; done"#
    ));
    let mut heard = Heard::cancelling(&stage, "ready");
    let report = stage.run(&mut heard).await.unwrap();
    assert_eq!(report.evidence.ended_by, Some(EndedBy::Cancel));
    assert_eq!(report.verdict, Verdict::Completed);
}

#[tokio::test]
async fn a_cancelled_handle_starts_nothing() {
    let stage = Stage::new(r#"echo started > "$DIR/started""#);
    stage.cancel.cancel();
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!(report.verdict, Verdict::Cancelled);
    assert_eq!(report.evidence.exit, Exit::Unknown);
    assert_eq!(report.evidence.ended_by, Some(EndedBy::Cancel));
    assert_eq!(report.evidence.asked, Asked::Fresh(None));
    assert_eq!(report.evidence.observation.activity(), Activity::None);
    assert!(!stage.path("started").exists());
}

#[tokio::test]
async fn an_agent_that_stays_after_its_final_event_is_ended_and_its_result_stands() {
    let mut stage = Stage::new(&format!("{END}; exec sleep 1000"));
    stage.limits.linger = SOON;
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!(report.evidence.ended_by, Some(EndedBy::Linger));
    assert_eq!(report.verdict, Verdict::Completed);
    assert_eq!(stage.processes(), [0; 0]);
}

#[tokio::test]
async fn an_exit_is_reported_as_it_was() {
    let report = Stage::new("echo no >&2; exit 7").run(&mut NoSink).await.unwrap();
    assert_eq!((report.verdict, report.evidence.exit), (Verdict::Crashed, Exit::Code(7)));
    assert_eq!(report.evidence.stderr_tail, "no\n");
    let report = Stage::new("kill -SEGV $$").run(&mut NoSink).await.unwrap();
    assert_eq!((report.verdict, report.evidence.exit), (Verdict::Crashed, Exit::Signal(11)));
}

#[tokio::test]
async fn what_only_the_end_of_the_output_tells_is_told_then_whoever_ended_it() {
    let by_itself = Stage::new(r#"echo '{"owes":"ok"}'; echo bye >&2; exit 3"#);
    let report = by_itself.run(&mut NoSink).await.unwrap();
    assert_eq!(report.evidence.observation.noise_head, "Code(3): bye\n");
    assert_eq!(report.evidence.observation.end.map(|end| end.kind).as_deref(), Some("ok"));
    // It is no word of the agent that it is done: the idle limit holds until then, not the linger limit.
    let mut ended = Stage::new(r#"echo '{"owes":"half"}'; exec sleep 1000"#);
    (ended.limits.idle, ended.limits.linger) = (SOON, Duration::from_secs(600));
    let report = ended.run(&mut NoSink).await.unwrap();
    assert_eq!(report.evidence.ended_by, Some(EndedBy::IdleLimit));
    assert_eq!(report.evidence.observation.end.map(|end| end.kind).as_deref(), Some("half"));
}
