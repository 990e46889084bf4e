//! The checkpointer over a folder of databases.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use rusqlite::Connection;
use session_core::error::{CheckpointError, CheckpointErrorKind};
use session_core::{
    Change, Checkpoint, CheckpointId, Checkpointer, Dropped, Forget, Health, Label, Moment, PathText,
    Recovered, RestoreOrder, Restored, RunId, SessionKey, TakeOrder, Timestamp,
};

use crate::database::{self, Kept};
use crate::place::Tree;
use crate::pool::{Lent, Pool};
use crate::rules::KnownLists;
use crate::trouble::{Outcome, Trouble};
use crate::{diff, forget, health, hidden, limits, object, restore, take, tree};

/// The folder below a store's base, and the one within it.
const ROOT: &str = ".agent-sessions";
const FOLDER: &str = "checkpoints";

/// Up to where checkpoints are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointLimits {
    /// A larger file is left out, and named. In bytes.
    pub file_bytes: u64,
    /// A tree of more files is refused.
    pub files: u64,
    /// A tree whose files have more bytes, without those that are left out, is refused.
    pub tree_bytes: u64,
    /// So many bytes have to be left free on the file system of the store.
    pub free_bytes: u64,
}

impl Default for CheckpointLimits {
    /// Files of 64 MiB, a million of them, 16 GiB in all, and 1 GiB left free.
    fn default() -> Self {
        Self { file_bytes: 64 << 20, files: 1_000_000, tree_bytes: 16 << 30, free_bytes: 1 << 30 }
    }
}

/// Checkpoints in `{base}/.agent-sessions/checkpoints`: one database for each repository. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FsCheckpoints {
    pub(crate) folder: PathBuf,
    pub(crate) limits: CheckpointLimits,
    pub(crate) with_ignored: bool,
    pub(crate) homes: Vec<PathBuf>,
    pub(crate) keep_latest: Option<NonZeroU32>,
    pool: Arc<Pool>,
    pub(crate) known_lists: Arc<KnownLists>,
    /// The home of this user, once somebody asked.
    user_home: Arc<OnceLock<Option<PathBuf>>>,
}

impl FsCheckpoints {
    /// Checkpoints below the base of a store. Nothing is made before the first one is taken.
    #[must_use]
    pub fn new(base: impl AsRef<Path>) -> Self {
        Self {
            folder: base.as_ref().join(ROOT).join(FOLDER),
            limits: CheckpointLimits::default(),
            with_ignored: false,
            homes: Vec::new(),
            keep_latest: None,
            pool: Arc::default(),
            known_lists: Arc::default(),
            user_home: Arc::default(),
        }
    }

    /// Sets the limits.
    #[must_use]
    pub const fn limits(mut self, limits: CheckpointLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether what the ignore rules of the tree name is covered, too. By default it is left out, unless git tracks it.
    #[must_use]
    pub const fn with_ignored(mut self, yes: bool) -> Self {
        self.with_ignored = yes;
        self
    }

    /// Keeps so many checkpoints of a key in a tree, the latest; a take drops older ones. Only one that is taken before a
    /// rewind, or to be compared with another, drops none. By default all are kept until somebody [forgets](Checkpointer::forget)
    /// them.
    #[must_use]
    pub const fn keep_latest(mut self, count: NonZeroU32) -> Self {
        self.keep_latest = Some(count);
        self
    }

    /// Names a home folder, of which no checkpoint is taken, as of `/` and of the home of this user as the system's list of users
    /// has it. The environment is not read.
    #[must_use]
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.homes.push(home.into());
        self
    }

    /// The tree around a folder, where checkpoints are taken of it.
    pub(crate) fn tree(&self, folder: &Path) -> Outcome<Tree> {
        let mut tree = Tree::around(folder)?;
        limits::allow(self, &tree)?;
        tree.former = self.former(&tree)?;
        Ok(tree)
    }

    /// Whoever works in a tree may make it a repository, or none: its checkpoints stay together, where the first one is.
    fn former(&self, tree: &Tree) -> Outcome<Option<String>> {
        let own = self.path(tree, "db");
        let knows = |path: &Path| {
            let root = tree.root.as_os_str().as_bytes();
            self.lend(path).and_then(|db| database::knows(&db, root)).unwrap_or(false)
        };
        if own.exists() && knows(&own) {
            return Ok(None);
        }
        // The name of one that was set aside has another point in it.
        let stem =
            |path: &Path| path.file_stem()?.to_str().filter(|stem| !stem.contains('.')).map(str::to_owned);
        let all = self.databases()?;
        let others = all.iter().filter(|path| **path != own);
        Ok(others
            .filter_map(|path| Some((path, stem(path)?)))
            .find(|(path, _)| knows(path))
            .map(|(_, stem)| stem))
    }

