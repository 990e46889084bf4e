#![doc = include_str!("../README.md")]
// A case that is in no list would be dead code: forgetting one does not compile.
#![deny(dead_code)]

pub mod agent;
mod case;
// Trees have modes, and links among them.
#[cfg(unix)]
pub mod checkpoint;
pub mod dialect;
pub mod lifecycle;
mod macros;
mod scratch;
pub mod store;
mod walks;

pub use case::{Case, assert_case, failures};
pub use scratch::Scratch;
