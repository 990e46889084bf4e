//! Lists, in pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use session_core::{Guard, ListOptions, Page, Removed, SessionKey, SessionStore};

use super::Subject;
use super::keys::few;
use super::stage::{answer, key, put};

async fn page(
    store: &dyn SessionStore,
    limit: Option<usize>,
    after: Option<&SessionKey>,
) -> Page<SessionKey> {
    answer(store.list(&ListOptions { limit, after: after.cloned() }).await)
}

/// Every key, page by page.
pub(super) async fn all(store: &dyn SessionStore, limit: usize) -> Vec<SessionKey> {
    let mut keys: Vec<SessionKey> = Vec::new();
    loop {
        let found = page(store, Some(limit), keys.last()).await;
        assert!(found.items.len() <= limit, "a page of {} where {limit} are asked for", found.items.len());
        assert!(!found.more || !found.items.is_empty(), "there is more, and nothing to ask for it after");
        keys.extend(found.items);
        assert!(keys.len() < 10_000, "the list does not come to an end");
        if !found.more {
            return keys;
        }
    }
}

/// Pages of any size are the whole list: every key once, in one order.
pub(super) fn pages_make_up_the_whole(subject: &Subject) {
    subject.every(async |at| {
        let store = &**at.store();
        assert_eq!(page(store, None, None).await, Page { items: Vec::new(), more: false });
        let mut wanted = few();
        for key in &wanted {
            at.put(key, "x").await;
        }
        // A second write makes no second entry.
        at.put(&wanted[0], "y").await;
        let whole = page(store, None, None).await;
        assert!(!whole.more, "the whole list says that there is more");
        for limit in [1, 2, 3, wanted.len() - 1, wanted.len(), wanted.len() + 1] {
            assert_eq!(all(store, limit).await, whole.items, "in pages of {limit}");
        }
        let mut items = whole.items;
        items.sort();
        wanted.sort();
        assert_eq!(items, wanted);
    });
}

/// A page has at most as many keys as were asked for, and says whether there are more.
pub(super) fn a_page_keeps_its_limit(subject: &Subject) {
    subject.every(async |at| {
        let store = &**at.store();
        for name in ["a", "b", "c"] {
            at.put(&key(name), "x").await;
        }
        let none = page(store, Some(0), None).await;
        assert_eq!(none, Page { items: Vec::new(), more: true });
        for limit in 1..5 {
            let found = page(store, Some(limit), None).await;
            assert_eq!(found.items.len(), limit.min(3), "{limit} asked for");
            assert_eq!(found.more, limit < 3, "{limit} asked for");
        }
        let whole = page(store, None, None).await.items;
        let rest = page(store, Some(3), whole.get(1)).await;
        assert_eq!(rest, Page { items: whole[2..].to_vec(), more: false });
        let end = page(store, Some(3), whole.last()).await;
        assert_eq!(end, Page { items: Vec::new(), more: false });
    });
}

/// A key without a document is not listed, though it has a log, a lease or a state dir.
pub(super) fn what_was_removed_is_not_listed(subject: &Subject) {
    subject.every(async |at| {
        let store = &**at.store();
        for name in ["removed", "aside", "stays"] {
            at.put(&key(name), "x").await;
        }
        answer(store.append_audit(&key("removed"), &super::stage::event("kept")).await);
        answer(store.append_audit(&key("log"), &super::stage::event("alone")).await);
        answer(store.state_dir(&key("state")).await);
        let _lease = super::stage::take(store, &key("lease"), 1).await;
        assert_eq!(answer(store.remove(&key("removed"), &Guard::Any).await), Removed::Done);
        assert!(answer(store.set_aside(&key("aside"), &Guard::Any).await).is_some());
        for limit in [1, 10] {
            assert_eq!(all(store, limit).await, [key("stays")]);
        }
        at.put(&key("removed"), "back").await;
        assert_eq!(all(store, 10).await.len(), 2);
    });
}

/// A key to go on after does not have to be there any more.
pub(super) fn a_list_goes_on_after_a_removed_key(subject: &Subject) {
    subject.every(async |at| {
        let store = &**at.store();
        for key in few() {
            at.put(&key, "x").await;
        }
        let whole = page(store, None, None).await.items;
        let mut gone = Vec::new();
        // First every second one, so that there is something before it and after it.
        for n in (1..whole.len()).step_by(2).chain((0..whole.len()).step_by(2)) {
            assert_eq!(answer(store.remove(&whole[n], &Guard::Any).await), Removed::Done);
            gone.push(&whole[n]);
            let rest = page(store, None, Some(&whole[n])).await.items;
            let wanted: Vec<_> = whole[n + 1..].iter().filter(|key| !gone.contains(key)).cloned().collect();
            assert_eq!(rest, wanted, "after {}, which is removed", whole[n]);
        }
    });
}

/// While others come and go, what was there all the time is listed once in every pass, in the same order.
pub(super) fn a_list_is_whole_while_others_write(subject: &Subject) {
    const PASSES: usize = 24;
    subject.every(async |at| {
        let mut stay: Vec<_> = (0..8).map(|n| key(format!("stays-{n}"))).collect();
        for key in &stay {
            at.put(key, "x").await;
        }
        // Each pass is allowed a step of the writer, so that none is over before anything was written.
        let passes = Arc::new(AtomicUsize::new(0));
        let steps = Arc::new(AtomicUsize::new(0));
        let writer = {
            let (passes, steps) = (passes.clone(), steps.clone());
            let store = at.handles(1).await.remove(0);
            tokio::spawn(async move {
                while passes.load(Ordering::Acquire) < PASSES {
                    // Before, between and after those that stay.
                    let n = steps.load(Ordering::Acquire);
                    let between = key(format!("{}{}", ["a", "stays-3-", "z"][n % 3], n % 7));
                    put(&*store, &between, b"y").await;
                    put(&*store, &key(format!("stays-{}", n % 8)), b"x").await;
                    if n % 2 == 1 {
                        let _ = answer(store.remove(&between, &Guard::Any).await);
                    }
                    steps.fetch_add(1, Ordering::AcqRel);
                    tokio::task::yield_now().await;
                }
            })
        };
        let mut order: Option<Vec<SessionKey>> = None;
        for pass in 0..PASSES {
            while steps.load(Ordering::Acquire) <= pass && !writer.is_finished() {
                tokio::task::yield_now().await;
            }
            let listed = all(&**at.store(), 1 + pass % 4).await;
            let those: Vec<_> = listed.into_iter().filter(|key| stay.contains(key)).collect();
            let order = order.get_or_insert_with(|| those.clone());
            assert_eq!(*order, those, "in pass {pass}");
            passes.fetch_add(1, Ordering::AcqRel);
        }
        if let Err(error) = writer.await {
            panic!("the writer: {error}");
        }
        let mut order = order.unwrap_or_default();
        order.sort();
        stay.sort();
        assert_eq!(order, stay);
    });
}
