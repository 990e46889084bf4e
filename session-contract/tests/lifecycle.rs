//! The lifecycle over the store in memory.

use session_contract::{Scratch, lifecycle_contract};
use session_core::MemoryStore;

async fn open(_: &Scratch) -> MemoryStore {
    MemoryStore::new()
}

lifecycle_contract!(memory, open, regressions = "proptest-regressions/lifecycle.txt");
