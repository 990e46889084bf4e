//! An open checkpointer in a scratch, folders for trees, and the questions that the cases ask all the time.

use std::cell::Cell;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use session_core::error::{Chain, CheckpointError, CheckpointErrorKind};
use session_core::{
    Change, Checkpoint, CheckpointId, Checkpointer, Label, LeftWhy, Moment, NativeId, Preamble, RestoreOrder,
    Restored, RunId, SessionKey, Spot, TakeOrder, Timestamp,
};
use tokio::runtime::{Builder, Runtime};

use super::tree::{Tree, sure};
use super::work::Work;
use super::{Damage, Subject};
use crate::Scratch;
use crate::agent::Cannot;

/// How long a case may take before it has failed.
const PATIENCE: Duration = Duration::from_secs(180);

/// A checkpoint that was taken, and the tree at that time.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) id: CheckpointId,
    pub(super) tree: Tree,
    pub(super) checkpoint: Checkpoint,
}

/// A checkpointer, open.
pub(super) struct Stage<'a> {
    pub(super) subject: &'a Subject,
    scratch: Rc<Scratch>,
    /// Where trees lie: apart from the store.
    grounds: Rc<Scratch>,
    opened: Arc<dyn Checkpointer>,
    clock: Cell<i64>,
}

impl Subject {
    pub(super) fn runtime() -> Runtime {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.unwrap_or_else(|error| panic!("no runtime: {error}"))
    }

    pub(super) async fn stage(&self) -> Stage<'_> {
        self.stage_in(Scratch::new(), Scratch::new()).await
    }

    pub(super) async fn stage_in(&self, scratch: Scratch, grounds: Scratch) -> Stage<'_> {
        let (scratch, grounds) = (Rc::new(scratch), Rc::new(grounds));
        let opened = (self.open)(scratch.clone()).await;
        Stage { subject: self, scratch, grounds, opened, clock: Cell::new(1_700_000_000_000) }
    }

    /// Runs a case.
    pub(super) fn every(&self, case: impl AsyncFnOnce(Stage<'_>)) {
        Self::runtime().block_on(async {
            let whole = async { case(self.stage().await).await };
            assert!(tokio::time::timeout(PATIENCE, whole).await.is_ok(), "the case does not come to an end");
        });
    }
}

impl Stage<'_> {
    pub(super) fn engine(&self) -> &dyn Checkpointer {
        &*self.opened
    }

    pub(super) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// A place for a tree, or for what is none.
    pub(super) fn ground(&self, name: &str) -> PathBuf {
        sure(std::fs::canonicalize(self.grounds.dir()), self.grounds.dir()).join(name)
    }

    /// A new repository.
    pub(super) fn work(&self) -> Work {
        Work::repository(self.ground("main"))
    }

    /// Another handle, in the same scratch.
    pub(super) async fn another(&self) -> Arc<dyn Checkpointer> {
        (self.subject.open)(self.scratch.clone()).await
    }

    /// The same store, closed and opened again.
    pub(super) async fn reopened(self) -> Self {
        let Self { subject, scratch, grounds, opened, clock } = self;
        drop(opened);
        let opened = (subject.open)(scratch.clone()).await;
        Self { subject, scratch, grounds, opened, clock }
    }

    /// Damages, where the suite was told how.
    pub(super) async fn damage(&self, id: CheckpointId, damage: Damage) -> Result<(), Cannot> {
        match &self.subject.damage {
            Some(hook) => hook(self.scratch.clone(), id, damage).await,
            None => Err(Cannot("the suite was not told how")),
        }
    }

    /// A later time than every one before.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.set(self.clock.get() + 1000);
        Timestamp::from_millis(self.clock.get())
    }

    pub(super) async fn try_take(
        &self,
        work: &Work,
        key: &SessionKey,
        changed: Option<&[PathBuf]>,
    ) -> Result<Taken, CheckpointError> {
        let (tree, id, label) = (work.tree(), new_id(), label(key));
        let order = TakeOrder { id, label: &label, at: self.now(), folder: &work.0, changed };
        let checkpoint = self.engine().take(&order).await?;
        assert_eq!(checkpoint.id, id, "the checkpoint has another id than it was given");
        Ok(Taken { id, tree, checkpoint })
    }

    /// Takes a checkpoint of a tree of which nothing is known.
    pub(super) async fn take(&self, work: &Work, key: &SessionKey) -> Taken {
        answer(self.try_take(work, key, None).await)
    }

    pub(super) async fn list(&self, key: &SessionKey) -> Vec<Checkpoint> {
        answer(self.engine().list(key).await)
    }

    pub(super) async fn ids(&self, key: &SessionKey) -> Vec<CheckpointId> {
        self.list(key).await.iter().map(|checkpoint| checkpoint.id).collect()
    }

    pub(super) async fn diff(&self, key: &SessionKey, from: &Taken, to: &Taken) -> Vec<Change> {
        answer(self.engine().diff(key, from.id, to.id).await)
    }

    pub(super) async fn read(&self, key: &SessionKey, taken: &Taken, path: &str) -> Option<Vec<u8>> {
        answer(self.engine().read(key, taken.id, Path::new(path), 1 << 30).await)
    }

    pub(super) async fn restore(
        &self,
        key: &SessionKey,
        work: &Work,
        (to, from): (&Taken, &Taken),
        paths: &[PathBuf],
    ) -> Restored {
        let order = RestoreOrder { key, step: step(), folder: &work.0, to: to.id, from: from.id, paths };
        answer(self.engine().restore(&order).await)
    }

    /// Puts everything back that differs by now, and says from where; all of it has to go.
    pub(super) async fn back(&self, key: &SessionKey, work: &Work, to: &Taken) -> Taken {
        let from = self.take(work, key).await;
        let paths = from.tree.differing(&to.tree);
        let restored = self.restore(key, work, (to, &from), &paths).await;
        assert_all_done(&restored, &paths);
        work.tree().assert_is(&to.tree, "after going back");
        from
    }
}

