//! What can be said on the command line.

mod back;
mod ends;
mod summary;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use rejoin::ResumePolicy;
use rejoin::history::SessionKind;

pub(crate) use back::{Checkpoints, Clear, Diff, Fork, Rebind, Rewind, Undo, mode};
pub(crate) use ends::{Close, Sweep};
pub(crate) use summary::{Compact, Handover, How, Summarise};

use crate::when::duration;

const EXITS: &str = "\
Exit codes: 0 done, 1 failed, 2 called wrongly, 3 not found, 4 more than one is meant, 5 of another project, 6 busy, \
7 refused, 8 agent not installed, 130 cancelled.";

/// Turns that `show` shows by itself.
pub(crate) const TURNS: usize = 5;

/// Every session of every coding agent on this machine.
#[derive(Debug, Parser)]
#[command(name = "rejoin", version, after_help = EXITS, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What holds for every command.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Print one JSON document (docs/cli/json.md).
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours; NO_COLOR turns them off, too.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: ColorChoice,
    /// The folder that holds the store, `.agent-sessions` [default: $REJOIN_STORE, else
    /// $XDG_DATA_HOME/rejoin]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// Show no progress.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal.
    #[default]
    Auto,
    /// In any case.
    Always,
    /// Not at all.
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a prompt for a mailbox: continue its conversation, or begin one and say why.
    Run(Run),
    /// List sessions, newest first.
    #[command(visible_alias = "ls")]
    List(List),
    /// Show the last turns of a session.
    Show(Show),
    /// Find sessions by words that were said in them.
    Search(Search),
    /// Pick a session, and print how to continue it.
    Resume(Resume),
    /// Say why the last run of a mailbox went as it did.
    Explain(Explain),
    /// List the checkpoints of a mailbox: what its prompts can be taken back to.
    Checkpoints(Checkpoints),
    /// Show what a prompt changed in the work tree.
    Diff(Diff),
    /// Take back the last prompts of a mailbox: files, conversation, or both.
    Rewind(Rewind),
    /// Take back the last rewind.
    Undo(Undo),
    /// Begin a second mailbox with a copy of the conversation.
    Fork(Fork),
    /// Begin a new conversation; the present one is kept, for `rebind`.
    Clear(Clear),
    /// Continue a conversation of before.
    Rebind(Rebind),
    /// Print what was said, in few words: a record for people and agents.
    Summarise(Summarise),
    /// Begin a new conversation with a summary of the present one, which is kept, for `rebind`.
    Compact(Compact),
    /// Have another agent, or mailbox, be told of the conversation at its next run.
    Handover(Handover),
    /// Make a session continue in another folder.
    Relocate(Relocate),
    /// End a mailbox: its records and state dirs go, its audit log stays.
    Close(Close),
    /// Tell what belongs to no live mailbox, or remove it.
    Sweep(Sweep),
    /// Tell which agents are installed, and what would be resumable.
    Doctor,
    /// Print the completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// The word of the command.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::List(_) => "list",
            Self::Show(_) => "show",
            Self::Search(_) => "search",
            Self::Resume(_) => "resume",
            Self::Explain(_) => "explain",
            Self::Checkpoints(_) => "checkpoints",
            Self::Diff(_) => "diff",
            Self::Rewind(_) => "rewind",
            Self::Undo(_) => "undo",
            Self::Fork(_) => "fork",
            Self::Clear(_) => "clear",
            Self::Rebind(_) => "rebind",
            Self::Summarise(_) => "summarise",
            Self::Compact(_) => "compact",
            Self::Handover(_) => "handover",
            Self::Relocate(_) => "relocate",
            Self::Close(_) => "close",
            Self::Sweep(_) => "sweep",
            Self::Doctor => "doctor",
            Self::Completions { .. } => "completions",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The unit of work that owns the conversation: an issue, a card, a thread.
    #[arg(long, short)]
    pub(crate) mailbox: String,
    /// The agent: claude, codex, opencode.
    #[arg(long, short)]
    pub(crate) agent: String,
    /// The folder to work in [default: this one]
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// The session's name for people. That of the first run stays.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The model to ask for.
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Whether to resume.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) resume: ResumeChoice,
    /// Begin as a copy of this mailbox's conversation.
    #[arg(long, value_name = "MAILBOX")]
    pub(crate) fork_of: Option<String>,
    /// Continue a session of another project in this folder.
    #[arg(long)]
    pub(crate) enter_other_project: bool,
    /// How long to wait for another runner of the mailbox: 90s, 15m, 6h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
    /// How long the agent may say nothing.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) idle: Option<Duration>,
    /// How long an attempt may take.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) total: Option<Duration>,
    /// What Claude Code may do without asking, such as acceptEdits.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<String>,
    /// Keep the agent's sessions at its own place, not in a state dir of the mailbox.
    #[arg(long)]
    pub(crate) own_place: bool,
    /// Take no checkpoint of the work tree: this prompt cannot be taken back.
    #[arg(long)]
    pub(crate) no_checkpoints: bool,
    /// Read the prompt from this file; `-` is stdin.
    #[arg(long, short = 'f', value_name = "FILE", conflicts_with = "prompt")]
    pub(crate) prompt_file: Option<PathBuf>,
    /// The prompt [default: stdin]
    #[arg(last = true)]
    pub(crate) prompt: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResumeChoice {
    /// Where possible, else start fresh with a reason.
    #[default]
    Prefer,
    /// Or refuse.
    Require,
    /// Start fresh.
    Never,
}

