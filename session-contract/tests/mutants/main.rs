//! The suite, tested: subjects that break the contract on purpose, each caught by a case that is named here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "the table is for people who ask for it with --nocapture")]

mod agents;
// Trees have modes, and links among them.
#[cfg(unix)]
mod checkpoints;
mod dialects;
mod lifecycles;
mod sample;
// Its state dirs have modes, and links among them.
#[cfg(unix)]
mod stores;
mod table;
