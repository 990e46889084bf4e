//! The reference store: everything in this process, nothing kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::error::StoreError;
use crate::{
    AuditEntry, AuditEvent, AuditSeq, Disposed, Document, Guard, Holder, Lease, LeaseOutcome, Leftover,
    LeftoverOptions, ListOptions, Page, Removed, Revision, Saved, SessionKey, SessionStore, StateSize,
    StoreCapabilities, Stored, Tombstone,
};

/// A store in memory, for tests and for runtimes that want no memory across restarts. Clones share content.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    documents: BTreeMap<SessionKey, Stored>,
    audit: BTreeMap<SessionKey, Vec<AuditEntry>>,
    aside: Vec<(SessionKey, Document)>,
    held: BTreeMap<SessionKey, Holder>,
    fences: BTreeMap<SessionKey, u64>,
    revisions: u64,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The documents that were set aside, oldest first.
    #[must_use]
    pub fn set_aside_documents(&self) -> Vec<Document> {
        self.inner().aside.iter().map(|(_, document)| document.clone()).collect()
    }
}

struct Held {
    store: MemoryStore,
    key: SessionKey,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.store.inner().held.remove(&self.key);
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    fn capabilities(&self) -> StoreCapabilities {
        StoreCapabilities::VOLATILE
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<Stored>, StoreError> {
        Ok(self.inner().documents.get(key).cloned())
    }

    async fn save(
        &self,
        key: &SessionKey,
        document: &Document,
        guard: &Guard,
        lease: Option<&Lease>,
    ) -> Result<Saved, StoreError> {
        let mut inner = self.inner();
        let latest = inner.fences.get(key).copied().unwrap_or_default();
        if lease.is_some_and(|lease| lease.fence() < latest) {
            return Ok(Saved::Fenced { latest });
        }
        let current = inner.documents.get(key).map(|stored| stored.revision.clone());
        if !guard.admits(current.as_ref()) {
            return Ok(Saved::Refused { current });
        }
        inner.revisions += 1;
        let revision = Revision::new(inner.revisions.to_string());
        inner
            .documents
            .insert(key.clone(), Stored { document: document.clone(), revision: revision.clone() });
        Ok(Saved::Done(revision))
    }

    async fn remove(&self, key: &SessionKey, guard: &Guard) -> Result<Removed, StoreError> {
        let mut inner = self.inner();
        let Some(current) = inner.documents.get(key).map(|stored| stored.revision.clone()) else {
            return Ok(Removed::NothingThere);
        };
        if !guard.admits(Some(&current)) {
            return Ok(Removed::Refused { current });
        }
        inner.documents.remove(key);
        Ok(Removed::Done)
    }

    async fn set_aside(&self, key: &SessionKey, guard: &Guard) -> Result<Option<String>, StoreError> {
        let mut inner = self.inner();
        if !guard.admits(inner.documents.get(key).map(|stored| &stored.revision)) {
            return Ok(None);
        }
        Ok(inner.documents.remove(key).map(|stored| {
            inner.aside.push((key.clone(), stored.document));
            format!("memory, document {} set aside", inner.aside.len())
        }))
    }

    async fn list(&self, options: &ListOptions) -> Result<Page<SessionKey>, StoreError> {
        let inner = self.inner();
        let after = |key: &&SessionKey| options.after.as_ref().is_none_or(|after| *key > after);
        let mut keys = inner.documents.keys().filter(after).cloned();
        let items = keys.by_ref().take(options.limit.unwrap_or(usize::MAX)).collect();
        Ok(Page { items, more: keys.next().is_some() })
    }

    async fn append_audit(&self, key: &SessionKey, event: &AuditEvent) -> Result<AuditSeq, StoreError> {
        let mut inner = self.inner();
        let log = inner.audit.entry(key.clone()).or_default();
        let seq = AuditSeq(log.last().map_or(1, |entry| entry.seq.0 + 1));
        log.push(AuditEntry { seq, event: event.clone() });
        Ok(seq)
    }

    async fn audit(&self, key: &SessionKey, after: Option<AuditSeq>) -> Result<Vec<AuditEntry>, StoreError> {
        let inner = self.inner();
        let log = inner.audit.get(key).map(Vec::as_slice).unwrap_or_default();
        Ok(log.iter().filter(|entry| Some(entry.seq) > after).cloned().collect())
    }

    async fn lease(&self, key: &SessionKey, holder: &Holder) -> Result<LeaseOutcome, StoreError> {
        let mut inner = self.inner();
        if let Some(by) = inner.held.get(key) {
            return Ok(LeaseOutcome::Busy { by: Some(by.clone()) });
        }
        inner.held.insert(key.clone(), holder.clone());
        let fence = inner.fences.entry(key.clone()).or_default();
        *fence += 1;
        Ok(LeaseOutcome::Held(Lease::new(*fence, Held { store: self.clone(), key: key.clone() })))
    }

    async fn state_dir(&self, _: &SessionKey) -> Result<Option<PathBuf>, StoreError> {
        Ok(None)
    }

    async fn remove_state(&self, _: &SessionKey, _: &Lease) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn state_size(&self, _: &SessionKey) -> Result<Option<StateSize>, StoreError> {
        Ok(None)
    }

    async fn leftovers(&self, _: &LeftoverOptions) -> Result<Vec<Leftover>, StoreError> {
        Ok(Vec::new())
    }

    async fn remove_leftover(&self, _: &Leftover, _: &Tombstone) -> Result<Disposed, StoreError> {
        Ok(Disposed::NothingThere)
    }
}
