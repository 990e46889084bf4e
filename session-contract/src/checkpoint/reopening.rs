//! What is there when the store is opened again, or was out of reach for a while.

use std::fs;

use session_core::TakeOrder;

use super::Subject;
use super::covers::rich;
use super::stage::{key, label};
use super::tree::{assert_told, sure};

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
        let listed = super::stage::answer(other.list(&key).await);
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
        assert_eq!(at.list(&own).await, [first.checkpoint.clone()]);
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
