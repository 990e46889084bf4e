//! The end of a mailbox: a tombstone, then the record, then the state.

use std::time::Duration;

use crate::decide::Why;
use crate::error::{CheckpointError, RunError, StoreError, StoreErrorKind};
use crate::{
    AuditEvent, CloseError, Closed, Closing, Disposed, Forget, Guard, Lease, LeaseOutcome, Leftover,
    LeftoverKind, MailboxId, MailboxNotClosed, NativeId, Removed, RunId, Saved, SessionKey, SessionRecord,
    SweepOutcome, Tombstone, codec,
};

use super::Lifecycle;
use super::hold::Hold;

/// A key whose lease is held, and what is to be removed of it.
#[derive(Debug)]
pub(super) struct Doomed<'a> {
    pub(super) key: &'a SessionKey,
    pub(super) lease: &'a Lease,
    pub(super) record: Option<SessionRecord>,
    /// Under which condition there is a record to remove.
    pub(super) guard: Option<Guard>,
}

impl Lifecycle {
    /// Closes a mailbox for every registered agent, one after the other, also where one of them fails. See
    /// [`close`](Self::close).
    ///
    /// # Errors
    /// [`MailboxNotClosed`] names every agent for which it could not be closed, and those for which it is.
    ///
    /// # Cancel safety
    /// As [`close`](Self::close).
    pub async fn close_mailbox(
        &self,
        mailbox: &str,
        closing: Closing,
    ) -> Result<Vec<Closed>, MailboxNotClosed> {
        let mailbox = MailboxId::new(mailbox).map_err(MailboxNotClosed::Name)?;
        let (mut closed, mut failed) = (Vec::new(), Vec::new());
        for agent in self.agents.keys() {
            let key = SessionKey { mailbox: mailbox.clone(), agent: agent.clone() };
            match self.close(&key, closing).await {
                Ok(done) => closed.push(done),
                Err(error) => failed.push(error),
            }
        }
        let mut failed = failed.into_iter();
        match failed.next() {
            None => Ok(closed),
            Some(first) => {
                Err(MailboxNotClosed::Agents { closed, source: Box::new(first), others: failed.collect() })
            }
        }
    }

    /// Closes a key: its record, its state dir and its checkpoints are removed, its audit log stays and says so. A later run of the key
    /// starts anew and inherits nothing. What a dead runner left is ended first, where its agent is registered. Sessions
    /// that the agent keeps in its own place, without a state dir, are the user's and stay; a record that cannot be read
    /// stays where it was set aside.
    ///
    /// # Errors
    /// [`CloseError`]: a run is under way, a newer version wrote the record, or the store failed.
    ///
    /// # Cancel safety
    /// A dropped future may leave a key that is closed in part: closing it again finishes that, and a run in between
    /// starts anew.
    #[tracing::instrument(skip_all, fields(%key, %closing))]
    pub async fn close(&self, key: &SessionKey, closing: Closing) -> Result<Closed, CloseError> {
        // A name that was mistyped leaves nothing behind, not even a lock.
        if self.is_unknown(key).await? {
            return Ok(Closed {
                key: key.clone(),
                session: None,
                candidate: None,
                ended: 0,
                state_removed: false,
                checkpoints: self.checkpointer.as_ref().map(|_| 0),
            });
        }
        let lease = match self.hold(key, Duration::ZERO, &mut |_| {}).await {
            Ok(Hold::Held(lease)) => lease,
            Ok(Hold::Unavailable(source)) => return Err(CloseError::Store { key: key.clone(), source }),
            Err(RunError::Busy { by, .. }) => return Err(CloseError::Busy { key: key.clone(), by }),
            Ok(Hold::Told) | Err(_) => return Err(CloseError::Busy { key: key.clone(), by: None }),
        };
        let (record, guard) = self.to_be_closed(key).await?;
        self.end(Doomed { key, lease: &lease, record, guard }, closing).await
    }

