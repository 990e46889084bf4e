//! Documents: round trip, guards, races, revisions.

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use session_core::{Document, Guard, Removed, Revision, Saved, SessionStore as _};
use session_store_fs::FsStore;
use tokio::runtime;

use crate::{Fixture, doc, done, key};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_bytes_come_back_also_to_another_handle(
        bytes in prop::collection::vec(any::<u8>(), 0..5000), mailbox in "\\PC{1,60}|[./A-Za-z0-9]{1,40}",
    ) {
        prop_assume!(!mailbox.trim().is_empty());
        let at = Fixture::new();
        let key = key(&mailbox);
        let document = Document::new(bytes);
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let revision = done(at.store.save(&key, &document, &Guard::Absent, None).await);
            let again = FsStore::open(at.dir.path()).unwrap();
            let stored = again.load(&key).await.unwrap().unwrap();
            assert_eq!(stored.document, document);
            assert_eq!(stored.revision, revision);
            assert_eq!(again.list(&Default::default()).await.unwrap().items, [key]);
        });
    }
}

#[tokio::test]
async fn a_large_document_comes_back() {
    let at = Fixture::new();
    let document = Document::new((0..3_000_000u32).map(|i| (i % 251) as u8).collect());
    done(at.store.save(&key("a"), &document, &Guard::Any, None).await);
    assert_eq!(at.store.load(&key("a")).await.unwrap().unwrap().document, document);
}

#[tokio::test]
async fn a_write_happens_only_under_its_guard() {
    let at = Fixture::new();
    let (store, key) = (&at.store, key("a"));
    let never = Guard::Revision(Revision::new("1-00"));
    assert_eq!(store.save(&key, &doc("x"), &never, None).await.unwrap(), Saved::Refused { current: None });
    assert_eq!(at.get(&key).await, Ok(None));

    let first = done(store.save(&key, &doc("one"), &Guard::Absent, None).await);
    let refused = Saved::Refused { current: Some(first.clone()) };
    assert_eq!(store.save(&key, &doc("x"), &Guard::Absent, None).await.unwrap(), refused);
    assert_eq!(store.save(&key, &doc("x"), &never, None).await.unwrap(), refused);
    assert_eq!(at.get(&key).await, Ok(Some("one".to_owned())));

    let second = done(store.save(&key, &doc("two"), &Guard::Revision(first.clone()), None).await);
    let stale = store.save(&key, &doc("x"), &Guard::Revision(first.clone()), None).await.unwrap();
    assert_eq!(stale, Saved::Refused { current: Some(second.clone()) });
    let third = done(store.save(&key, &doc("three"), &Guard::Any, None).await);

    let refused = Removed::Refused { current: third.clone() };
    assert_eq!(store.remove(&key, &Guard::Revision(second)).await.unwrap(), refused);
    assert_eq!(store.remove(&key, &Guard::Absent).await.unwrap(), refused);
    assert_eq!(store.remove(&key, &Guard::Revision(third)).await.unwrap(), Removed::Done);
    assert_eq!(store.remove(&key, &Guard::Any).await.unwrap(), Removed::NothingThere);
    assert_eq!(at.get(&key).await, Ok(None));
}

