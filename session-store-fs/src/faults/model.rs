//! What the store has promised so far.

use std::path::PathBuf;

use session_core::{
    AuditEntry, AuditEvent, AuditSeq, Document, Guard, Lease, LeaseOutcome, Removed, Revision, Saved,
    SessionKey, Stored,
};

use super::act::{Act, Answer, What, key};
use super::history::KEYS;

/// What does not hold, in words.
pub(super) type Checked<T = ()> = Result<T, String>;

macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+));
        }
    };
}
pub(super) use ensure;

/// Of all keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) keys: [Slot; KEYS],
}

/// Of one key.
#[derive(Debug, Clone, Default)]
pub(super) struct Slot {
    pub(super) current: Option<Stored>,
    /// Every revision that was ever given out or seen.
    pub(super) revisions: Vec<Revision>,
    entries: Vec<AuditEntry>,
    /// No grant since the machine started has a greater number.
    fence: u64,
    /// The number of the grant that wrote the record.
    written: u64,
    leased: bool,
    /// What was set aside, and where.
    pub(super) aside: Vec<(PathBuf, Document)>,
    pub(super) dir: Option<PathBuf>,
}

impl Model {
    /// The store answered. What it says must be so, and is promised from now on.
    pub(super) fn answered(&mut self, act: &Act, answer: &Answer) -> Checked {
        let listed: Vec<_> = self.listed();
        let slot = &mut self.keys[act.key];
        match (&act.what, answer) {
            (What::Open, Answer::Opened(_)) => {}
            (What::Save(document, guard, lease), Answer::Saved(saved)) => {
                slot.saved(document, guard, lease.as_ref(), saved)?;
            }
            (What::Remove(guard), Answer::Removed(removed)) => slot.removed(guard, removed)?,
            (What::SetAside(guard), Answer::Aside(place)) => slot.set_aside(guard, place.as_deref())?,
            (What::Append(event), Answer::Appended(seq)) => slot.appended(event, *seq)?,
            (What::Lease, Answer::Leased(outcome)) => slot.was_leased(outcome)?,
            (What::Load, Answer::Loaded(found)) => {
                ensure!(*found == slot.current, "{found:?} was loaded in place of {:?}", slot.current);
            }
            (What::Audit, Answer::Entries(found)) => {
                ensure!(*found == slot.entries, "the log holds {found:?} in place of {:?}", slot.entries);
            }
            (What::List, Answer::Listed(found)) => {
                ensure!(*found == listed, "{found:?} are listed in place of {listed:?}");
            }
            (What::StateDir, Answer::Dir(path)) => slot.dir = Some(path.clone()),
            (act, answer) => return Err(format!("{answer:?} is no answer to {act:?}")),
        }
        Ok(())
    }

    /// The keys that have a record, as the store lists them.
    fn listed(&self) -> Vec<SessionKey> {
        let there = (0..KEYS).filter(|index| self.keys[*index].current.is_some());
        let mut keys: Vec<_> = there.map(key).collect();
        keys.sort_by_key(crate::layout::key_segment);
        keys
    }

    pub(super) fn released(&mut self, key: usize) {
        self.keys[key].leased = false;
    }

    /// Nobody holds a lease any more.
    pub(super) fn everybody_died(&mut self) {
        self.keys.iter_mut().for_each(|slot| slot.leased = false);
    }

    /// Nobody does, and the numbers of grants are lost that no record was written under.
    pub(super) fn crashed(&mut self) {
        self.everybody_died();
        self.keys.iter_mut().for_each(|slot| slot.fence = 0);
    }

    /// What is there after an operation was cut off, or of no operation. It must be what was promised, or what that
    /// operation would have made; then it is what stays.
    pub(super) fn found(
        &mut self,
        index: usize,
        record: Option<Stored>,
        entries: &[AuditEntry],
        cut_off: Option<&Act>,
    ) -> Checked {
        let what = cut_off.filter(|act| act.key == index).map(|act| &act.what);
        self.keys[index].found_record(record, what)?;
        self.keys[index].found_entries(entries, what)
    }
}

impl Slot {
    pub(super) fn revision(&self) -> Option<&Revision> {
        self.current.as_ref().map(|stored| &stored.revision)
    }

    pub(super) fn fence(&self) -> u64 {
        self.fence.max(self.written)
    }

