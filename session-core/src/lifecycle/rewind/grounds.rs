//! What a rewind stands on: the agent and its folder, and the record.

use std::path::{Path, PathBuf};

use crate::error::RewindError;
use crate::{
    Agent, AuditEvent, Binding, Folder, Inspection, NativeId, PathText, Recorded, RunId, SessionKey,
    SessionQuery, SessionRecord, Spot, Version, Warning,
};

use super::super::Lifecycle;
use super::super::checkpoint::spot_of;
use super::super::kept::{Kept, NotKept, present};

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
        self.take_up(key).await.map_err(|not_kept| match not_kept {
            NotKept::Busy(by) => RewindError::Busy { key: key.clone(), by },
            NotKept::Store(error) => RewindError::Store(error),
            NotKept::Newer(_) => RewindError::RecordNewer { key: key.clone() },
            NotKept::Unreadable(why) => RewindError::RecordUnreadable { key: key.clone(), why },
        })
    }

    /// Ends what a dead runner left, as before a run: it would go on writing. Tells of a rewind that it left.
    pub(in crate::lifecycle) async fn end_what_is_left(
        &self,
        kept: &mut Kept,
        step: RunId,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), RewindError> {
        self.end_a_dead_run(kept, step, warnings).await?;
        // Told with what comes of the wish: it goes from the record with that.
        if let Some(unended) = kept.record.rewinding.take() {
            kept.changed = true;
            warnings.extend(self.tell_unended(&kept.record.key, &unended).await);
        }
        Ok(())
    }

    async fn end_a_dead_run(
        &self,
        kept: &mut Kept,
        step: RunId,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), RewindError> {
        let key = kept.record.key.clone();
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

    /// Writes a record that changed, where nothing was done yet that could hold without it.
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
