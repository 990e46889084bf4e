//! The store: a compare-and-swap map of opaque documents, an audit log, and a lease per key.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rejoin::core::{
    Disposed, Document, Guard, Holder, Lease, LeaseOutcome, Leftover, LeftoverOptions, ListOptions, Page,
    Removed, Revision, Saved, StateSize, StoreCapabilities, Stored, Tombstone, async_trait,
};
use rejoin::error::StoreError;
use rejoin::{AuditEntry, AuditEvent, AuditSeq, SessionKey, SessionStore};

/// One row a key. A removed document leaves its row, so that a revision is never used twice.
#[derive(Debug, Default)]
struct Row {
    document: Option<Document>,
    revision: u64,
    log: Vec<AuditEntry>,
    holder: Option<Holder>,
    grants: u64,
}

/// The store. Clones share its rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows(Arc<Mutex<BTreeMap<SessionKey, Row>>>);

impl Rows {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionKey, Row>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Row {
    fn current(&self) -> Option<Revision> {
        self.document.as_ref().map(|_| Revision::new(self.revision.to_string()))
    }
}

/// Ends the lease when it is dropped.
struct Grant(Rows, SessionKey);

impl Drop for Grant {
    fn drop(&mut self) {
        self.0.lock().entry(self.1.clone()).or_default().holder = None;
    }
}

#[async_trait]
impl SessionStore for Rows {
    fn capabilities(&self) -> StoreCapabilities {
        // Say what is true: the orchestration and the contract suite hold you to it.
        StoreCapabilities::VOLATILE
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<Stored>, StoreError> {
        Ok(self
            .lock()
            .get(key)
            .and_then(|row| Some(Stored { document: row.document.clone()?, revision: row.current()? })))
    }

    async fn save(
        &self,
        key: &SessionKey,
        document: &Document,
        guard: &Guard,
        lease: Option<&Lease>,
    ) -> Result<Saved, StoreError> {
        let mut rows = self.lock();
        let row = rows.entry(key.clone()).or_default();
        // Who lost the lease writes nothing over its successor.
        if lease.is_some_and(|lease| lease.fence() < row.grants) {
            return Ok(Saved::Fenced { latest: row.grants });
        }
        if !guard.admits(row.current().as_ref()) {
            return Ok(Saved::Refused { current: row.current() });
        }
        row.revision += 1;
        row.document = Some(document.clone());
        Ok(Saved::Done(Revision::new(row.revision.to_string())))
    }

    async fn remove(&self, key: &SessionKey, guard: &Guard) -> Result<Removed, StoreError> {
        let mut rows = self.lock();
        let row = rows.entry(key.clone()).or_default();
        let Some(current) = row.current() else { return Ok(Removed::NothingThere) };
        if !guard.admits(Some(&current)) {
            return Ok(Removed::Refused { current });
        }
        row.document = None;
        Ok(Removed::Done)
    }

    async fn set_aside(&self, key: &SessionKey, guard: &Guard) -> Result<Option<String>, StoreError> {
        let mut rows = self.lock();
        let row = rows.entry(key.clone()).or_default();
        if !guard.admits(row.current().as_ref()) {
            return Ok(None);
        }
        let taken = row.document.take();
        // A real store keeps the bytes for a person to look at, and says where.
        Ok(taken.map(|_| format!("what revision {} of {key} held", row.revision)))
    }

    async fn list(&self, options: &ListOptions) -> Result<Page<SessionKey>, StoreError> {
        let rows = self.lock();
        let mut keys = rows
            .iter()
            .filter(|(key, row)| {
                row.document.is_some() && options.after.as_ref().is_none_or(|after| *key > after)
            })
            .map(|(key, _)| key.clone());
        let items = keys.by_ref().take(options.limit.unwrap_or(usize::MAX)).collect();
        Ok(Page { items, more: keys.next().is_some() })
    }

    async fn append_audit(&self, key: &SessionKey, event: &AuditEvent) -> Result<AuditSeq, StoreError> {
        let mut rows = self.lock();
        let log = &mut rows.entry(key.clone()).or_default().log;
        let seq = AuditSeq(log.len() as u64 + 1);
        log.push(AuditEntry { seq, event: event.clone() });
        Ok(seq)
    }

    async fn audit(&self, key: &SessionKey, after: Option<AuditSeq>) -> Result<Vec<AuditEntry>, StoreError> {
        let rows = self.lock();
        let log = rows.get(key).map(|row| row.log.as_slice()).unwrap_or_default();
        Ok(log.iter().filter(|entry| Some(entry.seq) > after).cloned().collect())
    }

    async fn lease(&self, key: &SessionKey, holder: &Holder) -> Result<LeaseOutcome, StoreError> {
        let mut rows = self.lock();
        let row = rows.entry(key.clone()).or_default();
        if let Some(by) = &row.holder {
            return Ok(LeaseOutcome::Busy { by: Some(by.clone()) });
        }
        row.holder = Some(holder.clone());
        row.grants += 1;
        Ok(LeaseOutcome::Held(Lease::new(row.grants, Grant(self.clone(), key.clone()))))
    }

    async fn state_dir(&self, _: &SessionKey) -> Result<Option<PathBuf>, StoreError> {
        // No place for session files: the agent keeps them at its own place.
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
