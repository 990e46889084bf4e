//! The orchestration: lease → resolve → checkpoint → run → detect → fall back → checkpoint → record → audit → release.

mod admit;
mod attempt;
mod build;
mod checkpoint;
mod clear;
mod close;
mod conclude;
mod early;
mod fork;
mod hold;
mod kept;
mod ledger;
mod list;
mod locate;
mod preamble;
mod relocate;
mod resolve;
mod rewind;
mod summarise;
mod sweep;
mod target;
mod tell;
mod tried;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::decide::{Attempt, Next, Patience, Plan, Why, next, plan};
use crate::error::{RunError, StoreError};
use crate::{
    Agent, AgentEvent, AgentId, Checkpointer, EventSink, Holder, Host, LlmRequest, LlmResult, NoSink,
    ResumeSetting, Roster, SessionKey, SessionRecord, SessionStore, codec,
};

use admit::Job;
use attempt::{Course, NotTried};
use conclude::{NeverStarted, Runs};
use ledger::Ledger;
use resolve::Scene;
use tried::Tried;

/// How often a record that changed under a held lease is read anew.
const RACES: usize = 3;
const SHORT_WAIT: Duration = Duration::from_millis(200);
const LONG_WAIT: Duration = Duration::from_secs(1);

/// Why a run ends before its conclusion.
#[derive(Debug)]
enum Halt {
    /// The record changed before anything was started.
    Raced,
    Error(RunError),
}

/// Runs prompts for mailboxes. Cheap to clone; clones share store, host and agents.
#[derive(Debug, Clone)]
pub struct Lifecycle {
    store: Arc<dyn SessionStore>,
    host: Arc<dyn Host>,
    agents: Arc<BTreeMap<AgentId, Agent>>,
    setting: ResumeSetting,
    max_age: Option<Duration>,
    max_bytes: Option<u64>,
    state_dirs: bool,
    mend: bool,
    roster: Arc<dyn Roster>,
    checkpointer: Option<Arc<dyn Checkpointer>>,
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
    /// had, the agent could not be run, or it failed. In each case a session that was bound, and that can still be
    /// continued as far as anybody knows, stays bound.
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

        // Lease, resolve. What a dropped run was still writing may come in between: then look again.
        let mut waits = |by: Option<&Holder>| sink.event(&AgentEvent::Queued { by });
        let held = self.hold(&job.key, request.limits.lease, &mut waits);
        let mut hold = request.cancel.unless_cancelled(held).await.ok_or(RunError::Cancelled)??;
        for _ in 0..RACES {
            let resolved = request.cancel.unless_cancelled(self.resolve(&job, &mut hold)).await;
            let (scene, ledger) = resolved.ok_or(RunError::Cancelled)??;
            match self.carry_out(&job, scene, ledger, sink).await {
                Err(Halt::Raced) => tracing::debug!(key = %job.key, "the record changed; resolving again"),
                Err(Halt::Error(error)) => return Err(error),
                Ok(result) => return Ok(result),
            }
        }
        Err(RunError::Busy { key: job.key, by: None })
        // Released here, whatever came of it.
    }

    /// Run, detect, fall back at most once, record, audit.
    async fn carry_out(
        &self,
        job: &Job<'_>,
        mut scene: Scene,
        mut ledger: Ledger,
        sink: &mut dyn EventSink,
    ) -> Result<LlmResult, Halt> {
        let mut course = match plan(scene.facts) {
            Plan::Resume => Course { attempt: Attempt::Resume, why: None },
            Plan::Fresh(why) if !scene.wants_fork(job, &ledger) => {
                Course { attempt: Attempt::Fresh, why: Some(why) }
            }
            Plan::Fresh(why) | Plan::Refuse(why) => {
                let end = NeverStarted { kind: "run_refused", why: Some(why), error: None };
                self.never_started(job, ledger, &[], &end).await;
                return Err(Halt::Error(RunError::Refused { why }));
            }
        };
        let mut earlier: Vec<Tried> = Vec::new();
        let began = self.host.now();
        let (last, why, failure) = loop {
            let tried = match self.attempt(job, &mut scene, &mut ledger, course, sink).await {
                Ok(tried) => tried,
                Err(NotTried::Raced) => return Err(Halt::Raced),
                // No attempt before this one reached the model.
                Err(NotTried::LostLease) => return Err(Halt::Error(self.lost(&job.key).await)),
                Err(NotTried::Agent(error)) => {
                    let end = NeverStarted { kind: "run_failed", why: course.why, error: Some(&error) };
                    self.never_started(job, ledger, &earlier, &end).await;
                    return Err(Halt::Error(RunError::Agent(error)));
                }
            };
            let waited = self.host.now().since(began);
            let left = job.request.limits.busy.saturating_sub(waited);
            match next(tried.facts(if left.is_zero() { Patience::Spent } else { Patience::Left })) {
                Next::Accept => break (tried, course.why, None),
                Next::AcceptAsFresh(why) => break (tried, Some(why), None),
                Next::Fail(why) => break (tried, course.why, Some(why)),
                Next::Wait => {
                    sink.event(&AgentEvent::Waiting { why: Why::SessionBusy });
                    self.host.sleep((waited / 2).clamp(SHORT_WAIT, LONG_WAIT).min(left)).await;
                    // Of many tries for a busy session, the last one says enough.
                    earlier.clear();
                }
                Next::FallBack(why) => {
                    tracing::info!(key = %job.key, why = why.code(), "falling back to a fresh session");
                    sink.event(&AgentEvent::FellBack { why });
                    course = Course { attempt: Attempt::Fallback, why: Some(why) };
                }
            }
            earlier.push(tried);
        };
        let runs = Runs { earlier, last };
        self.conclude(job, scene, ledger, runs, why, failure).await.map_err(Halt::Error)
    }

    /// Reads the record of a key; `None` when there is none, or none that this version can read.
    ///
    /// # Errors
    /// [`StoreError`] when the store could not be asked.
    pub async fn record(&self, key: &SessionKey) -> Result<Option<SessionRecord>, StoreError> {
        Ok(self.decoded(key).await?.and_then(|decoded| match decoded {
            codec::Decoded::Record(record) => Some(*record),
            codec::Decoded::Newer(_) | codec::Decoded::Corrupt(_) => None,
        }))
    }

    /// What the record of a key is; `None` when there is none.
    async fn decoded(&self, key: &SessionKey) -> Result<Option<codec::Decoded>, StoreError> {
        let stored = self.store.load(key).await?;
        Ok(stored.map(|stored| codec::decode(&stored.document, key)))
    }
}
