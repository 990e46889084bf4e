//! The agents that the scenarios run on, and what a scenario has to know about one.
//!
//! # Registering an agent
//!
//! 1. Pin its versions in `versions.json`: package, program, and for each version why it is there.
//! 2. Write `<agent>.rs` beside this file: a unit struct that implements [`AgentUnderTest`]. Its [`Rules`] say what the
//!    *CLI* of a version does, from the facts and not from the adapter: the scenarios hold the adapter to them.
//! 3. Add it to [`AGENTS`].
//! 4. What only this agent has goes into `<agent>/`, and is listed by [`own_trials`](AgentUnderTest::own_trials). A room
//!    of `scenarios/` never asks for the name of an agent.
//! 5. `cargo xtask real-cli --agent <agent> --bless`, then read the new section of `docs/verified.md`: each cell is a claim.
//!
//! A damage or a fault that a version does not know is left out of its rules; then there is no trial of it, and no
//! cell.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Trial;
use rejoin::core::Program;
use rejoin::core::decide::Reach;
use rejoin::process::{Bubblewrap, Environment};
use rejoin::{Agent, Limits, NativeId, Route, Usage, Why};
use serde::{Deserialize, Serialize};

use crate::pinned::Pinned;

/// Every agent with an adapter.
pub(crate) const AGENTS: &[&dyn AgentUnderTest] =
    &[&crate::claude::Claude, &crate::codex::CodexCli, &crate::opencode::OpencodeCli];

/// The agent of this name.
pub(crate) fn named(name: &str) -> Option<&'static dyn AgentUnderTest> {
    AGENTS.iter().copied().find(|agent| agent.id() == name)
}

/// One agent CLI as the scenarios see it.
pub(crate) trait AgentUnderTest: Debug + Send + Sync {
    /// The agent's stable id, as in `versions.json`.
    fn id(&self) -> &'static str;

    /// Writes the configuration that the CLI needs into the place, where the environment cannot carry it.
    fn prepare(&self, _place: &Place) {}

    /// The bare environment with what makes the CLI talk to the fake model of the place and to nothing else.
    fn environment(&self, place: &Place, bare: Environment) -> Environment;

    /// The agent as a user would register it, with its catalog, and with leave to use any tool.
    fn agent(&self, program: Program, environment: Environment) -> Agent;

    /// The same in a sandbox.
    fn sandboxed(&self, program: Program, environment: Environment, launcher: Bubblewrap) -> Agent;

    /// What the CLI of this version does.
    fn rules(&self, cli: &Pinned) -> Rules;

    /// Does this damage to a session of the place. Only that in the rules is asked for; [`Damage::UnknownId`] never.
    fn damage(&self, place: &Place, id: &NativeId, damage: Damage);

    /// All that the agent keeps of this session, to be compared with what it keeps later.
    fn kept(&self, place: &Place, id: &NativeId) -> Vec<u8>;

    /// Whether some session of the place holds this text already.
    fn holds(&self, place: &Place, text: &str) -> bool {
        let holds = |path: &PathBuf| {
            std::fs::read(path)
                .is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
        };
        place.state_files().iter().any(holds)
    }

    /// A prompt that makes the model run this command with the agent's own tool.
    fn tool_call(&self, cli: &Pinned, command: &str) -> String;

    /// A prompt that makes the model write this line into a new file of the project, with the agent's own tool for edits.
    fn edit_call(&self, cli: &Pinned, file: &Path, line: &str) -> String;

    /// The words with which a person gives the CLI one prompt, in a new session or in this one.
    fn one_prompt(&self, session: Option<&NativeId>, prompt: &str) -> Vec<String>;

    /// The environment in which a person calls the CLI, without what would get into its way there.
    fn in_person(&self, environment: Environment) -> Environment {
        environment
    }

    /// The environment without the login, where that is what carries it.
    fn logged_out(&self, _environment: Environment) -> Option<Environment> {
        None
    }

    /// Trials of what only this agent has.
    fn own_trials(&self, _cli: &Pinned) -> Vec<Trial> {
        Vec::new()
    }
}

/// What the CLI of one version does, as far as the scenarios differ by it.
#[derive(Debug)]
pub(crate) struct Rules {
    /// From where a session can be continued.
    pub(crate) reach: Reach,
    /// Whether a session can be forked.
    pub(crate) forks: bool,
    /// Whether a branch of a session can be made in the agent's own place.
    pub(crate) branches_at_home: bool,
    /// An id of the right shape that no session has.
    pub(crate) unknown_id: &'static str,
    /// A text that is no id of this agent.
    pub(crate) malformed_id: &'static str,
    /// Prompts that the CLI would take for commands of its own.
    pub(crate) commands: &'static [&'static str],
    /// A length of prompt that has to get through, in bytes.
    pub(crate) long_prompt: usize,
    /// The tokens of a run that calls the model once.
    pub(crate) usage: Usage,
    /// Whether the cost of a run is told.
    pub(crate) has_cost: bool,
    /// Whether an answer is told in a folder that is no repository.
    pub(crate) answers_anywhere: bool,
    /// Whether the prompt is on the disk before the model has answered.
    pub(crate) keeps_prompts_at_once: bool,
    /// Whether a run asks for a title of other sessions beside its own, with what was said in them.
    pub(crate) titles_other_sessions: bool,
    /// What the run after a kill in the first turn does.
    pub(crate) after_a_killed_first_turn: Route,
    /// What becomes of a damaged session when the next run looks at it first, and when nobody looks.
    pub(crate) damages: Vec<(Damage, Fate, Fate)>,
    /// What trouble of the model's service comes to in a resumed run.
    pub(crate) faults: Vec<(Fault, End)>,
}

