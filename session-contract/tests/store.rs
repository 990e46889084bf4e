//! The contract of stores, over the store in memory.

use session_contract::{Scratch, store_contract};
use session_core::MemoryStore;

/// What was set aside, by the number that its place names.
async fn kept(store: &MemoryStore, place: &str) -> Option<Vec<u8>> {
    let number: usize = place.split(' ').find_map(|word| word.parse().ok())?;
    Some(store.set_aside_documents().get(number.checked_sub(1)?)?.as_bytes().to_vec())
}

store_contract!(
    memory,
    async |_: &Scratch| MemoryStore::new(),
    kept = kept,
    seed = 1,
    regressions = "proptest-regressions/store.txt",
);
