//! One run of a walk while it goes on: what is done when an attempt stops.

use std::path::Path;
use std::time::Duration;

use session_core::error::RunError;
use session_core::{Cancel, Host as _, LeaseOutcome, LlmRequest, SessionStore as _, codec};

use super::invariant::{Invariant, Violation, ensure};
use super::key;
use super::step::{Fault, Run, Then};
use super::walk::{Outcome, Record, Walk, lifecycle};

impl Walk<'_> {
    /// Runs until there is a result, or until the runner dies and what it left to the store is over.
    pub(super) async fn drive(
        &mut self,
        run: &Run,
        request: LlmRequest,
        cancel: &Cancel,
        path: &Path,
    ) -> Result<Outcome, Violation> {
        let outcome = self.until_it_stops(run, request, cancel, path).await?;
        if matches!(outcome, Outcome::Killed) {
            self.settled(run.mailbox).await?;
        }
        Ok(outcome)
    }

    /// Waits until the lease of a runner that died is free: a write that it began keeps it until it is done, and the time of
    /// these walks stands still.
    async fn settled(&self, mailbox: usize) -> Result<(), Violation> {
        for millis in (0..50).map(|_| 0).chain((0..5000).map(|_| 2)) {
            let lease = self.inner.lease(&key(mailbox), &self.host.holder()).await;
            if matches!(lease, Ok(LeaseOutcome::Held(_))) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        Err(Violation {
            invariant: Invariant::OneRunnerAtATime,
            message: "the runner is dead, and its lease is not".to_owned(),
        })
    }

    async fn until_it_stops(
        &mut self,
        run: &Run,
        request: LlmRequest,
        cancel: &Cancel,
        path: &Path,
    ) -> Result<Outcome, Violation> {
        let lifecycle = self.lifecycle.clone();
        let shared = self.shared.clone();
        let mut going = Box::pin(lifecycle.run(request));
        loop {
            tokio::select! {
                biased;
                result = &mut going => return Ok(Outcome::Done(Box::new(result))),
                () = shared.stopped().notified() => {}
            }
            if self.hand.is_dead() {
                return Ok(Outcome::Killed);
            }
            match run.then {
                Then::Kill => return Ok(Outcome::Killed),
                Then::KillLater => {
                    let noting = async { self.noting(run).await };
                    tokio::select! {
                        biased;
                        result = &mut going => return Ok(Outcome::Done(Box::new(result))),
                        noted = noting => return noted.map(|()| Outcome::Killed),
                    }
                }
                Then::Cancel => cancel.cancel(),
                Then::Release => shared.released().notify_one(),
                Then::Rival => {
                    // Without a lease nobody is told.
                    if run.fault != Some(Fault::Lease) {
                        self.rival(run, path).await?;
                    }
                    shared.released().notify_one();
                }
            }
        }
    }

    /// Waits until the session that the agent named is in the record.
    async fn noting(&self, run: &Run) -> Result<(), Violation> {
        let named = self.shared.world().attempts.last().and_then(|attempt| attempt.named.clone());
        let writable = matches!(run.fault, None | Some(Fault::Audit));
        let Some(named) = named.filter(|_| writable && self.mailboxes[run.mailbox].record == Record::Fine)
        else {
            return Ok(());
        };
        // A store may take its time; the agent waits.
        for millis in (0..50).map(|_| 0).chain((0..1000).map(|_| 2)) {
            let document = self.stored(run.mailbox).await;
            let record = document.map(|document| codec::decode(&document, &key(run.mailbox)));
            if let Some(codec::Decoded::Record(record)) = record {
                let candidate = record.candidate.map(|candidate| candidate.binding.native_id);
                let known = record.past.into_iter().map(|former| former.native_id);
                let known = known.chain(record.binding.map(|binding| binding.native_id)).chain(candidate);
                if known.into_iter().any(|id| id.as_str() == named) {
                    return Ok(());
                }
            }
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        Err(Violation {
            invariant: Invariant::ANamedSessionIsNoted,
            message: format!("{named} is not in the record"),
        })
    }

    /// A second runner, while the first one is at it.
    async fn rival(&mut self, run: &Run, path: &Path) -> Result<(), Violation> {
        let began = self.shared.world().attempts.len();
        let request = self.request(run, path, &Cancel::new());
        let second = lifecycle(self.inner.clone(), &self.host, &self.shared, (&self.setup, self.wrap));
        let result = tokio::select! {
            biased;
            result = second.run(request) => Some(result),
            () = self.shared.stopped().notified() => None,
        };
        let tried = self.shared.world().attempts.len() - began;
        let busy = matches!(&result, Some(Err(RunError::Busy { key: of, .. })) if *of == key(run.mailbox));
        ensure(busy && tried == 0, Invariant::OneRunnerAtATime, || {
            format!("{tried} attempts, and {result:?}")
        })
    }
}
