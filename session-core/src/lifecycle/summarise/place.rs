//! Puts a summary where the next run of a key finds it: of the same key, or of another one.

use crate::error::{HandOverError, SummaryError};
use crate::{Compacted, HandedOver, Phase, Preamble, Recorded, SessionKey, Summary, SummaryRequest};

use super::super::Lifecycle;
use super::super::kept::{Kept, NotKept};
use super::super::ledger::COMPACTED;

const HANDED_OVER: &str = "handed_over";

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
        let mut kept = self.keep_settled(key).await?;
        if let Some(waiting) = &kept.record.preamble {
            return Err(SummaryError::Pending { key: key.clone(), why: waiting.why.clone() });
        }
        let no_session =
            || SummaryError::Read { key: key.clone(), source: HandOverError::NoSession { key: key.clone() } };
        let binding = kept.record.binding.take().filter(|binding| binding.phase != Phase::Closed);
        let binding = binding.ok_or_else(no_session)?;
        let mut summary = self.summary(request, true).await?;
        let why = binding.poisoned.as_deref().unwrap_or(COMPACTED);
        kept.record.retire(&binding, why, self.host.now(), true);
        if let Some(former) = kept.record.past.last_mut() {
            former.failed_resumes = kept.record.failed_resumes;
        }
        kept.record.failed_resumes = 0;
        self.pass_on(&mut kept, &summary, COMPACTED).await?;
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
        let mut kept = self.keep_settled(to).await?;
        let others = |waiting: &&Preamble| waiting.from != *from || waiting.why != HANDED_OVER;
        if let Some(waiting) = kept.record.preamble.as_ref().filter(others) {
            return Err(SummaryError::Pending { key: to.clone(), why: waiting.why.clone() });
        }
        self.pass_on(&mut kept, &summary, HANDED_OVER).await?;
        let told = self.told(HANDED_OVER, to, &summary, Some(from)).await;
        let audit_seq = told.map_err(|warning| summary.warnings.push(warning)).ok();
        let told = self.told(HANDED_OVER, from, &summary, Some(to)).await;
        summary.warnings.extend(told.err());
        Ok(HandedOver { summary, to: to.clone(), audit_seq })
    }

    /// Writes a summary into a record, to go before the next prompt.
    async fn pass_on(&self, kept: &mut Kept, summary: &Summary, why: &str) -> Result<(), SummaryError> {
        kept.record.preamble = Some(Preamble {
            text: summary.text.clone(),
            why: why.to_owned(),
            from: summary.key.clone(),
            session: summary.session.clone(),
            at: self.host.now(),
            given: Vec::new(),
            extra: serde_json::Map::new(),
        });
        self.write_down(kept).await
    }

    /// Takes the lease of a key, and its record, where no run of it is unsettled.
    pub(super) async fn keep_settled(&self, key: &SessionKey) -> Result<Kept, SummaryError> {
        let kept = self.take_up(key).await.map_err(|not_kept| match not_kept {
            NotKept::Busy(by) => SummaryError::Busy { key: key.clone(), by },
            NotKept::Store(error) => SummaryError::Store(error),
            NotKept::Newer(_) | NotKept::Unreadable(_) => SummaryError::Record { key: key.clone() },
        })?;
        if kept.record.in_flight.is_some() || kept.record.candidate.is_some() {
            return Err(SummaryError::Unsettled { key: key.clone() });
        }
        Ok(kept)
    }

    /// Writes a record.
    pub(super) async fn write_down(&self, kept: &mut Kept) -> Result<(), SummaryError> {
        kept.record.updated_at = self.host.now();
        kept.changed = true;
        match self.write(kept).await {
            Recorded::Saved => Ok(()),
            Recorded::Failed(error) => Err(SummaryError::Store(error)),
            Recorded::Withheld(_) | Recorded::LostRace | Recorded::LostLease => {
                Err(SummaryError::Busy { key: kept.record.key.clone(), by: None })
            }
        }
    }
}
