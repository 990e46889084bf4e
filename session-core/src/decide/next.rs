//! After an attempt: accept it, fall back once, wait, or fail.

use super::facts::{Activity, Attempt, AttemptFacts, Continuity, Patience, Policy, Transcript, Verdict};
use super::why::Why;

/// What to do after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// The turn is done as planned.
    Accept,
    /// The turn is done, but not in the conversation that was asked for.
    AcceptAsFresh(Why),
    /// Start one fresh run in its place.
    FallBack(Why),
    /// Wait for the busy session and try the same resume again.
    Wait,
    /// The run failed.
    Fail(Why),
}

/// What an exit means once the session's file was looked at: an agent that does not find what is there, be it that we
/// cannot read it, has lost its way to it, not the session (an index that misses a session is never the reason to call
/// it lost).
#[must_use]
pub const fn weigh(verdict: Verdict, transcript: Transcript) -> Verdict {
    match (verdict, transcript) {
        (Verdict::Missing, Transcript::Present | Transcript::Unreadable | Transcript::OtherHome) => {
            Verdict::Unindexed
        }
        _ => verdict,
    }
}

/// Decides what follows an attempt. Total: every combination of facts has an answer.
///
/// A fallback needs all of: a resume, that did nothing, under a policy that allows it, with trouble that a
/// fresh session would cure.
#[must_use]
pub const fn next(facts: AttemptFacts) -> Next {
    match (facts.attempt, facts.verdict) {
        (Attempt::Resume, Verdict::Completed) => completed_resume(facts),
        (Attempt::Fresh | Attempt::Fallback, Verdict::Completed) => Next::Accept,
        (Attempt::Fresh | Attempt::Fallback, _) => Next::Fail(failure(facts.verdict)),
        (Attempt::Resume, _) => failed_resume(facts),
    }
}

const fn completed_resume(facts: AttemptFacts) -> Next {
    match (facts.continuity, facts.policy) {
        (Continuity::Kept | Continuity::Renamed | Continuity::Unknown, _) => Next::Accept,
        (Continuity::Replaced, Policy::Require) => Next::Fail(Why::SessionReplaced),
        (Continuity::Replaced, _) => Next::AcceptAsFresh(Why::SessionReplaced),
    }
}

const fn failed_resume(facts: AttemptFacts) -> Next {
    if !matches!(facts.activity, Activity::None) {
        return Next::Fail(failure(facts.verdict));
    }
    if matches!(facts.verdict, Verdict::Busy) && matches!(facts.patience, Patience::Left) {
        return Next::Wait;
    }
    let cure = match facts.verdict {
        Verdict::Missing => Why::SessionMissing,
        Verdict::Incompatible => Why::SessionIncompatible,
        Verdict::Busy => Why::SessionBusy,
        Verdict::Archived => Why::SessionArchived,
        Verdict::ProviderChanged => Why::ProviderDiffers,
        Verdict::Unindexed => Why::SessionUnindexed,
        Verdict::ContextOverflow => Why::ContextOverflow,
        Verdict::Crashed | Verdict::NoResult | Verdict::Unknown => Why::ResumeUnrecognisedFailure,
        Verdict::Completed
        | Verdict::Unauthenticated
        | Verdict::RateLimited
        | Verdict::Transient
        | Verdict::Misconfigured
        | Verdict::TimedOut
        | Verdict::Cancelled
        | Verdict::LimitReached => return Next::Fail(failure(facts.verdict)),
    };
    match facts.policy {
        Policy::Prefer | Policy::Never | Policy::Rerun => Next::FallBack(cure),
        Policy::Require => Next::Fail(cure),
    }
}

/// The reason that belongs to a failure as such.
const fn failure(verdict: Verdict) -> Why {
    match verdict {
        Verdict::Missing => Why::SessionMissing,
        Verdict::Incompatible => Why::SessionIncompatible,
        Verdict::Busy => Why::SessionBusy,
        Verdict::Archived => Why::SessionArchived,
        Verdict::ProviderChanged => Why::ProviderDiffers,
        Verdict::Unindexed => Why::SessionUnindexed,
        Verdict::Unauthenticated => Why::Unauthenticated,
        Verdict::RateLimited => Why::RateLimited,
        Verdict::Transient => Why::TransientFailure,
        Verdict::ContextOverflow => Why::ContextOverflow,
        Verdict::Misconfigured => Why::AgentMisconfigured,
        Verdict::Crashed => Why::AgentCrashed,
        Verdict::NoResult => Why::NoResult,
        Verdict::TimedOut => Why::TimedOut,
        Verdict::Cancelled => Why::Cancelled,
        Verdict::LimitReached => Why::LimitReached,
        Verdict::Completed | Verdict::Unknown => Why::UnrecognisedFailure,
    }
}
