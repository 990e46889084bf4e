#![doc = include_str!("../README.md")]
#![cfg(unix)]

mod checkpoints;
mod database;
mod diff;
mod forget;
mod node;
mod object;
mod place;
mod restore;
mod take;
mod tree;
mod trouble;

pub use checkpoints::{CheckpointLimits, FsCheckpoints};
