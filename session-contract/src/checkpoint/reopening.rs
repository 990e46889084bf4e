//! What is there when the store is opened again, or was out of reach for a while.

use std::fs;

use session_core::error::CheckpointErrorKind;
use session_core::{CheckpointId, Checkpointer, SessionKey, TakeOrder, Timestamp};

use super::Subject;
use super::covers::rich;
use super::stage::{Taken, answer, key, label, new_id};
use super::tree::{assert_told, sure};
use super::work::Work;

/// A store that is opened again knows everything, and goes on.
pub(super) fn what_was_taken_is_there_again(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (rich(&at), key("a"));
        let first = at.take(&work, &key).await;
        work.write("a.txt", "two");
        work.remove("src");
        let second = at.take(&work, &key).await;
        let at = at.reopened().await;
        assert_eq!(at.list(&key).await, [first.checkpoint.clone(), second.checkpoint.clone()]);
        assert_told(&at.diff(&key, &first, &second).await, &first.tree, &second.tree);
        assert_eq!(at.read(&key, &first, "a.txt").await.as_deref(), Some(&b"a\n"[..]));
        at.back(&key, &work, &first).await;
        // Another handle sees what this one takes.
        let third = at.take(&work, &key).await;
        let other = at.another().await;
        let listed = answer(other.list(&key).await);
        assert_eq!(listed.last().map(|last| last.id), Some(third.id));
        let at = at.reopened().await;
        at.back(&key, &work, &second).await;
    });
}

/// An id that is taken stays what it is: nobody else gets it, and what it was is what it is (BR-139).
pub(super) fn an_id_is_never_used_again(subject: &Subject) {
    subject.every(async |at| {
        let (work, own) = (at.work(), key("a"));
        work.write("a", "one");
        let first = at.take(&work, &own).await;
        let at = at.reopened().await;
        work.write("a", "two");
        for key in [own.clone(), key("b")] {
            let label = label(&key);
            let order =
                TakeOrder { id: first.id, label: &label, at: at.now(), folder: &work.0, changed: None };
            assert!(at.engine().take(&order).await.is_err(), "{key} was given an id that is taken");
        }
        assert_eq!(at.list(&own).await, std::slice::from_ref(&first.checkpoint));
        assert_eq!(at.list(&key("b")).await, []);
        let second = at.take(&work, &own).await;
        assert_eq!(at.read(&own, &first, "a").await.as_deref(), Some(&b"one"[..]));
        assert_eq!(at.read(&own, &second, "a").await.as_deref(), Some(&b"two"[..]));
        at.back(&own, &work, &first).await;
    });
}

/// A store that cannot be written takes nothing; when it can be, the next checkpoint is a whole one (BR-139).
pub(super) fn a_failed_take_heals(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (rich(&at), key("a"));
        let first = at.take(&work, &key).await;
        work.write("a.txt", "two");
        let (store, away) = (at.scratch().dir().to_owned(), at.ground("away"));
        sure(fs::rename(&store, &away), &store);
        sure(fs::write(&store, "in its place"), &store);
        let failed = at.try_take(&work, &key, None).await;
        sure(fs::remove_file(&store), &store);
        sure(fs::rename(&away, &store), &store);
        // A handle may hold on to the folder wherever that goes: then there is nothing to heal.
        let between: Vec<_> = failed.iter().map(|taken| taken.id).collect();
        work.write("a.txt", "three");
        work.remove("large");
        let second = at.take(&work, &key).await;
        let at = at.reopened().await;
        let whole: Vec<_> = [first.id].into_iter().chain(between).chain([second.id]).collect();
        assert_eq!(at.ids(&key).await, whole);
        at.back(&key, &work, &first).await;
        at.back(&key, &work, &second).await;
        for taken in failed.iter() {
            at.back(&key, &work, taken).await;
        }
    });
}

/// Takes some, each as soon as nobody else works on the tree.
async fn some(engine: &dyn Checkpointer, work: &Work, key: &SessionKey) -> Vec<CheckpointId> {
    let (mut ids, label) = (Vec::new(), label(key));
    while ids.len() < 4 {
        let at = Timestamp::from_millis(1_800_000_000_000 + ids.len() as i64);
        let order = TakeOrder { id: new_id(), label: &label, at, folder: &work.0, changed: None };
        match engine.take(&order).await {
            Err(error) if error.kind() == CheckpointErrorKind::Unavailable => tokio::task::yield_now().await,
            taken => ids.push(answer(taken).id),
        }
    }
    ids
}

/// Two that take checkpoints of one tree at once, each on a handle of its own, are in nobody's way.
pub(super) fn what_is_taken_at_once_is_whole(subject: &Subject) {
    subject.every(async |at| {
        let (work, keys) = (rich(&at), [key("a"), key("b")]);
        let handles = [at.another().await, at.another().await, at.another().await];
        let (one, two, three) = tokio::join!(
            some(&*handles[0], &work, &keys[0]),
            some(&*handles[1], &work, &keys[1]),
            some(&*handles[2], &work, &keys[0]),
        );
        let tree = work.tree();
        work.remove("src");
        work.write("a.txt", "changed");
        for (key, ids) in [(&keys[0], [one, three].concat()), (&keys[1], two)] {
            let listed = at.list(key).await;
            assert_eq!(listed.len(), ids.len());
            for id in ids {
                let checkpoint = listed.iter().find(|listed| listed.id == id).cloned();
                let checkpoint = checkpoint.unwrap_or_else(|| panic!("{id} is not listed"));
                let taken = Taken { id, tree: tree.clone(), checkpoint };
                let from = at.back(key, &work, &taken).await;
                at.back(key, &work, &from).await;
            }
        }
    });
}
