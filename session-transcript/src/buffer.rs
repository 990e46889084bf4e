//! A buffer that a thread uses again: to make room for each file anew would take longer than to read most of them.

use std::cell::Cell;

/// A larger one is given back to the system.
const KEPT: usize = 2 << 20;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The buffer, as long as it was; what is in it means nothing.
pub(crate) fn take() -> Vec<u8> {
    BUFFER.take()
}

/// Keeps it for the next one.
pub(crate) fn keep(buffer: Vec<u8>) {
    if buffer.len() <= KEPT {
        BUFFER.set(buffer);
    }
}
