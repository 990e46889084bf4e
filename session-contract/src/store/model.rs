//! Random walks, beside a model of what a store has to hold.

use std::path::PathBuf;

use session_core::{
    AuditEntry, Document, Guard, Holder, Lease, LeaseOutcome, Removed, Revision, Saved, SessionKey, Stored,
};

use super::Subject;
use super::stage::{Needs, Stage, answer, begin_and_drop, event, holder, key, load};
use super::step::{MAILBOXES, Step, Under, Whose, walks};
use crate::Scratch;
use crate::walks::Walks;

/// What a store holds of a key.
#[derive(Debug)]
struct Slot {
    key: SessionKey,
    stored: Option<Stored>,
    /// Every revision that it had, the latest last.
    revisions: Vec<Revision>,
    log: Vec<AuditEntry>,
    lease: Option<(Lease, Holder)>,
    fence: u64,
    dir: Option<PathBuf>,
}

impl Slot {
    fn new(mailbox: &str) -> Self {
        Self {
            key: key(mailbox),
            stored: None,
            revisions: Vec::new(),
            log: Vec::new(),
            lease: None,
            fence: 0,
            dir: None,
        }
    }

    fn current(&self) -> Option<&Revision> {
        self.stored.as_ref().map(|stored| &stored.revision)
    }

    fn guard(&self, under: Under) -> Guard {
        let revision = match under {
            Under::Any => return Guard::Any,
            Under::Absent => return Guard::Absent,
            Under::Last => self.revisions.last(),
            Under::Earlier(at) => self.revisions.get(at),
            Under::Unknown => None,
        };
        Guard::Revision(revision.cloned().unwrap_or_else(|| Revision::new("none")))
    }

    /// What a writer has in hand.
    fn lease_of(&self, whose: Whose) -> Option<Lease> {
        match whose {
            Whose::Nobody => None,
            Whose::Holder => self.lease.as_ref().map(|(lease, _)| lease.clone()),
            // Whoever was granted a number before the last one.
            Whose::Former => self.fence.checked_sub(1).map(|fence| Lease::new(fence, ())),
        }
    }

    /// A document was written.
    fn written(&mut self, document: Document, revision: Revision) {
        assert!(!self.revisions.contains(&revision), "{revision:?} is used again");
        self.revisions.push(revision.clone());
        self.stored = Some(Stored { document, revision });
    }

    async fn check(&self, at: &Stage<'_>) {
        assert_eq!(load(&**at.store(), &self.key).await, self.stored, "{}", self.key);
    }
}

/// A walk while it goes on.
struct Walk<'a> {
    at: Stage<'a>,
    slots: Vec<Slot>,
}

/// Whatever is asked in whatever order, store and model say the same.
pub(super) fn every_walk_ends_as_the_model_says(subject: &Subject) {
    let runtime = Subject::runtime();
    subject.random_walks().make(&walks(), |steps| {
        runtime.block_on(async {
            let at = subject.stage(Scratch::new()).await;
            let slots = MAILBOXES.map(Slot::new).into();
            Walk { at, slots }.steps(&steps).await;
        });
    });
}

impl Subject {
    fn random_walks(&self) -> Walks<'_> {
        Walks {
            count: self.walks,
            seed: self.seed,
            regressions: self.regressions.as_deref(),
            same: self.same,
            shrinks: 1024,
        }
    }
}

