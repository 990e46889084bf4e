//! What a rewind stands on: the agent and its folder, and the record, held.

use std::path::{Path, PathBuf};

use crate::error::{RewindError, StoreErrorKind};
use crate::{
    Agent, AuditEvent, Binding, Candidate, Folder, Guard, Inspection, Lease, NativeId, PathText, Recorded,
    RunId, Saved, SessionKey, SessionQuery, SessionRecord, Spot, Timestamp, Version, Warning, codec,
};

use super::super::Lifecycle;
use super::super::checkpoint::spot_of;
use super::super::ledger::COMPACTED;

/// The agent of a key, and the folder that its sessions are looked at from.
#[derive(Debug)]
pub(in crate::lifecycle) struct Grounds<'a> {
    pub(in crate::lifecycle) agent: &'a Agent,
    pub(in crate::lifecycle) folder: Folder,
    cwd: PathBuf,
    /// `None`: the agent could not be asked, or does not say.
    pub(in crate::lifecycle) version: Option<Version>,
    pub(in crate::lifecycle) state_dir: Option<PathBuf>,
}

impl Grounds<'_> {
    /// The folder, as a real path.
    pub(in crate::lifecycle) fn folder_path(&self) -> &Path {
        self.folder.path.as_path().unwrap_or(&self.cwd)
    }

    /// The question for a session that is in this folder.
    pub(in crate::lifecycle) fn query<'a>(&'a self, id: &'a NativeId, cwd: &'a Path) -> SessionQuery<'a> {
        SessionQuery { id, cwd, state_dir: self.state_dir.as_deref(), version: self.version.as_ref() }
    }

    /// The agent's own place, where it keeps the sessions in it.
    pub(in crate::lifecycle) fn home(&self) -> Option<PathText> {
        let home = self.agent.catalog().and_then(|catalog| catalog.home());
        home.filter(|_| self.state_dir.is_none()).map(|home| PathText::new(&home))
    }

    /// Looks at a session from the folder that it is in; `None` when nobody can.
    pub(in crate::lifecycle) async fn look(&self, binding: &Binding) -> Option<Inspection> {
        let id = &binding.native_id;
        let catalog = self.agent.catalog()?;
        if !id.is_argument_safe() || !self.agent.adapter().accepts_id(id) {
            return None;
        }
        let cwd = binding.folder().path.as_path().unwrap_or_else(|| self.folder_path());
        catalog.inspect(self.query(id, cwd)).await.map_or_else(
            |error| {
                tracing::warn!(%id, %error, "a session could not be looked at");
                None
            },
            Some,
        )
    }
}

/// A record that is held, and the right to write it.
#[derive(Debug)]
pub(in crate::lifecycle) struct Kept {
    pub(in crate::lifecycle) lease: Lease,
    pub(in crate::lifecycle) record: SessionRecord,
    pub(in crate::lifecycle) guard: Guard,
    /// Whether the record is not as it is in the store.
    pub(in crate::lifecycle) changed: bool,
    /// Whether nobody can tell what is in the store.
    pub(in crate::lifecycle) in_doubt: bool,
}

impl Kept {
    /// The session that the next run continues, as far as the record tells.
    pub(in crate::lifecycle) fn present(&self) -> Option<&Binding> {
        present(&self.record)
    }

    /// What a run began beside the session in force, and that the next run may take up in its place.
    pub(in crate::lifecycle) fn rival(&self) -> Option<&Candidate> {
        let in_force = self.record.binding.as_ref()?;
        let candidate = self.record.candidate.as_ref();
        candidate.filter(|candidate| candidate.binding.native_id != in_force.native_id)
    }

    /// Drops a summary of the key's own conversation that waits for a new one to begin with it: that one is not to begin any
    /// more. What others handed over still waits.
    pub(in crate::lifecycle) fn forget_summary(&mut self) {
        if self.record.preamble.as_ref().is_some_and(|waiting| waiting.why == COMPACTED) {
            self.record.preamble = None;
            self.changed = true;
        }
    }