/// That every path was put back, and none is told twice.
#[track_caller]
pub(super) fn assert_all_done(restored: &Restored, paths: &[PathBuf]) {
    assert_eq!(restored.left, [], "left");
    let mut done = restored.done.clone();
    done.sort();
    let mut paths = paths.to_vec();
    paths.sort();
    assert_eq!(done, paths, "done");
}

/// Why a path was left; `None`: it was not.
pub(super) fn why<'a>(restored: &'a Restored, path: &str) -> Option<&'a LeftWhy> {
    restored.left.iter().find(|left| left.path == Path::new(path)).map(|left| &left.why)
}

/// The answer to a question that the checkpointer has to be able to answer.
#[track_caller]
pub(super) fn answer<T>(answer: Result<T, CheckpointError>) -> T {
    answer.unwrap_or_else(|error| panic!("the checkpointer did not answer: {}", Chain(&error)))
}

/// The kind of an error, which says something.
#[track_caller]
pub(super) fn kind<T: Debug>(answer: Result<T, CheckpointError>) -> CheckpointErrorKind {
    match answer {
        Ok(answer) => panic!("no error, but {answer:?}"),
        Err(error) => {
            assert!(!error.to_string().trim().is_empty(), "an error without a word");
            error.kind()
        }
    }
}

pub(super) fn key(mailbox: &str) -> SessionKey {
    SessionKey::new(mailbox, "claude").unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn new_id() -> CheckpointId {
    CheckpointId::new(uuid::Uuid::new_v4())
}

pub(super) fn step() -> RunId {
    RunId::new(uuid::Uuid::new_v4())
}

/// A label of which nothing may be lost.
pub(super) fn label(key: &SessionKey) -> Label {
    let native_id = NativeId::new("0190a5c2-\u{e9}");
    Label {
        key: key.clone(),
        step: step(),
        moment: Moment::BeforeRun,
        spot: Some(Spot { native_id, turns: 3, bytes: Some(u64::MAX) }),
        prompt: Some("fix \"it\"\n\u{1f600}\u{0}".to_owned()),
        back_to: Some(CheckpointId::new(uuid::Uuid::max())),
        waits: Some(Preamble {
            text: "<earlier>\n\u{1f600}\n</earlier>".to_owned(),
            why: "handed_over".to_owned(),
            from: key.clone(),
            session: NativeId::new("0190a5c2"),
            at: Timestamp::from_millis(1),
            given: Vec::new(),
            extra: serde_json::Map::new(),
        }),
    }
}

pub(super) fn owned(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).collect()
}
