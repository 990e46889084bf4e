//! The end of a mailbox in a walk.

use session_core::{CloseError, Closing};

use super::invariant::{Invariant, Violation, ensure};
use super::key;
use super::model::Memory;
use super::step::Fault;
use super::walk::{Record, Walk};

impl Walk<'_> {
    /// Closes a mailbox, until that is done, has failed, or the one who does it dies.
    pub(super) async fn close(&mut self, mailbox: usize, fault: Option<Fault>) -> Result<(), Violation> {
        let before = self.stored(mailbox).await;
        let (lifecycle, shared, key) = (self.lifecycle.clone(), self.shared.clone(), key(mailbox));
        self.hand.set(fault);
        let closed = tokio::select! {
            biased;
            closed = lifecycle.close(&key, Closing::Done) => Some(closed),
            () = shared.stopped().notified() => None,
        };
        self.hand.set(None);
        let after = self.stored(mailbox).await;
        let log = match self.inner.audit(&key, None).await {
            Ok(log) => log,
            Err(error) => panic!("the log cannot be read: {error}"),
        };
        let last = log.last().map(|entry| entry.event.kind.as_str());
        let own = &mut self.mailboxes[mailbox];
        let holds = |holds, what: &str| {
            ensure(holds, Invariant::AClosedMailboxIsForgotten, || {
                format!("{what}: {closed:?}, {fault:?}, {last:?}")
            })
        };
        if let Record::Newer { .. } = own.record {
            ensure(after == before, Invariant::ANewerRecordIsLeftAlone, || "it was closed".to_owned())?;
            let refused = matches!(closed, Some(Err(CloseError::Newer { .. })));
            return holds(refused || fault.is_some(), "a newer record was not refused");
        }
        match &closed {
            Some(Ok(_)) => {
                holds(after.is_none(), "the record is there")?;
                holds(before.is_none() || last == Some("mailbox_closed"), "it went without a word")?;
            }
            Some(Err(_)) | None => holds(fault.is_some(), "nothing failed")?,
        }
        if after.is_none() {
            let readable = own.record == Record::Fine;
            let told = log.iter().rev().any(|entry| entry.event.kind.starts_with("mailbox_clos"));
            holds(before.is_none() || !readable || told, "the record went without a word")?;
            if let Some(dead) = own.dead.take().filter(|_| before.is_some() && readable) {
                ensure(
                    self.shared.world().reaped.contains(&dead),
                    Invariant::WhatADeadRunnerLeftIsEnded,
                    || format!("{dead} was not reaped when its mailbox was closed"),
                )?;
            }
            (own.record, own.memories) = (Record::Fine, [Memory::default()].into());
            return Ok(());
        }
        holds(after == before, "the record is another one")
    }
}
