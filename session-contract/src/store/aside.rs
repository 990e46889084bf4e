//! Setting aside: out of the way, never lost.

use session_core::{Guard, ListOptions, Revision, Saved};

use super::Subject;
use super::stage::{answer, doc, key, load, put};

/// The bytes are kept at the place that is named, also when the next ones follow them there.
pub(super) fn what_is_set_aside_is_kept(subject: &Subject) {
    subject.every(async |at| {
        let documents: [&[u8]; 3] =
            [b"the first \xff document", b"another one \0", b"the first \xff document"];
        let mut places = Vec::new();
        for bytes in documents {
            put(&**at.store(), &key("a"), bytes).await;
            let place = answer(at.store().set_aside(&key("a"), &Guard::Any).await);
            let place = place.unwrap_or_else(|| panic!("it was not set aside"));
            assert!(!place.trim().is_empty(), "a place without a name");
            assert!(!places.contains(&place), "{place} twice: one of the two is not there");
            places.push(place);
        }
        for (place, bytes) in places.iter().zip(documents) {
            if let Some(kept) = at.kept(place).await {
                let kept = kept.unwrap_or_else(|| panic!("nothing is at {place}"));
                let whole = kept.windows(bytes.len()).any(|part| part == bytes);
                assert!(whole, "at {place} are {}", String::from_utf8_lossy(&kept));
            }
        }
    });
}

/// The key has no document afterwards, and can have a new one.
pub(super) fn what_is_set_aside_is_gone(subject: &Subject) {
    subject.every(async |at| {
        let store = at.store();
        let old = at.put(&key("a"), "x").await;
        at.put(&key("b"), "y").await;
        assert!(answer(store.set_aside(&key("a"), &Guard::Any).await).is_some());
        assert_eq!(load(&**store, &key("a")).await, None);
        assert_eq!(answer(store.list(&ListOptions::default()).await).items, [key("b")]);
        assert_eq!(answer(store.set_aside(&key("a"), &Guard::Any).await), None, "set aside twice");
        let late = answer(store.save(&key("a"), &doc("z"), &Guard::Revision(old), None).await);
        assert_eq!(late, Saved::Refused { current: None });
        let new = answer(store.save(&key("a"), &doc("new"), &Guard::Absent, None).await);
        assert!(matches!(new, Saved::Done(_)), "{new:?}");
        assert_eq!(at.get(&key("a")).await.as_deref(), Some("new"));
        assert_eq!(at.get(&key("b")).await.as_deref(), Some("y"));
    });
}

/// What was judged unreadable may have been replaced since: the guard says which one is meant.
pub(super) fn setting_aside_keeps_its_guard(subject: &Subject) {
    subject.every(async |at| {
        let store = at.store();
        let judged = at.put(&key("a"), "judged").await;
        let newer = at.put(&key("a"), "newer").await;
        for guard in [Guard::Absent, Guard::Revision(judged), Guard::Revision(Revision::new("none"))] {
            assert_eq!(answer(store.set_aside(&key("a"), &guard).await), None, "{guard:?}");
            assert_eq!(at.get(&key("a")).await.as_deref(), Some("newer"), "after {guard:?}");
        }
        assert!(answer(store.set_aside(&key("a"), &Guard::Revision(newer)).await).is_some());
        assert_eq!(at.get(&key("a")).await, None);
    });
}
