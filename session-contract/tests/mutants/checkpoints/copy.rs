//! A checkpointer that copies whole trees, as plainly as it can be done, and what can be wrong with one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use session_core::error::CheckpointError;
use session_core::error::CheckpointErrorKind::{self, Corrupt, NotFound, NotHere, Other, Unavailable};
use session_core::*;

use super::disk::{Shelf, error};
use super::flaw::Flaw;
use super::restore::Restore;
use super::state::{Entry, Scan, State};

pub(super) type Result<T> = std::result::Result<T, CheckpointError>;
type Seen = BTreeMap<PathBuf, ((u64, i64, i64), Vec<u8>)>;

/// A checkpointer over a folder.
#[derive(Debug)]
pub(super) struct CopyCheckpointer {
    pub(super) flaw: Flaw,
    pub(super) shelf: Shelf,
    /// Leaves out what an ignore rule names.
    pub(super) ignores: bool,
    /// Makes files open to others until they are whole.
    pub(super) wide: bool,
    pub(super) limit: u64,
    pub(super) seen: Mutex<Seen>,
    home: PathBuf,
    broken: AtomicBool,
}

impl CopyCheckpointer {
    /// No file larger than this is covered.
    pub(super) const LIMIT: u64 = 32 << 20;

    pub(super) fn open(dir: &Path, flaw: Flaw) -> Self {
        let shelf = Shelf::new(dir.join("store"), flaw);
        if flaw == Flaw::ForgetsOnReopen {
            drop(fs::remove_dir_all(dir.join("store")));
        }
        let (home, seen) = (Self::home(dir), Mutex::default());
        let (ignores, wide, broken) = (false, false, AtomicBool::new(false));
        Self { flaw, shelf, ignores, wide, limit: Self::LIMIT, seen, home, broken }
    }

    pub(super) fn ignoring(self) -> Self {
        Self { ignores: true, ..self }
    }

    pub(super) fn opening_first(self) -> Self {
        Self { wide: true, ..self }
    }

    pub(super) fn home(dir: &Path) -> PathBuf {
        dir.join("home")
    }

    pub(super) fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    pub(super) fn top(&self, folder: &Path) -> Result<PathBuf> {
        let folder = fs::canonicalize(folder).map_err(|_| error(Other, "root_of", folder))?;
        let has_git = |above: &&Path| {
            let git = above.join(".git");
            if self.is(Flaw::NeedsAGitFolder) { git.is_dir() } else { git.exists() }
        };
        let mut tops = folder.ancestors().filter(has_git);
        let top = match self.flaw {
            Flaw::TakesTheFolder => None,
            Flaw::TakesTheOutermost => tops.last(),
            _ => tops.next(),
        };
        let top = top.unwrap_or(&folder).to_owned();
        let home = fs::canonicalize(&self.home).ok();
        let home = Some(&top) == home.as_ref() && !self.is(Flaw::TakesHomes);
        let store = fs::canonicalize(self.shelf.dir()).is_ok_and(|store| store.starts_with(&top));
        if top == Path::new("/") || home || store && !self.is(Flaw::CoversItself) {
            return Err(error(NotHere, "root_of", &top));
        }
        Ok(top)
    }

    /// All of a tree; what its caller knows of changes is not needed.
    fn scan(&self, top: &Path, order: &TakeOrder<'_>) -> Result<(State, Vec<LeftOut>)> {
        let mut scan = Scan::new(self, top);
        scan.walk(Path::new("")).map_err(|cause| error(Other, "take", top).with_source(cause))?;
        let (mut state, left_out) = (scan.state, scan.left_out);
        let latest = self.shelf.latest(top);
        match self.flaw {
            Flaw::KnowsTheFirstFilesAlone => {
                if let Some(first) = self.shelf.first(top) {
                    state.retain(|path, _| first.contains_key(path));
                }
            }
            Flaw::LooksAtNamedPathsAlone => {
                if let (Some(named), Some(latest)) = (order.changed, latest) {
                    let stays = |path: &&PathBuf| !named.contains(path);
                    let all: BTreeSet<_> = state.keys().chain(latest.keys()).cloned().collect();
                    for path in all.iter().filter(stays) {
                        match latest.get(path) {
                            Some(entry) => state.insert(path.clone(), entry.clone()),
                            None => state.remove(path),
                        };
                    }
                }
            }
            Flaw::TrustsFirstChanges if latest.is_none() && order.changed == Some(&[]) => state.clear(),
            Flaw::KeepsTextNames => {
                let text = |path: PathBuf| PathBuf::from(path.to_string_lossy().into_owned());
                state = state.into_iter().map(|(path, entry)| (text(path), entry)).collect();
            }
            Flaw::FoldsPaths => {
                let fold = |path: PathBuf| path.to_str().map(|p| p.to_lowercase().into()).unwrap_or(path);
                state = state.into_iter().map(|(path, entry)| (fold(path), entry)).collect();
            }
            Flaw::TrimsNames => {
                let trim = |path: PathBuf| path.to_str().map(|path| path.trim().into()).unwrap_or(path);
                state = state.into_iter().map(|(path, entry)| (trim(path), entry)).collect();
            }
            _ => {}
        }
        Ok((state, left_out))
    }

