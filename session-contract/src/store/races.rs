//! Many at once: handles of their own where those are one store, tasks on several threads in any case.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use session_core::{Guard, Removed, Revision, Saved, SessionStore};
use tokio::sync::Barrier;
use tokio::time::Instant;

use super::Subject;
use super::stage::{Stage, answer, begin_and_drop, doc, event, key, load, put, take_soon};

const MANY: usize = 8;

/// Lets many do the same at once, and says what each came to.
async fn many<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    at: &Stage<'_>,
    act: impl Fn(usize, Arc<dyn SessionStore>) -> F,
) -> Vec<T> {
    let start = Arc::new(Barrier::new(MANY));
    let handles = at.handles(MANY).await;
    let tasks: Vec<_> = handles
        .into_iter()
        .enumerate()
        .map(|(n, store)| {
            let (start, act) = (start.clone(), act(n, store));
            tokio::spawn(async move {
                start.wait().await;
                act.await
            })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap_or_else(|error| panic!("one of many: {error}")));
    }
    results
}

/// Contract 4: of several writers with one guard, exactly one is done; the others are told of that one.
pub(super) fn one_of_many_writers_wins(subject: &Subject) {
    subject.every(async |at| {
        let mut guard = Guard::Absent;
        for round in 0..6 {
            let saved = many(&at, |n, store| {
                let guard = guard.clone();
                async move { answer(store.save(&key("a"), &doc(&format!("{round} {n}")), &guard, None).await) }
            });
            let saved = saved.await;
            let mut winners = saved.iter().enumerate().filter_map(|(n, saved)| match saved {
                Saved::Done(revision) => Some((n, revision.clone())),
                Saved::Refused { .. } | Saved::Fenced { .. } => None,
            });
            let (Some((winner, revision)), None) = (winners.next(), winners.next()) else {
                panic!("not exactly one, in round {round}: {saved:?}");
            };
            let told = saved.iter().all(|saved| match saved {
                Saved::Done(_) => true,
                Saved::Refused { current } => current.as_ref() == Some(&revision),
                Saved::Fenced { .. } => false,
            });
            assert!(told, "the others are told of another one: {saved:?}");
            assert_eq!(at.get(&key("a")).await, Some(format!("{round} {winner}")));
            guard = Guard::Revision(revision);
        }
    });
}

/// The same for removals.
pub(super) fn one_of_many_removals_is_done(subject: &Subject) {
    subject.every(async |at| {
        for round in 0..4 {
            let revision = at.put(&key("a"), "x").await;
            let removed = many(&at, |_, store| {
                let guard = Guard::Revision(revision.clone());
                async move { answer(store.remove(&key("a"), &guard).await) }
            });
            let removed = removed.await;
            let done = removed.iter().filter(|removed| **removed == Removed::Done).count();
            let nothing = removed.iter().filter(|removed| **removed == Removed::NothingThere).count();
            assert_eq!((done, nothing), (1, MANY - 1), "in round {round}: {removed:?}");
        }
    });
}

/// Everybody counts up under the guard: the count is the number of those who were told that it is done.
pub(super) fn no_update_is_lost(subject: &Subject) {
    const TIMES: usize = 4;
    subject.every(async |at| {
        at.put(&key("count"), "0").await;
        let deadline = Instant::now() + at.patience() * MANY as u32;
        let revisions = many(&at, |_, store| async move {
            let mut revisions: Vec<Revision> = Vec::new();
            while revisions.len() < TIMES {
                assert!(Instant::now() < deadline, "somebody never gets through");
                let stored = load(&*store, &key("count")).await;
                let stored = stored.unwrap_or_else(|| panic!("the count is gone"));
                let count = String::from_utf8_lossy(stored.document.as_bytes()).parse().unwrap_or(0u64);
                let next = doc(&(count + 1).to_string());
                match answer(store.save(&key("count"), &next, &Guard::Revision(stored.revision), None).await)
                {
                    Saved::Done(revision) => revisions.push(revision),
                    Saved::Refused { current } => assert!(current.is_some(), "the count is gone"),
                    fenced @ Saved::Fenced { .. } => panic!("{fenced:?}, and nobody took a lease"),
                }
            }
            revisions
        });
        let revisions: Vec<_> = revisions.await.into_iter().flatten().collect();
        let different: BTreeSet<_> = revisions.iter().map(Revision::as_str).collect();
        assert_eq!(different.len(), MANY * TIMES, "a revision was given out twice");
        assert_eq!(at.get(&key("count")).await, Some((MANY * TIMES).to_string()));
    });
}

