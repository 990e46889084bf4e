//! Before the run: resume, start fresh, or refuse.

use super::facts::{Consent, History, IdShape, PlanFacts, Policy, RecordFact, Support, Transcript, Workdir};
use super::locate::reaches;
use super::why::Why;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Continue the bound session.
    Resume,
    /// Start a new one.
    Fresh(Why),
    /// Do nothing; the caller wanted a resume or nothing.
    Refuse(Why),
}

/// Decides what to do. Total: every combination of facts has an answer.
#[must_use]
pub const fn plan(facts: PlanFacts) -> Plan {
    let obstacle = match obstacle(facts) {
        None => return Plan::Resume,
        Some(why) => why,
    };
    match facts.policy {
        Policy::Require => Plan::Refuse(obstacle),
        Policy::Prefer | Policy::Never | Policy::Rerun => Plan::Fresh(obstacle),
    }
}

/// The first thing that stands against a resume. The order is part of the contract: what is said first is
/// what the caller can act on first.
const fn obstacle(facts: PlanFacts) -> Option<Why> {
    match facts.policy {
        Policy::Never => return Some(Why::ResumeDisabled),
        Policy::Rerun => return Some(Why::RecipeRerun),
        Policy::Prefer | Policy::Require => {}
    }
    match facts.record {
        RecordFact::Unavailable => return Some(Why::StoreUnavailable),
        RecordFact::Newer => return Some(Why::RecordNewer),
        RecordFact::Corrupt => return Some(Why::RecordCorrupt),
        RecordFact::Absent | RecordFact::Closed => return Some(Why::NoPriorSession),
        RecordFact::Confirmed | RecordFact::Pending => {}
    }
    match facts.support {
        Support::AgentCannot => return Some(Why::AgentCannotResume),
        Support::VersionCannot => return Some(Why::VersionCannotResume),
        Support::Able => {}
    }
    if matches!(facts.id, IdShape::Malformed) {
        return Some(Why::IdMalformed);
    }
    if matches!(facts.workdir, Workdir::OtherProject) && matches!(facts.consent, Consent::No) {
        return Some(Why::ProjectDiffers);
    }
    match facts.history {
        History::Poisoned => return Some(Why::LastRunPoisoned),
        History::KeepsFailing => return Some(Why::ResumeKeepsFailing),
        History::Expired => return Some(Why::Expired),
        History::TooLarge => return Some(Why::TooLarge),
        History::Clean => {}
    }
    match (facts.transcript, facts.record) {
        (Transcript::OtherHome, _) => return Some(Why::HomeDiffers),
        (Transcript::Missing | Transcript::Empty, RecordFact::Pending) => {
            return Some(Why::SessionNotStarted);
        }
        (Transcript::Missing, _) => return Some(Why::SessionMissing),
        (Transcript::Empty, _) => return Some(Why::SessionEmpty),
        (Transcript::Damaged, _) => return Some(Why::SessionDamaged),
        (Transcript::Unreadable, _) => return Some(Why::SessionUnreadable),
        (Transcript::Elsewhere, _) if matches!(facts.consent, Consent::No) => {
            return Some(Why::ProjectDiffers);
        }
        (Transcript::Elsewhere | Transcript::Present | Transcript::Unknown, _) => {}
    }
    if reaches(facts.reach, facts.workdir) {
        return None;
    }
    Some(if matches!(facts.workdir, Workdir::Gone) { Why::WorktreeGone } else { Why::WorkdirDiffers })
}
