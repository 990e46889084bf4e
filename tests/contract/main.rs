//! The real process runner over the fake agent holds the contract of adapters, the store of an example that of stores, and the
//! lifecycle over the embedded store that of lifecycles.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../examples/custom_store/rows.rs"]
mod rows;
mod stage;

use rejoin::stores::FsStore;
use session_contract::{Scratch, agent_contract, lifecycle_contract, store_contract};

use rows::Rows;
use stage::{CLAUDE, CODEX, Cli};

agent_contract!(claude_code, async |scratch: &Scratch| Cli::new(scratch, &CLAUDE));
agent_contract!(codex, async |scratch: &Scratch| Cli::new(scratch, &CODEX));

// The store of the example: three lines, as anybody writes them.
async fn open(_: &Scratch) -> Rows {
    Rows::default()
}
store_contract!(example_store, open, seed = 1);

// Its disk is slow; the walks over the store in memory are many more.
lifecycle_contract!(
    embedded_store,
    async |scratch: &Scratch| FsStore::open(scratch.dir()).unwrap(),
    cases = 50,
    seed = 1,
);
