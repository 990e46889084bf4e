//! What is known before the run, gathered into closed facts.

use std::path::PathBuf;

use crate::decide::{Consent, History, IdShape, PlanFacts, Policy, RecordFact, Support, Transcript, Workdir};
use crate::error::{RequestError, RunError, StoreErrorKind};
use crate::{
    AuditEvent, Binding, Folder, Guard, Inspection, Installation, LeaseOutcome, NativeId, Phase, Place,
    Presence, Recorded, SessionKey, SessionQuery, SessionRecord, Warning, codec,
};

use super::admit::Job;
use super::ledger::{FAILING, Ledger};
use super::{Hold, Lifecycle};

/// The session that a resume would continue, or that a fork would copy.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) binding: Binding,
    pub(super) before: Option<Inspection>,
    /// The original's file, when the target is to be forked out of another key's state dir.
    pub(super) fork_file: Option<PathBuf>,
    pub(super) is_fork: bool,
}

/// Everything that a run stands on.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) installation: Installation,
    pub(super) place: Place,
    pub(super) state_dir: Option<PathBuf>,
    pub(super) target: Option<Target>,
    pub(super) facts: PlanFacts,
    pub(super) warnings: Vec<Warning>,
    pub(super) events: Vec<AuditEvent>,
}

impl Lifecycle {
    /// Takes the lease. A store that cannot be asked does not stop the run: it is then fresh and unrecorded.
    pub(super) async fn hold(&self, key: &SessionKey) -> Result<Hold, RunError> {
        match self.store.lease(key, &self.host.holder()).await {
            Ok(LeaseOutcome::Held(lease)) => Ok(Hold::Held(lease)),
            Ok(LeaseOutcome::Busy { by }) => Err(RunError::Busy { key: key.clone(), by }),
            Err(error) => Ok(Hold::Unavailable(error)),
        }
    }

    pub(super) async fn resolve(&self, job: &Job<'_>, hold: &mut Hold) -> Result<(Scene, Ledger), RunError> {
        let folder = self.host.folder(job.cwd).await;
        let folder = folder.map_err(|error| RunError::Request(RequestError::Folder(error)))?;
        let place = Place { cwd: job.cwd.to_owned(), folder };
        let installation = job.agent.adapter().detect().await.map_err(RunError::Agent)?;
        let mut warnings = Vec::new();
        let mut events = Vec::new();
        if let (false, Some(version)) = (installation.capabilities.verified, &installation.version) {
            warnings.push(Warning::UnverifiedVersion(version.text.clone()));
        }
        let mut ledger = self.open_ledger(job, hold, &mut warnings, &mut events).await;
        let state_dir = match (self.state_dirs, ledger.fact) {
            (true, _) => self.store.state_dir(&job.key).await.map_err(RunError::Store)?,
            (false, _) => None,
        };
        if let Some(in_flight) = &ledger.record.in_flight {
            let ended = job.agent.adapter().reap(in_flight.run).await;
            tracing::warn!(key = %job.key, run = %in_flight.run, ended, "an earlier runner died");
            let mut event = AuditEvent::new(self.host.now(), job.run, "run_reclaimed");
            event.detail =
                Some(format!("run {} did not end; {ended} of its processes were ended", in_flight.run));
            events.push(event);
            warnings.push(Warning::Reclaimed(ended));
        }
        let mut scene = Scene {
            facts: self.base_facts(job, &installation, ledger.fact),
            installation,
            place,
            state_dir,
            target: None,
            warnings,
            events,
        };
        self.choose_target(job, &mut scene, &mut ledger).await?;
        ledger.sought = scene.target.as_ref().map(|target| target.binding.native_id.clone());
        Ok((scene, ledger))
    }

    fn base_facts(&self, job: &Job<'_>, installation: &Installation, record: RecordFact) -> PlanFacts {
        let capabilities = installation.capabilities;
        PlanFacts {
            policy: job.policy,
            record,
            support: match (capabilities.resumable_sessions, capabilities.headless_resume) {
                (false, _) => Support::AgentCannot,
                (true, false) => Support::VersionCannot,
                (true, true) => Support::Able,
            },
            id: IdShape::WellFormed,
            workdir: Workdir::Same,
            reach: capabilities.resume_reach.into(),
            consent: if job.request.enter_project { Consent::Yes } else { Consent::No },
            transcript: Transcript::Unknown,
            history: History::Clean,
        }
    }

