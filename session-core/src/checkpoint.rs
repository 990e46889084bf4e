//! The port to checkpoints: states of a work tree, kept apart from it.

mod label;
mod left_out;
mod tree;

use std::fmt::{self, Debug};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use label::{Label, Moment};
pub use left_out::{LeftOut, LeftOutWhy};
pub use tree::{Change, Node, NodeKind};

use crate::error::CheckpointError;
use crate::{PathText, RunId, SessionKey, Timestamp};

/// A checkpoint, by an id that is unique over processes and machines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckpointId(uuid::Uuid);

impl CheckpointId {
    /// Wraps a random id.
    #[must_use]
    pub const fn new(id: uuid::Uuid) -> Self {
        Self(id)
    }

    /// From [its bytes](Self::as_bytes).
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(uuid::Uuid::from_bytes(bytes))
    }

    /// Reads an id as it is shown. `None`: it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        uuid::Uuid::parse_str(text).ok().map(Self)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Whether a checkpoint can be gone back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It can.
    Whole,
    /// It cannot, or not wholly, for this reason.
    Damaged(String),
}

/// A state of a work tree that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Checkpoint {
    /// Its id.
    pub id: CheckpointId,
    /// What it belongs to.
    pub label: Label,
    /// When it was taken.
    pub at: Timestamp,
    /// The top of the tree, a real path.
    pub root: PathText,
    /// Files and links in it.
    pub files: u64,
    /// The bytes of all its files.
    pub bytes: u64,
    /// What it does not cover, in the order of paths; at most [`LEFT_OUT_SHOWN`](Self::LEFT_OUT_SHOWN) of them.
    pub left_out: Vec<LeftOut>,
    /// How many there are in all.
    pub left_out_count: u64,
    /// Whether it can be gone back to.
    pub health: Health,
}

impl Checkpoint {
    /// So many of the things that are not covered are named.
    pub const LEFT_OUT_SHOWN: usize = 1000;

    /// A checkpoint of which nothing is left out.
    #[must_use]
    pub const fn new(id: CheckpointId, label: Label, at: Timestamp, root: PathText) -> Self {
        Self {
            id,
            label,
            at,
            root,
            files: 0,
            bytes: 0,
            left_out: Vec::new(),
            left_out_count: 0,
            health: Health::Whole,
        }
    }
}

/// An order to take a checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct TakeOrder<'a> {
    /// The id that it gets.
    pub id: CheckpointId,
    /// What it belongs to.
    pub label: &'a Label,
    /// The present time.
    pub at: Timestamp,
    /// A folder of the tree, as a real path. The whole work tree around it is covered; without a repository, the folder.
    pub folder: &'a Path,
    /// The paths within the tree that may have changed since the latest checkpoint of the tree, where the caller knows them
    /// all; a folder stands for all below it. `None`: nothing is known, and the whole tree is looked at.
    pub changed: Option<&'a [PathBuf]>,
}

/// An order to put paths of a tree back to a checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct RestoreOrder<'a> {
    /// Whose checkpoints they are.
    pub key: &'a SessionKey,
    /// The rewind that this is a part of.
    pub step: RunId,
    /// A folder of the tree, as a real path.
    pub folder: &'a Path,
    /// The state that the paths are put back to.
    pub to: CheckpointId,
    /// The state that they are in: one that is in another by now was changed meanwhile, and stays as it is.
    pub from: CheckpointId,
    /// The paths within the tree. What lies below a folder is named by its own paths.
    pub paths: &'a [PathBuf],
}

/// A path that was not put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftPath {
    /// The path within the tree.
    pub path: PathBuf,
    /// Why.
    pub why: LeftWhy,
}

/// Why a path was not put back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftWhy {
    /// Somebody changed it meanwhile.
    ChangedMeanwhile,
    /// A folder that was to go holds something that is not covered, or is new.
    NotEmpty,
    /// It, or a folder above it, may not be written.
    Denied,
    /// Its content in the checkpoint is damaged or gone.
    Damaged,
    /// A folder above it is a link, or no folder.
    InTheWay,
    /// The checkpoint left it out, or the one before the rewind did: nobody knows what stood, or stands, there.
    NotCovered,
    /// Its name is another's here, as on a file system that folds letter case.
    Folded,
    /// The system said this.
    Failed(String),
}

impl fmt::Display for LeftWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChangedMeanwhile => f.write_str("changed meanwhile"),
            Self::NotEmpty => f.write_str("holds something else"),
            Self::Denied => f.write_str("may not be written"),
            Self::Damaged => f.write_str("its content in the checkpoint is damaged"),
            Self::InTheWay => f.write_str("something else is in its way"),
            Self::NotCovered => f.write_str("is not covered by the checkpoint"),
            Self::Folded => f.write_str("its name is another's on this file system"),
            Self::Failed(error) => f.write_str(error),
        }
    }
}

/// What putting paths back came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The paths that are in the state that was asked for now, also those that were in it before.
    pub done: Vec<PathBuf>,
    /// The paths that are not, and why.
    pub left: Vec<LeftPath>,
}