impl From<ResumeChoice> for ResumePolicy {
    fn from(choice: ResumeChoice) -> Self {
        match choice {
            ResumeChoice::Prefer => Self::Prefer,
            ResumeChoice::Require => Self::Require,
            ResumeChoice::Never => Self::Never,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeChoice {
    /// This folder.
    Here,
    /// This folder and all below it.
    Below,
    /// All work trees of this repository.
    Repository,
    /// Everywhere.
    #[default]
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindChoice {
    /// Of a person, in the agent's own interface.
    Main,
    /// Of a program.
    Headless,
    /// Of helpers.
    Sidechain,
}

impl From<KindChoice> for SessionKind {
    fn from(kind: KindChoice) -> Self {
        match kind {
            KindChoice::Main => Self::Main,
            KindChoice::Headless => Self::Headless,
            KindChoice::Sidechain => Self::Sidechain,
        }
    }
}

/// Which sessions.
#[derive(Debug, Clone, Args)]
pub(crate) struct Which {
    /// Of which folders.
    #[arg(long, short, value_enum, default_value_t)]
    pub(crate) scope: ScopeChoice,
    /// Of this agent; may be said several times [default: all]
    #[arg(long, short)]
    pub(crate) agent: Vec<String>,
    /// Of this kind; may be said several times [default: main and headless]
    #[arg(long, short, value_enum)]
    pub(crate) kind: Vec<KindChoice>,
    /// At most so many.
    #[arg(long, short = 'n')]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Read only the beginning and the end of files that are not indexed.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also those without a turn.
    #[arg(long)]
    pub(crate) empty: bool,
    /// Put sessions together that come from one: forks, rewinds, and what was begun after another.
    #[arg(long)]
    pub(crate) by_root: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The session: its id, the beginning of it, its mailbox, or its title; the same one that `resume` takes.
    #[arg(required = true)]
    pub(crate) session: Vec<String>,
    /// How many turns.
    #[arg(long, short = 'n', default_value_t = TURNS)]
    pub(crate) turns: usize,
    /// The turns before this place, as an earlier page named it.
    #[arg(long, value_name = "CURSOR", conflicts_with = "follow")]
    pub(crate) before: Option<String>,
    /// Go on with what is added.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Also what the model thought, and all of what tools returned.
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// The words; all of them have to be there, in any order, in one prompt, reply or title.
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Take each argument as it stands, with its spaces: `search --phrase "connection pool"`.
    #[arg(long, short)]
    pub(crate) phrase: bool,
    #[command(flatten)]
    pub(crate) which: Which,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The session: its id, the beginning of it, its mailbox, its title, or words of it [default: pick one]
    pub(crate) what: Vec<String>,
    /// Of which folders, where nothing is named; tab widens it in the picker [default: here and below for the picker, where a
    /// person mostly is at work on one of them; all for a list]
    #[arg(long, short, value_enum)]
    pub(crate) scope: Option<ScopeChoice>,
    /// Start the agent in the session's folder, in place of printing how.
    #[arg(long, short = 'x')]
    pub(crate) exec: bool,
    /// Take a session of another project, though only its title names it.
    #[arg(long)]
    pub(crate) other_project: bool,
    /// Pick also where stdout is no terminal: `eval "$(rejoin resume --pick)"`.
    #[arg(long)]
    pub(crate) pick: bool,
    /// The session that is open now, which is left out.
    #[arg(long, value_name = "ID")]
    pub(crate) current: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The mailbox, or the key, as in issue-42@claude.
    pub(crate) key: String,
}

#[derive(Debug, Args)]
pub(crate) struct Relocate {
    /// The session: its id, the beginning of it, its mailbox, or its title.
    pub(crate) session: String,
    /// The folder [default: this one]
    pub(crate) folder: Option<PathBuf>,
    /// Say yes to a folder of another project.
    #[arg(long)]
    pub(crate) other_project: bool,
    /// Only tell what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definitions_hold_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_sweep_says_who_is_alive_and_whether_it_removes() {
        let parse = |words: &[&str]| Cli::try_parse_from([&["rejoin", "sweep"], words].concat()).is_ok();
        assert!(parse(&["--dry-run", "--live", "a", "--live", "b"]));
        assert!(parse(&["--remove", "--live-all"]));
        for bad in [&["--live", "a"][..], &["--dry-run"], &["--dry-run", "--remove", "--live", "a"]] {
            assert!(!parse(bad), "{bad:?}");
        }
    }
}
