//! The sans-I/O port for agents that are command-line programs: build a command, read a line, judge the end.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Debug};
use std::path::{Path, PathBuf};

use crate::decide::Verdict;
use crate::error::CommandError;
use crate::history::SessionSource;
use crate::{AgentCapabilities, AgentEvent, AgentId, Evidence, Exit, Mount, NativeId, Turn, Version};

/// The environment that a child gets before the dialect's own changes. `Debug` shows names, never values: they hold
/// credentials.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvMap(BTreeMap<OsString, OsString>);

impl Debug for EnvMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl EnvMap {
    /// An empty environment.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The value of a variable. Empty counts as unset, as it does for the agents.
    #[must_use]
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Sets a variable.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.0.insert(name.into(), value.into());
    }

    /// Removes a variable.
    pub fn remove(&mut self, name: impl AsRef<OsStr>) {
        self.0.remove(name.as_ref());
    }

    /// Carries out one change.
    pub fn apply(&mut self, change: &EnvChange) {
        match change {
            EnvChange::Set(name, value) => self.set(name.clone(), value.clone()),
            EnvChange::Remove(name) => self.remove(name),
        }
    }

    /// The variables, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for EnvMap {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// One change to the environment. `Debug` shows the name, never the value.
#[derive(Clone, PartialEq, Eq)]
pub enum EnvChange {
    /// Set a variable.
    Set(OsString, OsString),
    /// Remove one.
    Remove(OsString),
}

impl Debug for EnvChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(name, _) => write!(f, "Set({name:?})"),
            Self::Remove(name) => write!(f, "Remove({name:?})"),
        }
    }
}

impl EnvChange {
    /// Sets `name` to `value`.
    pub fn set(name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        Self::Set(name.into(), value.into())
    }

    /// Removes `name`.
    pub fn remove(name: impl Into<OsString>) -> Self {
        Self::Remove(name.into())
    }
}

/// The program to run, and what stands before the agent's own arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// A path, or a name to be looked up in the child's `PATH`.
    pub program: PathBuf,
    /// Arguments before the agent's own: `node cli.js …`, `npx claude …`.
    pub leading_args: Vec<OsString>,
}

impl Program {
    /// A program without leading arguments.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), leading_args: Vec::new() }
    }

    /// Adds a leading argument.
    #[must_use]
    pub fn leading_arg(mut self, arg: impl Into<OsString>) -> Self {
        self.leading_args.push(arg.into());
        self
    }
}

/// What to start: everything but the program. `Debug` shows how long stdin is, not what it says.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CommandSpec {
    /// The agent's arguments.
    pub args: Vec<OsString>,
    /// Changes to the base environment, in order.
    pub env: Vec<EnvChange>,
    /// What is written to stdin, which is then closed. Empty means that stdin is at its end at once.
    pub stdin: Vec<u8>,
}

impl Debug for CommandSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandSpec")
            .field("args", &self.args)
            .field("env", &self.env)
            .field("stdin", &format_args!("{} bytes", self.stdin.len()))
            .finish()
    }
}

/// A symbolic link that makes a part of the user's own configuration visible in a state dir.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where the link lies.
    pub at: PathBuf,
    /// What it points to. Nothing is made where this does not exist.
    pub target: PathBuf,
}

/// Where the agent keeps what, for one environment and state dir.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateLayout {
    /// The directory below which session files lie.
    pub sessions: Option<PathBuf>,
    /// Environment changes that make the agent use the state dir. The runner carries them out before those of the
    /// command.
    pub env: Vec<EnvChange>,
    /// Directories that hold only what the agent makes anew by itself. Each is emptied, or made, before a run.
    pub scratch: Vec<PathBuf>,
    /// Links to make in the state dir before a run. One that leads elsewhere is made anew; what is no link is left alone.
    pub links: Vec<Link>,
    /// Where a link of an earlier run may not be any more. What is no link is left alone.
    pub hidden: Vec<PathBuf>,
    /// What a sandbox has to show of the agent's own places, work tree and program aside. None without a state dir: what
    /// the agent keeps at its own place is of all mailboxes.
    pub mounts: Vec<Mount>,
    /// Whether forking a session of another state dir writes in that one. A sandbox shows it to be read, so that such a
    /// fork is refused there.
    pub writes_original: bool,
}