    /// What would be wrong to do beside a checkpoint.
    fn meddle(&self, top: &Path) {
        match self.flaw {
            Flaw::WritesInTheTree => fs::write(top.join("checkpointed"), "").unwrap(),
            Flaw::WritesInGit if top.join(".git").is_dir() => {
                fs::create_dir_all(top.join(".git/refs/ours")).unwrap();
                fs::write(top.join(".git/refs/ours/latest"), "").unwrap();
            }
            Flaw::AsksGit => {
                let mut git = std::process::Command::new("git");
                git.args(["status", "--porcelain"]).current_dir(top);
                drop(git.output());
            }
            _ => {}
        }
    }

    /// The state of a checkpoint that has to be one of this key.
    pub(super) fn load(&self, key: &SessionKey, id: CheckpointId) -> Result<(Checkpoint, State)> {
        let any = self.is(Flaw::ReadsAnyId).then(|| self.shelf.find_any(id)).flatten();
        let place = self.shelf.find(key, id).or(any);
        let place = place.ok_or_else(|| error(NotFound, "load", self.shelf.dir()))?;
        let (checkpoint, state) = self.shelf.load(&place, key);
        let state = state.ok_or_else(|| error(Corrupt, "load", &place))?;
        Ok((checkpoint, state))
    }

    fn both(&self, key: &SessionKey, one: CheckpointId, two: CheckpointId) -> Result<[State; 2]> {
        let (one, two) = (self.load(key, one)?, self.load(key, two)?);
        if one.0.root != two.0.root && !self.is(Flaw::MixesTrees) {
            return Err(error(Other, "diff", self.shelf.dir()).with_detail("they are of two trees"));
        }
        Ok([one.1, two.1])
    }

    fn reachable(&self, operation: &'static str) -> Result<()> {
        let broken = self.shelf.reach().is_err() || self.broken.load(Ordering::Relaxed);
        if broken && self.is(Flaw::StaysBroken) {
            self.broken.store(true, Ordering::Relaxed);
        }
        if broken { Err(error(Unavailable, operation, self.shelf.dir())) } else { Ok(()) }
    }
}

impl CopyCheckpointer {
    /// Finishes what was cut off.
    async fn finish(&self, top: &Path) -> Result<Vec<Recovered>> {
        let mut recovered = Vec::new();
        for (journal, cut) in self.shelf.cut_off(top) {
            let [from, to] = self.both(&cut.key, cut.from, cut.to)?;
            let restore = Restore { of: self, top, from: &from, to: &to, step: cut.step, again: true };
            let restored = restore.run(&cut.paths).await;
            self.shelf.end(&journal);
            recovered.push(Recovered::new(cut.key, cut.step, cut.to, cut.from, restored));
        }
        Ok(recovered)
    }
}

#[async_trait]
impl Checkpointer for CopyCheckpointer {
    async fn root_of(&self, folder: &Path) -> Result<PathBuf> {
        self.top(folder)
    }

    async fn take(&self, order: &TakeOrder<'_>) -> Result<Checkpoint> {
        self.reachable("take")?;
        let top = self.top(order.folder)?;
        let _alone = self.shelf.lock().await?;
        self.finish(&top).await?;
        let key = &order.label.key;
        if self.shelf.find_any(order.id).is_some() && !self.is(Flaw::UsesIdsAgain) {
            return Err(error(Other, "take", &top).with_detail("this id is taken"));
        }
        self.meddle(&top);
        let covered = if self.is(Flaw::CoversTheFolderAlone) { order.folder } else { &top };
        let (state, left_out) = self.scan(covered, order)?;
        let mut taken = Checkpoint::new(order.id, order.label.clone(), order.at, PathText::new(&top));
        let file = |entry: &&Entry| entry.kind != NodeKind::Folder || self.is(Flaw::CountsFolders);
        taken.files = state.values().filter(file).count() as u64;
        taken.bytes = state.values().filter(|e| e.kind == NodeKind::File).map(|e| e.bytes).sum();
        taken.left_out_count = left_out.len() as u64;
        taken.left_out = left_out.into_iter().take(Checkpoint::LEFT_OUT_SHOWN).collect();
        if self.is(Flaw::LosesTheLabel) {
            taken.label.prompt = None;
        }
        self.shelf.keep(key, &taken, &state).await?;
        Ok(taken)
    }

    async fn list(&self, key: &SessionKey) -> Result<Vec<Checkpoint>> {
        self.reachable("list")?;
        let mut listed: Vec<_> =
            self.shelf.all(key).iter().map(|place| self.shelf.load(place, key).0).collect();
        let damaged = |listed: &Checkpoint| listed.health != Health::Whole;
        match self.flaw {
            Flaw::ListsNewestFirst => listed.reverse(),
            Flaw::HidesDamaged => listed.retain(|listed| !damaged(listed)),
            Flaw::FailsForOne if listed.iter().any(damaged) => {
                return Err(error(Corrupt, "list", self.shelf.dir()));
            }
            _ => {}
        }
        Ok(listed)
    }

