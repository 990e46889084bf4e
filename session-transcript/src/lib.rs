#![doc = include_str!("../README.md")]
#![expect(dead_code, reason = "the fold is being built")]

mod catalog;
mod find;
mod fold;
mod mend;
mod packed;
mod scan;

pub use catalog::FileCatalog;
pub use packed::unpack_to;
