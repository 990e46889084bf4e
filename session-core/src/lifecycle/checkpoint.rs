//! Checkpoints: one before the first attempt of a run, one after the last, and what is asked about them.

use std::path::Path;

use crate::error::{Chain, RewindError};
use crate::{
    AuditEvent, Change, Checkpoint, CheckpointId, Checkpointer, Forget, Inspection, Label, Moment, NativeId,
    Presence, Recovered, Rewinding, RunId, SessionKey, Spot, TakeOrder, Warning,
};

use super::Lifecycle;
use super::admit::Job;
use super::ledger::Ledger;
use super::resolve::Scene;
use super::tried::Tried;

/// So much of a prompt is kept with its checkpoint, in characters.
const PROMPT_KEPT: usize = 200;

/// What taking a checkpoint came to.
#[derive(Debug, Default)]
pub(super) struct Marked {
    pub(super) checkpoint: Option<CheckpointId>,
    pub(super) warnings: Vec<Warning>,
}

impl Lifecycle {
    /// Takes the checkpoint before a run, after what was cut off in its tree is finished. That it cannot be taken never spoils
    /// the run.
    pub(super) async fn checkpoint_before(
        &self,
        job: &Job<'_>,
        scene: &Scene,
        ledger: &Ledger,
        spot: Option<Spot>,
    ) -> Marked {
        // What a copy is asked for is no step of the key's work.
        let Some(checkpointer) = self.checkpointer.as_ref().filter(|_| !job.request.scratch) else {
            return Marked::default();
        };
        let mut marked = Marked::default();
        if ledger.lease.is_none() {
            let why = "nobody can tell who has the key".to_owned();
            marked.warnings.push(Warning::NotCheckpointed(why));
            return marked;
        }
        let folder = scene.folder();
        let take = async {
            let mut warnings = Vec::new();
            match checkpointer.recover(folder).await {
                Ok(all) => warnings.extend(self.tell_recovered(&all).await),
                Err(error) => {
                    tracing::warn!(key = %job.key, %error, "what was cut off could not be finished")
                }
            }
            let prompt = job.request.prompt.chars().take(PROMPT_KEPT).collect();
            let label = Label {
                spot,
                prompt: Some(prompt),
                waits: ledger.record.preamble.clone(),
                ..Label::new(job.key.clone(), job.run, Moment::BeforeRun)
            };
            match self.take(checkpointer.as_ref(), &label, folder).await {
                Ok(taken) => (Some(taken.id), warnings),
                Err(warning) => {
                    warnings.push(warning);
                    (None, warnings)
                }
            }
        };
        // Who cancels does not wait for it.
        if let Some((checkpoint, warnings)) = job.request.cancel.unless_cancelled(take).await {
            marked.checkpoint = checkpoint;
            marked.warnings.extend(warnings);
        }
        marked
    }

    /// Takes the checkpoint after a run that has one before it.
    pub(super) async fn checkpoint_after(
        &self,
        job: &Job<'_>,
        scene: &mut Scene,
        ledger: &Ledger,
        last: &Tried,
    ) {
        let (Some(checkpointer), Some(_)) = (&self.checkpointer, scene.checkpoint) else { return };
        if matches!(ledger.recorded, crate::Recorded::LostLease) {
            scene.warnings.push(Warning::NotCheckpointed("another runner has the key".to_owned()));
            return;
        }
        let spot = match &last.spot {
            // Nothing was concluded from its session; yet its prompt may be in there.
            Some(spot) if last.did_nothing() && !last.is_fork => {
                let state_dir = scene.state_dir.clone();
                let look = self.inspect(job, scene, &spot.native_id, state_dir).await;
                spot_of(&spot.native_id, look.as_ref())
            }
            spot => spot.clone(),
        };
        let label = Label { spot, ..Label::new(job.key.clone(), job.run, Moment::AfterRun) };
        let taken = self.take(checkpointer.as_ref(), &label, scene.folder()).await;
        scene.warnings.extend(taken.err());
    }

