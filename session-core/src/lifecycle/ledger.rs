//! The record of a run in progress, and every change that a run makes to it. Pure.

use super::preamble::Passing;
use super::target::homes_differ;
use crate::decide::{Adoption, Count, RecordFact, Settlement, Why, condemns};
use crate::{
    Binding, Candidate, Counters, Folder, Former, Guard, InFlight, LastRun, Lease, NativeId, PathText, Phase,
    Recorded, Route, RunId, SessionRecord, Timestamp,
};

/// Why a session is in the past when no reason of a run put it there.
const ID_CHANGED: &str = "id_changed";
const STOOD_ASIDE: &str = "stood_aside";
const OTHER_FOLDER: &str = "other_folder";
/// Why a session is in the past by a wish of the caller: only another wish brings it back.
const PUT_ASIDE: [&str; 6] = ["rewound", "undone", "cleared", "set_aside", "forked", COMPACTED];
/// Left for a conversation that begins with its summary: continued only where somebody asks for it.
pub(super) const COMPACTED: &str = "compacted";

/// The record, and whether and how it may be written.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) record: SessionRecord,
    pub(super) fact: RecordFact,
    pub(super) guard: Guard,
    /// The right to write it.
    pub(super) lease: Option<Lease>,
    /// Whether what was learned is in the store; anything but `Saved` ends the writing.
    pub(super) recorded: Recorded,
    /// The session that the run wanted to continue.
    pub(super) sought: Option<NativeId>,
    /// Why the agent may have deleted that session, where it was not used for so long.
    pub(super) faded: Option<String>,
    /// Whether the run put another session in force.
    rebound: bool,
    /// How a text that waits in the record stands with the run.
    pub(super) passing: Passing,
}

/// A session that an attempt starts, or that the agent named.
#[derive(Debug, Clone)]
pub(super) struct NewSession {
    pub(super) native_id: NativeId,
    pub(super) began_in: Folder,
    pub(super) lives_in: Option<Folder>,
    pub(super) home: Option<PathText>,
    pub(super) agent_version: Option<String>,
    pub(super) forked_from: Option<NativeId>,
    pub(super) replaces: bool,
    pub(super) why: Option<Why>,
    pub(super) instead_of: Option<NativeId>,
}

/// What the end of a run says beside the settlement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    /// The agent's running figures.
    pub(super) counters: Counters,
    /// The reason, if there is one.
    pub(super) why: Option<Why>,
    pub(super) now: Timestamp,
}

impl Ledger {
    pub(super) fn new(record: SessionRecord, fact: RecordFact, guard: Guard, recorded: Recorded) -> Self {
        let passing = Passing::default();
        Self {
            record,
            fact,
            guard,
            lease: None,
            recorded,
            sought: None,
            faded: None,
            rebound: false,
            passing,
        }
    }

    /// Whether the session that was sought is the binding in force: what is said of it, is said of the binding.
    pub(super) fn sought_the_binding(&self) -> bool {
        let binding = self.record.binding.as_ref().map(|binding| &binding.native_id);
        self.sought.is_none() || self.sought.as_ref() == binding
    }

    fn sought_former(&self) -> Option<&Former> {
        self.record.past.iter().find(|former| Some(&former.native_id) == self.sought.as_ref())
    }

    pub(super) const fn is_writable(&self) -> bool {
        self.recorded.is_saved()
    }

    /// Allows one more try where a write failed and the disk may be well again. The guard
    /// stays: had the failed write arrived after all, this one is refused.
    pub(super) fn try_again(&mut self) {
        let known = !matches!(self.fact, RecordFact::Unavailable | RecordFact::Corrupt | RecordFact::Newer);
        if known && matches!(self.recorded, Recorded::Failed(_)) {
            self.recorded = Recorded::Saved;
        }
    }

    /// Notes that a run is under way.
    pub(super) fn begin(&mut self, run: RunId, name: Option<&str>, now: Timestamp) {
        if self.record.name.is_none() {
            self.record.name = name.map(str::to_owned);
        }
        self.record.in_flight = Some(InFlight { run, since: now, extra: serde_json::Map::new() });
        self.record.updated_at = now;
    }

