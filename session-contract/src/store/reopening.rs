//! What is there when the store is opened again (contract 6, as far as no machine has to crash).

use std::collections::BTreeSet;

use session_core::{Guard, Lease, Removed, Saved};

use super::Subject;
use super::keys::few;
use super::stage::{Needs, Stage, answer, doc, event, key, load};

/// A store that does not claim to keep anything may; what it keeps is whole.
async fn whole_or_nothing(at: Stage<'_>) {
    let revision = at.put(&key("a"), "whole").await;
    answer(at.store().append_audit(&key("a"), &event("whole")).await);
    let at = at.reopened().await;
    if let Some(stored) = load(&**at.store(), &key("a")).await {
        assert_eq!((stored.document, stored.revision), (doc("whole"), revision));
    }
    let log = answer(at.store().audit(&key("a"), None).await);
    assert!(log.iter().all(|entry| entry.event == event("whole")), "{log:?}");
    // And it works.
    at.put(&key("a"), "new").await;
    assert_eq!(at.get(&key("a")).await.as_deref(), Some("new"));
}

/// Documents with their revisions, logs and list.
pub(super) fn what_was_written_is_there_again(subject: &Subject) {
    subject.needing(
        Needs::Durable,
        async |mut at| {
            let mut wanted = Vec::new();
            for key in few() {
                at.put(&key, "an earlier document").await;
                let revision = at.put(&key, &format!("of {key:?}")).await;
                let seq = answer(at.store().append_audit(&key, &event("e")).await);
                wanted.push((key, revision, seq));
            }
            for _ in 0..2 {
                at = at.reopened().await;
                for (key, revision, seq) in &wanted {
                    let stored = load(&**at.store(), key).await;
                    let stored = stored.unwrap_or_else(|| panic!("{key} is not there any more"));
                    assert_eq!((stored.document, &stored.revision), (doc(&format!("of {key:?}")), revision));
                    let log = answer(at.store().audit(key, None).await);
                    let found: Vec<_> = log.iter().map(|entry| (entry.seq, &entry.event)).collect();
                    assert_eq!(found, [(*seq, &event("e"))]);
                }
                let mut listed = super::pages::all(&**at.store(), 4).await;
                let mut keys = few();
                listed.sort();
                keys.sort();
                assert_eq!(listed, keys);
            }
        },
        whole_or_nothing,
    );
}

/// A removal is as durable as a document, and so is setting aside.
pub(super) fn what_was_removed_stays_removed(subject: &Subject) {
    subject.needing(
        Needs::Durable,
        async |at| {
            for name in ["removed", "aside", "stays"] {
                at.put(&key(name), name).await;
            }
            assert_eq!(answer(at.store().remove(&key("removed"), &Guard::Any).await), Removed::Done);
            let place = answer(at.store().set_aside(&key("aside"), &Guard::Any).await);
            let place = place.unwrap_or_else(|| panic!("it was not set aside"));
            let at = at.reopened().await;
            assert_eq!(at.get(&key("removed")).await, None);
            assert_eq!(at.get(&key("aside")).await, None);
            assert_eq!(super::pages::all(&**at.store(), 10).await, [key("stays")]);
            if let Some(kept) = at.kept(&place).await {
                assert!(kept.is_some(), "what was set aside is not at {place} any more");
            }
        },
        whole_or_nothing,
    );
}

/// Contract 5 and the guards hold across openings: the state of a key is not the state of a process.
pub(super) fn revisions_are_new_after_reopening(subject: &Subject) {
    subject.needing(
        Needs::Durable,
        async |mut at| {
            let mut seen = BTreeSet::new();
            let mut current = None;
            for round in 0..6 {
                let guard = current.take().map_or(Guard::Absent, Guard::Revision);
                let saved = answer(at.store().save(&key("a"), &doc("the same"), &guard, None).await);
                let Saved::Done(revision) = saved else { panic!("in round {round}: {saved:?}") };
                assert!(seen.insert(revision.as_str().to_owned()), "{revision:?} again, in round {round}");
                if round % 3 == 2 {
                    assert_eq!(answer(at.store().remove(&key("a"), &Guard::Any).await), Removed::Done);
                } else {
                    current = Some(revision);
                }
                at = at.reopened().await;
            }
        },
        whole_or_nothing,
    );
}

/// The numbers of grants and of log entries go on where they were.
pub(super) fn numbers_go_on_after_reopening(subject: &Subject) {
    subject.needing(
        Needs::Durable,
        async |mut at| {
            let mut last = None;
            for round in 0..5 {
                let fence = at.take_soon(&key("a"), round).await.fence();
                let seq = answer(at.store().append_audit(&key("a"), &event("e")).await);
                if let Some((fence_before, seq_before)) = last {
                    assert!(fence > fence_before, "grant {fence} after {fence_before}");
                    assert!(seq > seq_before, "entry {seq:?} after {seq_before:?}");
                }
                last = Some((fence, seq));
                at = at.reopened().await;
            }
        },
        whole_or_nothing,
    );
}

/// Who lost a lease before the store was opened again has lost it afterwards.
pub(super) fn a_lost_lease_stays_lost(subject: &Subject) {
    subject.needing(
        Needs::Durable,
        async |at| {
            let first = Lease::new(at.take_soon(&key("a"), 1).await.fence(), ());
            let second = at.take_soon(&key("a"), 2).await;
            let saved = answer(at.store().save(&key("a"), &doc("kept"), &Guard::Any, Some(&second)).await);
            assert!(matches!(saved, Saved::Done(_)), "{saved:?}");
            let latest = second.fence();
            drop(second);
            let at = at.reopened().await;
            let late = answer(at.store().save(&key("a"), &doc("late"), &Guard::Any, Some(&first)).await);
            assert_eq!(late, Saved::Fenced { latest });
            assert_eq!(at.get(&key("a")).await.as_deref(), Some("kept"));
        },
        whole_or_nothing,
    );
}