    fn saved(&mut self, document: &Document, guard: &Guard, lease: Option<&Lease>, saved: &Saved) -> Checked {
        let admitted = guard.admits(self.revision());
        ensure!(
            self.fences(lease) == matches!(saved, Saved::Fenced { .. }),
            "{saved:?} for {lease:?} after grant {}",
            self.fence()
        );
        match saved {
            Saved::Fenced { .. } => Ok(()),
            Saved::Done(revision) => {
                ensure!(admitted, "{guard:?} was admitted at {:?}", self.current);
                self.stored(Stored { document: document.clone(), revision: revision.clone() }, lease)
            }
            Saved::Refused { current } => {
                ensure!(!admitted, "{guard:?} was refused at {:?}", self.current);
                ensure!(current.as_ref() == self.revision(), "{current:?} in place of {:?}", self.current);
                Ok(())
            }
        }
    }

    fn fences(&self, lease: Option<&Lease>) -> bool {
        lease.is_some_and(|lease| lease.fence() < self.fence())
    }

    fn stored(&mut self, stored: Stored, lease: Option<&Lease>) -> Checked {
        ensure!(!self.revisions.contains(&stored.revision), "{:?} is used twice", stored.revision);
        self.revisions.push(stored.revision.clone());
        self.current = Some(stored);
        self.written = lease.map_or(self.written, Lease::fence);
        Ok(())
    }

    fn removed(&mut self, guard: &Guard, removed: &Removed) -> Checked {
        let right = match (removed, self.revision()) {
            (Removed::Done, current @ Some(_)) => guard.admits(current),
            (Removed::NothingThere, None) => true,
            (Removed::Refused { current }, Some(there)) => current == there && !guard.admits(Some(there)),
            _ => false,
        };
        ensure!(right, "{removed:?} for {guard:?} at {:?}", self.current);
        if *removed == Removed::Done {
            self.gone();
        }
        Ok(())
    }

    fn gone(&mut self) -> Option<Stored> {
        self.written = 0;
        self.current.take()
    }

    fn set_aside(&mut self, guard: &Guard, place: Option<&str>) -> Checked {
        let admitted = self.revision().is_some_and(|current| guard.admits(Some(current)));
        ensure!(admitted == place.is_some(), "set aside to {place:?} for {guard:?} at {:?}", self.current);
        if let Some(place) = place {
            let document = self.gone().map(|stored| stored.document);
            self.aside.extend(document.map(|document| (place.into(), document)));
        }
        Ok(())
    }

    fn appended(&mut self, event: &AuditEvent, seq: AuditSeq) -> Checked {
        let last = self.entries.last().map(|entry| entry.seq);
        ensure!(Some(seq) > last, "entry {seq:?} comes after {last:?}");
        self.entries.push(AuditEntry { seq, event: event.clone() });
        Ok(())
    }

    fn was_leased(&mut self, outcome: &LeaseOutcome) -> Checked {
        match outcome {
            LeaseOutcome::Held(lease) => {
                ensure!(!self.leased, "there are two holders");
                ensure!(lease.fence() > self.fence(), "grant {} comes after {}", lease.fence(), self.fence());
                (self.leased, self.fence) = (true, lease.fence());
            }
            LeaseOutcome::Busy { .. } => ensure!(self.leased, "nobody holds the lease, and it is busy"),
        }
        Ok(())
    }

    fn found_record(&mut self, record: Option<Stored>, cut_off: Option<&What>) -> Checked {
        if record == self.current {
            return Ok(());
        }
        let admits = |guard: &Guard| guard.admits(self.revision());
        match (record, cut_off) {
            (Some(stored), Some(What::Save(document, guard, lease)))
                if stored.document == *document && admits(guard) && !self.fences(lease.as_ref()) =>
            {
                self.stored(stored, lease.as_ref())
            }
            (None, Some(What::Remove(guard))) if admits(guard) => {
                self.gone();
                Ok(())
            }
            // The bytes must then be where they were going; whoever checks looks for them there.
            (None, Some(What::SetAside(guard))) if admits(guard) => {
                let document = self.gone().map(|stored| stored.document);
                self.aside.extend(document.map(|document| (PathBuf::new(), document)));
                Ok(())
            }
            (record, _) => Err(format!("{record:?} is there in place of {:?}", self.current)),
        }
    }

    fn found_entries(&mut self, entries: &[AuditEntry], cut_off: Option<&What>) -> Checked {
        let Some(rest) = entries.strip_prefix(&self.entries[..]) else {
            return Err(format!("the log holds {entries:?}, and {:?} were acknowledged", self.entries));
        };
        match (rest, cut_off) {
            ([], _) => Ok(()),
            ([entry], Some(What::Append(event))) if entry.event == *event => self.appended(event, entry.seq),
            (rest, _) => Err(format!("nobody wrote the entries {rest:?}")),
        }
    }
}