/// Every entry is in the log once, under the number that its writer was told, and each writer's in their order.
pub(super) fn no_entry_is_lost(subject: &Subject) {
    const TIMES: usize = 4;
    subject.every(async |at| {
        let told = many(&at, |n, store| async move {
            let mut told = Vec::new();
            for time in 0..TIMES {
                let event = event(&format!("{n}-{time}"));
                told.push((answer(store.append_audit(&key("a"), &event).await), event.detail));
            }
            assert!(told.is_sorted_by(|a, b| a.0 < b.0), "the numbers of one writer do not grow: {told:?}");
            told
        });
        let mut told: Vec<_> = told.await.into_iter().flatten().collect();
        told.sort();
        let log = answer(at.store().audit(&key("a"), None).await);
        let found: Vec<_> = log.into_iter().map(|entry| (entry.seq, entry.event.detail)).collect();
        assert_eq!(found, told);
    });
}

/// Nobody holds a key while another one does, and each grant has a number of its own, in the order of the grants.
pub(super) fn one_of_many_runners_holds(subject: &Subject) {
    const TIMES: usize = 3;
    subject.every(async |at| {
        let patience = at.patience();
        let inside = Arc::new(AtomicUsize::new(0));
        let grants = Arc::new(std::sync::Mutex::new(Vec::new()));
        many(&at, |n, store| {
            let (inside, grants) = (inside.clone(), grants.clone());
            async move {
                for _ in 0..TIMES {
                    let lease = take_soon(&*store, &key("a"), n as u32, patience).await;
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold it at once");
                    if let Ok(mut grants) = grants.lock() {
                        grants.push(lease.fence());
                    }
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            }
        })
        .await;
        let grants = grants.lock().map(|grants| grants.clone()).unwrap_or_default();
        assert_eq!(grants.len(), MANY * TIMES);
        assert!(grants.is_sorted_by(|a, b| a < b), "numbers do not grow: {grants:?}");
    });
}

/// A reader sees one document or another, never a part or a mixture.
pub(super) fn a_reader_sees_whole_documents(subject: &Subject) {
    const LENGTHS: [usize; 4] = [1, 3_000, 20_000, 100_000];
    subject.every(async |at| {
        put(&**at.store(), &key("a"), &[0]).await;
        let over = Arc::new(AtomicBool::new(false));
        many(&at, |n, store| {
            let over = over.clone();
            async move {
                if n == 0 {
                    for which in [3, 0, 2, 1, 3, 2, 0, 3] {
                        put(&*store, &key("a"), &vec![which as u8; LENGTHS[which]]).await;
                        tokio::task::yield_now().await;
                    }
                    over.store(true, Ordering::Release);
                }
                // Once more when nothing is written any more.
                let mut last = false;
                while !last {
                    last = over.load(Ordering::Acquire);
                    let stored = load(&*store, &key("a")).await;
                    let stored = stored.unwrap_or_else(|| panic!("between two documents there is none"));
                    assert_whole(stored.document.as_bytes(), &LENGTHS);
                    tokio::task::yield_now().await;
                }
            }
        })
        .await;
    });
}

fn assert_whole(bytes: &[u8], lengths: &[usize]) {
    let first = bytes.first().copied().unwrap_or(u8::MAX);
    let whole = lengths.get(usize::from(first)) == Some(&bytes.len());
    let mixed = bytes.iter().filter(|byte| **byte != first).count();
    assert!(whole && mixed == 0, "{} bytes of {first}, {mixed} of another", bytes.len());
}

/// A write that nobody waits for any more is done or not, and stands in nobody's way.
pub(super) fn a_dropped_write_is_whole_or_nothing(subject: &Subject) {
    subject.every(async |at| {
        let (store, key) = (at.store(), key("a"));
        let mut current = at.put(&key, "old").await;
        for round in 0..8 {
            let (old, new) = (at.get(&key).await, doc(&format!("new {round}")));
            let guard = Guard::Revision(current.clone());
            begin_and_drop(store.save(&key, &new, &guard, None)).await;
            // Who writes under the same guard finds out which.
            let next = format!("next {round}");
            current = match answer(store.save(&key, &doc(&next), &guard, None).await) {
                Saved::Done(revision) => {
                    assert_eq!(at.get(&key).await, Some(next));
                    revision
                }
                Saved::Refused { current: Some(current) } => {
                    assert_ne!(Guard::Revision(current.clone()), guard, "refused at its own revision");
                    let stored = load(&**store, &key).await;
                    let stored = stored.unwrap_or_else(|| panic!("{old:?} became nothing"));
                    assert_eq!((&stored.document, &stored.revision), (&new, &current));
                    current
                }
                Saved::Refused { current: None } => panic!("{old:?} became nothing"),
                fenced @ Saved::Fenced { .. } => panic!("{fenced:?}, and nobody took a lease"),
            };
        }
    });
}
