//! What is known before the run, gathered into closed facts.

use std::path::{Path, PathBuf};

use crate::decide::{Consent, History, IdShape, PlanFacts, RecordFact, Support, Transcript, Workdir};
use crate::error::{Chain, RequestError, RunError, StoreErrorKind};
use crate::{
    AuditEvent, CheckpointId, Guard, Inspection, Installation, KeptSeed, NativeId, PathText, Place, Recorded,
    ResumeMode, SessionQuery, SessionRecord, Warning, codec,
};

use super::Lifecycle;
use super::admit::Job;
use super::hold::Hold;
use super::ledger::Ledger;
use super::target::{Target, fact_of};

/// Everything that a run stands on.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) installation: Installation,
    pub(super) place: Place,
    pub(super) state_dir: Option<PathBuf>,
    /// The agent's own place, where it keeps the session in it.
    pub(super) home: Option<PathText>,
    pub(super) target: Option<Target>,
    pub(super) facts: PlanFacts,
    pub(super) warnings: Vec<Warning>,
    /// The checkpoint before the first attempt.
    pub(super) checkpoint: Option<CheckpointId>,
}

impl Lifecycle {
    pub(super) async fn resolve(&self, job: &Job<'_>, hold: &mut Hold) -> Result<(Scene, Ledger), RunError> {
        let folder = self.host.folder(job.cwd).await;
        let folder = folder.map_err(|error| RunError::Request(RequestError::Folder(error)))?;
        let place = Place { cwd: job.cwd.to_owned(), folder };
        let installation = job.agent.adapter().detect_in(job.cwd).await.map_err(RunError::Agent)?;
        let mut warnings = Vec::new();
        if let (false, Some(version)) = (installation.capabilities.verified, &installation.version) {
            warnings.push(Warning::UnverifiedVersion(version.text.clone()));
        }
        // Before the record: where this fails, nothing was set aside yet.
        let state_dir = if self.state_dirs || job.request.scratch {
            self.store.state_dir(&job.key).await.map_err(RunError::Store)?
        } else {
            None
        };
        let mut ledger = self.open_ledger(job, hold, &mut warnings).await;
        ledger.lease = hold.lease();
        if ledger.record.in_flight.is_some() {
            // Only who has the key still may end what another one seems to have left. Where that could not be told, nobody said
            // otherwise, and the run's own first write is still to come.
            self.persist(&mut ledger).await;
            ledger.try_again();
        }
        if matches!(ledger.recorded, Recorded::LostLease) {
            return Err(self.lost(&job.key).await);
        }
        let stays = !matches!(ledger.recorded, Recorded::LostRace);
        if let Some(in_flight) = ledger.record.in_flight.as_ref().filter(|_| stays) {
            let ended = job.agent.adapter().reap(in_flight.run).await;
            tracing::warn!(key = %job.key, run = %in_flight.run, ended, "an earlier runner died");
            let mut event = AuditEvent::new(self.host.now(), job.run, "run_reclaimed");
            event.detail =
                Some(format!("run {} did not end; {ended} of its processes were ended", in_flight.run));
            warnings.extend(self.append(&job.key, &event).await.err());
            warnings.push(Warning::Reclaimed(ended));
        }
        if let Some(seed) = &job.request.seed {
            ledger.record.seed = Some(KeptSeed::Known(seed.clone()));
        } else if job.request.mode == ResumeMode::RerunRecipe && ledger.record.recipe().is_none() {
            return Err(RunError::Request(RequestError::NoSeed { key: job.key.clone() }));
        }
        let mut scene = Scene {
            facts: self.base_facts(job, &installation, ledger.fact),
            installation,
            place,
            home: match &state_dir {
                None => {
                    job.agent.catalog().and_then(|catalog| catalog.home()).map(|home| PathText::new(&home))
                }
                Some(_) => None,
            },
            state_dir,
            target: None,
            warnings,
            checkpoint: None,
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

    async fn open_ledger(&self, job: &Job<'_>, hold: &mut Hold, warnings: &mut Vec<Warning>) -> Ledger {
        let now = self.host.now();
        let blank = |fact, recorded| {
            Ledger::new(SessionRecord::new(job.key.clone(), now), fact, Guard::Absent, recorded)
        };
        if let Some(error) = hold.take_error() {
            return blank(RecordFact::Unavailable, Recorded::Failed(error));
        }
        let (unreadable, found) = match self.store.load(&job.key).await {
            Ok(None) => return blank(RecordFact::Absent, Recorded::Saved),
            Ok(Some(stored)) => match codec::decode(&stored.document, &job.key) {
                codec::Decoded::Record(record) => {
                    let fact = match record.binding.as_ref().or(record.candidate.as_ref().map(|c| &c.binding))
                    {
                        None => RecordFact::Absent,
                        Some(binding) => fact_of(binding.phase),
                    };
                    let guard = Guard::Revision(stored.revision);
                    return Ledger::new(*record, fact, guard, Recorded::Saved);
                }
                codec::Decoded::Newer(_) => {
                    let why = crate::decide::Why::RecordNewer;
                    return blank(RecordFact::Newer, Recorded::Withheld(why));
                }
                codec::Decoded::Corrupt(reason) => (reason, Guard::Revision(stored.revision)),
            },
            Err(error) if error.kind() == StoreErrorKind::Corrupt => (error.to_string(), Guard::Any),
            Err(error) if error.kind() == StoreErrorKind::Newer => {
                return blank(RecordFact::Newer, Recorded::Withheld(crate::decide::Why::RecordNewer));
            }
            Err(error) => return blank(RecordFact::Unavailable, Recorded::Failed(error)),
        };
        match self.store.set_aside(&job.key, &found).await {
            Err(error) => blank(RecordFact::Corrupt, Recorded::Failed(error)),
            Ok(place) => {
                let place = place.unwrap_or_default();
                tracing::warn!(key = %job.key, reason = unreadable, place, "a record was set aside");
                let mut event = AuditEvent::new(now, job.run, "record_set_aside");
                event.detail = Some(format!("{unreadable}; kept at {place}"));
                // At once: nobody would know of it if the run ended before its own event.
                warnings.extend(self.append(&job.key, &event).await.err());
                warnings.push(Warning::RecordSetAside(place));
                blank(RecordFact::Corrupt, Recorded::Saved)
            }
        }
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
        match catalog.inspect(scene.query(id, state_dir.as_deref())).await {
            Ok(look) => Some(look),
            Err(error) => {
                tracing::warn!(key = %job.key, %error, "a session's file could not be looked at");
                scene.warnings.push(Warning::NotInspected(Chain(&error).to_string()));
                None
            }
        }
    }
}

impl Scene {
    /// The question for a session, of a run in this scene.
    pub(super) fn query<'a>(&'a self, id: &'a NativeId, state_dir: Option<&'a Path>) -> SessionQuery<'a> {
        SessionQuery { id, cwd: self.folder(), state_dir, version: self.installation.version.as_ref() }
    }

    /// The folder of the run, as a real path.
    pub(super) fn folder(&self) -> &Path {
        self.place.folder.path.as_path().unwrap_or(&self.place.cwd)
    }

    /// Whether the run is to begin as a copy of another conversation.
    pub(super) fn wants_fork(&self, job: &Job<'_>, ledger: &Ledger) -> bool {
        job.fork_of.is_some() && ledger.record.binding.is_none() && ledger.is_writable()
    }
}
