//! Operations of the port as data, and doing them.

use std::path::{Path, PathBuf};
use std::task::{Context, Poll, Waker};

use session_core::error::StoreError;
use session_core::{
    AuditEntry, AuditEvent, AuditSeq, Document, Guard, Holder, Lease, LeaseOutcome, ListOptions, Removed,
    Saved, SessionKey, SessionStore as _, Stored,
};

use super::disk::Simulated;
use super::platter::BASE;
use crate::FsStore;

/// An operation, and the key that it is about.
#[derive(Debug, Clone)]
pub(super) struct Act {
    pub(super) key: usize,
    pub(super) what: What,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    Open,
    Save(Document, Guard, Option<Lease>),
    Remove(Guard),
    SetAside(Guard),
    Append(AuditEvent),
    Lease,
    Load,
    Audit,
    List,
    StateDir,
}

#[derive(Debug)]
pub(super) enum Answer {
    Opened(FsStore),
    Saved(Saved),
    Removed(Removed),
    Aside(Option<String>),
    Appended(AuditSeq),
    Leased(LeaseOutcome),
    Loaded(Option<Stored>),
    Entries(Vec<AuditEntry>),
    Listed(Vec<SessionKey>),
    Dir(PathBuf),
}

/// One that is shown as it is, its twin that a file system could fold, and one that is hashed.
pub(super) fn key(index: usize) -> SessionKey {
    SessionKey::new(["a", "A", "issue/42"][index], "claude").unwrap()
}

/// Without a runtime, every operation is done when it is first polled.
fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("an operation waits for a runtime"),
    }
}

pub(super) fn open(disk: &Simulated) -> Result<FsStore, StoreError> {
    FsStore::open_on(std::sync::Arc::new(disk.clone()), Path::new(BASE))
}

impl Act {
    /// Does it. Opening needs no store.
    pub(super) fn perform(&self, disk: &Simulated, store: Option<&FsStore>) -> Result<Answer, StoreError> {
        let Some(store) = store else { return open(disk).map(Answer::Opened) };
        let key = key(self.key);
        let holder = Holder { host: "here".to_owned(), pid: 1, since: None };
        Ok(match &self.what {
            What::Open => Answer::Opened(open(disk)?),
            What::Save(document, guard, lease) => {
                Answer::Saved(now(store.save(&key, document, guard, lease.as_ref()))?)
            }
            What::Remove(guard) => Answer::Removed(now(store.remove(&key, guard))?),
            What::SetAside(guard) => Answer::Aside(now(store.set_aside(&key, guard))?),
            What::Append(event) => Answer::Appended(now(store.append_audit(&key, event))?),
            What::Lease => Answer::Leased(now(store.lease(&key, &holder))?),
            What::Load => Answer::Loaded(now(store.load(&key))?),
            What::Audit => Answer::Entries(now(store.audit(&key, None))?),
            What::List => Answer::Listed(now(store.list(&ListOptions::default()))?.items),
            What::StateDir => Answer::Dir(now(store.state_dir(&key))?.unwrap()),
        })
    }
}