    /// Whether there is nothing of a key: no runner, no record, no state, and no word of an end that was begun and cut off.
    async fn is_unknown(&self, key: &SessionKey) -> Result<bool, CloseError> {
        let failed = |source: StoreError| CloseError::Store { key: key.clone(), source };
        if self.store.was_leased(key).await.map_err(failed)? {
            return Ok(false);
        }
        match self.store.load(key).await {
            Ok(None) => {}
            // What cannot be read is there; what nobody can read is told by who holds the key.
            Ok(Some(_)) | Err(_) => return Ok(false),
        }
        if self.store.state_size(key).await.map_err(failed)?.is_some() {
            return Ok(false);
        }
        let log = self.store.audit(key, None).await.map_err(failed)?;
        Ok(log.last().is_none_or(|entry| entry.event.kind != CLOSING))
    }

    /// Removes a key whose lease is held: what runs, a word, the record, the state, another word.
    pub(super) async fn end(&self, doomed: Doomed<'_>, closing: Closing) -> Result<Closed, CloseError> {
        let Doomed { key, lease, record, mut guard } = doomed;
        let failed = |source: StoreError| CloseError::Store { key: key.clone(), source };
        if let (Some(record), Some(of)) = (&record, &guard) {
            // Only who has the key still may end what runs, and take its state away.
            match self.store.save(key, &codec::encode(record), of, Some(lease)).await {
                Ok(Saved::Done(revision)) => guard = Some(Guard::Revision(revision)),
                Ok(Saved::Refused { .. } | Saved::Fenced { .. }) => {
                    return Err(CloseError::Busy { key: key.clone(), by: None });
                }
                // A full disk takes no record, and is what room is to be made on. Nothing is ended here, and the rest has
                // conditions of its own: the guard, and the lease of who removes the state.
                Err(error) if record.in_flight.is_none() && error.kind() == StoreErrorKind::Unavailable => {
                    tracing::warn!(%error, "a key is closed without a last word in its record");
                }
                Err(error) => return Err(failed(error)),
            }
        }
        let ended = match record.as_ref().and_then(|record| record.in_flight.as_ref()) {
            Some(in_flight) => match self.agents.get(&key.agent) {
                Some(agent) => agent.adapter().reap(in_flight.run).await,
                None => 0,
            },
            None => 0,
        };
        let (session, candidate) = sessions_of(record);
        let run = RunId::new(self.host.random_id());
        let tombstone = |kind| {
            let mut event = self.tombstone(run, kind, closing);
            event.before.clone_from(&session);
            event.candidate.clone_from(&candidate);
            event
        };
        // One that was cut off is finished, with its word at the end.
        let began = match guard {
            Some(_) => true,
            None => {
                let log = self.store.audit(key, None).await.map_err(failed)?;
                log.last().is_some_and(|entry| entry.event.kind == CLOSING)
            }
        };
        if guard.is_some() {
            // First of all: nothing goes without a word.
            self.store.append_audit(key, &tombstone(CLOSING)).await.map_err(failed)?;
        }
        // Before the record: what is left of them is found by it.
        let not_forgotten = |source| CloseError::Checkpoints { key: key.clone(), source };
        let checkpoints = self.forget_checkpoints(key).await.map_err(not_forgotten)?;
        if let Some(guard) = guard {
            match self.store.remove(key, &guard).await.map_err(failed)? {
                Removed::Done | Removed::NothingThere => {}
                Removed::Refused { .. } => return Err(CloseError::Busy { key: key.clone(), by: None }),
            }
        }
        let state_removed = self.store.remove_state(key, lease).await.map_err(failed)?;
        if began || state_removed || checkpoints.is_some_and(|gone| gone > 0) {
            self.store.append_audit(key, &tombstone(CLOSED)).await.map_err(failed)?;
        }
        tracing::info!(?session, state_removed, ended, checkpoints, "closed");
        Ok(Closed { key: key.clone(), session, candidate, ended, state_removed, checkpoints })
    }

    /// Drops all checkpoints of a key, and says how many there were. `None`: there is no checkpointer, so nobody knows of any.
    async fn forget_checkpoints(&self, key: &SessionKey) -> Result<Option<u64>, CheckpointError> {
        match &self.checkpointer {
            Some(checkpointer) => Ok(Some(checkpointer.forget(key, Forget::All).await?.checkpoints)),
            None => Ok(None),
        }
    }

