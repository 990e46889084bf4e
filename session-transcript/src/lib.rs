#![doc = include_str!("../README.md")]
#![expect(dead_code, reason = "the fold is being built")]

mod catalog;
mod find;
mod fold;
mod lines;
mod mend;
mod relocate;
mod scan;
mod summary;

pub use catalog::FileCatalog;
pub use summary::{Bill, Counts, Summary};
