//! A store that fails.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use session_core::error::*;
use session_core::*;

/// A memory store of which some operations fail.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faulty {
    pub(crate) inner: MemoryStore,
    pub(crate) fail: Arc<Mutex<Vec<&'static str>>>,
    /// The state dir of every key.
    pub(crate) dir: Arc<Mutex<Option<PathBuf>>>,
    /// Whether each mailbox has one of its own in that.
    pub(crate) dirs_of_keys: Arc<AtomicBool>,
    /// What is beside the documents, and what was removed of it.
    pub(crate) leftovers: Arc<Mutex<Vec<Leftover>>>,
    pub(crate) disposed: Arc<Mutex<Vec<(String, Tombstone)>>>,
    /// When the state dir of every key was changed.
    pub(crate) changed_at: Arc<Mutex<Option<Timestamp>>>,
    late: Arc<Mutex<Option<Document>>>,
    /// So many saves are spared what is set.
    spared: Arc<AtomicUsize>,
}

impl Faulty {
    pub(crate) fn set(&self, operations: &[&'static str]) {
        *self.fail.lock().unwrap() = operations.to_vec();
    }
    /// The same, from the save after the next so many on.
    pub(crate) fn set_after(&self, saves: usize, operations: &[&'static str]) {
        self.spared.store(saves, Ordering::SeqCst);
        self.set(operations);
    }
    /// Writes this after the next load, as a save that was still under way.
    pub(crate) fn late(&self, document: Document) {
        *self.late.lock().unwrap() = Some(document);
    }
    fn check(&self, operation: &'static str) -> Result<(), StoreError> {
        if self.fail.lock().unwrap().contains(&operation) {
            return Err(StoreError::new(StoreErrorKind::Unavailable, operation, "the test"));
        }
        Ok(())
    }
}

#[async_trait]
impl SessionStore for Faulty {
    fn capabilities(&self) -> StoreCapabilities {
        self.inner.capabilities()
    }
    async fn load(&self, key: &SessionKey) -> Result<Option<Stored>, StoreError> {
        self.check("load")?;
        let loaded = self.inner.load(key).await;
        let late = self.late.lock().unwrap().take();
        if let Some(document) = late {
            assert!(matches!(self.inner.save(key, &document, &Guard::Any, None).await, Ok(Saved::Done(_))));
        }
        loaded
    }
    async fn save(
        &self,
        key: &SessionKey,
        document: &Document,
        guard: &Guard,
        lease: Option<&Lease>,
    ) -> Result<Saved, StoreError> {
        let one_less = |left: usize| left.checked_sub(1);
        if self.spared.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return self.inner.save(key, document, guard, lease).await;
        }
        if self.check("save_stalls").is_err() {
            std::future::pending::<()>().await;
        }
        self.check("save")?;
        if self.fail.lock().unwrap().contains(&"fence") && lease.is_some() {
            return Ok(Saved::Fenced { latest: u64::MAX });
        }
        let saved = self.inner.save(key, document, guard, lease).await;
        // It arrives, and the answer does not.
        self.check("save_late")?;
        saved
    }
    async fn remove(&self, key: &SessionKey, guard: &Guard) -> Result<Removed, StoreError> {
        self.check("remove")?;
        self.inner.remove(key, guard).await
    }
    async fn set_aside(&self, key: &SessionKey, guard: &Guard) -> Result<Option<String>, StoreError> {
        self.check("set_aside")?;
        self.inner.set_aside(key, guard).await
    }
    async fn list(&self, options: &ListOptions) -> Result<Page<SessionKey>, StoreError> {
        self.check("list")?;
        let small = ListOptions { limit: Some(1), ..options.clone() };
        let pages = self.fail.lock().unwrap().contains(&"pages");
        self.inner.list(if pages { &small } else { options }).await
    }
    async fn append_audit(&self, key: &SessionKey, event: &AuditEvent) -> Result<AuditSeq, StoreError> {
        self.check("append_audit")?;
        self.inner.append_audit(key, event).await
    }
    async fn audit(&self, key: &SessionKey, after: Option<AuditSeq>) -> Result<Vec<AuditEntry>, StoreError> {
        self.inner.audit(key, after).await
    }
    async fn lease(&self, key: &SessionKey, holder: &Holder) -> Result<LeaseOutcome, StoreError> {
        self.check("lease")?;
        self.inner.lease(key, holder).await
    }
    async fn was_leased(&self, _: &SessionKey) -> Result<bool, StoreError> {
        Ok(self.check("ever_leased").is_ok())
    }
    async fn state_dir(&self, key: &SessionKey) -> Result<Option<PathBuf>, StoreError> {
        let dir = self.dir.lock().unwrap().clone();
        let own = |dir: PathBuf| {
            if self.dirs_of_keys.load(Ordering::Relaxed) { dir.join(key.mailbox.as_str()) } else { dir }
        };
        if dir.is_some() { Ok(dir.map(own)) } else { self.inner.state_dir(key).await }
    }
    async fn remove_state(&self, _: &SessionKey, _: &Lease) -> Result<bool, StoreError> {
        self.check("remove_state")?;
        if self.dirs_of_keys.load(Ordering::Relaxed) {
            return Ok(true);
        }
        Ok(self.dir.lock().unwrap().take().is_some())
    }
    async fn state_size(&self, _: &SessionKey) -> Result<Option<StateSize>, StoreError> {
        self.check("state_size")?;
        let there = self.dir.lock().unwrap().is_some();
        let changed_at = *self.changed_at.lock().unwrap();
        Ok((there || changed_at.is_some()).then(|| StateSize::new(4096, changed_at)))
    }
    async fn leftovers(&self, _: &LeftoverOptions) -> Result<Vec<Leftover>, StoreError> {
        self.check("leftovers")?;
        Ok(self.leftovers.lock().unwrap().clone())
    }
    async fn remove_leftover(
        &self,
        leftover: &Leftover,
        tombstone: &Tombstone,
    ) -> Result<Disposed, StoreError> {
        self.check("remove_leftover")?;
        self.disposed.lock().unwrap().push((leftover.name.clone(), tombstone.clone()));
        Ok(Disposed::Removed)
    }
}
