//! Leases within one process (contract 7).

use session_core::{Holder, LeaseOutcome, Timestamp};

use super::Subject;
use super::stage::{Needs, answer, begin_and_drop, holder, key, take, take_soon};

/// Who asks second is told that it is busy, whoever asks.
pub(super) fn one_runner_holds_a_key(subject: &Subject) {
    subject.every(async |at| {
        let store = at.store();
        let held = take(&**store, &key("a"), 1).await;
        assert!(held.is_ok(), "busy, and nobody took it: {held:?}");
        // The same holder is another run.
        for pid in [2, 1, 2] {
            assert!(take(&**store, &key("a"), pid).await.is_err(), "held twice, by 1 and {pid}");
        }
        let (other, key) = (store.clone(), key("a"));
        let elsewhere = tokio::spawn(async move { take(&*other, &key, 3).await.is_err() }).await;
        assert!(matches!(elsewhere, Ok(true)), "held twice, by another task");
    });
}

/// A refusal names who has it, word for word, where names are claimed; and nobody, where they are not.
pub(super) fn a_refused_lease_names_its_holder(subject: &Subject) {
    let names = [
        holder(1),
        Holder { host: "a \"host\"\n\u{e9}".to_owned(), pid: u32::MAX, since: None },
        Holder { host: String::new(), pid: 0, since: Some(Timestamp::EPOCH) },
    ];
    let busy = async |at: super::stage::Stage<'_>, named: bool| {
        for first in &names {
            let LeaseOutcome::Held(_lease) = answer(at.store().lease(&key("a"), first).await) else {
                panic!("busy, and nobody holds it");
            };
            for _ in 0..2 {
                let LeaseOutcome::Busy { by } = answer(at.store().lease(&key("a"), &holder(99)).await) else {
                    panic!("held twice");
                };
                assert_eq!(by.as_ref(), named.then_some(first));
            }
        }
    };
    subject.needing(Needs::HolderNames, async |at| busy(at, true).await, async |at| busy(at, false).await);
}

/// A lease ends when it is dropped, and with nothing else.
pub(super) fn a_dropped_lease_is_free(subject: &Subject) {
    subject.every(async |at| {
        let store = at.store();
        for round in 0..4 {
            let lease = take(&**store, &key("a"), round).await;
            assert!(lease.is_ok(), "held by {lease:?}, who let it go, in round {round}");
            // A refused question takes nothing from who has it.
            drop(take(&**store, &key("a"), 50).await);
            assert!(take(&**store, &key("a"), 51).await.is_err(), "in round {round}");
            drop(lease);
        }
    });
}

/// The number of a grant is greater than all before it.
pub(super) fn grants_are_numbered(subject: &Subject) {
    subject.every(async |at| {
        let mut last = None;
        for round in 0..12 {
            let lease = at.take_soon(&key("a"), round).await;
            drop(take(&**at.store(), &key("a"), 77).await);
            // Another key counts by itself, and documents come and go.
            drop(at.take_soon(&key("b"), round).await);
            at.put(&key("a"), "x").await;
            if round % 3 == 0 {
                let _ = answer(at.store().remove(&key("a"), &session_core::Guard::Any).await);
            }
            assert!(Some(lease.fence()) > last, "{} after {last:?}", lease.fence());
            last = Some(lease.fence());
        }
    });
}

/// A lease is the right to run, no lock on what is stored: another one may look, and set a record aside.
pub(super) fn a_lease_stops_no_writer(subject: &Subject) {
    subject.every(async |at| {
        let _lease = at.take_soon(&key("a"), 1).await;
        at.put(&key("a"), "x").await;
        assert_eq!(at.get(&key("a")).await.as_deref(), Some("x"));
        answer(at.store().append_audit(&key("a"), &super::stage::event("e")).await);
        assert_eq!(answer(at.store().audit(&key("a"), None).await).len(), 1);
        answer(at.store().state_dir(&key("a")).await);
        let other = at.handles(1).await.remove(0);
        super::stage::put(&*other, &key("a"), b"y").await;
        assert_eq!(at.get(&key("a")).await.as_deref(), Some("y"));
        assert!(take(&**at.store(), &key("a"), 2).await.is_err(), "a write freed the lease");
    });
}

/// A question that nobody waits for any more leaves nothing held.
pub(super) fn a_dropped_question_leaves_no_lease(subject: &Subject) {
    subject.every(async |at| {
        let (key, who) = (key("a"), holder(1));
        for _ in 0..16 {
            begin_and_drop(at.store().lease(&key, &who)).await;
        }
        drop(at.take_soon(&key, 2).await);
    });
}

/// Where handles are one store, a lease of one excludes all, outlives the handle that it came from, and is numbered across
/// them. Where they are not, that much is said by the reach, and a handle excludes for itself.
pub(super) fn a_lease_excludes_every_handle(subject: &Subject) {
    subject.needing(
        Needs::Handles,
        async |at| {
            let (first, second) = (at.another().await, at.another().await);
            let lease = take_soon(&*first, &key("a"), 1, at.patience()).await;
            let names = at.claims(Needs::HolderNames);
            for handle in [&second, at.store()] {
                let refused = take(&**handle, &key("a"), 2).await;
                assert_eq!(refused.map(|lease| lease.fence()), Err(names.then(|| holder(1))));
            }
            drop(first);
            assert!(take(&*second, &key("a"), 2).await.is_err(), "it ended with its handle");
            let fence = lease.fence();
            drop(lease);
            let next = take_soon(&*second, &key("a"), 2, at.patience()).await;
            assert!(next.fence() > fence, "{} after {fence}", next.fence());
        },
        async |at| {
            let lease = at.take_soon(&key("a"), 1).await;
            drop(at.another().await);
            assert!(take(&**at.store(), &key("a"), 2).await.is_err(), "opening another handle freed it");
            drop(lease);
        },
    );
}
