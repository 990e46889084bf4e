#![doc = include_str!("../README.md")]
#![expect(dead_code, reason = "the fold is being built")]

mod catalog;
mod find;
mod fold;
mod follow;
mod mend;
mod page;
mod read;
mod scan;

pub use catalog::FileCatalog;
pub use follow::{Follow, Followed};
