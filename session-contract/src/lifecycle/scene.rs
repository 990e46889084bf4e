//! What a run stands before, and what came of it, as the model sees them.

use std::collections::BTreeSet;

use session_core::decide::{Activity, Verdict, Why};
use session_core::{Asked, Folder, ForkSupport, IdOnResume, ReachCapability, ResumePolicy};

use super::step::Health;
use super::world::{Attempt, World};

/// What a run stands before.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) world: World,
    /// The folders that are there.
    pub(super) folders: Vec<Folder>,
    pub(super) catalog: bool,
    pub(super) here: Folder,
    pub(super) policy: ResumePolicy,
    pub(super) consent: bool,
}

/// What the run has to do: continue the target, unless something stands against it.
#[derive(Debug, Clone)]
pub(super) struct Want {
    pub(super) target: Option<String>,
    pub(super) obstacles: BTreeSet<Why>,
}

/// How the last attempt of a run went.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) last: &'a Attempt,
    pub(super) is_fallback: bool,
    /// Why it was no resume.
    pub(super) why: Option<Why>,
    /// Why the run failed.
    pub(super) failure: Option<Why>,
}

/// Whether a session is given up for this reason.
pub(super) const fn condemns(why: Why) -> bool {
    matches!(
        why,
        Why::SessionMissing
            | Why::SessionEmpty
            | Why::SessionDamaged
            | Why::SessionNotStarted
            | Why::SessionIncompatible
            | Why::ContextOverflow
            | Why::LastRunPoisoned
    )
}

/// Whether a session is only out of reach for this reason.
pub(super) const fn only_away(why: Why) -> bool {
    matches!(
        why,
        Why::SessionBusy
            | Why::SessionUnreadable
            | Why::SessionArchived
            | Why::SessionUnindexed
            | Why::ProviderDiffers
            | Why::VersionCannotResume
            | Why::AgentCannotResume
    )
}

impl Scene {
    pub(super) fn began(&self, id: &str) -> Option<&Folder> {
        self.world.begun.get(id)
    }

    pub(super) fn began_here(&self, id: &str) -> bool {
        self.began(id).is_some_and(|began| began.path == self.here.path)
    }

    /// Why a session that began there cannot be continued here.
    pub(super) fn away(&self, id: &str) -> Option<Why> {
        let began = self.began(id)?;
        let reach = self.world.release().capabilities().resume_reach;
        let (moved, other) = (self.here.id == began.id, self.is_other_project(id));
        let there = self.folders.contains(began);
        match () {
            () if self.here.path == began.path => None,
            () if other && !self.consent => Some(Why::ProjectDiffers),
            () if reach == ReachCapability::Anywhere => None,
            () if moved || other => Some(Why::WorkdirDiffers),
            () if !there => Some(Why::WorktreeGone),
            () if reach == ReachCapability::Repository => None,
            () => Some(Why::WorkdirDiffers),
        }
    }

    /// Whether a session began in a folder that has nothing to do with this one.
    pub(super) fn is_other_project(&self, id: &str) -> bool {
        self.began(id).is_some_and(|began| {
            let same_repository = self.here.repository.is_some() && self.here.repository == began.repository;
            self.here.path != began.path && self.here.id != began.id && !same_repository
        })
    }

    /// What somebody who looks finds: `None` when nobody can.
    pub(super) fn look(&self, id: &str) -> Option<Health> {
        if !self.catalog {
            return None;
        }
        Some(match self.world.session(id) {
            None => Health::Gone,
            Some(session)
                if session.turns.is_empty()
                    && !session.health.is_lost()
                    && session.health != Health::Locked =>
            {
                Health::Empty
            }
            Some(session) => session.health,
        })
    }

    pub(super) fn cannot(&self) -> Option<Why> {
        let capabilities = self.world.release().capabilities();
        match (capabilities.resumable_sessions, capabilities.headless_resume) {
            (false, _) => Some(Why::AgentCannotResume),
            (true, false) => Some(Why::VersionCannotResume),
            (true, true) => None,
        }
    }

    pub(super) fn copies(&self) -> bool {
        self.world.release().capabilities().id_on_resume == IdOnResume::Replaced
    }

    pub(super) fn forks(&self) -> bool {
        self.world.release().capabilities().fork != ForkSupport::No
    }
}

/// What a run says about resuming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Worked,
    Failed,
    Skipped,
    Silent,
}

pub(super) fn count(seen: &Seen<'_>, verdict: Verdict) -> Count {
    let why = seen.failure.or(seen.why);
    let completed = verdict == Verdict::Completed;
    match seen.last.asked {
        _ if why == Some(Why::ResumeKeepsFailing) => Count::Skipped,
        Asked::Fresh(_) if seen.is_fallback && completed && why != Some(Why::SessionBusy) => Count::Failed,
        Asked::Fresh(_) => Count::Silent,
        Asked::Resume(_) | Asked::Fork(_) => match verdict {
            Verdict::Completed if why.is_none() => Count::Worked,
            Verdict::Completed | Verdict::Incompatible | Verdict::ContextOverflow => Count::Failed,
            _ if seen.last.activity != Activity::None => Count::Worked,
            verdict if is_resume_failure(verdict) => Count::Failed,
            _ => Count::Silent,
        },
    }
}

/// Whether a resume that did nothing and ended like this failed as a resume.
pub(super) const fn is_resume_failure(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Missing
            | Verdict::Incompatible
            | Verdict::ContextOverflow
            | Verdict::Archived
            | Verdict::ProviderChanged
            | Verdict::Unindexed
            | Verdict::Crashed
            | Verdict::NoResult
            | Verdict::Unknown
    )
}

/// What an attempt came to, once somebody looked: what is there is not missing.
pub(super) fn effective(attempt: &Attempt, after: &Scene) -> Verdict {
    let verdict = attempt.verdict.unwrap_or(Verdict::Unknown);
    let there = |id| after.look(id).is_some_and(|health| !health.is_lost());
    match (verdict, attempt.asked_resume()) {
        (Verdict::Missing, Some(id)) if there(id) => Verdict::Unindexed,
        (verdict, _) => verdict,
    }
}
