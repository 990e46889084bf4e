//! The port to an agent: detect it, run a turn, say what it can do.

use std::fmt::{self, Debug};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::decide::{Reach, Verdict};
use crate::error::{AgentError, AgentErrorKind};
use crate::{
    AgentId, Cancel, EventSink, Evidence, FigureScope, Limits, MountPlan, NativeId, RunId, SessionCatalog,
    SessionName,
};

/// A version as the agent prints it, ordered by its three numbers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Version {
    /// As printed, without what follows the number.
    pub text: String,
    /// Major, minor, patch; missing parts are zero.
    pub numbers: [u64; 3],
}

impl Version {
    /// Finds the first version number in a probe's output, such as `2.1.332 (Claude Code)`.
    #[must_use]
    pub fn parse(output: &str) -> Option<Self> {
        output.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',')).find_map(|word| {
            let word = word.strip_prefix('v').unwrap_or(word);
            let core = word.split(['-', '+']).next()?;
            let mut parts = core.split('.');
            let mut numbers = [0; 3];
            for (index, number) in numbers.iter_mut().enumerate() {
                match parts.next() {
                    Some(part) => *number = part.parse().ok()?,
                    None if index < 2 => return None,
                    None => {}
                }
            }
            Some(Self { text: word.to_owned(), numbers })
        })
    }

    /// Whether this version is the given one or a later one.
    #[must_use]
    pub fn at_least(&self, major: u64, minor: u64, patch: u64) -> bool {
        self.numbers >= [major, minor, patch]
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What happens to the native id when a session is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IdOnResume {
    /// It stays.
    Kept,
    /// The agent copies the session under a new id.
    Replaced,
}

/// Whether and how a session can be forked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForkSupport {
    /// It cannot.
    No,
    /// The agent chooses the new id.
    AgentChoosesId,
    /// The caller chooses the new id.
    CallerChoosesId,
}

/// What one version of an agent can do. Data, not code: core enforces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[non_exhaustive]
pub struct AgentCapabilities {
    /// Whether the agent has sessions that a later process can continue.
    pub resumable_sessions: bool,
    /// Whether this version can continue them without a person.
    pub headless_resume: bool,
    /// From where this version finds a session.
    pub resume_reach: ReachCapability,
    /// Where below the state dir the sessions lie.
    pub session_state_path: Option<&'static str>,
    /// Whether the caller can choose the id of a new session.
    pub caller_chosen_id: bool,
    /// What a resume does to the id.
    pub id_on_resume: IdOnResume,
    /// Whether sessions can be forked.
    pub fork: ForkSupport,
    /// Whether a conversation can be taken back to an earlier prompt without a person: this version continues a
    /// [branch](crate::SessionCatalog::branch) of it, in a state dir at least.
    pub rewind: bool,
    /// Whether a session can carry a name for people.
    pub names: bool,
    /// Whether the agent can run sessions in the background.
    pub background: bool,
    /// What the cost figure counts.
    pub cost_scope: FigureScope,
    /// What the token figures count.
    pub usage_scope: FigureScope,
    /// Whether one run can be given words that go to the model before everything else.
    pub system_prompt: bool,
    /// Whether one run can be told which tools the model may call.
    pub tool_lists: bool,
    /// The largest prompt that this version takes, in bytes.
    pub prompt_limit: Option<usize>,
    /// After what time the agent deletes sessions that nobody uses, called as it is called here.
    pub retention: AgentRetention,
    /// Whether these claims were verified on the real agent in this version family; otherwise the nearest
    /// known rules are used.
    pub verified: bool,
}

/// After what time an agent deletes sessions that nobody uses. `None`: never, or it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub struct AgentRetention {
    /// In a state dir, where only runs of ours come.
    pub in_state_dir: Option<Duration>,
    /// In the agent's own place, where the user's runs come, too, with settings of their own.
    pub in_own_place: Option<Duration>,
}

