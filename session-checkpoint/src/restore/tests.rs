//! Trees as data, on the disk and kept, and putting one back to another.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as the tests do")]

mod basics;
mod crashes;
mod faulty;
mod forged;
mod model;
mod random;
mod world;
