//! The sample's writes.

use session_core::error::{StoreError, StoreErrorKind};
use session_core::*;

use super::flaw::Flaw;
use super::parts::{error, pause};
use super::sample::Sample;

type Result<T> = std::result::Result<T, StoreError>;

impl Sample {
    /// The later grant, where a lease is not the last one.
    fn fenced(&self, key: &SessionKey, lease: &Lease) -> Option<u64> {
        let world = self.world();
        let latest = world.granted.get(key).copied().unwrap_or_default();
        let held = world.holders.keys().any(|(held, _)| held == key);
        let fenced = match self.flaw {
            Flaw::IgnoresFences => false,
            Flaw::FencesByHolder => held && lease.fence() < latest,
            Flaw::FencesTheSecond => latest > 1,
            _ => lease.fence() < latest,
        };
        fenced.then_some(latest)
    }

    fn try_save(&self, key: &SessionKey, document: &Document, guard: &Guard) -> Saved {
        let mut world = self.world();
        let current = world.current(key);
        if !self.admits(guard, current.as_ref()) {
            if self.is(Flaw::WritesWhatItRefuses)
                && let Some(stored) = world.documents.get_mut(key)
            {
                stored.document = document.clone();
            }
            return Saved::Refused { current: current.filter(|_| !self.is(Flaw::HidesTheState)) };
        }
        Saved::Done(world.write(self.flaw, key, document))
    }

    pub(super) async fn write_under(
        &self,
        key: &SessionKey,
        document: &Document,
        guard: &Guard,
        lease: Option<&Lease>,
    ) -> Result<Saved> {
        if self.is(Flaw::WritesOverDamage) {
            self.world().damaged.remove(key);
        }
        if self.is(Flaw::TakesNewerForOlder) {
            self.world().damaged.retain(|_, kind| *kind != StoreErrorKind::Newer);
        }
        self.world().readable("save", key)?;
        if let Some(latest) = lease.and_then(|lease| self.fenced(key, lease)) {
            return Ok(Saved::Fenced { latest });
        }
        if self.is(Flaw::LocksTheDocument) && self.world().holders.keys().any(|(held, _)| held == key) {
            return Err(error(StoreErrorKind::Unavailable, "save"));
        }
        match self.flaw {
            Flaw::ChecksThenWrites | Flaw::ComparesThenWrites
                if self.is(Flaw::ChecksThenWrites) || matches!(guard, Guard::Revision(_)) =>
            {
                let current = self.world().current(key);
                if !guard.admits(current.as_ref()) {
                    return Ok(Saved::Refused { current });
                }
                pause().await;
                Ok(self.try_save(key, document, &Guard::Any))
            }
            // Of one who holds it alone: else chance would say what the walks catch.
            Flaw::LetsGoBeforeItWrites if lease.is_some() => {
                let (this, key, document, guard) =
                    (self.clone(), key.clone(), document.clone(), guard.clone());
                let write = tokio::spawn(async move {
                    pause().await;
                    this.try_save(&key, &document, &guard)
                });
                Ok(write.await.unwrap())
            }
            Flaw::RemovesThenWrites => {
                let current = self.world().current(key);
                if !guard.admits(current.as_ref()) {
                    return Ok(Saved::Refused { current });
                }
                self.world().documents.remove(key);
                pause().await;
                Ok(self.try_save(key, document, &Guard::Any))
            }
            Flaw::WritesInHalves => {
                let half = Document::new(document.as_bytes()[..document.as_bytes().len() / 2].to_vec());
                let saved = self.try_save(key, &half, guard);
                pause().await;
                match saved {
                    Saved::Done(revision) => Ok(self.try_save(key, document, &Guard::Revision(revision))),
                    refused @ (Saved::Refused { .. } | Saved::Fenced { .. }) => Ok(refused),
                }
            }
            _ => Ok(self.try_save(key, document, guard)),
        }
    }
}
