//! A caller's way to end a run in order.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use event_listener::Event;

/// Ends runs in order: the agent gets a signal and a grace period, and the run reports how far it came.
///
/// Clones share one state. Once cancelled, it stays so. (Dropping the future of a run also ends it, but at
/// once, and without a report.)
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    flag: AtomicBool,
    event: Event,
}

impl Cancel {
    /// A handle that nobody has used yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels every run that holds a clone of this handle.
    pub fn cancel(&self) {
        self.0.flag.store(true, Ordering::SeqCst);
        self.0.event.notify(usize::MAX);
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.flag.load(Ordering::SeqCst)
    }

    /// Waits until it is cancelled.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn cancelled(&self) {
        while !self.is_cancelled() {
            let listener = self.0.event.listen();
            if self.is_cancelled() {
                return;
            }
            listener.await;
        }
    }

    /// Drives a future until it is done, or until somebody cancels: then it is dropped.
    pub(crate) async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let (mut future, mut cancelled) = (pin!(future), pin!(self.cancelled()));
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => cancelled.as_mut().poll(context).map(|()| None),
        })
        .await
    }
}
