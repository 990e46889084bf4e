#![doc = include_str!("../README.md")]
#![expect(dead_code, reason = "the fold is being built")]

mod catalog;
mod find;
mod fold;
mod follow;
mod lines;
mod mend;
mod page;
mod scan;
mod summary;

pub use catalog::FileCatalog;
pub use follow::{Follow, Followed};
pub use summary::{Bill, Counts, Summary};