    /// The database of a tree; it is made where there is none.
    pub(crate) fn open(&self, tree: &Tree) -> Outcome<Lent> {
        self.lend(&self.path(tree, "db"))
    }

    /// The database at a path.
    pub(crate) fn lend(&self, path: &Path) -> Outcome<Lent> {
        self.pool.lend(path)
    }

    pub(crate) fn user_home(&self) -> Option<&Path> {
        self.user_home.get_or_init(limits::user_home).as_deref()
    }

    /// A file of a tree's repository in the store.
    pub(crate) fn path(&self, tree: &Tree, suffix: &str) -> PathBuf {
        self.folder.join(format!("{}.{suffix}", tree.name()))
    }

    /// Renames the database of a tree, so that a new one is begun, unless it is whole: says whether it was not. What can be read in
    /// it is still listed.
    pub(crate) fn set_aside(&self, tree: &Tree) -> Outcome<bool> {
        let path = self.path(tree, "db");
        if database::is_whole(&path) {
            return Ok(false);
        }
        let free = |aside: &PathBuf| aside.symlink_metadata().is_err();
        let aside = (1..).map(|n| self.path(tree, &format!("damaged-{n}.db"))).find(free);
        let aside = aside.expect("some number is free");
        for suffix in ["-wal", "-shm", ""] {
            let with =
                |path: &Path| PathBuf::from([path.as_os_str(), OsStr::new(suffix)].join(OsStr::new("")));
            match fs::rename(with(&path), with(&aside)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Trouble::io(path)(error));
                }
                _ => {}
            }
        }
        Ok(true)
    }

    /// The databases that are there, by name.
    pub(crate) fn databases(&self) -> Outcome<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Trouble::io(&self.folder)(error)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(Trouble::io(&self.folder))?.path();
            if path.extension().is_some_and(|extension| extension == "db") {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// The database that holds a checkpoint of a key, and the checkpoint.
    fn holding(&self, key: &SessionKey, id: CheckpointId) -> Outcome<(Lent, Kept)> {
        let mut trouble = Trouble::NotFound;
        for path in self.databases()? {
            match self.lend(&path).and_then(|db| Ok((database::kept(&db, key, id)?, db))) {
                Ok((Some(kept), db)) => return Ok((db, kept)),
                Ok((None, _)) => {}
                // It may be in one that cannot be read.
                Err(error) => trouble = error,
            }
        }
        Err(trouble)
    }

    fn list_all(&self, key: &SessionKey) -> Outcome<Vec<Checkpoint>> {
        let mut all = Vec::new();
        let (mut read, mut failed) = (false, None);
        for path in self.databases()? {
            match self.lend(&path).and_then(|db| list_in(&db, key)) {
                Ok(some) => {
                    // Of one repository, the order of taking counts, whatever the clock did.
                    let mut latest = Timestamp::EPOCH;
                    all.extend(some.into_iter().map(|checkpoint| {
                        latest = latest.max(checkpoint.at);
                        (latest, checkpoint)
                    }));
                    read = true;
                }
                Err(trouble) => {
                    tracing::warn!(path = %path.display(), %trouble, "checkpoints that may be there cannot be listed");
                    failed = Some(trouble);
                }
            }
        }
        all.sort_by_key(|(at, _)| *at);
        match failed {
            Some(trouble) if !read => Err(trouble),
            _ => Ok(all.into_iter().map(|(_, checkpoint)| checkpoint).collect()),
        }
    }

    /// Reads all of a checkpoint, and says whether it can be gone back to. [`list`](Checkpointer::list) looks at its top alone. What
    /// is damaged is put again by the next checkpoint of a tree that still has it.
    ///
    /// # Errors
    /// [`CheckpointError`] when the checkpoint is not there, or its database cannot be read.
    pub async fn check(&self, key: &SessionKey, id: CheckpointId) -> Result<Health, CheckpointError> {
        let key = key.clone();
        let work = move |this: &Self| {
            let (db, kept) = this.holding(&key, id)?;
            health::check(&db, &kept)
        };
        self.blocking("check", &self.folder, work).await
    }

    /// Compares two checkpoints of a key.
    async fn compare<T: Send + 'static>(
        &self,
        key: &SessionKey,
        [one, other]: [CheckpointId; 2],
        between: fn(&Connection, &Kept, &Kept) -> Outcome<T>,
    ) -> Result<T, CheckpointError> {
        let key = key.clone();
        let work = move |this: &Self| {
            let (db, one) = this.holding(&key, one)?;
            let other = database::kept(&db, &key, other)?.ok_or(Trouble::NotFound)?;
            between(&db, &one, &other)
        };
        self.blocking("compare", &self.folder, work).await
    }

    /// Does blocking work on tokio's pool for it.
    async fn blocking<T: Send + 'static>(
        &self,
        operation: &'static str,
        path: &Path,
        work: impl FnOnce(&Self) -> Outcome<T> + Send + 'static,
    ) -> Result<T, CheckpointError> {
        let this = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&this)).await;
        let done = done.map_err(|error| {
            // Nobody can tell how far it came.
            let kind =
                if operation == "restore" { CheckpointErrorKind::CutOff } else { CheckpointErrorKind::Other };
            CheckpointError::new(kind, operation, path).with_source(error)
        })?;
        done.map_err(|trouble| trouble.at(operation, path))
    }
}

