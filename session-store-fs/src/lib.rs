#![doc = include_str!("../README.md")]

mod atomic;
mod audit;
mod disk;
mod error;
#[cfg(all(test, unix))]
mod faults;
mod files;
mod layout;
mod lock;
mod names;
mod record;
mod records;
mod state;
mod store;
mod sweep;
mod tree;
mod usage;

pub use store::FsStore;