    /// Forgets the checkpoint of a run that was never started: there is nothing to take back.
    pub(super) async fn unmark(&self, key: &SessionKey, checkpoint: Option<CheckpointId>) {
        let (Some(checkpointer), Some(id)) = (&self.checkpointer, checkpoint) else { return };
        if let Err(error) = checkpointer.forget(key, Forget::These(&[id])).await {
            tracing::warn!(%key, %error, "a checkpoint that is of no use could not be forgotten");
        }
    }

    pub(super) async fn take(
        &self,
        checkpointer: &dyn Checkpointer,
        label: &Label,
        folder: &Path,
    ) -> Result<Checkpoint, Warning> {
        let order = self.take_order(label, folder);
        checkpointer.take(&order).await.map_err(|error| {
            tracing::warn!(key = %label.key, %error, "no checkpoint was taken");
            Warning::NotCheckpointed(Chain(&error).to_string())
        })
    }

    pub(super) fn take_order<'a>(&self, label: &'a Label, folder: &'a Path) -> TakeOrder<'a> {
        let id = CheckpointId::new(self.host.random_id());
        TakeOrder { id, label, at: self.host.now(), folder, changed: None }
    }

    /// Tells the logs of the keys that a rewind of theirs was finished.
    pub(super) async fn tell_recovered(&self, all: &[Recovered]) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for recovered in all {
            let Recovered { key, step, to, restored, .. } = recovered;
            let (done, left) = (restored.done.len(), restored.left.len());
            tracing::warn!(%key, %step, done, left, "a rewind that was cut off was finished");
            let mut event = AuditEvent::new(self.host.now(), *step, "rewind_recovered");
            event.detail = Some(format!("to checkpoint {to}; {done} paths are as there, {left} are not"));
            warnings.extend(self.append(key, &event).await.err());
            warnings.push(Warning::RewindRecovered(done));
        }
        warnings
    }

    /// Finishes what was cut off in the tree around a folder, and tells it. To take a checkpoint would finish it without a word.
    pub(super) async fn finish_cut_off(
        &self,
        checkpointer: &dyn Checkpointer,
        folder: &Path,
    ) -> Result<Vec<Warning>, RewindError> {
        let recovered = checkpointer.recover(folder).await.map_err(RewindError::Checkpoint)?;
        Ok(self.tell_recovered(&recovered).await)
    }

    /// Tells the log of a key that a rewind of it was cut off before the conversation went back.
    pub(super) async fn tell_unended(&self, key: &SessionKey, unended: &Rewinding) -> Vec<Warning> {
        let Rewinding { step, undo, .. } = unended;
        tracing::warn!(%key, %step, %undo, "a rewind was cut off before the conversation went back");
        let mut event = AuditEvent::new(self.host.now(), *step, "rewind_unended");
        event.detail = Some(format!("the conversation did not go back; checkpoint {undo} undoes the files"));
        let mut warnings: Vec<_> = self.append(key, &event).await.err().into_iter().collect();
        warnings.push(Warning::RewindUnended(*undo));
        warnings
    }

    /// Takes a checkpoint of the tree around a folder now, to be gone back to.
    ///
    /// # Errors
    /// [`RewindError`]: a run of the key is under way, the folder cannot be used, or it was not taken.
    ///
    /// # Cancel safety
    /// A dropped future takes it wholly or not at all.
    pub async fn take_checkpoint(&self, key: &SessionKey, cwd: &Path) -> Result<Checkpoint, RewindError> {
        let checkpointer = self.checkpoints_of()?;
        let grounds = self.grounds(key, cwd).await?;
        let kept = self.keep(key).await?;
        self.finish_cut_off(checkpointer, grounds.folder_path()).await?;
        let spot = self.present_spot(&grounds, &kept.record).await;
        let step = RunId::new(self.host.random_id());
        let waits = kept.record.preamble.clone();
        let label = Label { spot, waits, ..Label::new(key.clone(), step, Moment::Asked) };
        let order = self.take_order(&label, grounds.folder_path());
        checkpointer.take(&order).await.map_err(RewindError::Checkpoint)
    }

    /// The checkpoints of a key, oldest first, of all trees.
    ///
    /// # Errors
    /// [`RewindError`] when there is no checkpointer, or they could not be listed.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn checkpoints(&self, key: &SessionKey) -> Result<Vec<Checkpoint>, RewindError> {
        self.checkpoints_of()?.list(key).await.map_err(RewindError::Checkpoint)
    }

    /// What differs between two checkpoints of one tree of a key, in the order of paths.
    ///
    /// # Errors
    /// [`RewindError`] when one of them is not there or damaged, or they are of two trees.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn checkpoint_diff(
        &self,
        key: &SessionKey,
        from: CheckpointId,
        to: CheckpointId,
    ) -> Result<Vec<Change>, RewindError> {
        self.checkpoints_of()?.diff(key, from, to).await.map_err(RewindError::Checkpoint)
    }

    /// What differs between a checkpoint and the tree around a folder as it is now, in the order of paths, also while a run is at
    /// work. A checkpoint is taken for that, and dropped again.
    ///
    /// # Errors
    /// [`RewindError`] when it is not there, damaged, or of another tree; or when the tree could not be looked at.
    ///
    /// # Cancel safety
    /// A dropped future may leave a checkpoint more.
    pub async fn checkpoint_diff_now(
        &self,
        key: &SessionKey,
        from: CheckpointId,
        cwd: &Path,
    ) -> Result<Vec<Change>, RewindError> {
        let checkpointer = self.checkpoints_of()?;
        let folder = self.host.folder(cwd).await.map_err(RewindError::Folder)?;
        let folder = folder.path.as_path().unwrap_or(cwd);
        self.finish_cut_off(checkpointer, folder).await?;
        let step = RunId::new(self.host.random_id());
        // Without the lease, as a run may be at work; whoever has it leaves a look out of account.
        let label = Label { back_to: Some(from), ..Label::new(key.clone(), step, Moment::Asked) };
        let order = self.take_order(&label, folder);
        let now = checkpointer.take(&order).await.map_err(RewindError::Checkpoint)?;
        let differs = checkpointer.diff(key, from, now.id).await;
        self.unmark(key, Some(now.id)).await;
        differs.map_err(RewindError::Checkpoint)
    }

    /// The content of a file, or the target of a link, in a checkpoint, at most so many bytes of it. `None`: it is not there, or is
    /// a folder.
    ///
    /// # Errors
    /// [`RewindError`] when the checkpoint is not there, or is damaged.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn checkpoint_file(
        &self,
        key: &SessionKey,
        checkpoint: CheckpointId,
        path: &Path,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, RewindError> {
        self.checkpoints_of()?.read(key, checkpoint, path, limit).await.map_err(RewindError::Checkpoint)
    }

    pub(super) fn checkpoints_of(&self) -> Result<&dyn Checkpointer, RewindError> {
        self.checkpointer.as_deref().ok_or(RewindError::NoCheckpointer)
    }
}

/// Where a conversation stands, by a look at its session; `None` where that holds nothing.
pub(super) fn spot_of(id: &NativeId, look: Option<&Inspection>) -> Option<Spot> {
    match look {
        Some(look) if look.presence == Presence::Present => {
            // The size of a packed file says nothing of what it holds.
            let bytes = (look.bytes > 0 && look.unpacked_since.is_none()).then_some(look.bytes);
            Some(Spot { native_id: id.clone(), turns: look.user_turns, bytes })
        }
        Some(look) if look.presence != Presence::Unreadable => None,
        Some(_) | None => Some(Spot { native_id: id.clone(), turns: 0, bytes: None }),
    }
}
