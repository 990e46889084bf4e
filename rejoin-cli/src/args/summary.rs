//! The words of summaries.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rejoin::SummaryBy;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByChoice {
    /// From the transcript: no agent is asked.
    #[default]
    Text,
    /// The agent, in a copy that is removed afterwards.
    Agent,
}

impl From<ByChoice> for SummaryBy {
    fn from(by: ByChoice) -> Self {
        match by {
            ByChoice::Text => Self::Text,
            ByChoice::Agent => Self::Agent,
        }
    }
}

/// What the summary is to be like.
#[derive(Debug, Args)]
pub(crate) struct How {
    /// From this turn on; turns count from 1.
    #[arg(long, value_name = "TURN", conflicts_with = "up_to")]
    pub(crate) from: Option<u64>,
    /// Up to this turn.
    #[arg(long, value_name = "TURN")]
    pub(crate) up_to: Option<u64>,
    /// At most so many bytes [default: 16384]
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes: Option<usize>,
    /// What matters to whoever reads it.
    #[arg(long, value_name = "WORDS")]
    pub(crate) steer: Option<String>,
    /// Who makes it.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) by: ByChoice,
    /// The folder that the agent is asked in [default: that of the conversation]
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Summarise {
    /// The mailbox, or the key, as in issue-42@claude.
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, Args)]
pub(crate) struct Compact {
    /// The mailbox, or the key, as in issue-42@claude.
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, Args)]
pub(crate) struct Handover {
    /// The mailbox, or the key, as in issue-42@claude.
    pub(crate) key: String,
    /// The agent that goes on with the mailbox, or another key.
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) how: How,
}
