//! A record that is written outside of a run: taken up under its key's lease, changed, and written back.

use std::time::Duration;

use crate::decide::Why;
use crate::error::{RunError, StoreError, StoreErrorKind};
use crate::{
    Binding, Candidate, Guard, Holder, Lease, Recorded, RunId, Saved, SessionKey, SessionRecord, Timestamp,
    Warning, codec,
};

use super::Lifecycle;
use super::hold::Hold;
use super::ledger::{COMPACTED, FAILING};

/// Why a record was not taken up.
#[derive(Debug)]
pub(super) enum NotKept {
    /// Somebody else has the key.
    Busy(Option<Holder>),
    /// The store could not be asked.
    Store(StoreError),
    /// A newer version wrote it, in this format, where that is known.
    Newer(Option<String>),
    /// It cannot be read, for this reason.
    Unreadable(String),
}

/// A record that is held, and the right to write it.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) lease: Lease,
    pub(super) record: SessionRecord,
    pub(super) guard: Guard,
    /// Whether the record is not as it is in the store.
    pub(super) changed: bool,
    /// Whether nobody can tell what is in the store.
    pub(super) in_doubt: bool,
}

impl Kept {
    /// The session that the next run continues, as far as the record tells.
    pub(super) fn present(&self) -> Option<&Binding> {
        present(&self.record)
    }

    /// What a run began beside the session in force, and that the next run may take up in its place.
    pub(super) fn rival(&self) -> Option<&Candidate> {
        let in_force = self.record.binding.as_ref()?;
        let candidate = self.record.candidate.as_ref();
        candidate.filter(|candidate| candidate.binding.native_id != in_force.native_id)
    }

    /// Drops a summary of the key's own conversation that waits for a new one to begin with it: that one is not to begin any
    /// more. What others handed over still waits.
    pub(super) fn forget_summary(&mut self) {
        if self.record.preamble.as_ref().is_some_and(|waiting| waiting.why == COMPACTED) {
            self.record.preamble = None;
            self.changed = true;
        }
    }

    /// Puts a session in force, or none. What was in force moves to the past for this reason, and can be rejoined.
    pub(super) fn put_in_force(&mut self, binding: Option<Binding>, why: &str, now: Timestamp) {
        let record = &mut self.record;
        let failed_resumes = std::mem::take(&mut record.failed_resumes);
        if let Some(binding) = &binding
            && let Some(at) = record.past.iter().rposition(|former| former.native_id == binding.native_id)
        {
            record.failed_resumes = record.past.remove(at).failed_resumes;
        }
        let is_left =
            |old: &Binding| binding.as_ref().is_none_or(|binding| binding.native_id != old.native_id);
        if let Some(candidate) = record.candidate.take().filter(|candidate| is_left(&candidate.binding)) {
            put_aside(record, (&candidate.binding, 0), why, now);
        }
        if let Some(old) = record.binding.take().filter(is_left) {
            put_aside(record, (&old, failed_resumes), why, now);
        }
        record.binding = binding;
        self.forget_summary();
        let record = &mut self.record;
        record.updated_at = now;
        self.changed = true;
    }

    /// Notes the rewinds that came to their end, whatever becomes of the checkpoint after the last one. A key that has no record
    /// gets none for that.
    pub(super) fn note_rewinds(&mut self, steps: Vec<RunId>, now: Timestamp) {
        self.record.went_back = steps;
        self.record.updated_at = now;
        self.changed |= self.guard != Guard::Absent;
    }

    /// Whether the next run would not continue the session in force.
    pub(super) fn begins_anew(&self) -> Option<Warning> {
        let binding = self.record.binding.as_ref()?;
        let failing = self.record.failed_resumes >= FAILING;
        let failing = failing.then_some(Why::ResumeKeepsFailing.code());
        binding.poisoned.as_deref().or(failing).map(|code| Warning::BeginsAnew(code.to_owned()))
    }

    /// Puts aside what a dead runner began beside the session in force: the next run would take it up.
    pub(super) fn put_rival_aside(&mut self, why: &str, now: Timestamp) {
        if self.rival().is_none() {
            return;
        }
        let record = &mut self.record;
        let Some(candidate) = record.candidate.take() else { return };
        put_aside(record, (&candidate.binding, 0), why, now);
        record.updated_at = now;
        self.changed = true;
    }
}

/// Moves a session with its failed resumes to the past, where it is not there yet; it can be rejoined.
fn put_aside(record: &mut SessionRecord, (old, failed_resumes): (&Binding, u32), why: &str, now: Timestamp) {
    if record.past.iter().any(|former| former.native_id == old.native_id) {
        return;
    }
    record.retire(old, why, now, true);
    if let Some(former) = record.past.last_mut() {
        former.failed_resumes = failed_resumes;
    }
}

pub(super) fn present(record: &SessionRecord) -> Option<&Binding> {
    record.binding.as_ref().or(record.candidate.as_ref().map(|candidate| &candidate.binding))
}

impl Lifecycle {
    /// Takes the lease of a key, at once or not at all, and reads its record; a new one where there is none.
    pub(super) async fn take_up(&self, key: &SessionKey) -> Result<Kept, NotKept> {
        let lease = match self.hold(key, Duration::ZERO, &mut |_| {}).await {
            Ok(Hold::Held(lease)) => lease,
            Ok(Hold::Unavailable(error)) => return Err(NotKept::Store(error)),
            Err(RunError::Busy { by, .. }) => return Err(NotKept::Busy(by)),
            Ok(Hold::Told) | Err(_) => return Err(NotKept::Busy(None)),
        };
        let stored = self.store.load(key).await.map_err(|error| match error.kind() {
            StoreErrorKind::Newer => NotKept::Newer(None),
            StoreErrorKind::Corrupt => NotKept::Unreadable(error.to_string()),
            _ => NotKept::Store(error),
        })?;
        let (record, guard) = match stored {
            None => (SessionRecord::new(key.clone(), self.host.now()), Guard::Absent),
            Some(stored) => match codec::decode(&stored.document, key) {
                codec::Decoded::Record(record) => (*record, Guard::Revision(stored.revision)),
                codec::Decoded::Newer(format) => return Err(NotKept::Newer(Some(format.to_string()))),
                codec::Decoded::Corrupt(why) => return Err(NotKept::Unreadable(why)),
            },
        };
        Ok(Kept { lease, record, guard, changed: false, in_doubt: false })
    }

    /// Writes a record that changed, and says whether it is in the store.
    pub(super) async fn write(&self, kept: &mut Kept) -> Recorded {
        if !kept.changed {
            return Recorded::Saved;
        }
        let key = kept.record.key.clone();
        let document = codec::encode(&kept.record);
        match self.store.save(&key, &document, &kept.guard, Some(&kept.lease)).await {
            Ok(Saved::Done(revision)) => {
                (kept.guard, kept.changed) = (Guard::Revision(revision), false);
                Recorded::Saved
            }
            Ok(Saved::Refused { .. }) => Recorded::LostRace,
            Ok(Saved::Fenced { .. }) => Recorded::LostLease,
            Err(error) => {
                tracing::error!(%key, %error, "the record could not be written");
                // It may have arrived all the same.
                match self.store.load(&key).await {
                    Ok(Some(stored)) if stored.document == document => {
                        (kept.guard, kept.changed) = (Guard::Revision(stored.revision), false);
                        Recorded::Saved
                    }
                    Ok(_) => Recorded::Failed(error),
                    Err(_) => {
                        kept.in_doubt = true;
                        Recorded::Failed(error)
                    }
                }
            }
        }
    }
}
