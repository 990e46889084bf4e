//! In a sweep: what becomes of a key, or of a state dir without a record.

use super::facts::{Extent, Owner, Unused};

/// All that [`fate`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SweepFacts {
    /// Whose it is.
    pub owner: Owner,
    /// How long it is out of use, beside the grace of orphans.
    pub grace: Unused,
    /// How long it is out of use, beside the limit of what is idle.
    pub idle: Unused,
    /// What that limit holds for.
    pub extent: Extent,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It is removed: nobody owns it.
    Orphaned,
    /// It is removed: it is idle for too long.
    Idle,
    /// It stays.
    Kept,
    /// It stays, and may go where room is needed.
    Spare,
}

/// Decides. What is alive goes only where the caller reaches for it.
#[must_use]
pub const fn fate(facts: SweepFacts) -> Fate {
    match (facts.owner, facts.extent) {
        (Owner::Live, Extent::Orphans) => Fate::Kept,
        (Owner::Nobody, _) if matches!(facts.grace, Unused::Past) => Fate::Orphaned,
        _ if matches!(facts.idle, Unused::Past) => Fate::Idle,
        _ => Fate::Spare,
    }
}