    async fn diff(&self, key: &SessionKey, from: CheckpointId, to: CheckpointId) -> Result<Vec<Change>> {
        let [before, after] = self.both(key, from, to)?;
        let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        let node = |state: &State, path: &Path| {
            let mut node = state.get(path).map(Entry::node);
            if let Some(node) = node.as_mut().filter(|_| self.is(Flaw::ComparesContentAlone)) {
                node.mode = 0o644;
            }
            node
        };
        let change = |path: &PathBuf| {
            let (before, after) = (node(&before, path), node(&after, path));
            Change { path: path.clone(), before, after }
        };
        let mut changes: Vec<_> =
            all.into_iter().map(change).filter(|change| change.before != change.after).collect();
        match self.flaw {
            Flaw::DiffsBackwards => changes = changes.into_iter().map(Change::reversed).collect(),
            Flaw::NamesTopsAlone => {
                let gone = |change: &&Change| change.after.is_none();
                let gone: Vec<_> = changes.iter().filter(gone).map(|change| change.path.clone()).collect();
                changes.retain(|c| !gone.iter().any(|above| c.path.starts_with(above) && c.path != *above));
            }
            _ => {}
        }
        Ok(changes)
    }

    async fn hidden(&self, key: &SessionKey, of: CheckpointId, by: CheckpointId) -> Result<Vec<PathBuf>> {
        let [state, _] = self.both(key, of, by)?;
        let by = self.load(key, by)?.0;
        let stands = |path: &&Path| {
            let entry = state.get(*path);
            entry.is_some_and(|e| e.kind != NodeKind::Folder || !self.is(Flaw::HidesFolders))
        };
        let mut paths: Vec<PathBuf> = by
            .left_out
            .iter()
            .filter_map(|left| left.path.as_path())
            .filter(stands)
            .map(Path::to_owned)
            .collect();
        paths.sort();
        Ok(paths)
    }

    async fn read(
        &self,
        key: &SessionKey,
        checkpoint: CheckpointId,
        path: &Path,
        limit: u64,
    ) -> Result<Option<Vec<u8>>> {
        let (_, state) = self.load(key, checkpoint)?;
        match state.get(path) {
            Some(entry) if entry.kind != NodeKind::Folder || self.is(Flaw::ReadsFolders) => {
                let content = entry.content.clone().ok_or_else(|| error(Corrupt, "read", path))?;
                let limit = if self.is(Flaw::IgnoresTheLimit) { u64::MAX } else { limit };
                Ok(Some(content.into_iter().take(limit as usize).collect()))
            }
            _ => Ok(None),
        }
    }

    async fn restore(&self, order: &RestoreOrder<'_>) -> Result<Restored> {
        self.reachable("restore")?;
        let top = self.top(order.folder)?;
        let _alone = self.shelf.lock().await?;
        self.finish(&top).await?;
        let [from, to] = self.both(order.key, order.from, order.to)?;
        let (checkpoint, _) = self.load(order.key, order.to)?;
        if checkpoint.root != PathText::new(&top) && !self.is(Flaw::MixesTrees) {
            return Err(error(Other, "restore", &top).with_detail("it is of another tree"));
        }
        let journal = self.shelf.begin(&top, order)?;
        let restored = Restore { of: self, top: &top, from: &from, to: &to, step: order.step, again: false };
        let restored = restored.run(order.paths).await;
        self.shelf.end(&journal);
        Ok(restored)
    }

    async fn recover(&self, folder: &Path) -> Result<Vec<Recovered>> {
        self.reachable("recover")?;
        let top = self.top(folder)?;
        let _alone = self.shelf.lock().await?;
        self.finish(&top).await
    }

    async fn forget(&self, key: &SessionKey, which: Forget<'_>) -> Result<Dropped> {
        self.reachable("forget")?;
        let place = |id: &CheckpointId| {
            let any = self.is(Flaw::ForgetsForOthers).then(|| self.shelf.find_any(*id)).flatten();
            self.shelf.find(key, *id).or(any)
        };
        let places: BTreeSet<PathBuf> = match which {
            Forget::These(ids) => ids.iter().filter_map(place).collect(),
            _ => self.shelf.all(key).into_iter().collect(),
        };
        let mut dropped = Dropped::default();
        for place in &places {
            dropped.bytes += self.shelf.load(place, key).0.bytes;
            self.shelf.remove(place);
        }
        dropped.checkpoints = match which {
            Forget::These(ids) if self.is(Flaw::CountsTheUnknown) => ids.len() as u64,
            _ => places.len() as u64,
        };
        Ok(dropped)
    }
}

/// Of what kind an error of the system is.
pub(super) fn kind_of(error: &std::io::Error) -> CheckpointErrorKind {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => CheckpointErrorKind::PermissionDenied,
        _ => Other,
    }
}
