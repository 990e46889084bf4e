//! After the run: what becomes of the binding in force, and of the session that this run started.

use super::facts::{Activity, Attempt, Continuity, Verdict};
use super::why::Why;

/// Whether the session's own file shows a turn of this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Persisted {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// Nobody can look.
    Unknown,
}

impl Persisted {
    /// Every value.
    pub const ALL: &'static [Self] = &[Self::Yes, Self::No, Self::Unknown];
}

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

/// Decides what is bound after the run.
///
/// A session becomes the binding only when the agent kept a turn of it, or when the turn was completed and
/// nobody can look. A busy session never loses its binding.
#[must_use]
pub const fn settle(facts: SettleFacts) -> Settlement {
    let completed = matches!(facts.verdict, Verdict::Completed);
    let kept = match facts.persisted {
        Persisted::Yes => true,
        Persisted::No => false,
        Persisted::Unknown => completed,
    };
    match facts.attempt {
        Attempt::Resume => match facts.verdict {
            Verdict::Completed if matches!(facts.continuity, Continuity::Renamed | Continuity::Replaced) => {
                if kept {
                    Settlement::Bind
                } else {
                    Settlement::KeepBinding
                }
            }
            Verdict::Completed if kept => Settlement::Bind,
            Verdict::Incompatible | Verdict::ContextOverflow if !matches!(facts.activity, Activity::None) => {
                Settlement::Poison
            }
            // A copy that was made before the failure holds the turn; the old id lacks it.
            _ if matches!(facts.continuity, Continuity::Renamed)
                && matches!(facts.persisted, Persisted::Yes) =>
            {
                Settlement::Bind
            }
            _ => Settlement::KeepBinding,
        },
        Attempt::Fresh | Attempt::Fallback => {
            let aside = matches!(facts.why, Some(Why::SessionBusy));
            let on_trial = matches!(facts.why, Some(Why::ResumeUnrecognisedFailure));
            match (kept, aside) {
                (true, true) => Settlement::SetAside,
                // The fresh run failed too: the old session is acquitted.
                (true, false) if on_trial && !completed => Settlement::SetAside,
                (true, false) => Settlement::Bind,
                (false, true) => Settlement::KeepBinding,
                (false, false) if on_trial && !completed => Settlement::KeepBinding,
                (false, false) if matches!(facts.persisted, Persisted::No) && completed => {
                    Settlement::KeepBinding
                }
                (false, false) => Settlement::KeepPending,
            }
        }
    }
}