    /// Puts a session in force, or none. What was in force moves to the past for this reason, and can be rejoined.
    pub(in crate::lifecycle) fn put_in_force(&mut self, binding: Option<Binding>, why: &str, now: Timestamp) {
        let record = &mut self.record;
        let failed_resumes = std::mem::take(&mut record.failed_resumes);
        if let Some(binding) = &binding
            && let Some(at) = record.past.iter().rposition(|former| former.native_id == binding.native_id)
        {
            record.failed_resumes = record.past.remove(at).failed_resumes;
        }
        let is_left =
            |old: &Binding| binding.as_ref().is_none_or(|binding| binding.native_id != old.native_id);
        if let Some(candidate) = record.candidate.take().filter(|candidate| is_left(&candidate.binding)) {
            put_aside(record, (&candidate.binding, 0), why, now);
        }
        if let Some(old) = record.binding.take().filter(is_left) {
            put_aside(record, (&old, failed_resumes), why, now);
        }
        record.binding = binding;
        self.forget_summary();
        let record = &mut self.record;
        record.updated_at = now;
        self.changed = true;
    }

    /// Puts aside what a dead runner began beside the session in force: the next run would take it up.
    pub(in crate::lifecycle) fn put_rival_aside(&mut self, why: &str, now: Timestamp) {
        if self.rival().is_none() {
            return;
        }
        let record = &mut self.record;
        let Some(candidate) = record.candidate.take() else { return };
        put_aside(record, (&candidate.binding, 0), why, now);
        record.updated_at = now;
        self.changed = true;
    }
}

/// Moves a session with its failed resumes to the past, where it is not there yet; it can be rejoined.
fn put_aside(record: &mut SessionRecord, (old, failed_resumes): (&Binding, u32), why: &str, now: Timestamp) {
    if record.past.iter().any(|former| former.native_id == old.native_id) {
        return;
    }
    record.retire(old, why, now, true);
    if let Some(former) = record.past.last_mut() {
        former.failed_resumes = failed_resumes;
    }
}

pub(in crate::lifecycle) fn present(record: &SessionRecord) -> Option<&Binding> {
    record.binding.as_ref().or(record.candidate.as_ref().map(|candidate| &candidate.binding))
}

