//! Going back: checkpoints, rewind, undo, clear, rejoin, fork.

use std::path::Path;
use std::sync::Arc;

use session_core::error::RewindError;
use session_core::{
    Change, Checkpoint, CheckpointId, Checkpointer, Cleared, ForkRequest, Forked, NativeId, Rejoined,
    RewindPreview, RewindRequest, Rewound, SessionKey,
};

use crate::{Sessions, SessionsBuilder};

impl SessionsBuilder {
    /// Sets who takes checkpoints: one before each run and one after it, of the work tree around its folder. Without it, none are
    /// taken, and nothing can be gone back to. One that cannot be taken is reported as
    /// [`Warning::NotCheckpointed`](crate::Warning::NotCheckpointed).
    pub fn checkpointer(self, checkpointer: impl Checkpointer) -> Self {
        Self(self.0.checkpointer(Arc::new(checkpointer)))
    }
}

impl Sessions {
    /// Takes prompts of a key back: the files that they changed, the conversation, or both. What somebody else changed stays,
    /// unless the request says otherwise. A checkpoint is taken first, which [`undo`](Self::undo) goes back to. The sessions of
    /// before stay as they are and can be rejoined.
    ///
    /// # Errors
    /// [`RewindError`]: it was refused, or failed before anything was touched. What fails later is told in the outcome.
    ///
    /// # Cancel safety
    /// A dropped future leaves what a crash would: files that are put back in part are so wholly after the next run or rewind in
    /// the tree; the conversation then stays as it was, and the checkpoint before is there.
    pub async fn rewind(&self, request: &RewindRequest) -> Result<Rewound, RewindError> {
        self.0.rewind(request).await
    }

    /// What [`rewind`](Self::rewind) would come to by now. A checkpoint of the present state is taken for that and dropped again,
    /// and where a branch of the conversation is needed, it is made on trial and removed. Files that an earlier rewind left in
    /// part are finished, which the audit log tells. Nothing else is changed.
    ///
    /// # Errors
    /// As [`rewind`](Self::rewind), but that a conversation that cannot go back is told in the preview.
    ///
    /// # Cancel safety
    /// A dropped future may leave a checkpoint more, or a session that nothing leads to.
    pub async fn foresee_rewind(&self, request: &RewindRequest) -> Result<RewindPreview, RewindError> {
        self.0.foresee_rewind(request).await
    }

    /// Undoes the latest rewind of a key in the work tree around this folder, files and conversation: a rewind to before it. What
    /// prompts did since goes, too. An undo can be undone.
    ///
    /// # Errors
    /// As [`rewind`](Self::rewind); also when there is none.
    ///
    /// # Cancel safety
    /// As [`rewind`](Self::rewind).
    pub async fn undo(&self, key: &SessionKey, cwd: impl AsRef<Path>) -> Result<Rewound, RewindError> {
        self.0.undo(key, cwd.as_ref()).await
    }

    /// What [`undo`](Self::undo) would come to by now.
    ///
    /// # Errors
    /// As [`foresee_rewind`](Self::foresee_rewind); also when there is nothing to undo.
    ///
    /// # Cancel safety
    /// As [`foresee_rewind`](Self::foresee_rewind).
    pub async fn foresee_undo(
        &self,
        key: &SessionKey,
        cwd: impl AsRef<Path>,
    ) -> Result<RewindPreview, RewindError> {
        self.0.foresee_undo(key, cwd.as_ref()).await
    }

    /// The checkpoints of a key, oldest first, of all trees.
    ///
    /// # Errors
    /// [`RewindError`] when there is no checkpointer, or they could not be listed.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn checkpoints(&self, key: &SessionKey) -> Result<Vec<Checkpoint>, RewindError> {
        self.0.checkpoints(key).await
    }

    /// Takes a checkpoint of the tree around a folder now, to be gone back to.
    ///
    /// # Errors
    /// [`RewindError`]: a run of the key is under way, the folder cannot be used, or it was not taken.
    ///
    /// # Cancel safety
    /// A dropped future takes it wholly or not at all.
    pub async fn take_checkpoint(
        &self,
        key: &SessionKey,
        cwd: impl AsRef<Path>,
    ) -> Result<Checkpoint, RewindError> {
        self.0.take_checkpoint(key, cwd.as_ref()).await
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
        self.0.checkpoint_diff(key, from, to).await
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
        cwd: impl AsRef<Path>,
    ) -> Result<Vec<Change>, RewindError> {
        self.0.checkpoint_diff_now(key, from, cwd.as_ref()).await
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
        path: impl AsRef<Path>,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, RewindError> {
        self.0.checkpoint_file(key, checkpoint, path.as_ref(), limit).await
    }

    /// Puts a key's conversation aside: its next run begins a new one. The old one stays as it is, can be
    /// [rejoined](Self::rejoin), and its checkpoints can be gone back to.
    ///
    /// # Errors
    /// [`RewindError`]: a run is under way, the record cannot be read or written. Nothing was changed.
    ///
    /// # Cancel safety
    /// A dropped future clears it wholly or not at all.
    pub async fn clear(&self, key: &SessionKey) -> Result<Cleared, RewindError> {
        self.0.clear(key).await
    }

    /// Puts a former session of a key in force again; the one in force moves to the past and can be rejoined, too.
    ///
    /// # Errors
    /// [`RewindError`]: a run is under way, the key has no such former session, it cannot be continued any more, or the record
    /// cannot be read or written. Nothing was changed.
    ///
    /// # Cancel safety
    /// A dropped future does it wholly or not at all.
    pub async fn rejoin(&self, key: &SessionKey, session: &NativeId) -> Result<Rejoined, RewindError> {
        self.0.rejoin(key, session).await
    }

    /// Makes a copy of a key's conversation, whole or up to a checkpoint, and binds it to another key of the same agent, which
    /// has none. The original stays as it is, in force in its own key. Nothing is run but the agent's version probe.
    ///
    /// # Errors
    /// [`RewindError`]: a run of one of the keys is under way, the new one has a session, the conversation cannot be branched,
    /// or a record cannot be read or written. Nothing was changed.
    ///
    /// # Cancel safety
    /// A dropped future may leave a session in the new key's state dir that nothing leads to.
    pub async fn fork(&self, request: &ForkRequest) -> Result<Forked, RewindError> {
        self.0.fork(request).await
    }
}
