//! What there is: sessions with what they hold, and everything that the agent was asked and did. The truth of a walk.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use session_core::decide::{Activity, Verdict};
use session_core::{
    AgentCapabilities, Asked, Folder, ForkSupport, IdOnResume, ReachCapability, RunId, Version,
};
use tokio::sync::Notify;

use super::step::{Act, Health, Which};

/// A version of the agent, and how it differs.
pub(crate) struct Release {
    pub(crate) number: &'static str,
    reach: ReachCapability,
    resumable: bool,
    headless: bool,
    chosen_id: bool,
    on_resume: IdOnResume,
    fork: ForkSupport,
}

const NEWEST: Release = Release {
    number: "3.0.0",
    reach: ReachCapability::Anywhere,
    resumable: true,
    headless: true,
    chosen_id: true,
    on_resume: IdOnResume::Kept,
    fork: ForkSupport::CallerChoosesId,
};

/// The versions that a walk installs.
pub(crate) const VERSIONS: &[Release] = &[
    NEWEST,
    Release { number: "2.2.0", reach: ReachCapability::Repository, ..NEWEST },
    Release {
        number: "2.1.0",
        reach: ReachCapability::SameFolder,
        fork: ForkSupport::AgentChoosesId,
        ..NEWEST
    },
    Release { number: "2.0.0", reach: ReachCapability::Repository, chosen_id: false, ..NEWEST },
    Release {
        number: "1.2.0",
        reach: ReachCapability::SameFolder,
        chosen_id: false,
        on_resume: IdOnResume::Replaced,
        fork: ForkSupport::AgentChoosesId,
        ..NEWEST
    },
    Release { number: "1.1.0", reach: ReachCapability::Anywhere, on_resume: IdOnResume::Replaced, ..NEWEST },
    Release { number: "1.0.0", headless: false, ..NEWEST },
    Release { number: "0.9.0", resumable: false, chosen_id: false, fork: ForkSupport::No, ..NEWEST },
];

impl Release {
    pub(crate) fn version(&self) -> Option<Version> {
        Version::parse(self.number)
    }

    pub(crate) fn capabilities(&self) -> AgentCapabilities {
        let mut capabilities = AgentCapabilities::NONE;
        capabilities.resumable_sessions = self.resumable;
        capabilities.headless_resume = self.headless;
        capabilities.resume_reach = self.reach;
        capabilities.caller_chosen_id = self.chosen_id;
        capabilities.id_on_resume = self.on_resume;
        capabilities.fork = self.fork;
        capabilities.verified = true;
        capabilities
    }
}

/// A session of the agent.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// Whose run began it, or copied it.
    pub(crate) mailbox: usize,
    /// Copies made by a resume are the same conversation.
    pub(crate) conversation: usize,
    pub(crate) turns: Vec<String>,
    pub(crate) health: Health,
    pub(crate) began: Folder,
}

impl Session {
    /// Whether somebody who looks sees a turn.
    pub(crate) fn shows_turns(&self) -> bool {
        !self.turns.is_empty() && !self.health.is_lost() && self.health != Health::Locked
    }
}

/// One attempt, as the agent knows it.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) run: RunId,
    pub(crate) asked: Asked,
    /// The session that it says it is in.
    pub(crate) named: Option<String>,
    /// The session that holds the turn, where one does.
    pub(crate) kept_in: Option<String>,
    /// What that session held before.
    pub(crate) before: Vec<String>,
    /// Whether it answers in another conversation than the one asked for.
    pub(crate) strays: bool,
    pub(crate) activity: Activity,
    /// None as long as it goes on.
    pub(crate) verdict: Option<Verdict>,
}

impl Attempt {
    pub(crate) fn asked_resume(&self) -> Option<&str> {
        match &self.asked {
            Asked::Resume(id) => Some(id.as_str()),
            Asked::Fresh(_) | Asked::Fork(_) => None,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub(crate) sessions: Vec<Session>,
    pub(crate) acts: VecDeque<Act>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) reaped: Vec<RunId>,
    /// Whether anybody looks at session files.
    pub(crate) catalog: bool,
    /// What is installed.
    pub(crate) version: usize,
    /// Where every session began, or was to begin.
    pub(crate) begun: BTreeMap<String, Folder>,
    conversations: usize,
    ids: u128,
}

impl World {
    pub(crate) fn session(&self, id: &str) -> Option<&Session> {
        self.sessions.iter().find(|session| session.id == id)
    }

    pub(crate) fn session_mut(&mut self, id: &str) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.id == id)
    }

    pub(crate) fn which(&mut self, which: Which) -> Option<&mut Session> {
        self.sessions.iter_mut().rev().filter(|session| session.mailbox == which.mailbox).nth(which.back)
    }

    pub(crate) fn release(&self) -> &'static Release {
        &VERSIONS[self.version]
    }

    pub(crate) fn new_id(&mut self) -> String {
        self.ids += 1;
        uuid::Uuid::from_u128((0xA << 124) | self.ids).to_string()
    }

    pub(crate) fn new_conversation(&mut self) -> usize {
        self.conversations += 1;
        self.conversations
    }

    /// Why the agent cannot continue a session from this folder, if it cannot.
    pub(crate) fn obstacle(&self, id: &str, here: &str) -> Option<Verdict> {
        let Some(session) = self.session(id) else { return Some(Verdict::Missing) };
        match session.health {
            Health::Gone | Health::Empty | Health::Unindexed => Some(Verdict::Missing),
            Health::Damaged | Health::Locked => Some(Verdict::Unknown),
            Health::Busy => Some(Verdict::Busy),
            Health::Archived => Some(Verdict::Archived),
            Health::OtherProvider => Some(Verdict::ProviderChanged),
            Health::Sound => {
                let same_folder = self.release().reach == ReachCapability::SameFolder;
                let strange =
                    session.began.path.as_path().is_none_or(|path| path != std::path::Path::new(here));
                (same_folder && strange).then_some(Verdict::Missing)
            }
        }
    }
}

/// The world, and the ways in which an attempt waits for the walk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    world: Mutex<World>,
    /// Something stopped, and waits for what the walk does about it.
    pub(crate) stopped: Notify,
    /// The walk lets it go on.
    pub(crate) released: Notify,
}

impl Shared {
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stopped(&self) -> &Notify {
        &self.0.stopped
    }

    pub(crate) fn released(&self) -> &Notify {
        &self.0.released
    }
}