impl Lifecycle {
    /// The agent of a key and a folder of the caller.
    pub(in crate::lifecycle) async fn grounds(
        &self,
        key: &SessionKey,
        cwd: &Path,
    ) -> Result<Grounds<'_>, RewindError> {
        let agent = &key.agent;
        let agent =
            self.agents.get(agent).ok_or_else(|| RewindError::UnknownAgent { agent: agent.clone() })?;
        let folder = self.host.folder(cwd).await.map_err(RewindError::Folder)?;
        let installation = agent.adapter().detect_in(cwd).await;
        let installation =
            installation.inspect_err(|error| tracing::warn!(%key, %error, "no version is known"));
        let version = installation.ok().and_then(|installation| installation.version);
        let state_dir =
            if self.state_dirs { self.store.state_dir(key).await.map_err(RewindError::Store)? } else { None };
        Ok(Grounds { agent, folder, cwd: cwd.to_owned(), version, state_dir })
    }

    /// Takes the lease of a key and reads its record.
    pub(in crate::lifecycle) async fn keep(&self, key: &SessionKey) -> Result<Kept, RewindError> {
        let lease = self.hold_now(key).await?;
        let unreadable = |why: String| RewindError::RecordUnreadable { key: key.clone(), why };
        let (record, guard) = match self.store.load(key).await {
            Ok(None) => (SessionRecord::new(key.clone(), self.host.now()), Guard::Absent),
            Ok(Some(stored)) => match codec::decode(&stored.document, key) {
                codec::Decoded::Record(record) => (*record, Guard::Revision(stored.revision)),
                codec::Decoded::Newer(_) => return Err(RewindError::RecordNewer { key: key.clone() }),
                codec::Decoded::Corrupt(why) => return Err(unreadable(why)),
            },
            Err(error) if error.kind() == StoreErrorKind::Newer => {
                return Err(RewindError::RecordNewer { key: key.clone() });
            }
            Err(error) if error.kind() == StoreErrorKind::Corrupt => {
                return Err(unreadable(error.to_string()));
            }
            Err(error) => return Err(RewindError::Store(error)),
        };
        Ok(Kept { lease, record, guard, changed: false, in_doubt: false })
    }

    /// Ends what a dead runner left, as before a run: it would go on writing. Tells of a rewind that it left.
    pub(in crate::lifecycle) async fn end_what_is_left(
        &self,
        kept: &mut Kept,
        step: RunId,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), RewindError> {
        let key = kept.record.key.clone();
        if let Some(unended) = kept.record.rewinding.take() {
            kept.changed = true;
            warnings.extend(self.tell_unended(&key, &unended).await);
        }
        let Some(in_flight) = kept.record.in_flight.clone() else { return Ok(()) };
        // Only who has the key still may end what another one seems to have left.
        kept.changed = true;
        self.must_write(kept).await?;
        let ended = match self.agents.get(&key.agent) {
            Some(agent) => agent.adapter().reap(in_flight.run).await,
            None => 0,
        };
        tracing::warn!(%key, run = %in_flight.run, ended, "an earlier runner died");
        let mut event = AuditEvent::new(self.host.now(), step, "run_reclaimed");
        event.detail =
            Some(format!("run {} did not end; {ended} of its processes were ended", in_flight.run));
        warnings.extend(self.append(&key, &event).await.err());
        warnings.push(Warning::Reclaimed(ended));
        kept.record.in_flight = None;
        kept.changed = true;
        Ok(())
    }

    /// Writes a record that changed, and says whether it is in the store.
    pub(in crate::lifecycle) async fn write(&self, kept: &mut Kept) -> Recorded {
        if !kept.changed {
            return Recorded::Saved;
        }
        let key = kept.record.key.clone();
        let document = codec::encode(&kept.record);
        match self.store.save(&key, &document, &kept.guard, Some(&kept.lease)).await {
            Ok(Saved::Done(revision)) => {
                (kept.guard, kept.changed) = (Guard::Revision(revision), false);
                Recorded::Saved
            }
            Ok(Saved::Refused { .. }) => Recorded::LostRace,
            Ok(Saved::Fenced { .. }) => Recorded::LostLease,
            Err(error) => {
                tracing::error!(%key, %error, "the record could not be written");
                // It may have arrived all the same.
                match self.store.load(&key).await {
                    Ok(Some(stored)) if stored.document == document => {
                        (kept.guard, kept.changed) = (Guard::Revision(stored.revision), false);
                        Recorded::Saved
                    }
                    Ok(_) => Recorded::Failed(error),
                    Err(_) => {
                        kept.in_doubt = true;
                        Recorded::Failed(error)
                    }
                }
            }
        }
    }

    /// The same, where nothing was done yet that could hold without it.
    pub(in crate::lifecycle) async fn must_write(&self, kept: &mut Kept) -> Result<(), RewindError> {
        match self.write(kept).await {
            Recorded::Saved => Ok(()),
            Recorded::Failed(error) => Err(RewindError::Store(error)),
            Recorded::Withheld(_) | Recorded::LostRace | Recorded::LostLease => {
                Err(RewindError::Busy { key: kept.record.key.clone(), by: None })
            }
        }
    }

    /// Where the conversation of a key stands now.
    pub(in crate::lifecycle) async fn present_spot(
        &self,
        grounds: &Grounds<'_>,
        record: &SessionRecord,
    ) -> Option<Spot> {
        let binding = present(record)?;
        spot_of(&binding.native_id, grounds.look(binding).await.as_ref())
    }
}
