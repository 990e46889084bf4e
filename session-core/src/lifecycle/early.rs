//! Saving while the run goes on: an id is in the record as soon as the agent names it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use crate::error::AgentError;
use crate::{AgentEvent, EventSink, NativeId, Recorded, Saved, TurnReport, codec};

use super::Lifecycle;
use super::ledger::{Ledger, NewSession};

/// The last session named that is not in the record yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Named(Arc<Mutex<Option<NativeId>>>);

impl Named {
    fn put(&self, id: NativeId) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
    }

    fn take(&self) -> Option<NativeId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Passes events on, and notes sessions that are not known yet.
pub(super) struct Watch<'a> {
    pub(super) sink: &'a mut dyn EventSink,
    pub(super) named: Named,
    pub(super) known: Option<NativeId>,
    /// Whether an id is one of this agent: only such a one is worth a place in the record.
    pub(super) is_ours: &'a (dyn Fn(&NativeId) -> bool + Sync),
}

impl EventSink for Watch<'_> {
    fn event(&mut self, event: &AgentEvent<'_>) {
        if let AgentEvent::Session { id } = event
            && self.known.as_ref().is_none_or(|known| known.as_str() != *id)
        {
            let id = NativeId::new(*id);
            if (self.is_ours)(&id) {
                self.known = Some(id.clone());
                self.named.put(id);
            } else {
                tracing::warn!("the agent named a session by an id that is none of its own; it is ignored");
            }
        }
        self.sink.event(event);
    }
}

impl Lifecycle {
    /// Drives the run; when the agent names a session that is not in the record yet, saves it meanwhile.
    pub(super) async fn run_and_save_early(
        &self,
        run: impl Future<Output = Result<TurnReport, AgentError>> + Send,
        ledger: &mut Ledger,
        named: &Named,
        session: &(dyn Fn(NativeId) -> NewSession + Sync),
    ) -> Result<TurnReport, AgentError> {
        let mut run = pin!(run);
        loop {
            let news = poll_fn(|context| match run.as_mut().poll(context) {
                Poll::Ready(report) => Poll::Ready(Err(report)),
                Poll::Pending => named.take().map_or(Poll::Pending, |id| Poll::Ready(Ok(id))),
            });
            let id = match news.await {
                Err(report) => return report,
                Ok(id) => id,
            };
            ledger.propose(session(id), self.host.now());
            let mut save: Pin<Box<dyn Future<Output = ()> + Send + '_>> = Box::pin(self.persist(ledger));
            let mut ended = None;
            poll_fn(|context| {
                if ended.is_none()
                    && let Poll::Ready(report) = run.as_mut().poll(context)
                {
                    ended = Some(report);
                }
                save.as_mut().poll(context)
            })
            .await;
            if let Some(report) = ended {
                return report;
            }
        }
    }

    /// Writes the record, if it may be written. A failure is kept for the result and ends the writing.
    pub(super) async fn persist(&self, ledger: &mut Ledger) {
        if !ledger.is_writable() {
            return;
        }
        let document = codec::encode(&ledger.record);
        let key = ledger.record.key.clone();
        match self.store.save(&key, &document, &ledger.guard, ledger.lease.as_ref()).await {
            Ok(Saved::Done(revision)) => ledger.guard = crate::Guard::Revision(revision),
            Ok(Saved::Refused { .. }) => ledger.recorded = Recorded::LostRace,
            Ok(Saved::Fenced { latest }) => {
                tracing::error!(%key, latest, "the lease was lost; another runner has the key");
                ledger.recorded = Recorded::LostLease;
            }
            Err(error) => {
                tracing::error!(%key, %error, "the record could not be written");
                ledger.recorded = Recorded::Failed(error);
            }
        }
    }
}
