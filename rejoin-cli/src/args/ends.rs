//! The words of ending: close and sweep.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rejoin::Closing;

use crate::when::duration;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Because {
    /// The work is done.
    #[default]
    Done,
    /// The work was given up.
    Cancelled,
    /// What it was about is not there any more.
    NotFound,
}

impl From<Because> for Closing {
    fn from(because: Because) -> Self {
        match because {
            Because::Done => Self::Done,
            Because::Cancelled => Self::Cancelled,
            Because::NotFound => Self::NotFound,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Close {
    /// The mailbox, for every agent; or the key, as in issue-42@claude, for one.
    #[arg(value_name = "KEY")]
    pub(crate) mailbox: String,
    /// Why.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) because: Because,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("alive").required(true).multiple(true))]
#[command(group = clap::ArgGroup::new("act").required(true))]
pub(crate) struct Sweep {
    /// A mailbox that is alive; may be said several times.
    #[arg(long, value_name = "MAILBOX", group = "alive")]
    pub(crate) live: Vec<String>,
    /// A file with a live mailbox a line; `-` is stdin.
    #[arg(long, value_name = "FILE", group = "alive")]
    pub(crate) live_file: Option<PathBuf>,
    /// Take every mailbox for alive: only leftovers go.
    #[arg(long, group = "alive", conflicts_with_all = ["live", "live_file"])]
    pub(crate) live_all: bool,
    /// How long an orphan is kept.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "7d")]
    pub(crate) grace: Duration,
    /// Only tell what would be removed.
    #[arg(long, group = "act")]
    pub(crate) dry_run: bool,
    /// Remove it.
    #[arg(long, group = "act")]
    pub(crate) remove: bool,
}
