//! A shared store is a store. Every method is passed on, by construction: the trait has no default bodies.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::StoreError;
use crate::{
    AuditEntry, AuditEvent, AuditSeq, Disposed, Document, Guard, Holder, Lease, LeaseOutcome, Leftover,
    LeftoverOptions, ListOptions, Page, Removed, Saved, SessionKey, SessionStore, StateSize,
    StoreCapabilities, Stored, Tombstone,
};

#[async_trait]
impl<T: SessionStore + ?Sized> SessionStore for Arc<T> {
    fn capabilities(&self) -> StoreCapabilities {
        (**self).capabilities()
    }
    async fn load(&self, key: &SessionKey) -> Result<Option<Stored>, StoreError> {
        (**self).load(key).await
    }
    async fn save(
        &self,
        key: &SessionKey,
        document: &Document,
        guard: &Guard,
        lease: Option<&Lease>,
    ) -> Result<Saved, StoreError> {
        (**self).save(key, document, guard, lease).await
    }
    async fn remove(&self, key: &SessionKey, guard: &Guard) -> Result<Removed, StoreError> {
        (**self).remove(key, guard).await
    }
    async fn set_aside(&self, key: &SessionKey, guard: &Guard) -> Result<Option<String>, StoreError> {
        (**self).set_aside(key, guard).await
    }
    async fn list(&self, options: &ListOptions) -> Result<Page<SessionKey>, StoreError> {
        (**self).list(options).await
    }
    async fn append_audit(&self, key: &SessionKey, event: &AuditEvent) -> Result<AuditSeq, StoreError> {
        (**self).append_audit(key, event).await
    }
    async fn audit(&self, key: &SessionKey, after: Option<AuditSeq>) -> Result<Vec<AuditEntry>, StoreError> {
        (**self).audit(key, after).await
    }
    async fn lease(&self, key: &SessionKey, holder: &Holder) -> Result<LeaseOutcome, StoreError> {
        (**self).lease(key, holder).await
    }
    async fn was_leased(&self, key: &SessionKey) -> Result<bool, StoreError> {
        (**self).was_leased(key).await
    }
    async fn state_dir(&self, key: &SessionKey) -> Result<Option<PathBuf>, StoreError> {
        (**self).state_dir(key).await
    }
    async fn remove_state(&self, key: &SessionKey, lease: &Lease) -> Result<bool, StoreError> {
        (**self).remove_state(key, lease).await
    }
    async fn state_size(&self, key: &SessionKey) -> Result<Option<StateSize>, StoreError> {
        (**self).state_size(key).await
    }
    async fn leftovers(&self, options: &LeftoverOptions) -> Result<Vec<Leftover>, StoreError> {
        (**self).leftovers(options).await
    }
    async fn remove_leftover(
        &self,
        leftover: &Leftover,
        tombstone: &Tombstone,
    ) -> Result<Disposed, StoreError> {
        (**self).remove_leftover(leftover, tombstone).await
    }
}
