//! A key sees its own checkpoints alone, and dropping takes nothing from the kept ones (contract 6 and 7).

use std::path::Path;

use session_core::error::CheckpointErrorKind::{self, NotFound};
use session_core::{Forget, RestoreOrder, SessionKey};

use super::Subject;
use super::covers::rich;
use super::stage::{answer, key, kind, new_id, owned, step};

/// Not by list, nor by the id of one, nor as one of the two ends of a question; keys that look alike are two.
pub(super) fn no_key_sees_anothers(subject: &Subject) {
    subject.every(async |at| {
        let (work, own) = (at.work(), key("a"));
        work.write("a", "one");
        let first = at.take(&work, &own).await;
        work.write("a", "two");
        let second = at.take(&work, &own).await;
        let codex = SessionKey::new("a", "codex").unwrap_or_else(|error| panic!("{error}"));
        for other in [key("A"), key("b"), key("a/"), key("../a"), key("e\u{301}"), key("\u{e9}"), codex] {
            let foreign = at.take(&work, &other).await;
            let (paths, engine) = (owned(&["a"]), at.engine());
            assert_eq!(at.ids(&other).await, [foreign.id], "{other}");
            assert_eq!(kind(engine.read(&other, first.id, Path::new("a"), 9).await), NotFound, "read");
            for (from, to) in [(first.id, second.id), (foreign.id, first.id), (first.id, foreign.id)] {
                assert_eq!(kind(engine.diff(&other, from, to).await), NotFound, "diff");
                let (key, step, paths) = (&other, step(), &*paths);
                let order = RestoreOrder { key, step, folder: &work.0, to, from, paths };
                assert_eq!(kind(engine.restore(&order).await), NotFound, "restore");
            }
            let dropped = answer(engine.forget(&other, Forget::These(&[first.id, new_id()])).await);
            assert_eq!(dropped.checkpoints, 0);
            let dropped = answer(engine.forget(&other, Forget::All).await);
            assert_eq!(dropped.checkpoints, 1, "{other}");
        }
        assert_eq!(at.ids(&own).await, [first.id, second.id]);
        assert_eq!(work.bytes("a").as_deref(), Some(&b"two"[..]));
        at.back(&own, &work, &first).await;
    });
}

/// It is in no list, is not read, and is counted once.
pub(super) fn what_was_forgotten_is_gone(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        let mut taken = Vec::new();
        for n in 0..4 {
            work.write("a", format!("{n}"));
            taken.push(at.take(&work, &key).await);
        }
        assert_eq!(answer(at.engine().forget(&key, Forget::These(&[])).await).checkpoints, 0);
        let these = [taken[1].id, taken[3].id, taken[1].id];
        assert_eq!(answer(at.engine().forget(&key, Forget::These(&these)).await).checkpoints, 2);
        let at = at.reopened().await;
        assert_eq!(at.ids(&key).await, [taken[0].id, taken[2].id]);
        let read = at.engine().read(&key, taken[1].id, Path::new("a"), 9).await;
        assert_eq!(kind(read), CheckpointErrorKind::NotFound);
        assert_eq!(answer(at.engine().forget(&key, Forget::These(&these)).await).checkpoints, 0);
        assert_eq!(answer(at.engine().forget(&key, Forget::All).await).checkpoints, 2);
        assert_eq!(at.list(&key).await, []);
        assert_eq!(answer(at.engine().forget(&key, Forget::All).await).checkpoints, 0);
        // And it goes on.
        let next = at.take(&work, &key).await;
        assert_eq!(at.ids(&key).await, [next.id]);
    });
}

/// What others need stays: of the same key, of another one, of one that is taken later.
pub(super) fn forgetting_takes_nothing_from_the_kept(subject: &Subject) {
    subject.every(async |at| {
        let (work, own, other) = (rich(&at), key("a"), key("b"));
        let mut kept = Vec::new();
        let mut dropped = Vec::new();
        for n in 0..5 {
            work.write("changes", format!("{n}"));
            dropped.push(at.take(&work, &own).await.id);
            kept.push((own.clone(), at.take(&work, &own).await));
            kept.push((other.clone(), at.take(&work, &other).await));
            dropped.push(at.take(&work, &own).await.id);
        }
        let gone = answer(at.engine().forget(&own, Forget::These(&dropped)).await);
        assert_eq!(gone.checkpoints, 10);
        for (key, taken) in &kept {
            at.back(key, &work, taken).await;
        }
        answer(at.engine().forget(&own, Forget::All).await);
        let at = at.reopened().await;
        for path in ["a.txt", "large", "src", "private"] {
            work.remove(path);
        }
        for (_, taken) in kept.iter().filter(|(key, _)| *key == other) {
            at.back(&other, &work, taken).await;
        }
        // What one key had and dropped, another one takes anew.
        let next = at.take(&work, &own).await;
        work.remove("large");
        at.back(&own, &work, &next).await;
    });
}

/// A key has the checkpoints of all of its trees, told apart by their tops; one tree is not put back to another's state.
pub(super) fn two_trees_are_apart(subject: &Subject) {
    subject.every(async |at| {
        let (main, own) = (at.work(), key("a"));
        let linked = main.linked(at.ground("linked"));
        main.write("a", "of main");
        linked.write("a", "of linked");
        let (first, second) = (at.take(&main, &own).await, at.take(&linked, &own).await);
        let listed = at.list(&own).await;
        assert_eq!(listed, [first.checkpoint.clone(), second.checkpoint.clone()]);
        assert_ne!(listed[0].root, listed[1].root);
        assert!(at.engine().diff(&own, first.id, second.id).await.is_err(), "a diff of two trees");
        main.write("a", "changed");
        linked.write("a", "changed, too");
        let third = at.take(&main, &own).await;
        let paths = owned(&["a"]);
        for (to, from) in [(&second, &third), (&first, &second)] {
            let (key, step, folder) = (&own, step(), &*main.0);
            let order = RestoreOrder { key, step, folder, to: to.id, from: from.id, paths: &paths };
            assert!(at.engine().restore(&order).await.is_err(), "a restore to the state of another tree");
        }
        assert_eq!(main.bytes("a").as_deref(), Some(&b"changed"[..]));
        at.back(&own, &main, &first).await;
        assert_eq!(linked.bytes("a").as_deref(), Some(&b"changed, too"[..]));
        at.back(&own, &linked, &second).await;
    });
}
