//! An open store in a scratch, what it claims, and the questions that the cases ask all the time.

use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use session_core::error::{Chain, StoreError, StoreErrorKind};
use session_core::{
    AuditEvent, Document, Guard, Holder, Lease, LeaseOutcome, Revision, RunId, Saved, SessionKey,
    SessionStore, StoreCapabilities, StoreReach, Stored, Timestamp,
};
use tokio::runtime::{Builder, Runtime};

use super::{Damage, Opened, Subject};
use crate::Scratch;
use crate::agent::Cannot;

/// How long a case may take before it has failed.
const PATIENCE: Duration = Duration::from_secs(180);

/// What a case needs the store to claim.
#[derive(Debug, Clone, Copy)]
pub(super) enum Needs {
    /// What it acknowledged is there when it is opened again.
    Durable,
    /// Two handles, in whatever processes of the host, are one store.
    Handles,
    /// A place for state dirs.
    StateDirs,
    /// The name of who holds a lease.
    HolderNames,
}

impl Needs {
    const fn claimed(self, claims: StoreCapabilities) -> bool {
        match self {
            Self::Durable => claims.durable,
            Self::Handles => !matches!(claims.reach, StoreReach::Process),
            Self::StateDirs => claims.state_dirs,
            Self::HolderNames => claims.names_holders,
        }
    }
}

/// A store, open.
pub(super) struct Stage<'a> {
    subject: &'a Subject,
    scratch: Rc<Scratch>,
    opened: Opened,
}

impl Subject {
    pub(super) fn runtime() -> Runtime {
        // Races need threads.
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.unwrap_or_else(|error| panic!("no runtime: {error}"))
    }

