//! What a lease is worth in a write (contract 7).

use session_core::{Guard, Lease, Saved, SessionKey, SessionStore};

use super::Subject;
use super::stage::{Stage, answer, begin_and_drop, doc, key, load};

/// What somebody has in hand who was granted this number once, and does not know that it is over.
fn outdated(fence: u64) -> Lease {
    Lease::new(fence, ())
}

async fn write(store: &dyn SessionStore, key: &SessionKey, text: &str, lease: &Lease) -> Saved {
    answer(store.save(key, &doc(text), &Guard::Any, Some(lease)).await)
}

/// Two grants of a key, the first one over; the second is held.
async fn two_grants(at: &Stage<'_>, key: &SessionKey) -> (Lease, Lease) {
    let first = at.take_soon(key, 1).await.fence();
    let second = at.take_soon(key, 2).await;
    assert!(second.fence() > first, "{} after {first}", second.fence());
    (outdated(first), second)
}

/// Whatever the guard, and whether or not the successor wrote already, is there still, or is known by another handle.
pub(super) fn who_lost_a_lease_writes_nothing(subject: &Subject) {
    subject.every(async |at| {
        let (store, key) = (at.store(), key("a"));
        let (first, second) = two_grants(&at, &key).await;
        let fenced = Saved::Fenced { latest: second.fence() };
        assert_eq!(write(&**store, &key, "late", &first).await, fenced, "over nothing");
        assert_eq!(load(&**store, &key).await, None);
        let now = at.put(&key, "as it was").await;
        for guard in [Guard::Any, Guard::Absent, Guard::Revision(now.clone())] {
            let saved = answer(store.save(&key, &doc("late"), &guard, Some(&first)).await);
            assert_eq!(saved, fenced, "under {guard:?}, before the successor wrote");
        }
        assert_eq!(at.get(&key).await.as_deref(), Some("as it was"));
        let Saved::Done(_) = write(&**store, &key, "of the successor", &second).await else {
            panic!("the holder was kept from writing");
        };
        assert_eq!(write(&**store, &key, "late", &first).await, fenced);
        drop(second);
        assert_eq!(write(&**store, &key, "late", &first).await, fenced, "with nobody there any more");
        for other in at.handles(2).await {
            let saved = write(&*other, &key, "late", &first).await;
            assert_eq!(saved, fenced, "through another handle");
        }
        assert_eq!(at.get(&key).await.as_deref(), Some("of the successor"));
    });
}

/// It takes a later grant of the same key, and nothing else, to keep a holder from writing.
pub(super) fn a_lease_is_good_until_the_next_grant(subject: &Subject) {
    subject.every(async |at| {
        let (store, a) = (at.store(), key("a"));
        let lease = at.take_soon(&a, 1).await;
        let done = async |text: &str| {
            let saved = write(&**store, &a, text, &lease).await;
            assert!(matches!(saved, Saved::Done(_)), "{text}: {saved:?}");
            assert_eq!(at.get(&a).await.as_deref(), Some(text));
        };
        done("at once").await;
        done("again").await;
        drop(two_grants(&at, &key("b")).await);
        done("while others take other keys").await;
        assert!(super::stage::take(&**store, &a, 2).await.is_err());
        done("after somebody was refused").await;
        at.put(&a, "of nobody").await;
        done("after one who holds nothing").await;
        let _ = answer(store.remove(&a, &Guard::Any).await);
        done("after a removal").await;
        // The guard is asked as well.
        let saved = answer(store.save(&a, &doc("x"), &Guard::Absent, Some(&lease)).await);
        assert!(matches!(saved, Saved::Refused { current: Some(_) }), "{saved:?}");
    });
}

/// A write that nobody waits for any more is over before anybody else holds the key: the next holder finds what stays.
pub(super) fn a_dropped_write_is_over_before_the_next_grant(subject: &Subject) {
    subject.every(async |at| {
        let (store, key) = (at.store(), key("a"));
        for round in 0..12 {
            let (text, any) = (doc(&format!("dropped {round}")), Guard::Any);
            let lease = at.take_soon(&key, 1).await;
            begin_and_drop(store.save(&key, &text, &any, Some(&lease))).await;
            drop(lease);
            let next = at.take_soon(&key, 2).await;
            let found = load(&**store, &key).await;
            // Everybody else has a turn.
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            let guard = found.map_or(Guard::Absent, |found| Guard::Revision(found.revision));
            let saved = answer(store.save(&key, &doc("next"), &guard, Some(&next)).await);
            assert!(matches!(saved, Saved::Done(_)), "round {round}: it came late, {saved:?}");
        }
    });
}