    /// Notes a session that is about to start, or was just named: pending, beside the binding in force.
    pub(super) fn propose(&mut self, session: NewSession, now: Timestamp) {
        self.pass_on_to(&session.native_id);
        let NewSession { native_id, began_in, lives_in, home, agent_version, forked_from, .. } = session;
        let NewSession { replaces, why, instead_of, .. } = session;
        if let Some(candidate) = &mut self.record.candidate
            && candidate.binding.native_id == native_id
        {
            candidate.binding.used_at = now;
            return;
        }
        self.record.candidate = Some(Candidate {
            binding: Binding {
                native_id,
                phase: Phase::Pending,
                began_in,
                home,
                lives_in,
                agent_version,
                created_at: now,
                used_at: now,
                counters: Counters::default(),
                forked_from,
                poisoned: None,
                extra: serde_json::Map::new(),
            },
            replaces,
            why: why.map(|why| why.code().to_owned()),
            instead_of,
            extra: serde_json::Map::new(),
        });
        self.record.updated_at = now;
    }

    /// Carries out what was decided about a session whose run died.
    pub(super) fn adopt(&mut self, adoption: Adoption, now: Timestamp) {
        let Some(candidate) = self.record.candidate.take() else { return };
        match adoption {
            Adoption::Bind => {
                let why = candidate.why.unwrap_or_else(|| ID_CHANGED.to_owned());
                self.bind(candidate.binding, &why, now);
                self.fact = RecordFact::Confirmed;
            }
            Adoption::Try => {
                self.record.binding = Some(candidate.binding);
                self.fact = RecordFact::Pending;
            }
            Adoption::SetAside if !self.knows(&candidate.binding.native_id) => {
                // What came in the place of another session may be anybody's.
                let replaced = candidate.instead_of.is_some();
                let why = if replaced { Why::SessionReplaced.code() } else { STOOD_ASIDE };
                self.record.retire(&candidate.binding, why, now, true);
            }
            Adoption::SetAside | Adoption::Drop => {}
        }
    }

    /// Whether the session has its place already.
    fn knows(&self, id: &NativeId) -> bool {
        let bound = self.record.binding.as_ref().is_some_and(|binding| binding.native_id == *id);
        bound || self.record.past.iter().any(|former| former.native_id == *id)
    }

    fn bind(&mut self, mut binding: Binding, why: &str, now: Timestamp) {
        binding.phase = Phase::Confirmed;
        binding.used_at = now;
        let old = self.record.binding.as_ref();
        let elsewhere = old.is_some_and(|old| {
            old.folder().path != binding.folder().path
                || homes_differ(old.home.as_ref(), binding.home.as_ref())
        });
        let on_purpose = [Why::ResumeDisabled, Why::RecipeRerun];
        let row = match self.sought_former() {
            // Another one in its place has its try.
            Some(former) if former.native_id != binding.native_id => former.failed_resumes.min(FAILING - 1),
            Some(former) => former.failed_resumes,
            // One begun elsewhere or on purpose takes nobody's place: it starts with a clean row.
            None if elsewhere || on_purpose.iter().any(|purpose| why == purpose.code()) => 0,
            None => self.record.failed_resumes.min(FAILING - 1),
        };
        self.record.past.retain(|former| former.native_id != binding.native_id);
        if let Some(old) = self.record.binding.take().filter(|old| old.native_id != binding.native_id) {
            // A reason speaks of the session that was sought. Where that is another one, this one is only left.
            let sought = self.sought.as_ref().is_none_or(|sought| *sought == old.native_id);
            let gone = sought && matches!(why, "session_missing" | "session_empty");
            let left = if sought { why } else { OTHER_FOLDER };
            let over = gone || old.phase == Phase::Closed;
            self.record.retire(&old, old.poisoned.as_deref().unwrap_or(left), now, !over);
            if let Some(former) = self.record.past.last_mut() {
                former.failed_resumes = self.record.failed_resumes;
            }
            self.record.failed_resumes = row;
        }
        if let Some(condemned) = Why::from_code(why).filter(|why| condemns(*why)) {
            for former in
                self.record.past.iter_mut().filter(|former| Some(&former.native_id) == self.sought.as_ref())
            {
                condemned.code().clone_into(&mut former.why);
            }
        }
        self.record.binding = Some(binding);
    }

    /// The sessions of the past that live in this folder and may be continued there, best first: the newest that was
    /// in force, then those that stood aside since. Never one that it superseded, or that came in the place of another.
    pub(super) fn formers_of(&self, here: &Folder) -> impl Iterator<Item = &Former> {
        let lives_here = |former: &&Former| {
            former.why != Why::SessionReplaced.code()
                && former.folder().is_some_and(|folder| folder.path == here.path)
        };
        let fine = |former: &&Former| {
            former.rejoinable
                && Why::from_code(&former.why).is_none_or(|why| !condemns(why))
                && !PUT_ASIDE.contains(&&*former.why)
        };
        let past = || self.record.past.iter().rev().filter(lives_here);
        let in_force = past().find(|former| former.why != STOOD_ASIDE);
        let since = past().take_while(|former| former.why == STOOD_ASIDE);
        in_force.into_iter().chain(since).filter(fine)
    }

