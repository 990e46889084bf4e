#![doc = include_str!("../README.md")]

mod bubblewrap;
mod cli_agent;
mod environment;
pub mod error;
mod foreground;
mod grounds;
mod host;
mod launch;
mod limits;
mod lines;
mod links;
mod locate;
mod original;
mod pipes;
mod plan;
mod probe;
mod pump;
mod removal;
mod repository;
mod sandbox;
mod tail;
mod tree;
mod work_tree;

pub use bubblewrap::Bubblewrap;
pub use cli_agent::CliAgent;
pub use environment::Environment;
pub use foreground::take_over;
pub use host::SystemHost;
pub use sandbox::{Invocation, Launcher};