impl Walk<'_> {
    async fn steps(mut self, steps: &[Step]) {
        for step in steps {
            self = self.step(step).await;
        }
        self.check_all().await;
        if self.at.claims(Needs::Durable) {
            self = self.reopen(false).await;
            self.check_all().await;
        }
    }

    async fn step(mut self, step: &Step) -> Self {
        match step {
            Step::Save(key, bytes, under, whose) => self.save(*key, bytes, *under, *whose).await,
            Step::DroppedSave(key, bytes) => self.dropped_save(*key, bytes).await,
            Step::Remove(key, under) => self.remove(*key, *under).await,
            Step::SetAside(key, under) => self.set_aside(*key, *under).await,
            Step::List { limit } => self.list(*limit).await,
            Step::Append(key, text) => self.append(*key, text).await,
            Step::Audit(key, after) => self.audit(*key, *after).await,
            Step::Lease(key, pid) => self.lease(*key, *pid).await,
            Step::Release(key) => self.slots[*key].lease = None,
            Step::StateDir(key) => self.state_dir(*key).await,
            Step::Reopen { with_leases } if self.at.claims(Needs::Durable) => {
                return self.reopen(*with_leases).await;
            }
            Step::Reopen { .. } => {}
        }
        self
    }

    async fn save(&mut self, key: usize, bytes: &[u8], under: Under, whose: Whose) {
        let slot = &mut self.slots[key];
        let lease = slot.lease_of(whose);
        let fenced = lease.as_ref().is_some_and(|lease| lease.fence() < slot.fence);
        let (document, guard) = (Document::new(bytes.to_vec()), slot.guard(under));
        let saved = answer(self.at.store().save(&slot.key, &document, &guard, lease.as_ref()).await);
        match (saved, guard.admits(slot.current())) {
            (Saved::Fenced { latest }, _) if fenced => assert_eq!(latest, slot.fence),
            (Saved::Done(revision), true) if !fenced => slot.written(document, revision),
            (Saved::Refused { current }, false) if !fenced => assert_eq!(current.as_ref(), slot.current()),
            (saved, _) => panic!("{saved:?} under {guard:?} by {lease:?} at {:?}", slot.current()),
        }
        slot.check(&self.at).await;
    }

    /// Whether it was done comes out when somebody else writes under the same guard.
    async fn dropped_save(&mut self, key: usize, bytes: &[u8]) {
        let slot = &mut self.slots[key];
        let guard = slot.current().cloned().map_or(Guard::Absent, Guard::Revision);
        let (dropped, next) = (Document::new(bytes.to_vec()), Document::new(b"next".to_vec()));
        begin_and_drop(self.at.store().save(&slot.key, &dropped, &guard, None)).await;
        match answer(self.at.store().save(&slot.key, &next, &guard, None).await) {
            Saved::Done(revision) => slot.written(next, revision),
            Saved::Refused { current: Some(current) } => slot.written(dropped, current),
            Saved::Refused { current: None } => panic!("a dropped save left nothing"),
            fenced @ Saved::Fenced { .. } => panic!("{fenced:?} without a lease"),
        }
        slot.check(&self.at).await;
    }

    async fn remove(&mut self, key: usize, under: Under) {
        let slot = &mut self.slots[key];
        let guard = slot.guard(under);
        let removed = answer(self.at.store().remove(&slot.key, &guard).await);
        let wanted = match slot.current() {
            None => Removed::NothingThere,
            Some(current) if guard.admits(Some(current)) => Removed::Done,
            Some(current) => Removed::Refused { current: current.clone() },
        };
        assert_eq!(removed, wanted, "under {guard:?}");
        if removed == Removed::Done {
            slot.stored = None;
        }
        slot.check(&self.at).await;
    }

    async fn set_aside(&mut self, key: usize, under: Under) {
        let slot = &mut self.slots[key];
        let guard = slot.guard(under);
        let place = answer(self.at.store().set_aside(&slot.key, &guard).await);
        let wanted = slot.stored.is_some() && guard.admits(slot.current());
        assert_eq!(place.is_some(), wanted, "under {guard:?}: {place:?}");
        if wanted {
            slot.stored = None;
        }
        slot.check(&self.at).await;
    }

    async fn list(&self, limit: usize) {
        let mut listed = super::pages::all(&**self.at.store(), limit).await;
        listed.sort();
        let there = self.slots.iter().filter(|slot| slot.stored.is_some());
        let mut wanted: Vec<_> = there.map(|slot| slot.key.clone()).collect();
        wanted.sort();
        assert_eq!(listed, wanted, "in pages of {limit}");
    }

    async fn append(&mut self, key: usize, text: &str) {
        let (slot, event) = (&mut self.slots[key], event(text));
        let seq = answer(self.at.store().append_audit(&slot.key, &event).await);
        let last = slot.log.last().map(|entry| entry.seq);
        assert!(Some(seq) > last, "{seq:?} after {last:?}");
        slot.log.push(AuditEntry { seq, event });
    }

    async fn audit(&self, key: usize, after: usize) {
        let slot = &self.slots[key];
        let number = after.checked_sub(1).and_then(|at| slot.log.get(at)).map(|entry| entry.seq);
        let log = answer(self.at.store().audit(&slot.key, number).await);
        let wanted: Vec<_> = slot.log.iter().filter(|entry| Some(entry.seq) > number).cloned().collect();
        assert_eq!(log, wanted, "of {} after {number:?}", slot.key);
    }

    async fn lease(&mut self, key: usize, pid: u32) {
        let names = self.at.claims(Needs::HolderNames);
        let slot = &mut self.slots[key];
        let outcome = answer(self.at.store().lease(&slot.key, &holder(pid)).await);
        match (outcome, &slot.lease) {
            (LeaseOutcome::Held(lease), None) => {
                assert!(lease.fence() > slot.fence, "grant {} after {}", lease.fence(), slot.fence);
                slot.fence = lease.fence();
                slot.lease = Some((lease, holder(pid)));
            }
            (LeaseOutcome::Busy { by }, Some((_, holder))) => {
                assert_eq!(by.as_ref(), names.then_some(holder));
            }
            (outcome, held) => panic!("{outcome:?} while it is held: {held:?}"),
        }
    }

    async fn state_dir(&mut self, key: usize) {
        let claimed = self.at.claims(Needs::StateDirs);
        let slot = &self.slots[key];
        let dir = answer(self.at.store().state_dir(&slot.key).await);
        assert_eq!(dir.is_some(), claimed, "{dir:?}");
        let others = self.slots.iter().filter(|other| other.key != slot.key && dir.is_some());
        for other in others {
            assert_ne!(other.dir, dir, "{} and {}", other.key, slot.key);
        }
        let slot = &mut self.slots[key];
        if slot.dir.is_some() {
            assert_eq!(slot.dir, dir, "the state dir of {} moved", slot.key);
        }
        slot.dir = dir;
    }

    async fn reopen(mut self, with_leases: bool) -> Self {
        if !with_leases || !self.at.claims(Needs::Handles) {
            for slot in &mut self.slots {
                slot.lease = None;
            }
        }
        Self { at: self.at.reopened().await, slots: self.slots }
    }

    async fn check_all(&self) {
        self.list(2).await;
        for key in 0..self.slots.len() {
            self.slots[key].check(&self.at).await;
            self.audit(key, 0).await;
        }
    }
}
