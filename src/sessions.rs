//! The entry for runtimes: the orchestration of `session-core`, on this machine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use session_core::error::{HandOverError, HistoryError, RunError, StoreError, SummaryError};
use session_core::history::{
    ListedSession, PageQuery, Restored, SessionsListing, SessionsQuery, TranscriptPage,
};
use session_core::{
    Agent, AuditEntry, AuditSeq, CloseError, Closed, Closing, Compacted, EventSink, Explanation, HandOver,
    HandedOver, Lifecycle, LlmRequest, LlmResult, MailboxNotClosed, MountPlan, ResumeSetting, SessionKey,
    SessionRecord, SessionStore, Summary, SummaryRequest, Sweep, SweepReport,
};
use session_process::SystemHost;

/// Named sessions of coding agents, kept in a store. Cheap to clone; clones share everything.
///
/// Needs a tokio runtime with I/O and time enabled.
#[derive(Debug, Clone)]
pub struct Sessions(pub(crate) Lifecycle);

impl Sessions {
    /// Begins with a store. Add at least one agent.
    pub fn builder(store: impl SessionStore) -> SessionsBuilder {
        SessionsBuilder(Lifecycle::new(Arc::new(store), Arc::new(SystemHost::new())))
    }

    /// Runs a request: continues the mailbox's conversation, or begins one and says why.
    ///
    /// # Errors
    /// See [`RunError`]; whatever fails, a good binding is kept.
    ///
    /// # Cancel safety
    /// Dropping the future ends the agent with everything it started, at once. To end a run in order and learn
    /// how far it came, use [`LlmRequest::cancel`].
    pub async fn run(&self, request: LlmRequest) -> Result<LlmResult, RunError> {
        self.0.run(request).await
    }

    /// The same, with the events of the run going to a sink as they come.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    pub async fn run_with(
        &self,
        request: LlmRequest,
        sink: &mut dyn EventSink,
    ) -> Result<LlmResult, RunError> {
        self.0.run_with(request, sink).await
    }

    /// What a sandbox around the runs of a key in this folder has to show, as a value: for a runtime that makes its
    /// container before the run. One that has each command wrapped gives the agent a
    /// [`Launcher`](crate::process::Launcher), which gets the same plan. Nothing is run but the agent's version probe.
    ///
    /// # Errors
    /// [`RunError`]: there is no such agent, the folder cannot be used or holds the user's home, or the key has no state
    /// dir.
    ///
    /// # Cancel safety
    /// A dropped future may leave an empty state dir.
    pub async fn mount_plan(&self, key: &SessionKey, cwd: &Path) -> Result<MountPlan, RunError> {
        self.0.mount_plan(key, cwd).await
    }

    /// Reads what is remembered of a key.
    ///
    /// # Errors
    /// [`StoreError`] when the store could not be asked.
    pub async fn record(&self, key: &SessionKey) -> Result<Option<SessionRecord>, StoreError> {
        self.0.record(key).await
    }

    /// Why the last run of a key went as it did, and what is bound now: in plain words (`Display`) and as data
    /// (`Serialize`). Nothing is run.
    ///
    /// # Errors
    /// [`StoreError`] when the store could not be asked.
    pub async fn explain(&self, key: &SessionKey) -> Result<Explanation, StoreError> {
        self.0.explain(key).await
    }

    /// Lists the sessions of all registered agents, newest first: those in their own places, which anybody may have begun,
    /// and those in the state dirs of keys. What cannot be listed is told, and stops nothing else. Nothing is run.
    ///
    /// # Errors
    /// [`StoreError`] when the store could not say which keys there are.
    ///
    /// # Cancel safety
    /// Nothing is written but what catalogs keep to be faster.
    pub async fn list(&self, query: &SessionsQuery) -> Result<SessionsListing, StoreError> {
        self.0.list(query).await
    }

    /// Reads a part of the transcript of a session that was listed, from its end to its beginning, or what was added since.
    ///
    /// # Errors
    /// [`HistoryError`]: no such agent, or it cannot be read.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn page(
        &self,
        session: &ListedSession,
        query: &PageQuery,
    ) -> Result<TranscriptPage, HistoryError> {
        self.0.page(session, query).await
    }

    /// Reads a session that was listed as a whole, for what can be had back of its state. Memory grows with the number of its
    /// records, not with their size.
    ///
    /// # Errors
    /// [`HistoryError`]: no such agent, or it cannot be read.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn restore(&self, session: &ListedSession) -> Result<Restored, HistoryError> {
        self.0.restore(session).await
    }

    /// Closes a mailbox for every registered agent: its records and state dirs are removed, its audit logs stay and say so.
    /// A later run of it starts anew and inherits nothing. What a dead runner left is ended first. Sessions in an agent's
    /// own place, without a state dir, are the user's and stay. A mailbox that is only *blocked* is not closed: it keeps
    /// everything, and is just not run.
    ///
    /// # Errors
    /// [`MailboxNotClosed`] names the agents for which it is not closed, and why: a run is under way, a newer version wrote a
    /// record, or the store failed. For all others it is.
    ///
    /// # Cancel safety
    /// A dropped future may leave a mailbox that is closed in part: closing it again finishes that, and a run in between
    /// starts anew.
    pub async fn close(&self, mailbox: &str, closing: Closing) -> Result<Vec<Closed>, MailboxNotClosed> {
        self.0.close_mailbox(mailbox, closing).await
    }

    /// Closes a mailbox for one agent, as [`close`](Self::close) does for each.
    ///
    /// # Errors
    /// [`CloseError`]: a run is under way, a newer version wrote the record, or the store failed.
    ///
    /// # Cancel safety
    /// As [`close`](Self::close).
    pub async fn close_key(&self, key: &SessionKey, closing: Closing) -> Result<Closed, CloseError> {
        self.0.close(key, closing).await
    }

    /// Removes what belongs to no live mailbox and was not used for a while, what removals and writes that died left, and
    /// what [`Retention`](crate::Retention) asks for. Each key goes under its lease and with a word in its audit log, which
    /// stays. What cannot be read, is being run or fails is told in the report and stops nothing else. The report also names
    /// sessions that their agents will soon delete by themselves.
    ///
    /// # Errors
    /// [`StoreError`] when the store could not list what it keeps; nothing was changed.
    ///
    /// # Cancel safety
    /// A dropped future leaves what it was at removed in part; the next sweep finishes that.
    pub async fn sweep(&self, sweep: &Sweep) -> Result<SweepReport, StoreError> {
        self.0.sweep(sweep).await
    }

    /// The last of what was said in a key's conversation, as a text to put before the prompt of another agent: at most
    /// about `bytes` of what was said, newest kept, delimited, and with a word on what it leaves out.
    ///
    /// # Errors
    /// [`HandOverError`]: nothing is bound to the key, or it cannot be read.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn hand_over(&self, key: &SessionKey, bytes: usize) -> Result<HandOver, HandOverError> {
        self.0.hand_over(key, bytes).await
    }

    /// Summarises the conversation in force for a key, or a part of it, as a bounded text: put together from its transcript, or
    /// by asking the agent in a copy that is removed afterwards. The conversation itself is not touched.
    ///
    /// # Errors
    /// [`SummaryError`]: the request asks for what cannot be, nothing is bound to the key, or it cannot be read.
    ///
    /// # Cancel safety
    /// A dropped future ends the agent that it asked, and may leave the copy that this one was asked in: no list shows it, and
    /// the next summary of the key by its agent, or a sweep, removes it.
    pub async fn summarise(&self, request: &SummaryRequest) -> Result<Summary, SummaryError> {
        self.0.summarise(request).await
    }

    /// Leaves the conversation of a key for a new one that begins with its summary: the next run passes that on before its
    /// prompt, once, also after a crash in between. The conversation before stays as it is, in the past of the key as
    /// `compacted`, and may be joined again.
    ///
    /// # Errors
    /// [`SummaryError`]; nothing was changed.
    ///
    /// # Cancel safety
    /// As [`summarise`](Self::summarise). The record is written once: a dropped future leaves it as it was, or compacted.
    pub async fn compact(&self, request: &SummaryRequest) -> Result<Compacted, SummaryError> {
        self.0.compact(request).await
    }

    /// Hands the conversation of a key, or a part of it, over to another key, of whatever agent and mailbox: the next run of that
    /// one passes the summary on before its prompt, once. The conversation itself is not touched.
    ///
    /// # Errors
    /// [`SummaryError`]; nothing was changed.
    ///
    /// # Cancel safety
    /// As [`summarise`](Self::summarise). The other record is written once.
    pub async fn hand_over_to(
        &self,
        request: &SummaryRequest,
        to: &SessionKey,
    ) -> Result<HandedOver, SummaryError> {
        self.0.hand_over_to(request, to).await
    }

    /// Reads the audit log of a key, oldest first, after the given number.
    ///
    /// # Errors
    /// [`StoreError`] when the store could not be asked.
    pub async fn audit(
        &self,
        key: &SessionKey,
        after: Option<AuditSeq>,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        self.0.audit(key, after).await
    }
}

