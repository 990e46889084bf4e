//! Whether anybody still waits for a piece of work: what is dropped before it began never begins.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::trouble::{Outcome, Trouble};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Begun,
    Dropped,
}

/// A piece of work, as the thread that does it sees it.
#[derive(Debug, Clone)]
pub(crate) struct Call(Arc<Mutex<State>>);

/// The same, as the one who waits for it sees it. To drop this is to wait no longer.
#[derive(Debug)]
pub(crate) struct Waiter(Call);

impl Call {
    pub(crate) fn new() -> (Self, Waiter) {
        let call = Self(Arc::new(Mutex::new(State::Waiting)));
        (call.clone(), Waiter(call))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody waits any more for what was not begun.
    pub(crate) fn is_dropped(&self) -> bool {
        *self.state() == State::Dropped
    }

    /// Begins by this step, unless nobody waits any more. Who drops it meanwhile waits for the step: then either others see that
    /// it began, or it never does.
    pub(crate) fn begin<T>(&self, step: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let mut state = self.state();
        if *state == State::Dropped {
            return Err(Trouble::Dropped);
        }
        let done = step()?;
        *state = State::Begun;
        Ok(done)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if *state == State::Waiting {
            *state = State::Dropped;
        }
    }
}