    async fn open_ledger(
        &self,
        job: &Job<'_>,
        hold: &mut Hold,
        warnings: &mut Vec<Warning>,
        events: &mut Vec<AuditEvent>,
    ) -> Ledger {
        let now = self.host.now();
        let blank = |fact, recorded| Ledger {
            record: SessionRecord::new(job.key.clone(), now),
            fact,
            guard: Guard::Absent,
            recorded,
            proposed: false,
            sought: None,
        };
        if let Some(error) = hold.take_error() {
            return blank(RecordFact::Unavailable, Recorded::Failed(error));
        }
        let unreadable = match self.store.load(&job.key).await {
            Ok(None) => return blank(RecordFact::Absent, Recorded::Saved),
            Ok(Some(stored)) => match codec::decode(&stored.document, &job.key) {
                codec::Decoded::Record(record) => {
                    let fact = match record.binding.as_ref().or(record.candidate.as_ref().map(|c| &c.binding))
                    {
                        None => RecordFact::Absent,
                        Some(binding) => fact_of(binding.phase),
                    };
                    let guard = Guard::Revision(stored.revision);
                    let recorded = Recorded::Saved;
                    return Ledger { record: *record, fact, guard, recorded, proposed: false, sought: None };
                }
                codec::Decoded::Newer(_) => {
                    let why = crate::decide::Why::RecordNewer;
                    return blank(RecordFact::Newer, Recorded::Withheld(why));
                }
                codec::Decoded::Corrupt(reason) => reason,
            },
            Err(error) if error.kind() == StoreErrorKind::Corrupt => error.to_string(),
            Err(error) if error.kind() == StoreErrorKind::Newer => {
                return blank(RecordFact::Newer, Recorded::Withheld(crate::decide::Why::RecordNewer));
            }
            Err(error) => return blank(RecordFact::Unavailable, Recorded::Failed(error)),
        };
        match self.store.set_aside(&job.key).await {
            Err(error) => blank(RecordFact::Corrupt, Recorded::Failed(error)),
            Ok(place) => {
                let place = place.unwrap_or_default();
                tracing::warn!(key = %job.key, reason = unreadable, place, "a record was set aside");
                let mut event = AuditEvent::new(now, job.run, "record_set_aside");
                event.detail = Some(format!("{unreadable}; kept at {place}"));
                events.push(event);
                warnings.push(Warning::RecordSetAside(place));
                blank(RecordFact::Corrupt, Recorded::Saved)
            }
        }
    }

    /// Chooses the session to continue, looks at it, and completes the facts.
    async fn choose_target(
        &self,
        job: &Job<'_>,
        scene: &mut Scene,
        ledger: &mut Ledger,
    ) -> Result<(), RunError> {
        if let Some(candidate) = ledger.record.candidate.clone() {
            let look = self.inspect(job, scene, &candidate.binding.native_id, scene.state_dir.clone()).await;
            match look.as_ref().map(|look| look.presence) {
                Some(Presence::Present) => ledger.adopt_candidate(self.host.now()),
                // Nobody can look: the resume itself will tell.
                None if candidate.replaces && candidate.binding.phase == Phase::Pending => {
                    self.aim(job, scene, candidate.binding, None).await;
                    scene.facts.record = RecordFact::Pending;
                    return Ok(());
                }
                _ if ledger.record.binding.is_some() => ledger.record.candidate = None,
                Some(_) => {
                    self.aim(job, scene, candidate.binding, look).await;
                    scene.facts.record = RecordFact::Pending;
                    return Ok(());
                }
                None => {}
            }
        }
        if let Some(binding) = ledger.record.binding.clone() {
            scene.facts.record = fact_of(binding.phase);
            scene.facts.history = self.history(&binding, ledger.record.failed_resumes);
            let look = self.inspect(job, scene, &binding.native_id, scene.state_dir.clone()).await;
            self.aim(job, scene, binding, look).await;
        } else if let (Some(source), RecordFact::Absent) = (&job.fork_of, ledger.fact) {
            self.aim_at_original(job, scene, source).await?;
        }
        Ok(())
    }

    async fn aim(&self, job: &Job<'_>, scene: &mut Scene, binding: Binding, look: Option<Inspection>) {
        let safe = binding.native_id.is_argument_safe() && job.agent.adapter().accepts_id(&binding.native_id);
        scene.facts.id = if safe { IdShape::WellFormed } else { IdShape::Malformed };
        scene.facts.workdir = self.relation(&scene.place.folder, &binding.began_in).await;
        scene.facts.transcript = transcript_fact(look.as_ref(), &binding.began_in, scene);
        if look.as_ref().is_some_and(|look| look.torn_tail) {
            scene.warnings.push(Warning::TornTail);
        }
        scene.target = Some(Target { binding, before: look, fork_file: None, is_fork: false });
    }