/// Builds [`Sessions`].
#[derive(Debug, Clone)]
#[must_use]
pub struct SessionsBuilder(pub(crate) Lifecycle);

impl SessionsBuilder {
    /// Adds an agent; one with the same id is replaced.
    pub fn agent(self, agent: impl Into<Agent>) -> Self {
        Self(self.0.agent(agent.into()))
    }

    /// Sets whether sessions are resumed at all. Without it, they are.
    pub fn resume_setting(self, setting: ResumeSetting) -> Self {
        Self(self.0.resume_setting(setting))
    }

    /// Sets how long a session may lie unused and still be resumed. Without it, for ever.
    pub fn max_session_age(self, limit: Duration) -> Self {
        Self(self.0.max_session_age(limit))
    }

    /// Sets up to which size in bytes a session is resumed: an agent reads it whole, and may hang at gigabytes. One that is
    /// larger stands aside as [`Why::TooLarge`](crate::Why::TooLarge): a run that prefers to resume begins a new session and
    /// says so, one that requires it is refused. Whoever wants a warning alone finds the size in
    /// [`SessionEntry::bytes`](crate::history::SessionEntry::bytes). Without it, any size.
    pub fn max_session_bytes(self, limit: u64) -> Self {
        Self(self.0.max_session_bytes(limit))
    }

    /// Sets whether each key gets a state dir of its own from the store (the default), or agents keep their
    /// sessions at their own place in the home directory.
    pub fn state_dirs(self, yes: bool) -> Self {
        Self(self.0.state_dirs(yes))
    }

    /// Sets whether session files are mended before a run by the cures of [`Mend`](crate::core::Mend) that lose nothing
    /// (the default). Each is reported as [`Warning::Mended`](crate::Warning::Mended). Without them, Claude Code up to
    /// 2.1.197 glues its next record to a last line without an end, and 2.0.14 then loses all before it; a session of Codex
    /// that somebody archived, or that an older version added to, stands aside; a damaged database of opencode up to
    /// 1.15.12 stands in the way of every new session.
    pub fn mend_session_files(self, yes: bool) -> Self {
        Self(self.0.mend_session_files(yes))
    }

    /// Ends the building.
    #[must_use]
    pub fn build(self) -> Sessions {
        Sessions(self.0)
    }
}
