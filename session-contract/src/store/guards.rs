//! Guards: a write happens under its condition or not at all.

use std::collections::BTreeSet;

use session_core::{Guard, ListOptions, Removed, Revision, Saved};

use super::Subject;
use super::stage::{answer, doc, key, load};

/// `Absent` writes where there is nothing, once.
pub(super) fn absent_writes_once(subject: &Subject) {
    subject.every(async |at| {
        let (store, key) = (at.store(), key("a"));
        let Saved::Done(first) = answer(store.save(&key, &doc("one"), &Guard::Absent, None).await) else {
            panic!("refused where there is nothing");
        };
        let second = answer(store.save(&key, &doc("two"), &Guard::Absent, None).await);
        assert_eq!(second, Saved::Refused { current: Some(first) });
        assert_eq!(at.get(&key).await.as_deref(), Some("one"));
        // Once it is removed, there is nothing again.
        assert_eq!(answer(store.remove(&key, &Guard::Any).await), Removed::Done);
        let again = answer(store.save(&key, &doc("three"), &Guard::Absent, None).await);
        assert!(matches!(again, Saved::Done(_)), "{again:?}");
        assert_eq!(at.get(&key).await.as_deref(), Some("three"));
    });
}

/// A revision guards the state that it is of, and no other; a refusal tells the present one.
pub(super) fn a_revision_guards_its_document(subject: &Subject) {
    subject.every(async |at| {
        let (store, key) = (at.store(), key("a"));
        let first = at.put(&key, "one").await;
        let saved = answer(store.save(&key, &doc("two"), &Guard::Revision(first.clone()), None).await);
        let Saved::Done(second) = saved else { panic!("the present revision was refused: {saved:?}") };
        assert_ne!(first, second);
        for stale in [first, Revision::new("no revision of this store"), Revision::new("")] {
            let refused = answer(store.save(&key, &doc("x"), &Guard::Revision(stale.clone()), None).await);
            assert_eq!(refused, Saved::Refused { current: Some(second.clone()) }, "{stale:?}");
        }
        assert_eq!(at.get(&key).await.as_deref(), Some("two"));
    });
}

/// What is refused leaves document, revision and list as they were.
pub(super) fn a_failed_guard_changes_nothing(subject: &Subject) {
    subject.every(async |at| {
        let (store, there, empty) = (at.store(), key("there"), key("empty"));
        let old = at.put(&there, "old").await;
        at.put(&there, "kept").await;
        let before = load(&**store, &there).await;
        for guard in [Guard::Absent, Guard::Revision(old.clone())] {
            let saved = answer(store.save(&there, &doc("x"), &guard, None).await);
            assert!(matches!(saved, Saved::Refused { .. }), "{guard:?}: {saved:?}");
            let removed = answer(store.remove(&there, &guard).await);
            assert!(matches!(removed, Removed::Refused { .. }), "{guard:?}: {removed:?}");
            assert_eq!(answer(store.set_aside(&there, &guard).await), None, "{guard:?}");
            assert_eq!(load(&**store, &there).await, before, "after {guard:?}");
        }
        let saved = answer(store.save(&empty, &doc("x"), &Guard::Revision(old), None).await);
        assert_eq!(saved, Saved::Refused { current: None });
        assert_eq!(load(&**store, &empty).await, None);
        assert_eq!(answer(store.list(&ListOptions::default()).await).items, [there]);
    });
}

/// Contract 5: not after a removal, and not after a document was set aside.
pub(super) fn a_revision_is_never_used_again(subject: &Subject) {
    subject.every(async |at| {
        let (store, key) = (at.store(), key("a"));
        let mut seen = BTreeSet::new();
        let mut first = None;
        for round in 0..6 {
            for _ in 0..2 {
                let revision = at.put(&key, "the same").await;
                first.get_or_insert_with(|| revision.clone());
                assert!(seen.insert(revision.as_str().to_owned()), "{revision:?} again, in round {round}");
            }
            if round % 2 == 0 {
                assert_eq!(answer(store.remove(&key, &Guard::Any).await), Removed::Done);
            } else {
                assert!(answer(store.set_aside(&key, &Guard::Any).await).is_some());
            }
        }
        // Who slept through all of that cannot write over it.
        let present = at.put(&key, "new").await;
        let first = first.unwrap_or_else(|| panic!("nothing was written"));
        let late = answer(store.save(&key, &doc("x"), &Guard::Revision(first), None).await);
        assert_eq!(late, Saved::Refused { current: Some(present) });
    });
}

/// A removal takes the document, once.
pub(super) fn a_removed_document_is_gone(subject: &Subject) {
    subject.every(async |at| {
        let (store, gone, stays) = (at.store(), key("gone"), key("stays"));
        let revision = at.put(&gone, "x").await;
        at.put(&stays, "y").await;
        assert_eq!(answer(store.remove(&gone, &Guard::Revision(revision.clone())).await), Removed::Done);
        assert_eq!(load(&**store, &gone).await, None);
        for guard in [Guard::Any, Guard::Revision(revision.clone())] {
            assert_eq!(answer(store.remove(&gone, &guard).await), Removed::NothingThere);
        }
        let late = answer(store.save(&gone, &doc("x"), &Guard::Revision(revision), None).await);
        assert_eq!(late, Saved::Refused { current: None });
        assert_eq!(at.get(&stays).await.as_deref(), Some("y"));
    });
}

/// A removal that was meant for another state is refused, and told the present one.
pub(super) fn a_removal_keeps_its_guard(subject: &Subject) {
    subject.every(async |at| {
        let (store, key) = (at.store(), key("a"));
        let first = at.put(&key, "one").await;
        let current = at.put(&key, "two").await;
        for guard in [Guard::Absent, Guard::Revision(first), Guard::Revision(Revision::new("none"))] {
            let refused = answer(store.remove(&key, &guard).await);
            assert_eq!(refused, Removed::Refused { current: current.clone() }, "{guard:?}");
        }
        assert_eq!(at.get(&key).await.as_deref(), Some("two"));
        assert_eq!(answer(store.remove(&key, &Guard::Revision(current)).await), Removed::Done);
    });
}