    /// Aims at the session of another key, to be copied. There is no fallback from a fork.
    async fn aim_at_original(
        &self,
        job: &Job<'_>,
        scene: &mut Scene,
        source: &SessionKey,
    ) -> Result<(), RunError> {
        if job.policy == Policy::Prefer {
            scene.facts.policy = Policy::Require;
        }
        let record = match self.store.load(source).await {
            Err(error) => return Err(RunError::Store(error)),
            Ok(None) => return Ok(()),
            Ok(Some(stored)) => match codec::decode(&stored.document, source) {
                codec::Decoded::Record(record) => record,
                codec::Decoded::Newer(_) => {
                    scene.facts.record = RecordFact::Newer;
                    return Ok(());
                }
                codec::Decoded::Corrupt(_) => {
                    scene.facts.record = RecordFact::Corrupt;
                    return Ok(());
                }
            },
        };
        let Some(binding) = record.binding else { return Ok(()) };
        let dir =
            if self.state_dirs { self.store.state_dir(source).await.map_err(RunError::Store)? } else { None };
        scene.facts.record = fact_of(binding.phase);
        scene.facts.history = self.history(&binding, record.failed_resumes);
        if scene.installation.capabilities.fork == crate::ForkSupport::No {
            scene.facts.support = Support::VersionCannot;
        }
        let look = self.inspect(job, scene, &binding.native_id, dir.clone()).await;
        let file = look.as_ref().and_then(|look| look.path.clone()).filter(|_| dir != scene.state_dir);
        self.aim(job, scene, binding, look).await;
        if let Some(target) = &mut scene.target {
            target.fork_file = file;
            target.is_fork = true;
        }
        Ok(())
    }

    fn history(&self, binding: &Binding, failed_resumes: u32) -> History {
        let age = self.host.now().since(binding.used_at);
        if binding.poisoned.is_some() {
            History::Poisoned
        } else if failed_resumes >= FAILING {
            History::KeepsFailing
        } else if self.max_age.is_some_and(|limit| age > limit) {
            History::Expired
        } else {
            History::Clean
        }
    }

    async fn relation(&self, here: &Folder, began: &Folder) -> Workdir {
        let is_there = match began.path.as_path() {
            _ if here.path == began.path => true,
            Some(path) => self.host.folder(path).await.is_ok_and(|folder| folder.id == began.id),
            None => false,
        };
        here.relation_to(began, is_there)
    }

    /// Looks at a session's file; `None` when nobody can.
    pub(super) async fn inspect(
        &self,
        job: &Job<'_>,
        scene: &mut Scene,
        id: &NativeId,
        state_dir: Option<PathBuf>,
    ) -> Option<Inspection> {
        let catalog = job.agent.catalog()?;
        if !id.is_argument_safe() || !job.agent.adapter().accepts_id(id) {
            return None;
        }
        let cwd = scene.place.folder.path.as_path().unwrap_or(&scene.place.cwd);
        let version = scene.installation.version.as_ref();
        let query = SessionQuery { id, cwd, state_dir: state_dir.as_deref(), version };
        match catalog.inspect(query).await {
            Ok(look) => Some(look),
            Err(error) => {
                tracing::warn!(key = %job.key, %error, "a session's file could not be looked at");
                scene.warnings.push(Warning::NotInspected(error.to_string()));
                None
            }
        }
    }
}

const fn fact_of(phase: Phase) -> RecordFact {
    match phase {
        Phase::Pending => RecordFact::Pending,
        Phase::Confirmed => RecordFact::Confirmed,
        Phase::Closed => RecordFact::Closed,
    }
}

/// In a state dir all files are the key's own. In the agent's own place, a file that began in another folder
/// than recorded is another session under the same id.
fn transcript_fact(look: Option<&Inspection>, began_in: &Folder, scene: &Scene) -> Transcript {
    let Some(look) = look else { return Transcript::Unknown };
    match look.presence {
        Presence::Missing => Transcript::Missing,
        Presence::Empty => Transcript::Empty,
        Presence::Damaged => Transcript::Damaged,
        Presence::Present => match (&scene.state_dir, &look.began_in, began_in.path.as_path()) {
            (None, Some(found), Some(recorded)) if found != recorded => Transcript::Elsewhere,
            _ => Transcript::Present,
        },
    }
}