    pub(super) async fn stage(&self, scratch: Scratch) -> Stage<'_> {
        let scratch = Rc::new(scratch);
        let opened = (self.open)(scratch.clone()).await;
        Stage { subject: self, scratch, opened }
    }

    /// Runs a case that every store has to hold.
    pub(super) fn every(&self, case: impl AsyncFnOnce(Stage<'_>)) {
        Self::runtime().block_on(async {
            let whole = async { case(self.stage(Scratch::new()).await).await };
            assert!(tokio::time::timeout(PATIENCE, whole).await.is_ok(), "the case does not come to an end");
        });
    }

    /// Runs a case of a capability where it is claimed, and the other one where it is not.
    pub(super) fn needing(
        &self,
        needs: Needs,
        claimed: impl AsyncFnOnce(Stage<'_>),
        refused: impl AsyncFnOnce(Stage<'_>),
    ) {
        self.every(async |at| {
            if needs.claimed(at.store().capabilities()) { claimed(at).await } else { refused(at).await }
        });
    }
}

impl Stage<'_> {
    pub(super) fn store(&self) -> &Arc<dyn SessionStore> {
        &self.opened.store
    }

    pub(super) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    pub(super) fn claims(&self, needs: Needs) -> bool {
        needs.claimed(self.store().capabilities())
    }

    /// Another handle, in the same scratch.
    pub(super) async fn another(&self) -> Arc<dyn SessionStore> {
        (self.subject.open)(self.scratch.clone()).await.store
    }

    /// A handle for each of many: of their own where handles are one store, else the one that there is.
    pub(super) async fn handles(&self, count: usize) -> Vec<Arc<dyn SessionStore>> {
        let mut handles = Vec::new();
        for _ in 0..count {
            let own = self.claims(Needs::Handles);
            handles.push(if own { self.another().await } else { self.store().clone() });
        }
        handles
    }

    /// The same store, closed and opened again.
    pub(super) async fn reopened(self) -> Self {
        let Self { subject, scratch, opened } = self;
        drop(opened);
        let opened = (subject.open)(scratch.clone()).await;
        Self { subject, scratch, opened }
    }

    /// Damages, where the suite was told how.
    pub(super) async fn damage(&self, key: &SessionKey, damage: Damage) -> Result<(), Cannot> {
        match &self.subject.damage {
            Some(hook) => hook(self.scratch.clone(), key.clone(), damage).await,
            None => Err(Cannot("the suite was not told how")),
        }
    }

    /// The bytes that were set aside at a place, where the suite can know.
    pub(super) async fn kept(&self, place: &str) -> Option<Option<Vec<u8>>> {
        if let Some(hook) = &self.subject.kept {
            return Some(hook(self.opened.typed.clone(), place.to_owned()).await);
        }
        let path = std::path::Path::new(place);
        path.is_absolute().then(|| std::fs::read(path).ok())
    }

    pub(super) async fn put(&self, key: &SessionKey, text: &str) -> Revision {
        put(&**self.store(), key, text.as_bytes()).await
    }

    pub(super) const fn patience(&self) -> Duration {
        self.subject.patience
    }

    /// Takes a lease that has to be free soon.
    pub(super) async fn take_soon(&self, key: &SessionKey, pid: u32) -> Lease {
        take_soon(&**self.store(), key, pid, self.patience()).await
    }

    pub(super) async fn get(&self, key: &SessionKey) -> Option<String> {
        let stored = load(&**self.store(), key).await?;
        Some(String::from_utf8_lossy(stored.document.as_bytes()).into_owned())
    }
}

/// The answer to a question that the store has to be able to answer.
pub(super) fn answer<T>(answer: Result<T, StoreError>) -> T {
    answer.unwrap_or_else(|error| panic!("the store did not answer: {}", Chain(&error)))
}

/// The kind of an error, which says something.
#[track_caller]
pub(super) fn kind<T: Debug>(answer: Result<T, StoreError>) -> StoreErrorKind {
    match answer {
        Ok(answer) => panic!("no error, but {answer:?}"),
        Err(error) => {
            assert!(!error.to_string().trim().is_empty(), "an error without a word");
            error.kind()
        }
    }
}

pub(super) async fn load(store: &dyn SessionStore, key: &SessionKey) -> Option<Stored> {
    answer(store.load(key).await)
}

pub(super) async fn put(store: &dyn SessionStore, key: &SessionKey, bytes: &[u8]) -> Revision {
    match answer(store.save(key, &Document::new(bytes.to_vec()), &Guard::Any, None).await) {
        Saved::Done(revision) => revision,
        Saved::Refused { current } => panic!("a save without a condition was refused at {current:?}"),
        Saved::Fenced { latest } => panic!("a save without a lease was refused for grant {latest}"),
    }
}

pub(super) async fn take(
    store: &dyn SessionStore,
    key: &SessionKey,
    pid: u32,
) -> Result<Lease, Option<Holder>> {
    match answer(store.lease(key, &holder(pid)).await) {
        LeaseOutcome::Held(lease) => Ok(lease),
        LeaseOutcome::Busy { by } => Err(by),
    }
}

/// Takes a lease that has to be free soon.
pub(super) async fn take_soon(
    store: &dyn SessionStore,
    key: &SessionKey,
    pid: u32,
    patience: Duration,
) -> Lease {
    let deadline = tokio::time::Instant::now() + patience;
    loop {
        match take(store, key, pid).await {
            Ok(lease) => return lease,
            Err(by) => assert!(tokio::time::Instant::now() < deadline, "still held, by {by:?}"),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Lets a future begin, and drops it.
pub(super) async fn begin_and_drop<T>(mut future: std::pin::Pin<Box<dyn Future<Output = T> + Send + '_>>) {
    std::future::poll_fn(|context| {
        drop(future.as_mut().poll(context));
        std::task::Poll::Ready(())
    })
    .await;
}

pub(super) fn key(mailbox: impl Into<String>) -> SessionKey {
    key_of(mailbox, "claude")
}

pub(super) fn key_of(mailbox: impl Into<String>, agent: &str) -> SessionKey {
    SessionKey::new(mailbox, agent).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn doc(text: &str) -> Document {
    Document::new(text.as_bytes().to_vec())
}

pub(super) fn holder(pid: u32) -> Holder {
    Holder { host: "host-7.example".to_owned(), pid, since: Some(Timestamp::from_millis(1_700_000_000_123)) }
}

pub(super) fn event(detail: &str) -> AuditEvent {
    let run = RunId::new(uuid::Uuid::from_u128(7));
    let mut event = AuditEvent::new(Timestamp::from_millis(1_700_000_000_456), run, "run_finished");
    event.detail = Some(detail.to_owned());
    event
}
