//! The crash proof of the store: histories of operations on a simulated disk that loses, tears and reorders what is
//! not durable, at every system call; and every system call failing. `docs/reliability.md` tells what that stands on.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as the tests do")]

mod act;
mod after;
mod crashes;
mod disk;
mod failing;
mod handles;
mod history;
mod model;
mod platter;
mod survivors;
mod tests;
mod world;