#[tokio::test]
async fn a_revision_is_never_used_twice() {
    let at = Fixture::new();
    let key = key("a");
    let mut seen = HashSet::new();
    let mut first = None;
    for round in 0..20 {
        for _ in 0..3 {
            let revision = at.put(&key, "x").await;
            first.get_or_insert_with(|| revision.clone());
            assert!(seen.insert(revision.clone()), "{revision:?} in round {round}");
        }
        assert_eq!(at.store.remove(&key, &Guard::Any).await.unwrap(), Removed::Done);
        at.put(&key, "again").await;
        at.store.set_aside(&key, &session_core::Guard::Any).await.unwrap().unwrap();
    }
    at.put(&key, "new").await;
    let stale = at.store.save(&key, &doc("x"), &Guard::Revision(first.unwrap()), None).await.unwrap();
    assert!(matches!(stale, Saved::Refused { current: Some(_) }), "{stale:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_racing_writers_each_wins_once() {
    const WRITERS: usize = 8;
    const ROUNDS: usize = 15;
    let at = Fixture::new();
    let base = Arc::new(at.dir.path().to_owned());
    at.put(&key("count"), "0").await;
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let base = Arc::clone(&base);
            tokio::spawn(async move {
                let store = FsStore::open(&*base).unwrap();
                let key = key("count");
                let mut revisions = Vec::new();
                while revisions.len() < ROUNDS {
                    let stored = store.load(&key).await.unwrap().unwrap();
                    let count: usize = str::from_utf8(stored.document.as_bytes()).unwrap().parse().unwrap();
                    let next = doc(&(count + 1).to_string());
                    match store.save(&key, &next, &Guard::Revision(stored.revision), None).await.unwrap() {
                        Saved::Done(revision) => revisions.push(revision),
                        Saved::Refused { current } => assert!(current.is_some(), "writer {writer}"),
                        fenced @ Saved::Fenced { .. } => panic!("{fenced:?}"),
                    }
                }
                revisions
            })
        })
        .collect();
    let mut revisions = HashSet::new();
    for task in tasks {
        revisions.extend(task.await.unwrap());
    }
    assert_eq!(at.get(&key("count")).await, Ok(Some((WRITERS * ROUNDS).to_string())));
    assert_eq!(revisions.len(), WRITERS * ROUNDS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_creators_one_wins() {
    let at = Fixture::new();
    for round in 0..10 {
        let key = key(&format!("round-{round}"));
        let tasks: Vec<_> = (0..6)
            .map(|i| {
                let (store, key) = (at.store.clone(), key.clone());
                tokio::spawn(
                    async move { store.save(&key, &doc(&i.to_string()), &Guard::Absent, None).await },
                )
            })
            .collect();
        let mut winners = 0;
        for task in tasks {
            winners += usize::from(matches!(task.await.unwrap().unwrap(), Saved::Done(_)));
        }
        assert_eq!(winners, 1);
    }
}

#[tokio::test]
async fn twins_are_isolated() {
    let at = Fixture::new();
    let mailboxes =
        ["a/b", "a-b", "A-b", "..", ".", "\u{e9}", "e\u{301}", "😀", "a/../b", "con", &"x".repeat(1024)];
    for mailbox in mailboxes {
        assert_eq!(at.get(&key(mailbox)).await, Ok(None), "{mailbox}");
        at.put(&key(mailbox), mailbox).await;
    }
    for mailbox in mailboxes {
        assert_eq!(at.get(&key(mailbox)).await, Ok(Some(mailbox.to_owned())));
    }
    assert_eq!(at.store.list(&Default::default()).await.unwrap().items.len(), mailboxes.len());
    // Nothing was put anywhere else.
    assert_eq!(std::fs::read_dir(at.dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_dropped_save_leaves_the_old_document_or_the_new_one() {
    let at = Fixture::new();
    at.put(&key("a"), "old").await;
    for _ in 0..50 {
        let (key, new) = (key("a"), doc("new"));
        let mut save = at.store.save(&key, &new, &Guard::Any, None);
        // Polled once, so that the task is on its way, then dropped.
        std::future::poll_fn(|context| {
            let _ = save.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
        drop(save);
        let text = at.get(&key).await.unwrap().unwrap();
        assert!(text == "old" || text == "new", "{text}");
    }
    // The lock is free again, whatever became of the tasks.
    at.put(&key("a"), "last").await;
}

#[test]
fn without_a_runtime_the_thread_of_the_caller_does_it() {
    let at = Fixture::new();
    let key = key("a");
    let document = doc("x");
    let mut save = at.store.save(&key, &document, &Guard::Any, None);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(matches!(save.as_mut().poll(&mut context), std::task::Poll::Ready(Ok(Saved::Done(_)))));
}
