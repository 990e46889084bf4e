//! There and back again, also where nobody waited for the end (contract 3 and 5, cancel safety).

use session_core::error::CheckpointErrorKind;
use session_core::{Health, RestoreOrder, TakeOrder};

use super::Subject;
use super::covers::rich;
use super::moments::begin_and_drop;
use super::stage::{Stage, Taken, answer, key, label, new_id, step};
use super::work::Work;

/// A rewind is undone by the checkpoint that was taken before it, and done again, as often as anybody likes.
pub(super) fn a_restore_is_taken_back(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (rich(&at), key("a"));
        let one = at.take(&work, &key).await;
        work.write("a.txt", "two");
        work.rename("src", "source");
        work.chmod("run.sh", 0o700);
        let two = at.take(&work, &key).await;
        work.remove("source/main.rs");
        work.write("source/main.rs/by now", "a folder");
        let three = at.take(&work, &key).await;
        for to in [&one, &three, &two, &three, &one, &two, &one] {
            at.back(&key, &work, to).await;
        }
    });
}

/// Waits until nothing that was dropped is under way any more: then the tree can be worked on.
async fn settled(at: &Stage<'_>, work: &Work) -> Taken {
    loop {
        match at.engine().recover(&work.0).await {
            Err(error) if error.kind() == CheckpointErrorKind::Unavailable => {}
            recovered => {
                answer(recovered);
                match at.try_take(work, &key("a"), None).await {
                    Err(error) if error.kind() == CheckpointErrorKind::Unavailable => {}
                    taken => return answer(taken),
                }
            }
        }
        tokio::task::yield_now().await;
    }
}

/// A restore that nobody waits for, at whatever moment, is done or was never begun, once it is recovered.
pub(super) fn a_dropped_restore_is_finished(subject: &Subject) {
    subject.every(async |mut at| {
        let (work, key) = (rich(&at), key("a"));
        let one = at.take(&work, &key).await;
        for path in ["a.txt", "src", "large", "private"] {
            work.remove(path);
        }
        work.write("src", "a file by now");
        work.write("new/one", "new");
        work.chmod("key.txt", 0o644);
        let mut here = at.take(&work, &key).await;
        let mut there = one;
        for times in 1..12 {
            let paths = here.tree.differing(&there.tree);
            let (key, step) = (&key, step());
            let order =
                RestoreOrder { key, step, folder: &work.0, to: there.id, from: here.id, paths: &paths };
            begin_and_drop(at.engine().restore(&order), times).await;
            if times % 3 == 0 {
                at = at.reopened().await;
            }
            let now = settled(&at, &work).await;
            if now.tree == there.tree {
                std::mem::swap(&mut here, &mut there);
            }
            work.tree().assert_is(&here.tree, "after a dropped restore was recovered");
            assert_eq!(answer(at.engine().recover(&work.0).await), [], "it is recovered once");
        }
    });
}

/// A checkpoint that nobody waits for is there whole, or not at all, and the next one is not the worse for it.
pub(super) fn a_dropped_take_is_whole_or_nothing(subject: &Subject) {
    subject.every(async |mut at| {
        let (work, key) = (rich(&at), key("a"));
        at.take(&work, &key).await;
        let mut dropped = Vec::new();
        for times in 1..8 {
            work.append("large", b"more");
            let (id, tree, label) = (new_id(), work.tree(), label(&key));
            let order = TakeOrder { id, label: &label, at: at.now(), folder: &work.0, changed: None };
            begin_and_drop(at.engine().take(&order), times).await;
            dropped.push((id, tree));
            if times % 3 == 0 {
                at = at.reopened().await;
            }
            settled(&at, &work).await;
        }
        let listed = at.list(&key).await;
        assert!(listed.iter().all(|checkpoint| checkpoint.health == Health::Whole), "{listed:?}");
        for (id, tree) in dropped {
            if let Some(checkpoint) = listed.iter().find(|listed| listed.id == id).cloned() {
                at.back(&key, &work, &Taken { id, tree, checkpoint }).await;
            }
        }
    });
}
