//! Before the run: what becomes of a session that an earlier run started and never settled, because it died.

use super::facts::{Bound, Leftover};

/// All that [`adopt`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AdoptFacts {
    /// What is left of it.
    pub leftover: Leftover,
    /// Whether it was to take the place of the binding: because that was condemned, or because it is its copy.
    pub replaces: bool,
    /// Whether a session is in force.
    pub bound: Bound,
}

/// What becomes of the leftover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Adoption {
    /// It is the binding in force, confirmed.
    Bind,
    /// It is the binding in force, unconfirmed: the resume itself will tell.
    Try,
    /// It stands beside the binding.
    SetAside,
    /// It never came to anything.
    Drop,
}

/// Decides about the leftover. A session that nobody condemned is never replaced by one that nobody saw succeed.
#[must_use]
pub const fn adopt(facts: AdoptFacts) -> Adoption {
    match (facts.leftover, facts.bound, facts.replaces) {
        (Leftover::Nothing, _, _) => Adoption::Drop,
        (Leftover::Turn, Bound::No, _) | (Leftover::Turn, Bound::Yes, true) => Adoption::Bind,
        (Leftover::Unknown, Bound::No, _) => Adoption::Try,
        (Leftover::Turn | Leftover::Unknown, Bound::Yes, _) => Adoption::SetAside,
    }
}
