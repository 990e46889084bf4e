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
mod record;
mod records;
mod state;
mod store;

pub use store::FsStore;
