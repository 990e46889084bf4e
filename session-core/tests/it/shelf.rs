//! A checkpointer over trees in memory, an agent that edits them, and a bench of both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use session_core::error::*;
use session_core::*;

use crate::faulty::Faulty;
use crate::scripted::*;

/// What stands at a path: a file, or, `None`, a folder.
pub(crate) type Tree = BTreeMap<PathBuf, Option<String>>;

#[derive(Debug, Default)]
pub(crate) struct Inner {
    pub(crate) trees: BTreeMap<PathBuf, Tree>,
    pub(crate) kept: Vec<(Checkpoint, Tree)>,
    pub(crate) fail: Vec<&'static str>,
    /// The next restore is cut off after so many paths.
    pub(crate) cut: Option<usize>,
    /// Where that happens, nothing can be finished until the test says so.
    pub(crate) dies: bool,
    journal: Vec<(PathBuf, Recovered, Vec<PathBuf>)>,
    /// At this moment no checkpoint can be taken; or who takes one dies.
    pub(crate) fails_at: Option<Moment>,
    pub(crate) stalls_at: Option<Moment>,
    /// What is beside what is covered.
    pub(crate) left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Shelf(Arc<Mutex<Inner>>);

fn node(thing: Option<&str>) -> Node {
    let mut content = [0; 32];
    let text = thing.unwrap_or_default();
    content[..text.len()].copy_from_slice(text.as_bytes());
    let kind = if thing.is_some() { NodeKind::File } else { NodeKind::Folder };
    Node { kind, mode: 0o644, bytes: text.len() as u64, content }
}

pub(crate) fn node_at(tree: &Tree, path: &Path) -> Option<Node> {
    tree.get(path).map(|thing| node(thing.as_deref()))
}

pub(crate) fn diff(from: &Tree, to: &Tree) -> Vec<Change> {
    let paths: std::collections::BTreeSet<_> = from.keys().chain(to.keys()).collect();
    let changes = paths.into_iter().filter(|path| from.get(*path) != to.get(*path));
    changes
        .map(|path| Change { path: path.clone(), before: node_at(from, path), after: node_at(to, path) })
        .collect()
}

/// Writes a path as a program does: with the folders that it needs, in the place of what is in the way.
pub(crate) fn put(tree: &mut Tree, path: &Path, thing: Option<&str>) {
    for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        tree.insert(above.to_owned(), None);
    }
    remove(tree, path);
    tree.insert(path.to_owned(), thing.map(str::to_owned));
}

pub(crate) fn remove(tree: &mut Tree, path: &Path) {
    tree.retain(|other, _| !other.starts_with(path));
}

/// Puts paths back one by one, as a file system lets it: what goes from the bottom up, then what comes from the top down.
pub(crate) fn put_back(tree: &mut Tree, from: &Tree, to: &Tree, paths: &[PathBuf]) -> Restored {
    let mut restored = Restored::default();
    let mut todo = paths.to_vec();
    todo.sort();
    let mut left = BTreeMap::new();
    for path in todo.iter().rev() {
        if tree.get(path) == to.get(path) {
            continue;
        }
        if tree.get(path) != from.get(path) {
            left.insert(path.clone(), LeftWhy::ChangedMeanwhile);
        } else if tree.contains_key(path) {
            if tree.keys().any(|other| other != path && other.starts_with(path)) {
                // A folder that stays one is not in the way.
                left.insert(path.clone(), LeftWhy::NotEmpty);
            } else {
                tree.remove(path);
            }
        }
    }
    for path in &todo {
        let Some(thing) = to.get(path) else { continue };
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        if tree.contains_key(path) {
            continue;
        }
        if above.is_some_and(|above| tree.get(above) != Some(&None)) {
            left.insert(path.clone(), LeftWhy::InTheWay);
        } else {
            tree.insert(path.clone(), thing.clone());
        }
    }
    restored.done = todo.into_iter().filter(|path| !left.contains_key(path)).collect();
    restored.left = left.into_iter().map(|(path, why)| LeftPath { path, why }).collect();
    restored
}

impl Shelf {
    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }
    /// The tree of the folder that all tests work in.
    pub(crate) fn tree(&self) -> Tree {
        self.inner().trees.get(Path::new("/w/demo")).cloned().unwrap_or_default()
    }
    pub(crate) fn edit(&self, edit: impl FnOnce(&mut Tree)) {
        edit(self.inner().trees.entry("/w/demo".into()).or_default());
    }
    fn check(&self, operation: &'static str) -> Result<(), CheckpointError> {
        match self.inner().fail.contains(&operation) {
            true => Err(CheckpointError::new(CheckpointErrorKind::NoRoom, operation, "/shelf")),
            false => Ok(()),
        }
    }
    fn state(&self, key: &SessionKey, id: CheckpointId) -> Result<Tree, CheckpointError> {
        let inner = self.inner();
        let found = inner.kept.iter().find(|(kept, _)| kept.id == id && kept.label.key == *key);
        let missing = || CheckpointError::new(CheckpointErrorKind::NotFound, "read", "/shelf");
        found.map(|(_, tree)| tree.clone()).ok_or_else(missing)
    }
}

