//! The orchestration: lease → resolve → run → detect → fall back → record → audit → release.

mod admit;
mod attempt;
mod build;
mod conclude;
mod ledger;
mod resolve;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::decide::{Attempt, Next, Patience, Plan, next, plan};
use crate::error::{RunError, StoreError};
use crate::{
    Agent, AgentEvent, AgentId, AuditEntry, AuditSeq, EventSink, Host, Lease, LlmRequest, LlmResult, NoSink,
    ResumeSetting, SessionKey, SessionRecord, SessionStore, codec,
};

use attempt::Course;

/// The right to run, or the reason why nobody can tell who has it.
#[derive(Debug)]
enum Hold {
    Held(#[expect(dead_code, reason = "held until it is dropped")] Lease),
    Unavailable(StoreError),
    Told,
}

impl Hold {
    fn take_error(&mut self) -> Option<StoreError> {
        match self {
            Self::Unavailable(_) => match std::mem::replace(self, Self::Told) {
                Self::Unavailable(error) => Some(error),
                Self::Held(_) | Self::Told => None,
            },
            Self::Held(_) | Self::Told => None,
        }
    }
}

/// Runs prompts for mailboxes. Cheap to clone; clones share store, host and agents.
#[derive(Debug, Clone)]
pub struct Lifecycle {
    store: Arc<dyn SessionStore>,
    host: Arc<dyn Host>,
    agents: Arc<BTreeMap<AgentId, Agent>>,
    setting: ResumeSetting,
    max_age: Option<Duration>,
    state_dirs: bool,
    mend: bool,
}

impl Lifecycle {
    /// Runs a request. See [`run_with`](Self::run_with).
    ///
    /// # Errors
    /// As [`run_with`](Self::run_with).
    pub async fn run(&self, request: LlmRequest) -> Result<LlmResult, RunError> {
        self.run_with(request, &mut NoSink).await
    }

    /// Runs a request: continues the mailbox's conversation, or begins one and says why.
    ///
    /// # Errors
    /// [`RunError`]: the request cannot be run, another runner has the key, a resume was required and cannot be
    /// had, the agent could not be run, or it failed. In each case the session that was bound stays bound,
    /// unless the failed run itself is its continuation under a new id.
    ///
    /// # Cancel safety
    /// Dropping the future ends the agent and everything it started, at once, and releases the lease. The
    /// record then says that a run was under way, and the next run looks what it left. To end a run in order,
    /// use [`LlmRequest::cancel`].
    #[tracing::instrument(skip_all, fields(session = tracing::field::Empty))]
    pub async fn run_with(
        &self,
        request: LlmRequest,
        sink: &mut dyn EventSink,
    ) -> Result<LlmResult, RunError> {
        let job = self.admit(&request).map_err(RunError::Request)?;
        tracing::Span::current().record("session", tracing::field::display(&job.key));

        // Lease, resolve.
        let mut hold = self.hold(&job.key).await?;
        let (mut scene, mut ledger) = self.resolve(&job, &mut hold).await?;
        let mut course = match plan(scene.facts) {
            Plan::Resume => Course { attempt: Attempt::Resume, why: None },
            Plan::Fresh(why) => Course { attempt: Attempt::Fresh, why: Some(why) },
            Plan::Refuse(why) => {
                self.never_started(&job, scene, ledger, "run_refused", Some(why), None).await;
                return Err(RunError::Refused { why });
            }
        };

        // Run, detect, fall back at most once.
        let mut earlier = Vec::new();
        let mut waited = Duration::ZERO;
        let (last, why, failure) = loop {
            let tried = match self.attempt(&job, &mut scene, &mut ledger, course, sink).await {
                Ok(tried) => tried,
                Err(error) => {
                    let cause = if let RunError::Agent(cause) = &error { Some(cause) } else { None };
                    self.never_started(&job, scene, ledger, "run_failed", None, cause).await;
                    return Err(error);
                }
            };
            let patience = if waited < request.limits.busy { Patience::Left } else { Patience::Spent };
            match next(tried.facts(patience)) {
                Next::Accept => break (tried, course.why, None),
                Next::AcceptAsFresh(why) => break (tried, Some(why), None),
                Next::Fail(why) => break (tried, course.why, Some(why)),
                Next::Wait => {
                    sink.event(&AgentEvent::Waiting { why: crate::decide::Why::SessionBusy });
                    let step = (waited / 2).clamp(Duration::from_millis(200), Duration::from_secs(4));
                    self.host.sleep(step.min(request.limits.busy - waited)).await;
                    waited += step;
                }
                Next::FallBack(why) => {
                    tracing::info!(key = %job.key, why = why.code(), "falling back to a fresh session");
                    sink.event(&conclude::fell_back(why));
                    course = Course { attempt: Attempt::Fallback, why: Some(why) };
                }
            }
            earlier.push(tried);
        };

        // Record, audit, release.
        let outcome =
            self.conclude(&job, scene, ledger, conclude::Course { earlier, last }, why, failure).await;
        drop(hold);
        outcome
    }

    /// Reads the record of a key; `None` when there is none, or none that this version can read.
    ///
    /// # Errors
    /// [`StoreError`] when the store could not be asked.
    pub async fn record(&self, key: &SessionKey) -> Result<Option<SessionRecord>, StoreError> {
        let stored = self.store.load(key).await?;
        Ok(stored.and_then(|stored| match codec::decode(&stored.document, key) {
            codec::Decoded::Record(record) => Some(*record),
            codec::Decoded::Newer(_) | codec::Decoded::Corrupt(_) => None,
        }))
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
        self.store.audit(key, after).await
    }
}
