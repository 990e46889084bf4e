//! What a caller asks for.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::decide::Policy;
use crate::{Cancel, RecipeSeed, ResumeMode, SessionKey};

/// Which conversation: mailbox and agent, and a name for people.
///
/// The texts are checked when the request is run, so that building one cannot fail.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionRef {
    pub(crate) mailbox: String,
    pub(crate) agent: String,
    pub(crate) name: Option<String>,
}

impl SessionRef {
    /// The conversation of this mailbox with this agent.
    pub fn new(mailbox: impl Into<String>, agent: impl Into<String>) -> Self {
        Self { mailbox: mailbox.into(), agent: agent.into(), name: None }
    }

    /// Names it for people, by default after the branch. The name of the first run stays.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl From<&SessionKey> for SessionRef {
    fn from(key: &SessionKey) -> Self {
        Self::new(key.mailbox.as_str(), key.agent.as_str())
    }
}

/// Whether to resume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ResumePolicy {
    /// Resume where possible, else start fresh with a reason.
    #[default]
    Prefer,
    /// Resume or refuse: never lose context, and never start a first session either.
    Require,
    /// Start fresh. The new session is bound.
    Never,
}

impl From<ResumePolicy> for Policy {
    fn from(policy: ResumePolicy) -> Self {
        match policy {
            ResumePolicy::Prefer => Self::Prefer,
            ResumePolicy::Require => Self::Require,
            ResumePolicy::Never => Self::Never,
        }
    }
}

/// How long things may take. Every run has an end of ours, whatever the agent does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// From the start to the agent's first output. Default 2 minutes.
    pub start: Duration,
    /// Between two outputs. A tool that works in silence counts as idle, so leave room. Default 30 minutes.
    pub idle: Duration,
    /// For one attempt as a whole. Default 6 hours.
    pub total: Duration,
    /// Between asking a process to end and killing it. Default 5 seconds.
    pub grace: Duration,
    /// Between the agent's final event and the end of its process. Default 5 seconds.
    pub linger: Duration,
    /// How long to wait for a session that another process of the agent uses. Default 20 seconds.
    pub busy: Duration,
    /// How long to wait for a key that another runner works on. Default: not at all, so that
    /// [`RunError::Busy`](crate::error::RunError::Busy) comes within 300 milliseconds, in which a runner that just ended may
    /// still let go; one that was dropped keeps the key until its last write is done. Who waits is not served in order.
    pub lease: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(120),
            idle: Duration::from_secs(30 * 60),
            total: Duration::from_secs(6 * 60 * 60),
            grace: Duration::from_secs(5),
            linger: Duration::from_secs(5),
            busy: Duration::from_secs(20),
            lease: Duration::ZERO,
        }
    }
}

impl Limits {
    /// Sets [the time to the first output](#structfield.start).
    #[must_use]
    pub const fn start(mut self, start: Duration) -> Self {
        self.start = start;
        self
    }

    /// Sets [the time between two outputs](#structfield.idle).
    #[must_use]
    pub const fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Sets [the time of one attempt](#structfield.total).
    #[must_use]
    pub const fn total(mut self, total: Duration) -> Self {
        self.total = total;
        self
    }

    /// Sets [the time between asking a process to end and killing it](#structfield.grace).
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets [the time between the agent's final event and the end of its process](#structfield.linger).
    #[must_use]
    pub const fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Sets [how long to wait for a session that another process of the agent uses](#structfield.busy).
    #[must_use]
    pub const fn busy(mut self, busy: Duration) -> Self {
        self.busy = busy;
        self
    }

    /// Sets [how long to wait for a key that another runner works on](#structfield.lease).
    #[must_use]
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }
}

/// One prompt for one mailbox. `Debug` shows how long the prompt is, not what it says.
#[derive(Clone)]
#[must_use]
pub struct LlmRequest {
    pub(crate) prompt: String,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) session: Option<SessionRef>,
    pub(crate) fork_of: Option<SessionRef>,
    pub(crate) model: Option<String>,
    pub(crate) resume: ResumePolicy,
    pub(crate) enter_project: bool,
    pub(crate) limits: Limits,
    pub(crate) cancel: Cancel,
    pub(crate) seed: Option<Box<RecipeSeed>>,
    pub(crate) mode: ResumeMode,
    /// A copy for a moment, which no list shows.
    pub(crate) scratch: bool,
}

impl fmt::Debug for LlmRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmRequest")
            .field("prompt", &format_args!("{} bytes", self.prompt.len()))
            .field("cwd", &self.cwd)
            .field("session", &self.session)
            .field("fork_of", &self.fork_of)
            .field("resume", &self.resume)
            .finish_non_exhaustive()
    }
}

impl LlmRequest {
    /// A request with this prompt, which reaches the model verbatim.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            cwd: None,
            session: None,
            fork_of: None,
            model: None,
            resume: ResumePolicy::Prefer,
            enter_project: false,
            limits: Limits::default(),
            cancel: Cancel::new(),
            seed: None,
            mode: ResumeMode::ReplayTranscript,
            scratch: false,
        }
    }

    /// The folder to work in. Required.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// The conversation to continue, or to begin. Required.
    pub fn session(mut self, session: SessionRef) -> Self {
        self.session = Some(session);
        self
    }

    /// Begins the conversation as a copy of another one, which stays as it is. Has no effect once the
    /// conversation has a binding of its own.
    pub fn fork_of(mut self, original: SessionRef) -> Self {
        self.fork_of = Some(original);
        self
    }

    /// The model to ask for. Without one, the agent chooses.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Whether to resume; the default is to prefer it.
    pub fn resume(mut self, policy: ResumePolicy) -> Self {
        self.resume = policy;
        self
    }

    /// What the conversation is begun from. It is kept in the record of the key; what the agent can be given of it, this run
    /// and all later ones of the key give it, and say so in [`LlmResult::recipe`](crate::LlmResult::recipe).
    pub fn seed(mut self, seed: RecipeSeed) -> Self {
        self.seed = Some(Box::new(seed));
        self
    }

    /// Whether the conversation goes on by its transcript (the default) or begins anew by its recipe, which needs a seed,
    /// here or in the record.
    pub fn resume_mode(mut self, mode: ResumeMode) -> Self {
        self.mode = mode;
        self
    }

    /// Says yes to continuing a session of another project in this folder.
    pub fn enter_other_project(mut self, yes: bool) -> Self {
        self.enter_project = yes;
        self
    }

    /// The time limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The handle that ends the run in order.
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }
}
