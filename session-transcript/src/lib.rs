#![doc = include_str!("../README.md")]

mod catalog;
mod find;
mod mend;
mod scan;

pub use catalog::FileCatalog;
