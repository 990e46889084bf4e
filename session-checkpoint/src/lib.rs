#![doc = include_str!("../README.md")]
#![cfg(unix)]

mod checkpoints;
mod content;
mod covered;
mod database;
mod diff;
mod forget;
mod found;
mod grow;
mod handle;
mod health;
mod hidden;
mod known;
mod limits;
mod node;
mod object;
mod place;
mod pool;
mod reserve;
mod restore;
mod rules;
mod scan;
mod seen;
mod take;
mod tracked;
mod tree;
mod trouble;

pub use checkpoints::{CheckpointLimits, FsCheckpoints};
