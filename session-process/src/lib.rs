#![doc = include_str!("../README.md")]

mod cli_agent;
mod environment;
pub mod error;
mod host;
mod launch;
mod limits;
mod lines;
mod links;
mod locate;
mod pipes;
mod probe;
mod pump;
mod repository;
mod tail;
mod tree;

pub use cli_agent::CliAgent;
pub use environment::Environment;
pub use host::SystemHost;
