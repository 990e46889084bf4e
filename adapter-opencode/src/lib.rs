#![doc = include_str!("../README.md")]

mod capabilities;
#[cfg(feature = "catalog")]
mod catalog;
mod command;
mod decode;
mod dialect;
mod options;
mod state;
mod transcript;
mod verdict;
mod wire;

pub use capabilities::{CLAIMS, VERIFIED};
#[cfg(feature = "catalog")]
pub use catalog::{DatabaseError, OpencodeCatalog};
pub use dialect::OpencodeDialect;
pub use options::{OpencodeOptions, OptionsError};
pub use state::NESTING_MARKERS;
