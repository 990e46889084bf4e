//! Builds a [`Lifecycle`].

use std::sync::Arc;
use std::time::Duration;

use crate::{Agent, Checkpointer, Host, NoRoster, ResumeSetting, Roster, SessionStore};

use super::Lifecycle;

impl Lifecycle {
    /// A lifecycle over this store on this host, without agents yet.
    #[must_use]
    pub fn new(store: Arc<dyn SessionStore>, host: Arc<dyn Host>) -> Self {
        Self {
            store,
            host,
            agents: Arc::default(),
            setting: ResumeSetting::new(),
            max_age: None,
            max_bytes: None,
            state_dirs: true,
            mend: true,
            roster: Arc::new(NoRoster),
            checkpointer: None,
        }
    }

    /// Adds an agent; one with the same id is replaced.
    #[must_use]
    pub fn agent(mut self, agent: Agent) -> Self {
        let id = agent.adapter().id().clone();
        Arc::make_mut(&mut self.agents).insert(id, agent);
        self
    }

    /// Sets who knows what runs in the background. Without it, nothing does.
    #[must_use]
    pub fn roster(mut self, roster: Arc<dyn Roster>) -> Self {
        self.roster = roster;
        self
    }

    /// Sets who takes checkpoints: one before each run and one after it, of the work tree around its folder. Without it, none are
    /// taken, and nothing can be gone back to. One that cannot be taken is reported as
    /// [`Warning::NotCheckpointed`](crate::Warning::NotCheckpointed).
    #[must_use]
    pub fn checkpointer(mut self, checkpointer: Arc<dyn Checkpointer>) -> Self {
        self.checkpointer = Some(checkpointer);
        self
    }

    /// Sets whether sessions are resumed at all.
    #[must_use]
    pub const fn resume_setting(mut self, setting: ResumeSetting) -> Self {
        self.setting = setting;
        self
    }

    /// Sets how long a session may lie unused and still be resumed. Without it, for ever.
    #[must_use]
    pub const fn max_session_age(mut self, limit: Duration) -> Self {
        self.max_age = Some(limit);
        self
    }

    /// Sets up to which size in bytes a session is resumed: an agent reads it whole, and may hang at gigabytes. One that is
    /// larger stands aside as [`Why::TooLarge`](crate::decide::Why::TooLarge). Of a packed file, its packed size counts. Without
    /// it, any size.
    #[must_use]
    pub const fn max_session_bytes(mut self, limit: u64) -> Self {
        self.max_bytes = Some(limit);
        self
    }

    /// Sets whether each key gets a state dir of its own from the store (the default), or agents keep their
    /// sessions at their own place in the home directory.
    #[must_use]
    pub const fn state_dirs(mut self, yes: bool) -> Self {
        self.state_dirs = yes;
        self
    }

    /// Sets whether session files are mended before a run by the cures of [`Mend`](crate::Mend) that lose nothing (the
    /// default). Each is reported as [`Warning::Mended`](crate::Warning::Mended). Without them, Claude Code up to 2.1.197
    /// glues its next record to a last line without an end, and 2.0.14 then loses all before it; a session of Codex that
    /// somebody archived, or that an older version added to, stands aside; a damaged database of opencode up to 1.15.12
    /// stands in the way of every new session.
    #[must_use]
    pub const fn mend_session_files(mut self, yes: bool) -> Self {
        self.mend = yes;
        self
    }
}