    /// Removes what has no record, in a sweep, with the checkpoints of its key. These first: what is left of them is found by
    /// the state alone.
    pub(super) async fn remove_leftover(&self, leftover: &Leftover, closing: Closing) -> SweepOutcome {
        if let (Some(key), LeftoverKind::State) = (&leftover.key, leftover.kind)
            && let Err(outcome) = self.forget_those_of_a_leftover(key, leftover).await
        {
            return outcome;
        }
        let run = RunId::new(self.host.random_id());
        let event = |kind| self.tombstone(run, kind, closing);
        let tombstone =
            Tombstone { holder: self.host.holder(), before: event(CLOSING), after: event(CLOSED) };
        match self.store.remove_leftover(leftover, &tombstone).await {
            Ok(Disposed::Removed | Disposed::NothingThere) => SweepOutcome::Removed,
            Ok(Disposed::Busy { by }) => SweepOutcome::Busy { by },
            Ok(Disposed::Changed) => SweepOutcome::Changed,
            Err(error) => SweepOutcome::Failed(error),
        }
    }

    /// Drops the checkpoints of a key whose state has no record, under its lease, where nobody took it up since it was listed. The
    /// store takes the lease anew to remove the state: a run in between finds none of what was before.
    async fn forget_those_of_a_leftover(
        &self,
        key: &SessionKey,
        leftover: &Leftover,
    ) -> Result<(), SweepOutcome> {
        if self.checkpointer.is_none() {
            return Ok(());
        }
        let _lease = match self.store.lease(key, &self.host.holder()).await {
            Ok(LeaseOutcome::Held(lease)) => lease,
            Ok(LeaseOutcome::Busy { by }) => return Err(SweepOutcome::Busy { by }),
            Err(error) => return Err(SweepOutcome::Failed(error)),
        };
        let stored = self.store.load(key).await.map_err(SweepOutcome::Failed)?;
        let size = self.store.state_size(key).await.map_err(SweepOutcome::Failed)?;
        if stored.is_some() || size.is_some_and(|size| size.changed_at > leftover.last_used) {
            return Err(SweepOutcome::Changed);
        }
        self.forget_checkpoints(key).await.map(drop).map_err(SweepOutcome::NotForgotten)
    }

    /// An event of the end of a key.
    pub(super) fn tombstone(&self, run: RunId, kind: &str, closing: Closing) -> AuditEvent {
        let mut event = AuditEvent::new(self.host.now(), run, kind);
        event.detail = Some(closing.code().to_owned());
        event
    }

    /// The record, where it can be read, and the guard of its removal, where there is something to remove. What nobody can
    /// read is set aside first, as before a run.
    async fn to_be_closed(
        &self,
        key: &SessionKey,
    ) -> Result<(Option<SessionRecord>, Option<Guard>), CloseError> {
        let failed = |source: StoreError| CloseError::Store { key: key.clone(), source };
        let newer = || CloseError::Newer { key: key.clone() };
        let unreadable = match self.store.load(key).await {
            Ok(None) => return Ok((None, None)),
            Ok(Some(stored)) => match codec::decode(&stored.document, key) {
                codec::Decoded::Record(record) => {
                    return Ok((Some(*record), Some(Guard::Revision(stored.revision))));
                }
                codec::Decoded::Newer(_) => return Err(newer()),
                codec::Decoded::Corrupt(_) => Guard::Revision(stored.revision),
            },
            Err(error) if error.kind() == StoreErrorKind::Corrupt => Guard::Any,
            Err(error) if error.kind() == StoreErrorKind::Newer => return Err(newer()),
            Err(error) => return Err(failed(error)),
        };
        let place = self.store.set_aside(key, &unreadable).await.map_err(failed)?;
        tracing::warn!(%key, ?place, why = Why::RecordCorrupt.code(), "a record was set aside");
        Ok((None, Some(Guard::Any)))
    }
}

const CLOSING: &str = "mailbox_closing";
const CLOSED: &str = "mailbox_closed";

/// The session in force, and one that was begun and never settled.
fn sessions_of(record: Option<SessionRecord>) -> (Option<NativeId>, Option<NativeId>) {
    let (binding, candidate) = record.map_or((None, None), |record| (record.binding, record.candidate));
    (binding.map(|binding| binding.native_id), candidate.map(|candidate| candidate.binding.native_id))
}
