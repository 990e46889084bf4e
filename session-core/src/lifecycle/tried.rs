//! An attempt that is over, as the decisions and the log see it.

use crate::decide::{
    Activity, Attempt, AttemptFacts, Bound, Continuity, CountFacts, Patience, Persisted, Policy, SettleFacts,
    Verdict, Why,
};
use crate::{Asked, AttemptNote, Counters, Evidence, FigureSource, NativeId, Spot, Usage};

use super::attempt::Course;

/// How much of the agent's own words the log keeps, in bytes.
const SAID_LIMIT: usize = 2048;

/// An attempt that is over.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) course: Course,
    pub(super) verdict: Verdict,
    pub(super) evidence: Evidence,
    pub(super) continuity: Continuity,
    pub(super) persisted: Persisted,
    pub(super) usage: Usage,
    pub(super) usage_source: FigureSource,
    pub(super) cost_usd: Option<f64>,
    pub(super) policy: Policy,
    /// The session that the attempt ran in: the one that the agent named, else the one asked for.
    pub(super) ran_in: Option<NativeId>,
    pub(super) is_fork: bool,
    pub(super) bound: Bound,
    /// The figures that the next run of the session counts from.
    pub(super) counters: Counters,
    /// Where the conversation stood after it.
    pub(super) spot: Option<Spot>,
}

impl Tried {
    pub(super) const fn activity(&self) -> Activity {
        self.evidence.observation.activity()
    }

    /// Whether it failed before it did anything, as far as the agent told.
    pub(super) fn did_nothing(&self) -> bool {
        self.verdict != Verdict::Completed && self.activity() == Activity::None
    }

    pub(super) const fn facts(&self, patience: Patience) -> AttemptFacts {
        AttemptFacts {
            policy: self.policy,
            attempt: self.course.attempt,
            verdict: self.verdict,
            activity: self.activity(),
            continuity: self.continuity,
            patience,
        }
    }

    pub(super) const fn settle_facts(&self, why: Option<Why>) -> SettleFacts {
        SettleFacts {
            attempt: self.course.attempt,
            verdict: self.verdict,
            activity: self.activity(),
            continuity: self.continuity,
            persisted: self.persisted,
            bound: self.bound,
            why,
        }
    }

    pub(super) const fn count_facts(&self, why: Option<Why>) -> CountFacts {
        CountFacts { attempt: self.course.attempt, verdict: self.verdict, activity: self.activity(), why }
    }

    pub(super) fn note(&self) -> AttemptNote {
        let evidence = &self.evidence;
        let observation = &evidence.observation;
        let failed = self.verdict != Verdict::Completed;
        let said = [
            observation.end.as_ref().map(|end| end.errors.join("\n")),
            observation.trouble.as_ref().map(|(_, text)| text.clone()),
            observation.end.as_ref().filter(|end| end.is_error).map(|end| end.text.clone()),
            // Of what was written last, the end says most.
            Some(crate::evidence::tail(evidence.stderr_tail.trim(), SAID_LIMIT).to_owned()),
            Some(observation.noise_head.trim().to_owned()),
        ];
        let said = said.into_iter().flatten().find(|text| !text.is_empty()).filter(|_| failed);
        AttemptNote {
            attempt: match (self.course.attempt, self.is_fork) {
                (Attempt::Resume, true) => "fork",
                (Attempt::Resume, false) => "resume",
                (Attempt::Fresh, _) => "fresh",
                (Attempt::Fallback, _) => "fallback",
            }
            .to_owned(),
            asked: match &evidence.asked {
                Asked::Fresh(id) => id.clone(),
                Asked::Resume(id) | Asked::Fork(id) => Some(id.clone()),
            },
            seen: observation.session.clone().filter(|id| id.is_argument_safe()),
            verdict: snake(self.verdict.name()),
            activity: snake(self.activity().name()),
            ended_by: evidence.ended_by.map(|by| snake(&format!("{by:?}"))),
            said: said.map(|text| crate::evidence::head(&text, SAID_LIMIT).to_owned()),
        }
    }
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
