#![doc = include_str!("../README.md")]
#![expect(dead_code, reason = "the fold is being built")]

// The test format names the crate as others do.
#[cfg(test)]
extern crate self as session_transcript;

mod catalog;
mod find;
mod fold;
mod follow;
mod index;
mod lines;
mod list;
mod mend;
mod page;
mod pool;
mod read;
mod restore;
mod scan;
mod scope;
mod search;
mod source;
mod stamp;
mod summary;
mod walk;

pub use catalog::FileCatalog;
pub use follow::{Follow, Followed};
pub use summary::{Bill, Counts, Summary};

#[cfg(test)]
#[path = "../tests/it/talk.rs"]
mod talk;
