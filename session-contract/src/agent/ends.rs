//! Every end has a verdict; only what could not be started is an error.

use std::time::Duration;

use session_core::decide::{Activity, Verdict};
use session_core::{Cancel, EndedBy};

use super::stage::{Stage, Turned, limits};
use super::{Play, Subject};

/// A turn that plays this; where it cannot be staged, one that was cancelled before it began is as far from complete.
async fn played(stage: &Stage, play: Play) -> (Turned, bool) {
    let staged = stage.play(play).await;
    let cancel = Cancel::new();
    if !staged {
        stage.play(Play::Works).await;
        cancel.cancel();
    }
    let id = stage.new_id(1);
    (stage.run_with(stage.fresh(&id), "one", &limits(), &cancel).await, staged)
}

const CONDEMNING: &[Verdict] = &[Verdict::Completed, Verdict::Missing, Verdict::Incompatible];

/// An agent that dies while it works (1): a verdict, which says that something was done and blames no session.
pub(super) fn a_death_in_mid_turn_is_a_verdict(subject: &Subject) {
    subject.on_stage(async |stage| {
        let (turned, staged) = played(stage, Play::Dies).await;
        let report = turned.report();
        assert!(!CONDEMNING.contains(&report.verdict), "{report:?}");
        let began = report.evidence.observation.activity() != Activity::None;
        assert_eq!(began, staged, "how far it got is told: {report:?}");
        stage.nothing_runs("the agent died").await;
    });
}

/// An agent that dies before it says a word (1).
pub(super) fn a_death_at_once_is_a_verdict(subject: &Subject) {
    subject.on_stage(async |stage| {
        let (turned, _) = played(stage, Play::DiesAtOnce).await;
        let report = turned.report();
        assert!(!CONDEMNING.contains(&report.verdict), "{report:?}");
        assert_eq!(report.evidence.observation.activity(), Activity::None, "{report:?}");
        assert_eq!(turned.session(), None);
    });
}

/// An agent that ends in order, without a word, has carried out nothing (1).
pub(super) fn an_end_in_silence_is_no_success(subject: &Subject) {
    subject.on_stage(async |stage| {
        let (turned, _) = played(stage, Play::EndsInSilence).await;
        let report = turned.report();
        assert!(!CONDEMNING.contains(&report.verdict), "{report:?}");
        assert_eq!(turned.session(), None);
    });
}

/// Without an agent there is an error, and nothing was started (1). An agent that is always there is found.
pub(super) fn what_cannot_be_started_is_an_error(subject: &Subject) {
    subject.on_stage(async |stage| {
        let Some(adapter) = stage.fixture.without_agent() else {
            assert!(stage.fixture.adapter().detect().await.is_ok(), "an agent that is always there is found");
            return;
        };
        let detected = adapter.detect().await;
        let mut installation = stage.installation.clone();
        match detected {
            // Found out when it is run: then nothing was started either.
            Ok(found) => installation = found,
            Err(_) => installation.program = "/nowhere/at/all".into(),
        }
        let (limits, cancel, id) = (limits(), Cancel::new(), stage.new_id(1));
        let turn = stage.turn(stage.fresh(&id), "one", &limits, &cancel);
        let turn = session_core::Turn { installation: &installation, ..turn };
        let result = adapter.run(turn, &mut session_core::NoSink).await;
        assert!(result.is_err(), "there is no agent, and a verdict: {result:?}");
        assert_eq!(stage.fixture.started().await, 0);
        stage.nothing_runs("nothing could be started").await;
    });
}

/// A turn that does not come to an end is ended by the limits of the caller, and says so.
pub(super) fn a_limit_ends_a_turn(subject: &Subject) {
    subject.on_stage(async |stage| {
        let mut limits = limits();
        limits.total = Duration::from_millis(500);
        if !stage.play(Play::Stops).await {
            // What ends by itself ends before any limit.
            limits.total = Duration::from_secs(60);
            stage.play(Play::Works).await;
        }
        let id = stage.new_id(1);
        let turned = stage.run_with(stage.fresh(&id), "one", &limits, &Cancel::new()).await;
        let report = turned.report();
        let expected = match limits.total.as_secs() {
            0 => (Verdict::TimedOut, Some(EndedBy::TotalLimit)),
            _ => (Verdict::Completed, None),
        };
        assert_eq!((report.verdict, report.evidence.ended_by), expected, "{report:?}");
        stage.nothing_runs("a limit ended the turn").await;
    });
}