/// What can happen to a session while nobody runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// It is gone.
    Deleted,
    /// It is there, and holds nothing.
    Emptied,
    /// It holds nothing that is a record.
    Garbage,
    /// Its last record is cut off.
    CutLastLine,
    /// One record in the middle is no record any more.
    GarbageInTheMiddle,
    /// The record of ours names an id that no session has.
    UnknownId,
    /// What only this agent's sessions can suffer.
    Other(&'static str),
}

impl Damage {
    /// Its name among the scenarios.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Emptied => "emptied",
            Self::Garbage => "nothing but garbage",
            Self::CutLastLine => "cut in its last line",
            Self::GarbageInTheMiddle => "garbage in the middle",
            Self::UnknownId => "unknown id",
            Self::Other(name) => name,
        }
    }

    /// The name of the fixture of a resume after it.
    pub(crate) fn fixture(self) -> String {
        let slug = match self {
            Self::Garbage => "garbage",
            Self::CutLastLine => "cut",
            Self::GarbageInTheMiddle => "holed",
            Self::UnknownId => "unknown",
            Self::Deleted | Self::Emptied | Self::Other(_) => self.name(),
        };
        format!("resume-{}", slug.replace(' ', "-").to_lowercase())
    }
}

/// What becomes of a damaged session in the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The conversation goes on, and on.
    Resumes,
    /// The conversation goes on, but what the CLI adds to it is lost to the run after.
    ResumesOnce,
    /// One fresh run takes its place, for this reason.
    Lost(Why),
    /// One fresh run stands aside, for this reason; the session stays bound.
    StandsAside(Why),
    /// The run fails for this reason, and the binding is kept.
    Fails(Why),
    /// The CLI goes on in silence without the context. Only a look can tell, so this is no fate of a session that is
    /// looked at.
    Forgets,
}

/// Trouble of the model's service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Every call is refused with this status.
    Status(u16),
    /// The connection breaks in the middle of every answer.
    Dropped,
    /// Every answer ends too early, and in order.
    Cut,
}

impl Fault {
    /// Its name among the scenarios.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Status(status) => format!("HTTP {status}"),
            Self::Dropped => "dropped stream".to_owned(),
            Self::Cut => "cut stream".to_owned(),
        }
    }
}

/// What a fault comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The CLI gets over it.
    Completes,
    /// The run fails for this reason.
    Fails(Why),
    /// The CLI would go on for ever; the adapter notices, and the run fails for this reason.
    Loops(Why),
    /// The CLI would try for ever; our limit ends it after this time.
    NeverEnds(Duration),
}

impl End {
    /// The limits that a run needs to come to this end.
    pub(crate) fn limits(self) -> Limits {
        let mut limits = Limits::default();
        if let Self::NeverEnds(patience) = self {
            (limits.start, limits.idle) = (patience, patience);
            limits.total = patience * 2;
        }
        limits
    }
}

/// The folders of one trial, and its model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The real path of the folder that holds them all.
    pub(crate) root: PathBuf,
    /// The base URL of the fake model, without a slash at the end.
    pub(crate) model: String,
}

impl Place {
    /// The user's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The git repository that the agent works in.
    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// The folder of our store.
    pub(crate) fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    /// Every file in the state dirs, links left out.
    pub(crate) fn state_files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.store().join(".agent-sessions/state")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else if !path.is_symlink() {
                    found.push(path);
                }
            }
        }
        found
    }

    /// The bare environment of every run: no credentials, loopback only.
    pub(crate) fn bare(&self, cli: &Pinned) -> Environment {
        Environment::bare()
            .set("HOME", self.home())
            .set("TMPDIR", self.root.join("tmp"))
            .set("PATH", &cli.path)
            .set("LANG", "C.UTF-8")
            .set("TERM", "dumb")
            .set("IS_SANDBOX", "1")
    }
}

/// Does a damage to a session that is a file of lines.
pub(crate) fn damage_lines(path: &Path, damage: Damage) {
    let text = std::fs::read(path).unwrap();
    let damaged = match damage {
        Damage::Deleted => return std::fs::remove_file(path).unwrap(),
        Damage::Emptied => Vec::new(),
        Damage::Garbage => b"no record\n\0\0\0\n{\"half\":\n".to_vec(),
        Damage::CutLastLine => {
            let whole = text.trim_ascii_end();
            let start = whole.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
            text[..start + (whole.len() - start) / 2].to_vec()
        }
        Damage::GarbageInTheMiddle => {
            let first = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
            [&text[..first], b"{\"type\":\"user\",\"mess\0\0\0 garbage\n", &text[first..]].concat()
        }
        Damage::UnknownId | Damage::Other(_) => panic!("{damage:?} is not done to a file of lines"),
    };
    std::fs::write(path, damaged).unwrap();
}
