//! The words of going back: checkpoints, rewind, fork, clear.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rejoin::RewindMode;

#[derive(Debug, Args)]
pub(crate) struct Checkpoints {
    /// The mailbox, or the key, as in issue-42@claude.
    pub(crate) key: String,
    /// Also those after runs and around rewinds.
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The mailbox, or the key, as in issue-42@claude.
    pub(crate) key: String,
    /// The checkpoint to compare from, or the beginning of its id [default: the one before the last prompt]
    pub(crate) from: Option<String>,
    /// The checkpoint to compare with [default: the one after that prompt]
    pub(crate) to: Option<String>,
    /// Show the lines that differ.
    #[arg(long, short)]
    pub(crate) patch: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnlyChoice {
    /// The files; the conversation goes on, and does not know.
    Files,
    /// The conversation; the files stay.
    Conversation,
}

/// Which part goes back.
pub(crate) const fn mode(only: Option<OnlyChoice>) -> RewindMode {
    match only {
        None => RewindMode::Both,
        Some(OnlyChoice::Files) => RewindMode::Files,
        Some(OnlyChoice::Conversation) => RewindMode::Conversation,
    }
}

#[derive(Debug, Args)]
pub(crate) struct Rewind {
    /// The mailbox, or the key, as in issue-42@claude.
    pub(crate) key: String,
    /// Take back so many prompts [default: 1]
    #[arg(long, short = 'n', value_name = "NUMBER", conflicts_with = "to")]
    pub(crate) turns: Option<u32>,
    /// Go back to this checkpoint, or the beginning of its id.
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) to: Option<String>,
    /// Only one of files and conversation.
    #[arg(long, value_enum, value_name = "PART")]
    pub(crate) only: Option<OnlyChoice>,
    /// Put also back what somebody else changed, too.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Only tell what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// A folder of the work tree [default: this one]
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// The mailbox, or the key, as in issue-42@claude.
    pub(crate) key: String,
    /// Only tell what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// A folder of the work tree [default: this one]
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The mailbox, or the key, as in issue-42@claude.
    pub(crate) key: String,
    /// The new mailbox, or its key with the same agent [default: none; the copy is a session for a person to go on with]
    pub(crate) mailbox: Option<String>,
    /// Keep what was said up to this checkpoint, or the beginning of its id [default: all]
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) at: Option<String>,
    /// Say yes to a folder of another project.
    #[arg(long)]
    pub(crate) other_project: bool,
    /// The new session's name for people.
    #[arg(long, requires = "mailbox")]
    pub(crate) name: Option<String>,
    /// The folder to work in [default: this one]
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Clear {
    /// The mailbox, or the key, as in issue-42@claude.
    pub(crate) key: String,
}

#[derive(Debug, Args)]
pub(crate) struct Rebind {
    /// The mailbox, or the key, as in issue-42@claude.
    pub(crate) key: String,
    /// The session of before, by its id.
    pub(crate) session: String,
}
