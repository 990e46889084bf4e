//! The lifecycle over the store in memory.

use session_contract::{Scratch, lifecycle_contract};
use session_core::MemoryStore;

async fn open(_: &Scratch) -> MemoryStore {
    MemoryStore::new()
}

// The same walks every time; another `PROPTEST_RNG_SEED` goes other ways.
lifecycle_contract!(memory, open, seed = 1, regressions = "proptest-regressions/lifecycle.txt");