#[async_trait]
impl Checkpointer for Shelf {
    async fn root_of(&self, folder: &Path) -> Result<PathBuf, CheckpointError> {
        Ok(folder.to_owned())
    }
    async fn take(&self, order: &TakeOrder<'_>) -> Result<Checkpoint, CheckpointError> {
        self.check("take")?;
        let moment = Some(order.label.moment);
        if self.inner().stalls_at == moment {
            std::future::pending::<()>().await;
        }
        if self.inner().fails_at == moment {
            return Err(CheckpointError::new(CheckpointErrorKind::NoRoom, "take", "/shelf"));
        }
        self.recover(order.folder).await?;
        let mut inner = self.inner();
        let tree = inner.trees.get(order.folder).cloned().unwrap_or_default();
        let root = PathText::new(order.folder);
        let mut checkpoint = Checkpoint::new(order.id, order.label.clone(), order.at, root);
        checkpoint.left_out.clone_from(&inner.left_out);
        inner.kept.push((checkpoint.clone(), tree));
        Ok(checkpoint)
    }
    async fn list(&self, key: &SessionKey) -> Result<Vec<Checkpoint>, CheckpointError> {
        self.check("list")?;
        let inner = self.inner();
        let own = inner.kept.iter().map(|(kept, _)| kept).filter(|kept| kept.label.key == *key);
        Ok(own.cloned().collect())
    }
    async fn diff(
        &self,
        key: &SessionKey,
        from: CheckpointId,
        to: CheckpointId,
    ) -> Result<Vec<Change>, CheckpointError> {
        self.check("diff")?;
        let mut changes = diff(&self.state(key, from)?, &self.state(key, to)?);
        let inner = self.inner();
        let both = inner.kept.iter().map(|(kept, _)| kept).filter(|kept| [from, to].contains(&kept.id));
        let left_out: Vec<_> =
            both.flat_map(|kept| &kept.left_out).filter_map(|one| one.path.as_path()).collect();
        changes.retain(|change| !left_out.iter().any(|path| change.path.starts_with(path)));
        Ok(changes)
    }
    async fn hidden(
        &self,
        key: &SessionKey,
        of: CheckpointId,
        by: CheckpointId,
    ) -> Result<Vec<PathBuf>, CheckpointError> {
        self.check("hidden")?;
        let tree = self.state(key, of)?;
        let inner = self.inner();
        let by = inner.kept.iter().find(|(kept, _)| kept.id == by).map(|(kept, _)| kept);
        let paths = by.into_iter().flat_map(|by| &by.left_out).filter_map(|left| left.path.as_path());
        Ok(paths.filter(|path| tree.contains_key(*path)).map(Path::to_owned).collect())
    }
    async fn read(
        &self,
        key: &SessionKey,
        checkpoint: CheckpointId,
        path: &Path,
        _: u64,
    ) -> Result<Option<Vec<u8>>, CheckpointError> {
        Ok(self.state(key, checkpoint)?.remove(path).flatten().map(String::into_bytes))
    }
    async fn restore(&self, order: &RestoreOrder<'_>) -> Result<Restored, CheckpointError> {
        self.check("restore")?;
        let (from, to) = (self.state(order.key, order.from)?, self.state(order.key, order.to)?);
        let mut inner = self.inner();
        let cut = inner.cut.take();
        let tree = inner.trees.entry(order.folder.to_owned()).or_default();
        let (now, later) = order.paths.split_at(cut.unwrap_or(usize::MAX).min(order.paths.len()));
        let restored = put_back(tree, &from, &to, now);
        if cut.is_none() {
            return Ok(restored);
        }
        let recovered = Recovered::new(order.key.clone(), order.step, order.to, order.from, restored);
        if std::mem::take(&mut inner.dies) {
            inner.fail = vec!["recover", "take"];
        }
        inner.journal.push((order.folder.to_owned(), recovered, later.to_vec()));
        Err(CheckpointError::new(CheckpointErrorKind::CutOff, "restore", order.folder))
    }
    async fn recover(&self, folder: &Path) -> Result<Vec<Recovered>, CheckpointError> {
        self.check("recover")?;
        let journal = std::mem::take(&mut self.inner().journal);
        let (mine, others) = journal.into_iter().partition(|(of, _, _)| of == folder);
        self.inner().journal = others;
        let mut all = Vec::new();
        for (of, mut recovered, paths) in Vec::from_iter::<Vec<_>>(mine) {
            let (from, to) =
                (self.state(&recovered.key, recovered.from)?, self.state(&recovered.key, recovered.to)?);
            let mut inner = self.inner();
            let more = put_back(inner.trees.entry(of).or_default(), &from, &to, &paths);
            recovered.restored.done.extend(more.done);
            recovered.restored.left.extend(more.left);
            all.push(recovered);
        }
        Ok(all)
    }
    async fn forget(&self, key: &SessionKey, which: Forget<'_>) -> Result<Dropped, CheckpointError> {
        self.check("forget")?;
        let mut inner = self.inner();
        let before = inner.kept.len();
        inner.kept.retain(|(kept, _)| {
            let goes = match which {
                Forget::These(ids) => ids.contains(&kept.id),
                _ => true,
            };
            kept.label.key != *key || !goes
        });
        let mut dropped = Dropped::default();
        dropped.checkpoints = (before - inner.kept.len()) as u64;
        Ok(dropped)
    }
}

