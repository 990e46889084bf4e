//! Whole files of a real format: what is read of them, line by line and in sum.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod again;
mod branch;
mod chain;
mod corpus;
mod damage;
mod lines;
mod lists;
mod session;
mod traps;
mod usage;
