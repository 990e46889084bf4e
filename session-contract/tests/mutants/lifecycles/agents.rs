//! Adapters that let a lifecycle hear what is not so.

use std::sync::{Arc, Mutex};

use session_core::decide::{Activity, Verdict};
use session_core::error::AgentError;
use session_core::*;

type Report = std::result::Result<TurnReport, AgentError>;

/// What is done to a turn on its way in, to its events, and to its report.
#[derive(Debug)]
struct Wrapped {
    inner: Arc<dyn AgentAdapter>,
    how: How,
    last: Mutex<Option<NativeId>>,
}

#[derive(Debug, Clone, Copy)]
struct How {
    report: fn(TurnReport) -> TurnReport,
    passes: fn(&AgentEvent<'_>) -> bool,
    /// Continues the last session in place of beginning a new one.
    continues_the_last: bool,
    /// Tries a turn that failed once more.
    tries_again: bool,
    reaps: bool,
}

const SOUND: How = How {
    report: |report| report,
    passes: |_| true,
    continues_the_last: false,
    tries_again: false,
    reaps: true,
};

struct Passing<'a>(&'a mut dyn EventSink, fn(&AgentEvent<'_>) -> bool);

impl EventSink for Passing<'_> {
    fn event(&mut self, event: &AgentEvent<'_>) {
        if (self.1)(event) {
            self.0.event(event);
        }
    }
}

#[async_trait]
impl AgentAdapter for Wrapped {
    fn id(&self) -> &AgentId {
        self.inner.id()
    }
    fn accepts_id(&self, id: &NativeId) -> bool {
        self.inner.accepts_id(id)
    }
    async fn detect(&self) -> std::result::Result<Installation, AgentError> {
        self.inner.detect().await
    }
    async fn run(&self, turn: Turn<'_>, sink: &mut dyn EventSink) -> Report {
        let mut sink = Passing(sink, self.how.passes);
        let last = self.last.lock().unwrap().clone();
        let mode = match (turn.mode, &last) {
            (Mode::Fresh { .. }, Some(id)) if self.how.continues_the_last => Mode::Resume { id },
            (mode, _) => mode,
        };
        let mut report = self.inner.run(Turn { mode, ..turn }, &mut sink).await?;
        if self.how.tries_again && report.verdict != Verdict::Completed {
            report = self.inner.run(turn, &mut sink).await?;
        }
        if report.verdict == Verdict::Completed {
            self.last.lock().unwrap().clone_from(&report.evidence.observation.session);
        }
        Ok((self.how.report)(report))
    }
    async fn reap(&self, run: RunId) -> u32 {
        if self.how.reaps { self.inner.reap(run).await } else { 0 }
    }
}

fn wrap(inner: Arc<dyn AgentAdapter>, how: How) -> Agent {
    Agent::new(Wrapped { inner, how, last: Mutex::default() })
}

fn with(report: TurnReport, from: Verdict, to: Verdict) -> TurnReport {
    TurnReport { verdict: if report.verdict == from { to } else { report.verdict }, ..report }
}

/// A mutant: what is wrong with it, the case that is meant to catch it, and the adapter.
type Mutant = (&'static str, &'static str, Wrap);

/// What stands between the lifecycle and the agent of the walks.
pub(crate) type Wrap = fn(Arc<dyn AgentAdapter>) -> Agent;

pub(crate) const MUTANTS: &[Mutant] = &[
    ("continues the latest session when a new one is wanted", "the_policy_is_kept", |inner| {
        wrap(inner, How { continues_the_last: true, ..SOUND })
    }),
    ("tries every failed turn once more", "one_fallback_at_most", |inner| {
        wrap(inner, How { tries_again: true, ..SOUND })
    }),
    ("does not say that the model was called", "no_prompt_runs_twice", |inner| {
        let report = |mut report: TurnReport| {
            report.evidence.observation.model_called = false;
            report.evidence.observation.acted = false;
            report
        };
        wrap(inner, How { report, ..SOUND })
    }),
    ("takes a rate limit for a failure that nobody knows", "only_a_cure_falls_back", |inner| {
        wrap(inner, How { report: |report| with(report, Verdict::RateLimited, Verdict::Unknown), ..SOUND })
    }),
    (
        "says that it is in the session asked for, wherever it is",
        "a_resume_is_the_same_conversation",
        |inner| {
            let report = |mut report: TurnReport| {
                if let Asked::Resume(id) = &report.evidence.asked {
                    report.evidence.observation.session = Some(id.clone());
                }
                report
            };
            let passes = |event: &AgentEvent<'_>| !matches!(event, AgentEvent::Session { .. });
            wrap(inner, How { report, passes, ..SOUND })
        },
    ),
    ("ignores the id that the agent names", "a_resume_is_the_same_conversation", |inner| {
        let report = |mut report: TurnReport| {
            report.evidence.observation.session = None;
            report
        };
        wrap(inner, How { report, ..SOUND })
    }),
    ("does not tell of the id before the end", "a_named_session_is_noted", |inner| {
        let passes = |event: &AgentEvent<'_>| !matches!(event, AgentEvent::Session { .. });
        wrap(inner, How { passes, ..SOUND })
    }),
    ("calls a lost session completed", "a_resume_is_the_same_conversation", |inner| {
        wrap(inner, How { report: |report| with(report, Verdict::Missing, Verdict::Completed), ..SOUND })
    }),
    ("says missing for busy", "every_reason_is_true", |inner| {
        wrap(inner, How { report: |report| with(report, Verdict::Busy, Verdict::Missing), ..SOUND })
    }),
    ("calls a good turn crashed", "recording_spoils_no_result", |inner| {
        wrap(inner, How { report: |report| with(report, Verdict::Completed, Verdict::Crashed), ..SOUND })
    }),
    ("adopts the id of a run that failed", "a_resume_is_the_same_conversation", |inner| {
        let report = |mut report: TurnReport| {
            if report.verdict != Verdict::Completed
                && report.evidence.observation.activity() == Activity::None
            {
                report.verdict = Verdict::Completed;
                report.evidence.observation.session =
                    Some(NativeId::new("99999999-9999-4999-8999-999999999999"));
            }
            report
        };
        wrap(inner, How { report, ..SOUND })
    }),
    ("condemns a session for trouble with the login", "a_good_session_is_never_lost", |inner| {
        wrap(
            inner,
            How { report: |report| with(report, Verdict::Unauthenticated, Verdict::Incompatible), ..SOUND },
        )
    }),
    ("leaves running what a dead runner left", "what_a_dead_runner_left_is_ended", |inner| {
        wrap(inner, How { reaps: false, ..SOUND })
    }),
];