/// A restore that was cut off, and what finishing it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Whose it was.
    pub key: SessionKey,
    /// The rewind.
    pub step: RunId,
    /// The state that the paths were put back to.
    pub to: CheckpointId,
    /// The state that they were in.
    pub from: CheckpointId,
    /// What it came to.
    pub restored: Restored,
}

impl Recovered {
    /// A restore of this key that was finished.
    #[must_use]
    pub const fn new(
        key: SessionKey,
        step: RunId,
        to: CheckpointId,
        from: CheckpointId,
        restored: Restored,
    ) -> Self {
        Self { key, step, to, from, restored }
    }
}

/// Which checkpoints of a key to drop.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Forget<'a> {
    /// All.
    All,
    /// These.
    These(&'a [CheckpointId]),
}

/// What dropping came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Dropped {
    /// Checkpoints that are gone.
    pub checkpoints: u64,
    /// Bytes that are free for later checkpoints.
    pub bytes: u64,
    /// Places of the store that are damaged, so that nobody can tell whether they hold some; they stay as they are. Only where all
    /// of a key were to go.
    pub unread: u64,
}

/// Takes checkpoints of work trees and puts trees back to them.
///
/// # Contract
/// 1. A checkpoint covers every file, folder and link of the tree, with content and permissions, by whatever made them; what
///    it leaves out it names.
/// 2. Nothing outside of the checkpointer's own store is written by `take`, `list`, `diff`, `hidden`, `read` and `forget`: no file of the
///    tree, nothing in a `.git`. No program is started, and none of the tree's hooks and filters run.
/// 3. A checkpoint is all or nothing: after a crash it is there whole, or it is not listed. One that was damaged since is listed
///    as such, and stops no other.
/// 4. `restore` touches the given paths alone, never through a link, and no path that is not as in `from`. A path that it did not
///    put back is told. No content is readable to more than it is meant for, at no moment. Bits beside the permissions are not
///    set.
/// 5. A restore that was cut off is finished by `recover`, `take` or `restore` of the same tree, whoever asks; its leftovers go.
/// 6. A key sees its own checkpoints alone.
/// 7. Dropping checkpoints never takes anything from one that is kept.
///
/// # Cancel safety
/// Dropping a future of any method leaves what a crash would leave.
#[async_trait]
pub trait Checkpointer: Debug + Send + Sync + 'static {
    /// The top of the work tree around a folder; without a repository, the folder itself.
    ///
    /// # Errors
    /// [`CheckpointError`] when it cannot be told, or no checkpoint is taken there: of `/`, or of a home.
    async fn root_of(&self, folder: &Path) -> Result<PathBuf, CheckpointError>;

    /// Takes a checkpoint.
    ///
    /// # Errors
    /// [`CheckpointError`] when it was not taken. The next one is not the worse for it.
    async fn take(&self, order: &TakeOrder<'_>) -> Result<Checkpoint, CheckpointError>;

    /// The checkpoints of a key, oldest first, of all trees.
    ///
    /// # Errors
    /// [`CheckpointError`] when they could not be listed.
    async fn list(&self, key: &SessionKey) -> Result<Vec<Checkpoint>, CheckpointError>;

    /// What differs between two checkpoints of one tree, in the order of paths.
    ///
    /// # Errors
    /// [`CheckpointError`] when one of them is not there, is damaged, or is of another tree.
    async fn diff(
        &self,
        key: &SessionKey,
        from: CheckpointId,
        to: CheckpointId,
    ) -> Result<Vec<Change>, CheckpointError>;

    /// The paths at which something stands in one checkpoint and that another one of the same tree leaves out, in the order of
    /// paths: no difference tells of them, nor of what lies below.
    ///
    /// # Errors
    /// [`CheckpointError`] when one of them is not there, is damaged, or is of another tree.
    async fn hidden(
        &self,
        key: &SessionKey,
        of: CheckpointId,
        by: CheckpointId,
    ) -> Result<Vec<PathBuf>, CheckpointError>;

    /// The content of a file, or the target of a link, in a checkpoint, at most so many bytes of it. `None`: it is not there, or is
    /// a folder.
    ///
    /// # Errors
    /// [`CheckpointError`] when the checkpoint is not there, or is damaged.
    async fn read(
        &self,
        key: &SessionKey,
        checkpoint: CheckpointId,
        path: &Path,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, CheckpointError>;

    /// Puts paths of a tree back.
    ///
    /// # Errors
    /// [`CheckpointError`] when nothing was touched, or, of kind [`CutOff`](crate::error::CheckpointErrorKind::CutOff), when it
    /// was begun and could not be ended; then [`recover`](Self::recover) does.
    async fn restore(&self, order: &RestoreOrder<'_>) -> Result<Restored, CheckpointError>;

    /// Finishes what was cut off in the tree around a folder, but for what is still under way.
    ///
    /// # Errors
    /// [`CheckpointError`] when it could not be finished.
    async fn recover(&self, folder: &Path) -> Result<Vec<Recovered>, CheckpointError>;

    /// Drops checkpoints of a key, and what no other one needs.
    ///
    /// # Errors
    /// [`CheckpointError`] when they are not known to be gone.
    async fn forget(&self, key: &SessionKey, which: Forget<'_>) -> Result<Dropped, CheckpointError>;
}
