//! Corrupt is not absent, and neither is newer or out of reach (contract 3 and 4).

use session_core::error::StoreErrorKind;
use session_core::{Guard, ListOptions, Saved};

use super::stage::{Stage, answer, doc, event, key, kind, load, put};
use super::{Damage, Subject};

/// Runs a case once for each damage that can be done to the document of `a`, which has neighbours.
fn after_each(subject: &Subject, damages: &[Damage], case: &impl AsyncFn(&Stage<'_>, StoreErrorKind)) {
    for damage in damages {
        subject.every(async |at| {
            at.put(&key("a"), "the document of a, which is long enough to be damaged").await;
            at.put(&key("A"), "a neighbour").await;
            answer(at.store().append_audit(&key("a"), &event("before")).await);
            match at.damage(&key("a"), *damage).await {
                Ok(()) => {
                    let newer = *damage == Damage::Newer;
                    case(&at, if newer { StoreErrorKind::Newer } else { StoreErrorKind::Corrupt }).await;
                }
                Err(_) => nothing_is_called_damaged(&at).await,
            }
        });
    }
}

const DAMAGES: &[Damage] = &[Damage::Cut, Damage::Altered];

/// What can be asserted of a store that cannot be damaged: it judges no document, whatever that looks like.
async fn nothing_is_called_damaged(at: &Stage<'_>) {
    let looks: [&[u8]; 5] = [b"", b"{\"cut\": ", b"{\"store\":2}\n", b"\0\0\0\0", b"SQLite format 3\0"];
    for bytes in looks {
        put(&**at.store(), &key("a"), bytes).await;
        let stored = load(&**at.store(), &key("a")).await;
        assert_eq!(stored.map(|stored| stored.document.as_bytes().to_vec()).as_deref(), Some(bytes));
        assert!(answer(at.store().set_aside(&key("a"), &Guard::Any).await).is_some());
        assert_eq!(load(&**at.store(), &key("a")).await, None);
    }
}

/// A damaged document is an error every time it is asked for, of kind `Corrupt`: never `None`, never another document.
pub(super) fn damage_is_no_absence(subject: &Subject) {
    after_each(subject, DAMAGES, &async |at, corrupt| {
        for store in [at.store().clone(), at.handles(1).await.remove(0)] {
            for _ in 0..2 {
                assert_eq!(kind(store.load(&key("a")).await), corrupt);
            }
        }
    });
}

/// Nothing is written over it, and it is not removed, whatever the guard.
pub(super) fn damage_is_not_written_over(subject: &Subject) {
    after_each(subject, DAMAGES, &async |at, corrupt| {
        let store = at.store();
        let stale = Guard::Revision(session_core::Revision::new("none"));
        for guard in [Guard::Any, Guard::Absent, stale] {
            assert_eq!(
                kind(store.save(&key("a"), &doc("x"), &guard, None).await),
                corrupt,
                "save, {guard:?}"
            );
            assert_eq!(kind(store.remove(&key("a"), &guard).await), corrupt, "remove, {guard:?}");
        }
        assert_eq!(kind(store.load(&key("a")).await), corrupt);
    });
}

/// It has no revision, so that only an unconditional wish moves it; then the key is free.
pub(super) fn damage_can_be_set_aside(subject: &Subject) {
    after_each(subject, DAMAGES, &async |at, corrupt| {
        let store = at.store();
        for guard in [Guard::Absent, Guard::Revision(session_core::Revision::new("none"))] {
            assert_eq!(answer(store.set_aside(&key("a"), &guard).await), None, "{guard:?}");
            assert_eq!(kind(store.load(&key("a")).await), corrupt, "after {guard:?}");
        }
        let place = answer(store.set_aside(&key("a"), &Guard::Any).await);
        let place = place.unwrap_or_else(|| panic!("it was not set aside"));
        if let Some(kept) = at.kept(&place).await {
            assert!(kept.is_some_and(|kept| !kept.is_empty()), "nothing is at {place}");
        }
        assert_eq!(load(&**store, &key("a")).await, None);
        let saved = answer(store.save(&key("a"), &doc("new"), &Guard::Absent, None).await);
        assert!(matches!(saved, Saved::Done(_)), "{saved:?}");
        assert_eq!(at.get(&key("a")).await.as_deref(), Some("new"));
    });
}

/// Neighbours are read and listed, and the key keeps its log and its lease.
pub(super) fn damage_stays_with_its_key(subject: &Subject) {
    after_each(subject, &[Damage::Cut, Damage::Altered, Damage::Newer], &async |at, _| {
        let store = at.store();
        assert_eq!(at.get(&key("A")).await.as_deref(), Some("a neighbour"));
        let listed = answer(store.list(&ListOptions::default()).await).items;
        let count = |wanted: &str| listed.iter().filter(|listed| **listed == key(wanted)).count();
        assert_eq!(count("A"), 1, "{listed:?}");
        assert!(count("a") <= 1 && listed.len() == 1 + count("a"), "{listed:?}");
        answer(store.append_audit(&key("a"), &event("after")).await);
        let log = answer(store.audit(&key("a"), None).await);
        assert_eq!(log.len(), 2);
        drop(at.take_soon(&key("a"), 1).await);
        answer(store.state_dir(&key("a")).await);
    });
}

/// What a newer version wrote is not touched by this one, whatever the guard.
pub(super) fn a_newer_document_is_left_alone(subject: &Subject) {
    after_each(subject, &[Damage::Newer], &async |at, newer| {
        let store = at.store();
        for guard in [Guard::Any, Guard::Absent] {
            assert_eq!(kind(store.save(&key("a"), &doc("x"), &guard, None).await), newer, "save, {guard:?}");
            assert_eq!(kind(store.remove(&key("a"), &guard).await), newer, "remove, {guard:?}");
            assert_eq!(kind(store.set_aside(&key("a"), &guard).await), newer, "set_aside, {guard:?}");
            assert_eq!(kind(store.load(&key("a")).await), newer);
        }
    });
}

/// A store that cannot be asked answers nothing; when it is back, everything is as it was.
pub(super) fn a_store_out_of_reach_is_not_empty(subject: &Subject) {
    after_each(subject, &[Damage::Away], &async |at, _| {
        let (store, away) = (at.store(), StoreErrorKind::Unavailable);
        for key in [key("a"), key("nobody")] {
            assert_eq!(kind(store.load(&key).await), away, "load");
            assert_eq!(kind(store.save(&key, &doc("x"), &Guard::Any, None).await), away, "save");
            assert_eq!(kind(store.remove(&key, &Guard::Any).await), away, "remove");
            assert_eq!(kind(store.set_aside(&key, &Guard::Any).await), away, "set_aside");
            assert_eq!(kind(store.append_audit(&key, &event("lost")).await), away, "append_audit");
            assert_eq!(kind(store.audit(&key, None).await), away, "audit");
            assert_eq!(kind(store.lease(&key, &super::stage::holder(1)).await), away, "lease");
            if store.capabilities().state_dirs {
                assert_eq!(kind(store.state_dir(&key).await), away, "state_dir");
            }
        }
        assert_eq!(kind(store.list(&ListOptions::default()).await), away, "list");
        let back = at.damage(&key("a"), Damage::Back).await;
        assert_eq!(back, Ok(()), "what can be taken away can be brought back");
        let stored = at.get(&key("a")).await;
        assert_eq!(stored.as_deref(), Some("the document of a, which is long enough to be damaged"));
        assert_eq!(answer(store.list(&ListOptions::default()).await).items.len(), 2);
        let log = answer(store.audit(&key("a"), None).await);
        assert_eq!(log.into_iter().map(|entry| entry.event).collect::<Vec<_>>(), [event("before")]);
    });
}
