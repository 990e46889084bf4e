//! The right to run: taking it, and waiting for it.

use std::time::Duration;

use crate::error::{RunError, StoreError};
use crate::{Holder, Lease, LeaseOutcome, SessionKey};

use super::Lifecycle;

/// A holder that just died or was dropped may still be on its way out: for so long nobody is called busy.
const HANDOVER: Duration = Duration::from_millis(300);
const FIRST_STEP: Duration = Duration::from_millis(10);
const LONGEST_STEP: Duration = Duration::from_millis(500);

/// The right to run, or the reason why nobody can tell who has it.
#[derive(Debug)]
pub(super) enum Hold {
    Held(Lease),
    Unavailable(StoreError),
    Told,
}

impl Hold {
    pub(super) fn lease(&self) -> Option<Lease> {
        match self {
            Self::Held(lease) => Some(lease.clone()),
            Self::Unavailable(_) | Self::Told => None,
        }
    }

    pub(super) fn take_error(&mut self) -> Option<StoreError> {
        match self {
            Self::Unavailable(_) => match std::mem::replace(self, Self::Told) {
                Self::Unavailable(error) => Some(error),
                Self::Held(_) | Self::Told => None,
            },
            Self::Held(_) | Self::Told => None,
        }
    }
}

impl Lifecycle {
    /// Takes the lease, and waits for it at most so long; `waits` hears once that it comes to that. A store that cannot be
    /// asked does not stop the run: it is then fresh and unrecorded. Dropped while it waits, it leaves nothing.
    pub(super) async fn hold(
        &self,
        key: &SessionKey,
        patience: Duration,
        waits: &mut (dyn FnMut(Option<&Holder>) + Send),
    ) -> Result<Hold, RunError> {
        let patience = patience.max(HANDOVER);
        let began = self.host.now();
        let (mut slept, mut step, mut told) = (Duration::ZERO, FIRST_STEP, false);
        let mut busy: Option<Option<Holder>> = None;
        loop {
            let by = match self.store.lease(key, &self.host.holder()).await {
                Ok(LeaseOutcome::Held(lease)) => return Ok(Hold::Held(lease)),
                Ok(LeaseOutcome::Busy { by }) => by,
                // Somebody has it, and may have it still.
                Err(error) => match busy.take() {
                    Some(by) => {
                        tracing::warn!(%key, %error, "the store could not be asked while waiting for another runner");
                        by
                    }
                    None => return Ok(Hold::Unavailable(error)),
                },
            };
            // A clock may be set back: what was slept counts.
            let waited = slept.max(self.host.now().since(began));
            if waited >= patience {
                return Err(RunError::Busy { key: key.clone(), by });
            }
            if waited >= HANDOVER {
                if !told {
                    tracing::info!(%key, by = by.as_ref().map(tracing::field::display), "waiting for another runner");
                    waits(by.as_ref());
                    told = true;
                }
                step = (step * 2).min(LONGEST_STEP);
            }
            let pause = step.min(patience - waited);
            busy = Some(by);
            self.host.sleep(pause).await;
            slept += pause;
        }
    }
    /// What to say when the lease is lost: who has it now, where the store can tell.
    pub(super) async fn lost(&self, key: &SessionKey) -> RunError {
        let by = match self.store.lease(key, &self.host.holder()).await {
            Ok(LeaseOutcome::Busy { by }) => by,
            Ok(LeaseOutcome::Held(_)) | Err(_) => None,
        };
        RunError::Busy { key: key.clone(), by }
    }
}