/// The checkpoints of a key in one database.
fn list_in(db: &Connection, key: &SessionKey) -> Outcome<Vec<Checkpoint>> {
    let mut all = Vec::new();
    for kept in database::all_of(db, key)? {
        all.push(match kept {
            Ok(mut kept) => {
                kept.checkpoint.health = health::glance(db, &kept)?;
                kept.checkpoint
            }
            Err((id, trouble)) => {
                let step = RunId::new(uuid::Uuid::nil());
                let label = Label::new(key.clone(), step, Moment::Asked);
                let nowhere = PathText::new(Path::new(""));
                let mut damaged = Checkpoint::new(id, label, Timestamp::EPOCH, nowhere);
                damaged.health = Health::Damaged(trouble.to_string());
                damaged
            }
        });
    }
    Ok(all)
}

#[async_trait]
impl Checkpointer for FsCheckpoints {
    async fn root_of(&self, folder: &Path) -> Result<PathBuf, CheckpointError> {
        let within = folder.to_owned();
        self.blocking("look at", folder, move |this| Ok(this.tree(&within)?.root)).await
    }

    async fn take(&self, order: &TakeOrder<'_>) -> Result<Checkpoint, CheckpointError> {
        let waiting = Arc::new(());
        let wish = take::Wish::new(order, &waiting);
        let done = self.blocking("take", order.folder, move |this| take::take(this, &wish)).await;
        drop(waiting);
        done
    }

    async fn list(&self, key: &SessionKey) -> Result<Vec<Checkpoint>, CheckpointError> {
        let key = key.clone();
        self.blocking("list", &self.folder, move |this| this.list_all(&key)).await
    }

    async fn diff(
        &self,
        key: &SessionKey,
        from: CheckpointId,
        to: CheckpointId,
    ) -> Result<Vec<Change>, CheckpointError> {
        self.compare(key, [from, to], diff::between).await
    }

    async fn hidden(
        &self,
        key: &SessionKey,
        of: CheckpointId,
        by: CheckpointId,
    ) -> Result<Vec<PathBuf>, CheckpointError> {
        self.compare(key, [of, by], hidden::between).await
    }

    async fn read(
        &self,
        key: &SessionKey,
        checkpoint: CheckpointId,
        path: &Path,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, CheckpointError> {
        let (key, within) = (key.clone(), path.to_owned());
        let work = move |this: &Self| {
            let (db, kept) = this.holding(&key, checkpoint)?;
            let Some(what) = tree::at(&db, kept.tree, &within)? else { return Ok(None) };
            object::head(&db, what, limit)
        };
        self.blocking("read", path, work).await
    }

    async fn restore(&self, order: &RestoreOrder<'_>) -> Result<Restored, CheckpointError> {
        let waiting = Arc::new(());
        let wish = restore::Wish::new(order, &waiting);
        let done = self.blocking("restore", order.folder, move |this| restore::restore(this, &wish)).await;
        drop(waiting);
        done
    }

    async fn recover(&self, folder: &Path) -> Result<Vec<Recovered>, CheckpointError> {
        let within = folder.to_owned();
        self.blocking("recover", folder, move |this| restore::recover(this, &within)).await
    }

    async fn forget(&self, key: &SessionKey, which: Forget<'_>) -> Result<Dropped, CheckpointError> {
        let wish = forget::Wish::new(key, which);
        self.blocking("forget", &self.folder, move |this| forget::forget(this, &wish)).await
    }
}