/// How the process of an attempt ended, as far as a decoder may need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended<'a> {
    /// Its exit.
    pub exit: Exit,
    /// The end of what it wrote to stderr, bounded.
    pub stderr_tail: &'a str,
}

/// Turns lines of output into events.
///
/// # Contract
/// 1. Total: any bytes are allowed, none make it fail or panic.
/// 2. Lines come whole and without their end; how the stream was chunked cannot matter.
/// 3. What is no event is passed on as [`AgentEvent::Noise`], what is not known as [`AgentEvent::Other`].
pub trait Decoder: Send {
    /// Takes one line.
    fn line(&mut self, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>));

    /// The output is over, whoever ended it. For an agent without a last word of its own, this is where
    /// [`AgentEvent::Finished`] comes from; for one without a first word, where a silent end may have to count as a call
    /// of the model.
    fn end(&mut self, _ended: &Ended<'_>, _emit: &mut dyn FnMut(&AgentEvent<'_>)) {}
}

/// What makes one agent CLI different from another. No I/O, no clock, no async.
pub trait CliDialect: Debug + Send + Sync + 'static {
    /// The agent's stable id.
    fn id(&self) -> &AgentId;

    /// The program.
    fn program(&self) -> Program;

    /// How to ask for the version.
    fn version_probe(&self) -> CommandSpec;

    /// The version in what the probe printed. A launcher may print more, before or after: a dialect that knows how its
    /// agent words it looks for that first.
    fn version(&self, printed: &str) -> Option<Version> {
        Version::parse(printed)
    }

    /// What this version can do; `None` when the version could not be told.
    fn capabilities(&self, version: Option<&Version>) -> AgentCapabilities;

    /// Whether the text has the shape of one of this agent's ids.
    fn accepts_id(&self, id: &NativeId) -> bool;

    /// An id for a new session, in the shape that this agent takes, from a UUID that was used for nothing else.
    fn new_id(&self, random: &str) -> NativeId {
        NativeId::new(random)
    }

    /// The command for a turn, given the environment that the child starts from.
    ///
    /// # Errors
    /// [`CommandError`] when this version cannot be asked for that.
    fn command(&self, turn: &Turn<'_>, env: &EnvMap) -> Result<CommandSpec, CommandError>;

    /// Commands to run before that one, in order, in the same folder and environment: such as one that makes the
    /// session under a chosen id, without calling the model. What they print is not looked at; where one fails, the
    /// attempt ends with its exit and its stderr.
    ///
    /// # Errors
    /// [`CommandError`] when this version cannot be asked for that.
    fn preparations(&self, turn: &Turn<'_>, env: &EnvMap) -> Result<Vec<CommandSpec>, CommandError>;

    /// The arguments with which a person continues a session in the agent's own interface. `None`: there is no way, or the id
    /// cannot be passed safely.
    fn attended(&self, _id: &NativeId) -> Option<Vec<OsString>> {
        None
    }

    /// The arguments with which a person takes a session out of the agent's archive. `None`: there is no such command, or the
    /// id cannot be passed safely.
    fn unarchive(&self, _id: &NativeId) -> Option<Vec<OsString>> {
        None
    }

    /// What the environment needs for that, given the one of the person: a session of a state dir lies where the agent does
    /// not look by itself.
    fn attended_env(&self, source: &SessionSource, env: &EnvMap) -> Vec<EnvChange> {
        let state_dir = source.state_dir.as_deref();
        state_dir.map(|dir| self.state(Some(dir), env, None).env).unwrap_or_default()
    }

    /// A decoder for one attempt.
    fn decoder(&self, turn: &Turn<'_>) -> Box<dyn Decoder>;

    /// What the end of an attempt means.
    fn classify(&self, evidence: &Evidence) -> Verdict;

    /// Where sessions lie, and what carries a state dir.
    fn state(&self, state_dir: Option<&Path>, env: &EnvMap, version: Option<&Version>) -> StateLayout;

    /// The same where a sandbox is around the run: nothing of the agent's own place is there then but what the layout
    /// mounts, so what is to be kept has to lie in the state dir. Sessions lie where they lie without a sandbox.
    fn sandboxed_state(&self, state_dir: &Path, env: &EnvMap, version: Option<&Version>) -> StateLayout {
        self.state(Some(state_dir), env, version)
    }
}
