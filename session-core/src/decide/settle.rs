//! After the run: what becomes of the binding in force, and of the session that this run was in.

use super::facts::{Activity, Attempt, Bound, Continuity, Persisted, Verdict};
use super::why::Why;

/// All that [`settle`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SettleFacts {
    /// The last attempt of the run.
    pub attempt: Attempt,
    /// What its exit means.
    pub verdict: Verdict,
    /// How far it got.
    pub activity: Activity,
    /// In which conversation it was.
    pub continuity: Continuity,
    /// Whether the agent kept a turn of it.
    pub persisted: Persisted,
    /// Whether another session is in force.
    pub bound: Bound,
    /// Why the run did not resume, if it did not.
    pub why: Option<Why>,
}

/// What becomes of the session that the last attempt ran in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settlement {
    /// It is the binding in force, confirmed; the one before moves to the past.
    Bind,
    /// It stays a candidate: the next run looks whether it holds a turn.
    KeepPending,
    /// It stands beside the binding, which stays in force.
    SetAside,
    /// The binding stays in force as it was; the attempt's session is forgotten.
    KeepBinding,
    /// The binding stays in force, but is marked: the next run does not try it again.
    Poison,
}

/// Whether a reason says that the session cannot be continued any more. All other reasons speak of the run, its
/// folder or its version: the session may be as good as ever.
#[must_use]
pub const fn condemns(why: Why) -> bool {
    matches!(
        why,
        Why::SessionMissing
            | Why::SessionEmpty
            | Why::SessionDamaged
            | Why::SessionNotStarted
            | Why::SessionIncompatible
            | Why::ContextOverflow
            | Why::LastRunPoisoned
            | Why::IdMalformed
    )
}

/// Whether a fresh session stands beside the binding even when it works: the binding is only out of reach for now.
const fn stands_aside(why: Option<Why>) -> bool {
    matches!(
        why,
        Some(
            Why::SessionBusy
                | Why::SessionUnreadable
                | Why::SessionArchived
                | Why::SessionUnindexed
                | Why::ProviderDiffers
                | Why::VersionCannotResume
                | Why::AgentCannotResume
        )
    )
}

const fn is_condemned(why: Option<Why>) -> bool {
    match why {
        Some(why) => condemns(why),
        None => false,
    }
}

/// Decides what is bound after the run.
///
/// A session becomes the binding only when the agent kept a turn of it, or when the turn was completed and nobody
/// can look. A run that failed takes no session away that was not condemned, and a busy session never loses its
/// binding.
#[must_use]
pub const fn settle(facts: SettleFacts) -> Settlement {
    match facts.attempt {
        Attempt::Resume => resumed(facts),
        Attempt::Fresh | Attempt::Fallback => started(facts),
    }
}

const fn is_kept(facts: SettleFacts) -> bool {
    match facts.persisted {
        Persisted::Yes => true,
        Persisted::No => false,
        Persisted::Unknown => matches!(facts.verdict, Verdict::Completed),
    }
}

const fn resumed(facts: SettleFacts) -> Settlement {
    let completed = matches!(facts.verdict, Verdict::Completed);
    let ruins = matches!(facts.verdict, Verdict::Incompatible | Verdict::ContextOverflow);
    match facts.continuity {
        _ if ruins && !matches!(facts.activity, Activity::None) => Settlement::Poison,
        Continuity::Kept | Continuity::Unknown if completed && is_kept(facts) => Settlement::Bind,
        // The copy holds the turn, whatever the verdict; the old id lacks it.
        Continuity::Renamed if is_kept(facts) => Settlement::Bind,
        Continuity::Replaced if completed && is_kept(facts) => Settlement::SetAside,
        _ => Settlement::KeepBinding,
    }
}

const fn started(facts: SettleFacts) -> Settlement {
    let completed = matches!(facts.verdict, Verdict::Completed);
    let bound = matches!(facts.bound, Bound::Yes);
    if is_kept(facts) {
        return match (bound, completed) {
            (false, _) => Settlement::Bind,
            (true, true) if stands_aside(facts.why) => Settlement::SetAside,
            (true, true) => Settlement::Bind,
            (true, false) if is_condemned(facts.why) => Settlement::Bind,
            (true, false) => Settlement::SetAside,
        };
    }
    if completed || bound { Settlement::KeepBinding } else { Settlement::KeepPending }
}
