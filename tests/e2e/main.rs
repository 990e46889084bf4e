//! The whole of Rejoin, with the real process runner and the embedded store, over the fake agent.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod asked;
mod bad_input;
mod catalog;
mod codex_sessions;
mod fallbacks;
mod happy;
mod hostile;
mod processes;
mod relocating;
mod replay;
mod rows;
#[cfg(unix)]
mod sandbox;
mod stage;
mod stores;
mod summaries;
mod sweeping;
