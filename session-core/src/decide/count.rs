//! After the run: what it says about resuming, for the row of failures.

use super::facts::{Activity, Attempt, Verdict};
use super::why::Why;

/// All that [`count`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CountFacts {
    /// The last attempt of the run.
    pub attempt: Attempt,
    /// What its exit means.
    pub verdict: Verdict,
    /// How far it got.
    pub activity: Activity,
    /// Why the run did not resume, if it did not.
    pub why: Option<Why>,
}

/// What the run says about resuming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Count {
    /// The resume worked, whatever came after it: the row ends.
    Worked,
    /// The resume failed: the row grows.
    Failed,
    /// Nothing was tried because of the row: the next resume has one try.
    Skipped,
    /// Nothing.
    Silent,
}

/// Decides what counts. A resume that reached the model worked; what ended the run later is another matter.
#[must_use]
pub const fn count(facts: CountFacts) -> Count {
    if matches!(facts.why, Some(Why::ResumeKeepsFailing)) {
        return Count::Skipped;
    }
    match facts.attempt {
        // Where the fresh run fails too, the session is acquitted.
        Attempt::Fallback => match (facts.verdict, facts.why) {
            (_, Some(Why::SessionBusy)) => Count::Silent,
            (Verdict::Completed, _) => Count::Failed,
            _ => Count::Silent,
        },
        Attempt::Fresh => Count::Silent,
        Attempt::Resume => match (facts.verdict, facts.activity, facts.why) {
            (Verdict::Completed, _, Some(_)) => Count::Failed,
            (Verdict::Completed, _, None) => Count::Worked,
            (Verdict::Incompatible | Verdict::ContextOverflow, _, _) => Count::Failed,
            (_, Activity::ModelCalled | Activity::Acted, _) => Count::Worked,
            (
                Verdict::Missing
                | Verdict::Archived
                | Verdict::ProviderChanged
                | Verdict::Unindexed
                | Verdict::Crashed
                | Verdict::NoResult
                | Verdict::Unknown,
                Activity::None,
                _,
            ) => Count::Failed,
            (_, Activity::None, _) => Count::Silent,
        },
    }
}
