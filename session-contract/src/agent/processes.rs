//! Nothing that was started is left, however the turn ends (3).

use session_core::decide::{Activity, Verdict};
use session_core::{AgentEvent, Cancel, EndedBy, NoSink, RunId};

use super::stage::{SOON, Stage, limits};
use super::{Play, Subject};

/// Runs a turn that stops, and does this when it has.
async fn in_mid_turn(
    stage: &Stage,
    cancel: &Cancel,
    then: impl AsyncFnOnce(),
) -> Option<session_core::TurnReport> {
    let (limits, id) = (limits(), stage.new_id(1));
    let mut sink = NoSink;
    let turn = stage.turn(stage.fresh(&id), "one", &limits, cancel);
    let mut run = stage.fixture.adapter().run(turn, &mut sink);
    tokio::select! {
        biased;
        result = &mut run => panic!("a turn that stops has ended: {result:?}"),
        () = stage.fixture.stopped() => {}
    }
    then().await;
    if !cancel.is_cancelled() {
        return None;
    }
    let ended = tokio::time::timeout(SOON, run).await;
    let report = ended.unwrap_or_else(|_| panic!("the turn was cancelled, and goes on"));
    Some(report.unwrap_or_else(|error| panic!("the turn had begun, and there is no verdict: {error}")))
}

/// A turn that is cancelled ends in order: with a verdict that says so, and how far it got.
pub(super) fn cancel_ends_a_turn_in_order(subject: &Subject) {
    subject.on_stage(async |stage| {
        if !stage.play(Play::Stops).await {
            return not_started(stage).await;
        }
        let cancel = Cancel::new();
        let report = in_mid_turn(stage, &cancel, async || cancel.cancel()).await;
        let report = report.unwrap_or_else(|| panic!("it was cancelled"));
        assert_eq!((report.verdict, report.evidence.ended_by), (Verdict::Cancelled, Some(EndedBy::Cancel)));
        assert_ne!(report.evidence.observation.activity(), Activity::None, "how far it got is told");
        stage.nothing_runs("the turn was cancelled").await;
    });
}

async fn not_started(stage: &Stage) {
    stage.play(Play::Works).await;
    let cancel = Cancel::new();
    cancel.cancel();
    let id = stage.new_id(1);
    let before = stage.fixture.started().await;
    let turned = stage.run_with(stage.fresh(&id), "one", &limits(), &cancel).await;
    assert_eq!(turned.verdict(), Verdict::Cancelled, "{:?}", turned.report());
    assert_eq!(stage.fixture.started().await, before, "a turn that was cancelled before is not started");
    assert!(stage.fixture.conversation(&id).await.is_empty());
}

/// A turn that was cancelled before it began starts nothing.
pub(super) fn a_cancelled_turn_starts_nothing(subject: &Subject) {
    subject.on_stage(async |stage| not_started(stage).await);
}

/// When the future is dropped, everything ends, at once.
pub(super) fn a_dropped_turn_leaves_nothing(subject: &Subject) {
    subject.on_stage(async |stage| {
        if stage.play(Play::Stops).await {
            in_mid_turn(stage, &Cancel::new(), async || {
                assert!(stage.fixture.running().await > 0, "a turn that stops is running");
            })
            .await;
        } else {
            stage.play(Play::Works).await;
            let (limits, cancel, id) = (limits(), Cancel::new(), stage.new_id(1));
            let mut sink = |_: &AgentEvent<'_>| {};
            let run =
                stage.fixture.adapter().run(stage.turn(stage.fresh(&id), "one", &limits, &cancel), &mut sink);
            // Dropped as soon as it has begun.
            let _ = tokio::time::timeout(std::time::Duration::ZERO, run).await;
        }
        stage.nothing_runs("the turn was dropped").await;
    });
}

/// When the turn is over, what it left running is ended, and counted.
pub(super) fn a_turn_that_returned_leaves_nothing(subject: &Subject) {
    subject.on_stage(async |stage| {
        let leaves = stage.play(Play::LeavesSomething).await;
        if !leaves {
            stage.play(Play::Works).await;
        }
        let id = stage.new_id(1);
        let turned = stage.run(stage.fresh(&id), "one").await;
        assert_eq!(turned.verdict(), Verdict::Completed, "{:?}", turned.report());
        assert_eq!(stage.fixture.running().await, 0, "the turn is over");
        assert_eq!(turned.report().evidence.leftovers_ended > 0, leaves, "what was left is counted");
    });
}

/// What goes on when its runner dies is ended by the next one, and counted; what does not go on is not there.
pub(super) fn what_a_dead_runner_left_is_ended(subject: &Subject) {
    subject.on_stage(async |stage| {
        let adapter = stage.fixture.adapter();
        let strange = RunId::new(uuid::Uuid::from_u128(0xDEAD));
        if !(stage.fixture.outlives_its_runner() && stage.play(Play::Stops).await) {
            assert_eq!(adapter.reap(strange).await, 0, "of a run that never was, nothing is left");
            return;
        }
        let (limits, cancel, id) = (limits(), Cancel::new(), stage.new_id(1));
        let mut sink = NoSink;
        let turn = stage.turn(stage.fresh(&id), "one", &limits, &cancel);
        let run_id = turn.run;
        let mut run = Box::pin(adapter.run(turn, &mut sink));
        tokio::select! {
            biased;
            result = &mut run => panic!("a turn that stops has ended: {result:?}"),
            () = stage.fixture.stopped() => {}
        }
        // A runner that dies drops nothing.
        std::mem::forget(run);
        assert!(stage.fixture.running().await > 0, "what it started goes on");
        assert_eq!(adapter.reap(strange).await, 0, "what another run left is not ended");
        assert!(adapter.reap(run_id).await > 0, "something was left");
        stage.nothing_runs("what was left was ended").await;
    });
}