/// Edits the tree of its folder as the prompt says, then goes on as its script. `+a/b=1` writes a file, `-a` removes what is
/// there.
#[derive(Debug, Clone)]
pub(crate) struct Editor {
    pub(crate) scripted: Scripted,
    pub(crate) shelf: Shelf,
}

pub(crate) fn play(tree: &mut Tree, prompt: &str) {
    for word in prompt.split_whitespace() {
        if let Some((path, text)) = word.strip_prefix('+').and_then(|word| word.split_once('=')) {
            put(tree, Path::new(path), Some(text));
        } else if let Some(path) = word.strip_prefix('-') {
            remove(tree, Path::new(path));
        }
    }
}

#[async_trait]
impl AgentAdapter for Editor {
    fn id(&self) -> &AgentId {
        self.scripted.id()
    }
    fn accepts_id(&self, id: &NativeId) -> bool {
        self.scripted.accepts_id(id)
    }
    fn new_id(&self, random: &str) -> NativeId {
        self.scripted.new_id(random)
    }
    async fn detect(&self) -> Result<Installation, AgentError> {
        self.scripted.detect().await
    }
    async fn run(&self, turn: Turn<'_>, sink: &mut dyn EventSink) -> Result<TurnReport, AgentError> {
        let at = turn.cwd.to_owned();
        play(self.shelf.inner().trees.entry(at).or_default(), turn.prompt);
        self.scripted.run(turn, sink).await
    }
    async fn reap(&self, run: RunId) -> u32 {
        self.scripted.reap(run).await
    }
}

pub(crate) struct Yard {
    pub(crate) agent: Scripted,
    pub(crate) shelf: Shelf,
    pub(crate) store: Faulty,
    pub(crate) host: Arc<StillHost>,
    pub(crate) lifecycle: Lifecycle,
}

pub(crate) fn yard() -> Yard {
    yard_with(Scripted::new())
}

pub(crate) fn yard_with(agent: Scripted) -> Yard {
    let (shelf, store) = (Shelf::default(), Faulty::default());
    let host = Arc::new(StillHost::default());
    host.folders.lock().unwrap().insert("/w/demo".into(), folder("/w/demo", 1, "/w/demo/.git"));
    host.folders.lock().unwrap().insert("/w/other".into(), folder("/w/other", 2, "/w/demo/.git"));
    let editor = Editor { scripted: agent.clone(), shelf: shelf.clone() };
    let registered = Agent::new(editor).with_catalog(Glass(agent.clone()));
    let lifecycle = Lifecycle::new(Arc::new(store.clone()), host.clone())
        .agent(registered)
        .checkpointer(Arc::new(shelf.clone()));
    Yard { agent, shelf, store, host, lifecycle }
}

pub(crate) fn back(turns: u32) -> RewindRequest {
    RewindRequest::new(key(), "/w/demo").to(RewindTo::Turns(turns))
}

impl Yard {
    pub(crate) async fn run(&self, prompt: &str) -> LlmResult {
        self.lifecycle.run(request(prompt)).await.unwrap()
    }
    pub(crate) fn by_hand(&self, edits: &str) {
        self.shelf.edit(|tree| play(tree, edits));
    }
    pub(crate) fn files(&self) -> Vec<String> {
        let tree = self.shelf.tree();
        let told = tree.iter().map(|(path, thing)| match thing {
            Some(text) => format!("{}={text}", path.display()),
            None => format!("{}/", path.display()),
        });
        told.collect()
    }
    /// What the model sees of the session that the next run continues.
    pub(crate) async fn said(&self) -> Vec<String> {
        let record = self.lifecycle.record(&key()).await.unwrap();
        let begun = |record: SessionRecord| record.candidate.map(|candidate| candidate.binding);
        let bound = record.and_then(|record| record.binding.clone().or_else(|| begun(record)));
        let bound = bound.map(|binding| binding.native_id);
        let said = bound.and_then(|id| self.agent.world().sessions.get(id.as_str()).cloned());
        said.unwrap_or_default()
    }
    pub(crate) async fn kinds(&self) -> Vec<String> {
        let log = self.lifecycle.audit(&key(), None).await.unwrap();
        log.into_iter().map(|entry| entry.event.kind).collect()
    }
    pub(crate) async fn moments(&self) -> Vec<Moment> {
        let all = self.lifecycle.checkpoints(&key()).await.unwrap();
        all.into_iter().map(|checkpoint| checkpoint.label.moment).collect()
    }
    pub(crate) async fn undo(&self) -> Rewound {
        self.lifecycle.undo(&key(), Path::new("/w/demo")).await.unwrap()
    }
}