impl AgentRetention {
    /// Nothing is deleted, as far as is known.
    pub const NONE: Self = Self { in_state_dir: None, in_own_place: None };
}

/// [`Reach`] as part of the capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReachCapability {
    /// Only from the folder where the session began.
    SameFolder,
    /// From every folder and work tree of the repository.
    Repository,
    /// From anywhere.
    Anywhere,
}

impl From<ReachCapability> for Reach {
    fn from(reach: ReachCapability) -> Self {
        match reach {
            ReachCapability::SameFolder => Self::SameFolder,
            ReachCapability::Repository => Self::Repository,
            ReachCapability::Anywhere => Self::Anywhere,
        }
    }
}

impl AgentCapabilities {
    /// An agent that can run a prompt and nothing else. Start from this and raise what is true.
    pub const NONE: Self = Self {
        resumable_sessions: false,
        headless_resume: false,
        resume_reach: ReachCapability::SameFolder,
        session_state_path: None,
        caller_chosen_id: false,
        id_on_resume: IdOnResume::Kept,
        fork: ForkSupport::No,
        rewind: false,
        names: false,
        background: false,
        cost_scope: FigureScope::Process,
        usage_scope: FigureScope::Process,
        system_prompt: false,
        tool_lists: false,
        prompt_limit: None,
        retention: AgentRetention::NONE,
        verified: false,
    };
}

/// An agent that is there and can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The program, found.
    pub program: PathBuf,
    /// Its version, if it said one.
    pub version: Option<Version>,
    /// What that version can do.
    pub capabilities: AgentCapabilities,
}

/// Which conversation a turn belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode<'a> {
    /// A new one; under this id where the agent lets the caller choose.
    Fresh {
        /// The id to use.
        id: Option<&'a NativeId>,
    },
    /// Continue this one.
    Resume {
        /// Its id.
        id: &'a NativeId,
    },
    /// A copy of this one, under a new id.
    Fork {
        /// The id of the original.
        source: &'a NativeId,
        /// The original's file, where it lies outside of this turn's state dir.
        transcript: Option<&'a Path>,
        /// The id to use.
        id: Option<&'a NativeId>,
    },
}

/// What of a recipe an adapter can pass on with a turn. A part that the capabilities of the version do not claim is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnRecipe<'a> {
    /// What is said to the model before everything else.
    pub system_prompt: Option<&'a str>,
    /// The tools that the model may call.
    pub tools: Option<&'a [String]>,
}

/// One prompt, and all that an adapter needs to carry it out. `Debug` shows how long the prompt is, not what it says.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    /// The run that the turn belongs to; every process started for it carries this mark.
    pub run: RunId,
    /// The prompt: not empty, without NUL.
    pub prompt: &'a str,
    /// The folder to work in.
    pub cwd: &'a Path,
    /// Which conversation.
    pub mode: Mode<'a>,
    /// The label for people.
    pub name: Option<&'a SessionName>,
    /// The model to ask for.
    pub model: Option<&'a str>,
    /// What else the recipe of the conversation says, as far as the version takes it.
    pub recipe: TurnRecipe<'a>,
    /// The directory for the agent's session files; `None` leaves them at the agent's own place.
    pub state_dir: Option<&'a Path>,
    /// What is installed.
    pub installation: &'a Installation,
    /// The time limits.
    pub limits: &'a Limits,
    /// The caller's way to end the turn.
    pub cancel: &'a Cancel,
}

impl Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("run", &self.run)
            .field("prompt", &format_args!("{} bytes", self.prompt.len()))
            .field("cwd", &self.cwd)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// What came of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReport {
    /// What the agent's exit means.
    pub verdict: Verdict,
    /// What it is made from.
    pub evidence: Evidence,
}

