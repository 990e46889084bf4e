//! The record of a run in progress, and every change that a run makes to it. Pure.

use crate::decide::{RecordFact, Settlement, Why};
use crate::{
    Binding, Candidate, Folder, Guard, InFlight, LastRun, NativeId, Phase, Recorded, Route, RunId,
    SessionRecord, Timestamp,
};

/// The record, and whether and how it may be written.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) record: SessionRecord,
    pub(super) fact: RecordFact,
    pub(super) guard: Guard,
    /// Whether what was learned is in the store; anything but `Saved` ends the writing.
    pub(super) recorded: Recorded,
    /// Whether the candidate is of this run.
    pub(super) proposed: bool,
    /// The session that the run wanted to continue.
    pub(super) sought: Option<NativeId>,
}

/// A session that an attempt starts.
#[derive(Debug, Clone)]
pub(super) struct NewSession {
    pub(super) native_id: NativeId,
    pub(super) began_in: Folder,
    pub(super) agent_version: Option<String>,
    pub(super) forked_from: Option<NativeId>,
    pub(super) why: Option<Why>,
}

impl Ledger {
    pub(super) const fn is_writable(&self) -> bool {
        self.recorded.is_saved()
    }

    /// Notes that a run is under way.
    pub(super) fn begin(&mut self, run: RunId, name: Option<&str>, now: Timestamp) {
        if self.record.name.is_none() {
            self.record.name = name.map(str::to_owned);
        }
        self.record.in_flight = Some(InFlight { run, since: now });
        self.record.updated_at = now;
    }

    /// Notes a session that is about to start, or was just named: pending, beside the binding in force.
    pub(super) fn propose(&mut self, session: NewSession, now: Timestamp) {
        let NewSession { native_id, began_in, agent_version, forked_from, why } = session;
        if let Some(candidate) = &mut self.record.candidate
            && candidate.binding.native_id == native_id
        {
            candidate.binding.used_at = now;
            return;
        }
        // A candidate of an earlier run that nobody could look at may still be there.
        if let Some(old) = self.record.candidate.take().filter(|_| !self.proposed) {
            self.record.retire(&old.binding, why.map_or("id_changed", Why::code), now, true);
        }
        self.proposed = true;
        self.record.candidate = Some(Candidate {
            binding: Binding {
                native_id,
                phase: Phase::Pending,
                began_in,
                agent_version,
                created_at: now,
                used_at: now,
                cost_counter: None,
                forked_from,
                poisoned: None,
                extra: serde_json::Map::new(),
            },
            replaces: why != Some(Why::SessionBusy),
            why: why.map(|why| why.code().to_owned()),
        });
        self.record.updated_at = now;
    }

    /// Makes a candidate that turned out to hold a turn the binding, or puts it beside the binding.
    pub(super) fn adopt_candidate(&mut self, now: Timestamp) {
        let Some(candidate) = self.record.candidate.take() else { return };
        if candidate.replaces || self.record.binding.is_none() {
            self.bind(candidate.binding, candidate.why.as_deref().unwrap_or("id_changed"), now);
            self.fact = RecordFact::Confirmed;
        } else {
            self.record.retire(&candidate.binding, "stood_aside", now, true);
        }
    }

    fn bind(&mut self, mut binding: Binding, why: &str, now: Timestamp) {
        binding.phase = Phase::Confirmed;
        binding.used_at = now;
        if let Some(old) = self.record.binding.take()
            && old.native_id != binding.native_id
        {
            let gone = self.sought.as_ref() == Some(&old.native_id);
            self.record.retire(&old, why, now, !(gone && matches!(why, "session_missing" | "session_empty")));
        }
        self.record.binding = Some(binding);
    }

    /// Carries out what was decided about the session that the last attempt ran in.
    pub(super) fn settle(&mut self, settlement: Settlement, ran_in: Option<NewSession>, outcome: &Outcome) {
        let Outcome { cost_counter, why, now } = *outcome;
        let in_force = match (&ran_in, &self.record.binding) {
            (Some(session), Some(binding)) => session.native_id == binding.native_id,
            (None, _) => true,
            (Some(_), None) => false,
        };
        let version = ran_in.as_ref().and_then(|session| session.agent_version.clone());
        if let Some(session) = ran_in.filter(|_| !in_force) {
            self.propose(session, now);
        }
        if let Some(candidate) = self.record.candidate.as_mut().filter(|_| !in_force) {
            candidate.binding.cost_counter = cost_counter.or(candidate.binding.cost_counter);
        }
        match settlement {
            Settlement::Bind if in_force => {
                self.record.candidate = None;
                if let Some(binding) = &mut self.record.binding {
                    binding.phase = Phase::Confirmed;
                    binding.used_at = now;
                    binding.agent_version = version.or(binding.agent_version.take());
                    binding.cost_counter = cost_counter.or(binding.cost_counter);
                }
            }
            Settlement::Bind => self.adopt_candidate(now),
            Settlement::KeepPending => {}
            Settlement::SetAside => {
                if let Some(candidate) = self.record.candidate.take() {
                    self.record.retire(&candidate.binding, "stood_aside", now, true);
                }
            }
            Settlement::KeepBinding => {
                self.forget_proposed();
                self.note_counter(in_force, cost_counter);
            }
            Settlement::Poison => {
                let code = why.map_or("session_incompatible", Why::code);
                self.note_counter(in_force, cost_counter);
                match (&mut self.record.binding, self.record.candidate.take()) {
                    (Some(binding), _) if in_force => binding.poisoned = Some(code.to_owned()),
                    (_, Some(candidate)) => self.record.retire(&candidate.binding, code, now, true),
                    (_, None) => {}
                }
            }
        }
    }

    /// Forgets the candidate, if this run made it; one of an earlier run is not this run's to judge.
    pub(super) fn forget_proposed(&mut self) {
        if self.proposed {
            self.record.candidate = None;
        }
    }

    fn note_counter(&mut self, in_force: bool, counter: Option<f64>) {
        if in_force && let Some(binding) = &mut self.record.binding {
            binding.cost_counter = counter.or(binding.cost_counter);
        }
    }

    /// Counts resumes that failed in a row. A run that went straight to fresh for that reason gives the next
    /// resume one try, so that a success can end the row.
    pub(super) const fn count_resume(&mut self, outcome: ResumeOutcome) {
        match outcome {
            ResumeOutcome::Worked => self.record.failed_resumes = 0,
            ResumeOutcome::Failed => {
                self.record.failed_resumes = self.record.failed_resumes.saturating_add(1)
            }
            ResumeOutcome::SkippedForFailing => self.record.failed_resumes = FAILING - 1,
            ResumeOutcome::NotTried => {}
        }
    }

    /// Notes the end of the run.
    pub(super) fn finish(&mut self, run: RunId, route: Route, why: Option<Why>, ok: bool, now: Timestamp) {
        self.record.in_flight = None;
        self.record.updated_at = now;
        self.record.last_run = Some(LastRun {
            run,
            at: now,
            route: route.code().to_owned(),
            why: why.map(|why| why.code().to_owned()),
            ok,
        });
    }
}

/// What the end of a run says beside the settlement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    /// The agent's running cost figure.
    pub(super) cost_counter: Option<f64>,
    /// The reason, if there is one.
    pub(super) why: Option<Why>,
    pub(super) now: Timestamp,
}

/// After so many failed resumes in a row, the next run goes straight to fresh.
pub(super) const FAILING: u32 = 3;

/// What a run says about resuming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResumeOutcome {
    Worked,
    Failed,
    SkippedForFailing,
    NotTried,
}
