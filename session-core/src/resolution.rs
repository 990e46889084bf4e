//! Which session did you mean: the question, and the answer as a value.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::Serialize;

use crate::decide::{Sign, Workdir};
use crate::history::{ListedSession, Resumability};
use crate::relocation::Way;
use crate::{AgentId, NativeId, SessionKey};

/// What is known of the session that is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted {
    /// Nothing: the sessions of this project are proposed.
    #[default]
    Nothing,
    /// Its exact id.
    Id(NativeId),
    /// The key that it is bound to.
    Key(SessionKey),
    /// Any of: an id, a mailbox, `mailbox@agent`, a whole name or title, the beginning of an id, words.
    Text(String),
}

/// A search for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seek {
    /// What is known of it.
    pub what: Wanted,
    /// The folder that it is to be continued in; one that is gone is taken as it is written.
    pub from: PathBuf,
    /// The agent that it has to be of; `None`: any.
    pub agent: Option<AgentId>,
    /// The session that asks: it is never an answer.
    pub current: Option<NativeId>,
    /// Whether a session of another project is fine.
    pub yes_other_project: bool,
    /// Whether it is only to be looked at: then it is no matter from where a version finds it, and none is asked.
    pub only_to_look: bool,
    /// Folders that are one, seen from two sides, such as out of a container: theirs, and ours. Nothing is guessed
    /// without.
    pub paths: Vec<(PathBuf, PathBuf)>,
}

impl Seek {
    /// A search from a folder.
    pub fn new(what: Wanted, from: impl Into<PathBuf>) -> Self {
        let from = from.into();
        Self {
            what,
            from,
            agent: None,
            current: None,
            yes_other_project: false,
            only_to_look: false,
            paths: Vec::new(),
        }
    }

    /// Only sessions of this agent.
    #[must_use]
    pub fn agent(mut self, agent: AgentId) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Leaves this session out.
    #[must_use]
    pub fn current(mut self, current: NativeId) -> Self {
        self.current = Some(current);
        self
    }

    /// Says yes to a session of another project.
    #[must_use]
    pub const fn other_project(mut self, yes: bool) -> Self {
        self.yes_other_project = yes;
        self
    }

    /// Says that nothing is to be done but to look at it: no agent is asked for its version.
    #[must_use]
    pub const fn only_to_look(mut self) -> Self {
        self.only_to_look = true;
        self
    }

    /// Says that their folder is our folder.
    #[must_use]
    pub fn same_folder(mut self, theirs: impl Into<PathBuf>, ours: impl Into<PathBuf>) -> Self {
        self.paths.push((theirs.into(), ours.into()));
        self
    }

    /// The path on our side.
    pub(crate) fn ours(&self, path: &Path) -> PathBuf {
        let rest = |(theirs, ours): &(PathBuf, PathBuf)| {
            // Joining nothing would add a slash.
            let rest = path.strip_prefix(theirs).ok()?;
            Some(if rest.as_os_str().is_empty() { ours.clone() } else { ours.join(rest) })
        };
        self.paths.iter().find_map(rest).unwrap_or_else(|| path.to_owned())
    }
}

/// A session that was found, and how it relates to the folder that it was sought from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// The session, its agent, and its key if it is bound to one.
    #[serde(flatten)]
    pub session: ListedSession,
    /// How the folder relates to that of the session.
    pub workdir: Workdir,
    /// The folder that the session is in now, as it is recorded.
    pub folder: Option<PathBuf>,
    /// Other files with this id: a file that was moved while somebody wrote to it is split.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<PathBuf>,
}

/// What would have a session be found in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proposal {
    /// The folder that the session is in now.
    pub from: Option<PathBuf>,
    /// The folder that it is to be in.
    pub to: PathBuf,
    /// What is to be done.
    pub way: Way,
}

/// One place or list that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Look {
    /// By what sign.
    pub sign: Sign,
    /// Of which agent; `None`: of all.
    pub agent: Option<AgentId>,
    /// Where; `None`: in the agent's own place, or in the store.
    pub place: Option<PathBuf>,
    /// How many it found.
    pub found: usize,
    /// Why it could not be looked at, where that is so: then what was not found may be there.
    pub trouble: Option<String>,
}

/// Sessions that were begun in a folder that is gone, and that was this one by all that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Vanished {
    /// The folder.
    pub folder: PathBuf,
    /// How many sessions that can be continued.
    pub sessions: usize,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
#[non_exhaustive]
pub enum Answer {
    /// This one, and it can be continued from the folder.
    Found {
        /// The session.
        hit: Box<Hit>,
        /// By what sign.
        how: Sign,
    },
    /// This one, once it is relocated.
    Moved {
        /// The session.
        hit: Box<Hit>,
        /// By what sign.
        how: Sign,
        /// What would have it be found.
        proposal: Proposal,
    },
    /// This one, of another project: say so with [`Seek::yes_other_project`].
    OtherProject {
        /// The session.
        hit: Box<Hit>,
        /// By what sign.
        how: Sign,
    },
    /// This one, and it cannot be continued.
    CannotResume {
        /// The session.
        hit: Box<Hit>,
        /// By what sign.
        how: Sign,
        /// Why.
        why: NotResumed,
    },
    /// One of these: the caller chooses. Each can be continued; none is the caller's own.
    Ambiguous {
        /// Newest first, those of this project before others.
        candidates: Vec<Hit>,
        /// By what sign.
        how: Sign,
    },
    /// It is not there any more, as far as all could be looked at.
    Gone,
    /// Nothing was found: a fresh session is the answer.
    Nothing,
}

/// Why a session that was named is not continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotResumed {
    /// It is the session that asks.
    Current,
    /// It is a helper's.
    Sidechain,
    /// What its file tells.
    File(Resumability),
}

/// An answer, and what was looked at for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Located {
    /// The answer.
    #[serde(flatten)]
    pub answer: Answer,
    /// What was looked at, in order.
    pub looked_at: Vec<Look>,
    /// Where nothing is in this folder's project: what is recorded for folders that are gone and were this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vanished: Vec<Vanished>,
}

impl Located {
    /// Whether all could be looked at.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.looked_at.iter().all(|look| look.trouble.is_none())
    }

    /// The session, where it is one.
    #[must_use]
    pub fn hit(&self) -> Option<&Hit> {
        match &self.answer {
            Answer::Found { hit, .. }
            | Answer::Moved { hit, .. }
            | Answer::OtherProject { hit, .. }
            | Answer::CannotResume { hit, .. } => Some(hit),
            Answer::Ambiguous { .. } | Answer::Gone | Answer::Nothing => None,
        }
    }
}

/// A session that runs in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Running {
    /// Its agent.
    pub agent: AgentId,
    /// Its id.
    pub id: NativeId,
    /// The name that it runs under.
    pub name: Option<String>,
}

/// The port to what runs in the background.
#[async_trait]
pub trait Roster: Debug + Send + Sync + 'static {
    /// What runs.
    ///
    /// # Errors
    /// A sentence, where nobody can tell.
    async fn running(&self) -> Result<Vec<Running>, String>;
}

/// Nothing runs in the background.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRoster;

#[async_trait]
impl Roster for NoRoster {
    async fn running(&self) -> Result<Vec<Running>, String> {
        Ok(Vec::new())
    }
}
