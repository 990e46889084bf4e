//! A store of which operations fail, or in which the runner dies.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use session_core::error::{StoreError, StoreErrorKind};
use session_core::{
    AuditEntry, AuditEvent, AuditSeq, Disposed, Document, Guard, Holder, Lease, LeaseOutcome, Leftover,
    LeftoverOptions, ListOptions, Page, Removed, Saved, SessionKey, SessionStore, StateSize,
    StoreCapabilities, Stored, Tombstone, async_trait,
};

use super::step::Fault;
use super::world::Shared;

#[derive(Debug)]
pub(crate) struct Faulty {
    inner: Arc<dyn SessionStore>,
    shared: Shared,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    fault: Option<Fault>,
    operations: u8,
    saves: u8,
    dead: bool,
}

/// The walk's hand on the faults.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hand(Arc<Mutex<State>>);

impl Hand {
    pub(crate) fn set(&self, fault: Option<Fault>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State { fault, ..State::default() };
    }

    /// Whether the runner died in the store.
    pub(crate) fn is_dead(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).dead
    }
}

impl Faulty {
    pub(crate) fn new(inner: Arc<dyn SessionStore>, shared: Shared, hand: &Hand) -> Self {
        Self { inner, shared, state: hand.0.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before an operation: fails it, or lets the runner die. Says whether it dies afterwards.
    async fn before(&self, operation: &'static str, hit: &[Fault]) -> Result<bool, StoreError> {
        let (fails, dies) = {
            let mut state = self.state();
            let now = state.operations;
            state.operations += 1;
            let dies = match state.fault {
                Some(Fault::Death { at, after }) if at == now => Some(after),
                _ => None,
            };
            (state.fault.is_some_and(|fault| hit.contains(&fault)), dies)
        };
        if fails {
            return Err(StoreError::new(StoreErrorKind::Unavailable, operation, "the walk"));
        }
        if dies == Some(false) {
            self.die().await;
        }
        Ok(dies == Some(true))
    }

    async fn after(&self, dies: bool) {
        if dies {
            self.die().await;
        }
    }

    async fn die(&self) {
        self.state().dead = true;
        self.shared.stopped().notify_one();
        std::future::pending::<()>().await;
    }
}

#[async_trait]
impl SessionStore for Faulty {
    fn capabilities(&self) -> StoreCapabilities {
        self.inner.capabilities()
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<Stored>, StoreError> {
        let dies = self.before("load", &[Fault::Load]).await?;
        let answer = self.inner.load(key).await;
        self.after(dies).await;
        answer
    }

    async fn save(
        &self,
        key: &SessionKey,
        document: &Document,
        guard: &Guard,
        lease: Option<&Lease>,
    ) -> Result<Saved, StoreError> {
        let first = {
            let mut state = self.state();
            state.saves += 1;
            state.saves == 1
        };
        let hit = if first { Fault::FirstSave } else { Fault::LaterSaves };
        let dies = self.before("save", &[Fault::Saves, hit]).await?;
        let answer = self.inner.save(key, document, guard, lease).await;
        self.after(dies).await;
        answer
    }

    async fn remove(&self, key: &SessionKey, guard: &Guard) -> Result<Removed, StoreError> {
        let dies = self.before("remove", &[Fault::Remove]).await?;
        let answer = self.inner.remove(key, guard).await;
        self.after(dies).await;
        answer
    }

    async fn set_aside(&self, key: &SessionKey, guard: &Guard) -> Result<Option<String>, StoreError> {
        let dies = self.before("set_aside", &[Fault::SetAside]).await?;
        let answer = self.inner.set_aside(key, guard).await;
        self.after(dies).await;
        answer
    }

    async fn list(&self, options: &ListOptions) -> Result<Page<SessionKey>, StoreError> {
        self.inner.list(options).await
    }

    async fn append_audit(&self, key: &SessionKey, event: &AuditEvent) -> Result<AuditSeq, StoreError> {
        let dies = self.before("append_audit", &[Fault::Audit]).await?;
        let answer = self.inner.append_audit(key, event).await;
        self.after(dies).await;
        answer
    }

    async fn audit(&self, key: &SessionKey, after: Option<AuditSeq>) -> Result<Vec<AuditEntry>, StoreError> {
        self.inner.audit(key, after).await
    }

    async fn lease(&self, key: &SessionKey, holder: &Holder) -> Result<LeaseOutcome, StoreError> {
        let dies = self.before("lease", &[Fault::Lease]).await?;
        let answer = self.inner.lease(key, holder).await;
        self.after(dies).await;
        answer
    }

    async fn state_dir(&self, key: &SessionKey) -> Result<Option<PathBuf>, StoreError> {
        self.inner.state_dir(key).await
    }

    async fn remove_state(&self, key: &SessionKey, lease: &Lease) -> Result<bool, StoreError> {
        let dies = self.before("remove_state", &[Fault::RemoveState]).await?;
        let answer = self.inner.remove_state(key, lease).await;
        self.after(dies).await;
        answer
    }

    async fn state_size(&self, key: &SessionKey) -> Result<Option<StateSize>, StoreError> {
        self.inner.state_size(key).await
    }

    async fn leftovers(&self, options: &LeftoverOptions) -> Result<Vec<Leftover>, StoreError> {
        self.inner.leftovers(options).await
    }

    async fn remove_leftover(
        &self,
        leftover: &Leftover,
        tombstone: &Tombstone,
    ) -> Result<Disposed, StoreError> {
        self.inner.remove_leftover(leftover, tombstone).await
    }
}