/// An agent.
///
/// # Contract
/// 1. `run` answers with a verdict for everything that the agent does, and with an error only when the agent
///    could not be run at all; then nothing was started.
/// 2. The native id in the report comes from a structured field of an attempt that got that far, never from
///    prose, and never from a resume that failed.
/// 3. When `run` returns, or its future is dropped, no process that it started is left.
/// 4. The prompt reaches the model verbatim.
#[async_trait]
pub trait AgentAdapter: Debug + Send + Sync + 'static {
    /// The agent's stable id.
    fn id(&self) -> &AgentId;

    /// Whether the text has the shape of one of this agent's ids.
    fn accepts_id(&self, id: &NativeId) -> bool;

    /// An id for a new session, in the shape that this agent takes, from a UUID that was used for nothing else.
    fn new_id(&self, random: &str) -> NativeId {
        NativeId::new(random)
    }

    /// Finds the agent and asks for its version. May be cached.
    ///
    /// # Errors
    /// [`AgentError`] when there is no agent that could be run.
    async fn detect(&self) -> Result<Installation, AgentError>;

    /// The same for a run in this folder. An agent in a sandbox can have written there what it then is taken for: an adapter
    /// that makes one starts nothing of it outside. By default, [`detect`](Self::detect).
    ///
    /// # Errors
    /// As [`detect`](Self::detect); also where the agent lies in that folder.
    async fn detect_in(&self, cwd: &Path) -> Result<Installation, AgentError> {
        let _ = cwd;
        self.detect().await
    }

    /// Carries out one turn. Events go to the sink as they come.
    ///
    /// # Errors
    /// [`AgentError`] when nothing could be started.
    ///
    /// # Cancel safety
    /// Dropping the future ends the turn and everything it started, at once and without grace; use
    /// [`Turn::cancel`] to end it in order and to learn how far it got.
    async fn run(&self, turn: Turn<'_>, sink: &mut dyn EventSink) -> Result<TurnReport, AgentError>;

    /// What a sandbox around a run in this folder with this state dir has to show. Nothing is started but the version
    /// probe, nothing is written.
    ///
    /// # Errors
    /// [`AgentError`] when there is no agent that could be run, or when a sandbox would show what is of others: without a
    /// state dir, or around a folder that holds the user's home. By default, always: not every agent has a plan.
    async fn mount_plan(&self, cwd: &Path, state_dir: Option<&Path>) -> Result<MountPlan, AgentError> {
        let _ = (cwd, state_dir);
        let what = "it: its adapter has no plan of mounts";
        Err(AgentError::new(AgentErrorKind::Sandbox, self.id().clone(), what))
    }

    /// Ends what an earlier run of this key left behind when its runner died, and says how many processes
    /// that were.
    async fn reap(&self, run: RunId) -> u32;
}

/// An agent as the lifecycle knows it: an adapter that runs it, and, where there is one, a catalog that knows
/// where its sessions lie.
#[derive(Debug, Clone)]
pub struct Agent {
    adapter: Arc<dyn AgentAdapter>,
    catalog: Option<Arc<dyn SessionCatalog>>,
}

impl Agent {
    /// An agent without a catalog: nobody looks at its session files.
    pub fn new(adapter: impl AgentAdapter) -> Self {
        Self { adapter: Arc::new(adapter), catalog: None }
    }

    /// Adds the catalog.
    #[must_use]
    pub fn with_catalog(mut self, catalog: impl SessionCatalog) -> Self {
        self.catalog = Some(Arc::new(catalog));
        self
    }

    /// Takes the catalog away: what is known of a session is then what the agent says when it is run.
    #[must_use]
    pub fn without_catalog(mut self) -> Self {
        self.catalog = None;
        self
    }

    /// The adapter.
    #[must_use]
    pub fn adapter(&self) -> &dyn AgentAdapter {
        &*self.adapter
    }

    /// The catalog.
    #[must_use]
    pub fn catalog(&self) -> Option<&dyn SessionCatalog> {
        self.catalog.as_deref()
    }
}

impl<A: AgentAdapter> From<A> for Agent {
    fn from(adapter: A) -> Self {
        Self::new(adapter)
    }
}
