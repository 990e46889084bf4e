#![doc = include_str!("../README.md")]

mod capabilities;
mod command;
mod decode;
mod dialect;
mod options;
mod state;
mod transcript;
mod verdict;
mod wire;

pub use capabilities::{CLAIMS, VERIFIED};
pub use dialect::CodexDialect;
pub use options::{CodexOptions, CodexProvider, OptionsError, SandboxMode};
pub use state::NESTING_MARKERS;
pub use transcript::CodexTranscripts;
