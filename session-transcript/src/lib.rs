#![doc = include_str!("../README.md")]

// The test format names the crate as others do.
#[cfg(test)]
extern crate self as session_transcript;

mod branch;
mod buffer;
mod catalog;
mod filed;
mod find;
mod fold;
mod follow;
mod index;
mod inspect;
mod lines;
mod list;
mod mend;
mod opened;
mod packed;
mod page;
mod parts;
mod plain;
mod pool;
mod read;
mod relocate;
mod restore;
mod scan;
mod scope;
mod search;
mod source;
mod stamp;
mod summary;
mod titles;
mod unpack;
mod walk;

pub use catalog::FileCatalog;
pub use follow::{Follow, Followed};
pub use summary::{Bill, Counts, Summary};
pub use unpack::unpack_to;

#[cfg(test)]
#[expect(dead_code, reason = "the tests from outside use all of it")]
#[path = "../tests/it/talk.rs"]
mod talk;