    /// Carries out what was decided about the session that the last attempt ran in.
    pub(super) fn settle(&mut self, settlement: Settlement, ran_in: Option<NewSession>, outcome: &Outcome) {
        let Outcome { counters, why, now } = *outcome;
        let in_force = match (&ran_in, &self.record.binding) {
            (Some(session), Some(binding)) => session.native_id == binding.native_id,
            (None, _) | (_, None) => false,
        };
        let version = ran_in.as_ref().and_then(|session| session.agent_version.clone());
        let home = ran_in.as_ref().and_then(|session| session.home.clone());
        if let (true, Some(binding)) = (in_force, &mut self.record.binding) {
            binding.counters = counters.or(binding.counters);
        }
        let id = ran_in.as_ref().map(|session| session.native_id.clone());
        // A copy that came to nothing says of its original what it says of itself.
        let ruined = match &ran_in {
            Some(session) if session.replaces => self.sought.clone().or_else(|| id.clone()),
            _ => id.clone(),
        };
        let mut from_past = false;
        for former in self.record.past.iter_mut().filter(|former| Some(&former.native_id) == id.as_ref()) {
            from_past = true;
            former.counters = counters.or(former.counters);
        }
        if let Some(session) = ran_in.filter(|_| !in_force) {
            self.propose(session, now);
            if let Some(candidate) = &mut self.record.candidate {
                candidate.binding.counters = counters.or(candidate.binding.counters);
            }
        }
        let candidate =
            if settlement == Settlement::KeepPending { None } else { self.record.candidate.take() };
        match (settlement, candidate) {
            (Settlement::KeepPending, _) => {}
            (Settlement::Bind, Some(candidate)) if !in_force => {
                let moved = from_past.then_some(OTHER_FOLDER);
                let reason = moved.or(candidate.why.as_deref()).unwrap_or(ID_CHANGED).to_owned();
                self.bind(candidate.binding, &reason, now);
                self.rebound = true;
            }
            (Settlement::Bind, _) => {
                if let Some(binding) = &mut self.record.binding {
                    binding.phase = Phase::Confirmed;
                    binding.used_at = now;
                    binding.agent_version = version.or(binding.agent_version.take());
                    binding.home = home.or(binding.home.take());
                }
            }
            // One that stands in the past already stays there as it is.
            (Settlement::SetAside, Some(candidate)) if !from_past => {
                let replaced = why == Some(Why::SessionReplaced);
                let code = if replaced { Why::SessionReplaced.code() } else { STOOD_ASIDE };
                self.record.retire(&candidate.binding, code, now, true);
            }
            (Settlement::SetAside | Settlement::KeepBinding, _) => {}
            (Settlement::Poison, _) => {
                self.poison(ruined.as_ref(), why.map_or("session_incompatible", Why::code))
            }
        }
    }

    fn poison(&mut self, id: Option<&NativeId>, code: &str) {
        if let Some(binding) = self.record.binding.as_mut().filter(|binding| Some(&binding.native_id) == id) {
            binding.poisoned = Some(code.to_owned());
        }
        // One that came in the place of another stays what it is: no session of any folder.
        let replaced = |former: &Former| former.why == Why::SessionReplaced.code();
        let of_id = |former: &&mut Former| Some(&former.native_id) == id && !replaced(former);
        for former in self.record.past.iter_mut().filter(of_id) {
            code.clone_into(&mut former.why);
            former.poisoned = Some(code.to_owned());
        }
    }

    /// Forgets a session that was not started after all.
    pub(super) fn forget_proposed(&mut self) {
        self.record.candidate = None;
    }

    /// Counts resumes that failed in a row: for a session of this folder that did not get its place back, there,
    /// else for the binding. A run that went straight to fresh for that reason gives the next resume one try, so
    /// that a success can end the row.
    pub(super) fn count(&mut self, count: Count) {
        let sought = self.sought.as_ref().filter(|_| !self.rebound);
        let former = self.record.past.iter_mut().find(|former| Some(&former.native_id) == sought);
        let row = former.map_or(&mut self.record.failed_resumes, |former| &mut former.failed_resumes);
        match count {
            Count::Worked => *row = 0,
            Count::Failed => *row = row.saturating_add(1),
            Count::Skipped => *row = FAILING - 1,
            Count::Silent => {}
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
            extra: serde_json::Map::new(),
        });
    }
}

/// After so many failed resumes in a row, the next run goes straight to fresh.
pub(super) const FAILING: u32 = 3;
