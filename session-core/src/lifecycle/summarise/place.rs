//! Puts a summary where the next run of a key finds it: of the same key, or of another one.

use std::time::Duration;

use crate::error::{HandOverError, RunError, StoreErrorKind, SummaryError};
use crate::{
    Compacted, Guard, HandedOver, Lease, Phase, Preamble, Saved, SessionKey, SessionRecord, Summary,
    SummaryRequest, codec,
};

use super::super::Lifecycle;
use super::super::hold::Hold;
use super::super::ledger::COMPACTED;

const HANDED_OVER: &str = "handed_over";

/// A record that may be written: its key's lease is held, and no run of it is unsettled.
#[derive(Debug)]
pub(super) struct Pen {
    pub(super) record: SessionRecord,
    guard: Guard,
    lease: Lease,
}

impl Lifecycle {
    /// Leaves the conversation of a key for a new one that begins with its summary: the next run passes that on before its
    /// prompt, once. The conversation before stays as it is: it moves to the past of the key as `compacted`, and may be joined
    /// again. Nothing is run but what the summary needs.
    ///
    /// The agents' own compactions are not used. They are commands in a prompt, which reaches the model verbatim here; they
    /// rewrite the session that they are called in, so that what was before cannot be gone on with; and they have no budget
    /// that holds.
    ///
    /// # Errors
    /// [`SummaryError`]; nothing was changed.
    ///
    /// # Cancel safety
    /// As [`summarise`](Self::summarise). The record is written once: a dropped future leaves it as it was, or compacted.
    pub async fn compact(&self, request: &SummaryRequest) -> Result<Compacted, SummaryError> {
        request.check()?;
        let key = &request.key;
        let mut pen = self.pen(key).await?;
        if let Some(waiting) = &pen.record.preamble {
            return Err(SummaryError::Pending { key: key.clone(), why: waiting.why.clone() });
        }
        let no_session =
            || SummaryError::Read { key: key.clone(), source: HandOverError::NoSession { key: key.clone() } };
        let binding = pen.record.binding.take().filter(|binding| binding.phase != Phase::Closed);
        let binding = binding.ok_or_else(no_session)?;
        let mut summary = self.summary(request, true).await?;
        let why = binding.poisoned.as_deref().unwrap_or(COMPACTED);
        pen.record.retire(&binding, why, self.host.now(), true);
        if let Some(former) = pen.record.past.last_mut() {
            former.failed_resumes = pen.record.failed_resumes;
        }
        pen.record.failed_resumes = 0;
        self.pass_on(&mut pen, &summary, COMPACTED).await?;
        let told = self.told(COMPACTED, key, &summary, None).await;
        let audit_seq = told.map_err(|warning| summary.warnings.push(warning)).ok();
        Ok(Compacted { summary, before: binding.native_id, audit_seq })
    }

    /// Hands the conversation of a key, or a part of it, over to another key, of whatever agent and mailbox: the next run of that
    /// one passes the summary on before its prompt, once. The conversation itself is not touched. Another one that waits there
    /// from the same key is replaced.
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
        request.check()?;
        let from = &request.key;
        if from == to {
            return Err(SummaryError::ToItself { key: to.clone() });
        }
        if to.is_reserved() {
            return Err(SummaryError::Record { key: to.clone() });
        }
        if !self.agents.contains_key(&to.agent) {
            let source = HandOverError::UnknownAgent { agent: to.agent.clone() };
            return Err(SummaryError::Read { key: to.clone(), source });
        }
        let mut summary = self.summary(request, false).await?;
        let mut pen = self.pen(to).await?;
        let others = |waiting: &&Preamble| waiting.from != *from || waiting.why != HANDED_OVER;
        if let Some(waiting) = pen.record.preamble.as_ref().filter(others) {
            return Err(SummaryError::Pending { key: to.clone(), why: waiting.why.clone() });
        }
        self.pass_on(&mut pen, &summary, HANDED_OVER).await?;
        let told = self.told(HANDED_OVER, to, &summary, Some(from)).await;
        let audit_seq = told.map_err(|warning| summary.warnings.push(warning)).ok();
        let told = self.told(HANDED_OVER, from, &summary, Some(to)).await;
        summary.warnings.extend(told.err());
        Ok(HandedOver { summary, to: to.clone(), audit_seq })
    }

    /// Writes a summary into a record, to go before the next prompt.
    async fn pass_on(&self, pen: &mut Pen, summary: &Summary, why: &str) -> Result<(), SummaryError> {
        pen.record.preamble = Some(Preamble {
            text: summary.text.clone(),
            why: why.to_owned(),
            from: summary.key.clone(),
            session: summary.session.clone(),
            at: self.host.now(),
            given: Vec::new(),
            extra: serde_json::Map::new(),
        });
        self.write_down(pen).await
    }

    /// Takes the lease of a key, and its record, where no run of it is unsettled.
    pub(super) async fn pen(&self, key: &SessionKey) -> Result<Pen, SummaryError> {
        let lease = match self.hold(key, Duration::ZERO, &mut |_| {}).await {
            Ok(Hold::Held(lease)) => lease,
            Ok(Hold::Unavailable(error)) => return Err(SummaryError::Store(error)),
            Err(RunError::Busy { by, .. }) => return Err(SummaryError::Busy { key: key.clone(), by }),
            Ok(Hold::Told) | Err(_) => return Err(SummaryError::Busy { key: key.clone(), by: None }),
        };
        let unreadable = || SummaryError::Record { key: key.clone() };
        let stored = self.store.load(key).await.map_err(|error| match error.kind() {
            StoreErrorKind::Corrupt | StoreErrorKind::Newer => unreadable(),
            _ => SummaryError::Store(error),
        })?;
        let Some(stored) = stored else {
            let record = SessionRecord::new(key.clone(), self.host.now());
            return Ok(Pen { record, guard: Guard::Absent, lease });
        };
        match codec::decode(&stored.document, key) {
            codec::Decoded::Record(record) if record.in_flight.is_some() || record.candidate.is_some() => {
                Err(SummaryError::Unsettled { key: key.clone() })
            }
            codec::Decoded::Record(record) => {
                Ok(Pen { record: *record, guard: Guard::Revision(stored.revision), lease })
            }
            codec::Decoded::Newer(_) | codec::Decoded::Corrupt(_) => Err(unreadable()),
        }
    }

    /// Writes a record.
    pub(super) async fn write_down(&self, pen: &mut Pen) -> Result<(), SummaryError> {
        let key = pen.record.key.clone();
        pen.record.updated_at = self.host.now();
        let document = codec::encode(&pen.record);
        match self.store.save(&key, &document, &pen.guard, Some(&pen.lease)).await {
            Ok(Saved::Done(revision)) => {
                pen.guard = Guard::Revision(revision);
                Ok(())
            }
            Ok(Saved::Refused { .. } | Saved::Fenced { .. }) => Err(SummaryError::Busy { key, by: None }),
            // It may have arrived all the same.
            Err(error) => match self.store.load(&key).await {
                Ok(Some(stored)) if stored.document == document => {
                    pen.guard = Guard::Revision(stored.revision);
                    Ok(())
                }
                Ok(_) | Err(_) => Err(SummaryError::Store(error)),
            },
        }
    }
}
