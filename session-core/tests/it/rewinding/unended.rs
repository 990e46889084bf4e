//! A rewind that died half-way, who tells of it, and looks at a tree.

use std::path::Path;

use session_core::error::RewindError;
use session_core::*;

use crate::scripted::*;
use crate::shelf::*;

/// Has a rewind of the last prompt die when its files are back and its conversation is not.
async fn die_after_the_files(yard: &Yard) {
    yard.store.set_after(1, &["save_stalls"]);
    let wish = back(1);
    {
        let mut rewind = Box::pin(yard.lifecycle.rewind(&wish));
        while yard.files() != ["a=1"] {
            let poll = std::future::poll_fn(|context| {
                std::task::Poll::Ready(rewind.as_mut().poll(context).is_ready())
            });
            assert!(!poll.await);
        }
    }
    yard.store.set(&[]);
}

#[tokio::test]
async fn a_rewind_that_died_between_files_and_conversation_is_told_once_and_can_be_undone() {
    for way in ["run", "undo", "again", "files", "clear", "clear again"] {
        let yard = yard();
        yard.run("one +a=1").await;
        let session = yard.run("two +a=2").await.session_id;
        die_after_the_files(&yard).await;
        assert_eq!(yard.said().await.len(), 2, "the conversation is as it was");
        let all = yard.lifecycle.checkpoints(&key()).await.unwrap();
        let last = all.last().unwrap();
        assert_eq!(last.label.moment, Moment::BeforeRewind);
        let told = yard.lifecycle.explain(&key()).await.unwrap();
        assert!(told.to_string().contains("was cut off before the conversation went back"), "{told}");
        let here = Path::new("/w/demo");
        let warnings = match way {
            "run" => {
                let next = yard.run("three").await;
                assert_eq!((next.session_id, yard.files()), (session.clone(), vec!["a=1".to_owned()]));
                next.warnings
            }
            "undo" => {
                let foreseen = yard.lifecycle.foresee_undo(&key(), here).await.unwrap();
                assert_eq!(foreseen.target.id, last.id);
                let undone = yard.undo().await;
                assert_eq!(
                    (undone.outcome, undone.conversation),
                    (RewindOutcome::Done, ConversationDone::Stays)
                );
                assert_eq!((yard.files(), yard.said().await.len()), (vec!["a=2".to_owned()], 2));
                undone.warnings
            }
            "again" => {
                let again = yard.lifecycle.rewind(&back(1)).await.unwrap();
                assert_eq!(again.outcome, RewindOutcome::Done);
                assert_eq!(
                    (yard.files(), yard.said().await),
                    (vec!["a=1".to_owned()], vec!["one +a=1".to_owned()])
                );
                again.warnings
            }
            "files" => {
                let again = yard.lifecycle.rewind(&back(1).mode(RewindMode::Files)).await.unwrap();
                assert_eq!(again.outcome, RewindOutcome::Done);
                again.warnings
            }
            "clear" => yard.lifecycle.clear(&key()).await.unwrap().warnings,
            _ => {
                yard.store.set(&["save"]);
                yard.lifecycle.clear(&key()).await.unwrap_err();
                yard.store.set(&[]);
                yard.lifecycle.clear(&key()).await.unwrap().warnings
            }
        };
        assert_eq!(warnings, [Warning::RewindUnended(last.id)], "{way}");
        let log = yard.lifecycle.audit(&key(), None).await.unwrap();
        let event = log.into_iter().map(|entry| entry.event).find(|event| event.kind == "rewind_unended");
        assert_eq!(event.map(|event| event.run), Some(last.label.step), "{way}");
        assert_eq!(yard.lifecycle.record(&key()).await.unwrap().unwrap().rewinding, None, "{way}");
        assert_eq!(yard.run("more").await.warnings, [], "{way}");
    }
}

/// Neither a run that died nor a wish that failed has told anybody.
#[tokio::test]
async fn it_is_told_by_who_comes_to_an_end() {
    let yard = yard();
    yard.run("one +a=1").await;
    yard.run("two +a=2").await;
    die_after_the_files(&yard).await;
    yard.agent.will([Act::Hang]);
    {
        let mut run = Box::pin(yard.lifecycle.run(request("three")));
        while yard.agent.calls().len() < 3 {
            let poll =
                std::future::poll_fn(|context| std::task::Poll::Ready(run.as_mut().poll(context).is_ready()));
            assert!(!poll.await);
        }
    }
    yard.store.set_after(1, &["save"]);
    yard.lifecycle.clear(&key()).await.unwrap_err();
    yard.store.set(&[]);
    let warnings = yard.run("four").await.warnings;
    let told = warnings.iter().any(|warning| matches!(warning, Warning::RewindUnended(_)));
    assert!(told, "{warnings:?}");
}

/// Nor has a rewind that put itself in its place and touched nothing.
#[tokio::test]
async fn it_is_told_also_where_the_next_rewind_is_not_begun() {
    let yard = yard();
    yard.run("one +a=1").await;
    yard.run("two +a=2").await;
    die_after_the_files(&yard).await;
    let undo = yard.lifecycle.record(&key()).await.unwrap().unwrap().rewinding.unwrap().undo;
    yard.shelf.inner().fail = vec!["restore"];
    yard.lifecycle.rewind(&back(2)).await.unwrap_err();
    yard.shelf.inner().fail.clear();
    assert_eq!(yard.run("three").await.warnings, [Warning::RewindUnended(undo)]);
}

/// One that was not begun after all leaves no word of it.
#[tokio::test]
async fn a_rewind_that_touched_nothing_leaves_no_word_in_the_record() {
    let yard = yard();
    yard.run("one +a=1").await;
    yard.run("two +a=2").await;
    yard.shelf.inner().fail = vec!["restore"];
    yard.lifecycle.rewind(&back(1)).await.unwrap_err();
    assert_eq!(yard.lifecycle.record(&key()).await.unwrap().unwrap().rewinding, None);
    assert_eq!(yard.run("three").await.warnings, []);
}

/// To take a checkpoint finishes what was cut off: also for a look that is told.
#[tokio::test]
async fn whoever_finishes_a_rewind_tells_the_log() {
    for way in ["take", "diff", "foresee"] {
        let yard = yard();
        let first = yard.run("one +a=1 +b=1").await.checkpoint.unwrap();
        yard.run("two +a=2 +b=2").await;
        (yard.shelf.inner().cut, yard.shelf.inner().dies) = (Some(1), true);
        let _ = yard.lifecycle.rewind(&back(1)).await.unwrap();
        yard.shelf.inner().fail.clear();
        let here = Path::new("/w/demo");
        match way {
            "take" => drop(yard.lifecycle.take_checkpoint(&key(), here).await.unwrap()),
            "diff" => drop(yard.lifecycle.checkpoint_diff_now(&key(), first, here).await.unwrap()),
            _ => drop(yard.lifecycle.foresee_undo(&key(), here).await.unwrap()),
        }
        assert_eq!(yard.files(), ["a=1", "b=1"], "{way}");
        assert_eq!(yard.kinds().await.last().map(String::as_str), Some("rewind_recovered"), "{way}");
    }
}

/// What differs by now can be asked while a run is at work; nobody goes by the checkpoint that is taken for that.
#[tokio::test]
async fn a_look_at_the_tree_is_out_of_the_way_of_who_has_the_key() {
    let yard = yard();
    let first = yard.run("one +a=1").await.checkpoint.unwrap();
    let here = Path::new("/w/demo");
    let lease = yard.store.inner.lease(&key(), &yard.host.holder()).await.unwrap();
    yard.shelf.inner().fail = vec!["forget"];
    let differs = yard.lifecycle.checkpoint_diff_now(&key(), first, here).await.unwrap();
    assert_eq!(differs.len(), 1);
    yard.shelf.inner().fail.clear();
    drop(lease);
    let look = yard.lifecycle.checkpoints(&key()).await.unwrap().pop().unwrap();
    assert!(look.label.is_look(), "{look:?}");
    let to_it = back(1).to(RewindTo::Checkpoint(look.id));
    let error = yard.lifecycle.rewind(&to_it).await.unwrap_err();
    assert!(matches!(error, RewindError::NoSuchCheckpoint { .. }), "{error:?}");
    assert_eq!(yard.lifecycle.rewind(&back(1)).await.unwrap().outcome, RewindOutcome::Done);
}

/// The prompts that so many turns take back from here.
async fn meant(yard: &Yard, turns: u32) -> Vec<String> {
    let preview = yard.lifecycle.foresee_rewind(&back(turns)).await.unwrap();
    preview.dropped.into_iter().filter_map(|one| one.prompt).collect()
}

/// Has a rewind of the last prompt die at some point.
async fn die(yard: &Yard, mode: RewindMode) {
    let wish = back(1).mode(mode);
    let mut rewind = Box::pin(yard.lifecycle.rewind(&wish));
    let poll =
        std::future::poll_fn(|context| std::task::Poll::Ready(rewind.as_mut().poll(context).is_ready()));
    assert!(!poll.await);
}

/// The record knows that it came to its end, whatever became of the checkpoint there.
#[tokio::test]
async fn a_rewind_without_a_checkpoint_at_its_end_has_taken_its_prompts_back() {
    for mode in [RewindMode::Both, RewindMode::Files, RewindMode::Conversation] {
        for dies in [true, false] {
            let yard = yard();
            for prompt in ["one +a=1", "two +a=2", "three +a=3", "four +a=4"] {
                yard.run(prompt).await;
            }
            if dies {
                yard.shelf.inner().stalls_at = Some(Moment::AfterRewind);
                die(&yard, mode).await;
            } else {
                yard.shelf.inner().fails_at = Some(Moment::AfterRewind);
                let rewound = yard.lifecycle.rewind(&back(1).mode(mode)).await.unwrap();
                assert!(matches!(rewound.warnings.as_slice(), [Warning::NotCheckpointed(_)]));
            }
            (yard.shelf.inner().stalls_at, yard.shelf.inner().fails_at) = (None, None);
            assert_eq!(yard.moments().await.last(), Some(&Moment::BeforeRewind));
            assert_eq!(meant(&yard, 2).await, ["two +a=2", "three +a=3"], "{mode:?}");
            let error = yard.lifecycle.foresee_rewind(&back(4)).await.unwrap_err();
            assert!(matches!(error, RewindError::NotSoMany { asked: 4, there: 3 }), "{error:?}");
            // A run that follows is one more, and the prompt comes back by an undo.
            yard.run("five +b=5").await;
            assert_eq!(meant(&yard, 2).await, ["three +a=3", "five +b=5"], "{mode:?}");
            let undone = yard.undo().await;
            let of =
                |list: &[Prompted]| -> Vec<_> { list.iter().filter_map(|one| one.prompt.clone()).collect() };
            assert_eq!(
                (of(&undone.dropped), of(&undone.regained)),
                (vec!["five +b=5".into()], vec!["four +a=4".into()])
            );
            assert_eq!((yard.files(), yard.said().await.len()), (vec!["a=4".to_owned()], 4), "{mode:?}");
            assert_eq!(meant(&yard, 2).await, ["three +a=3", "four +a=4"], "{mode:?}");
        }
    }
}

/// What a rewind of files alone notes is that alone: before it, the same prompt is meant.
#[tokio::test]
async fn a_rewind_of_files_that_died_before_its_word_has_taken_no_prompt_back() {
    let yard = yard();
    yard.run("one +a=1").await;
    yard.run("two +a=2").await;
    yard.store.set(&["save_stalls"]);
    die(&yard, RewindMode::Files).await;
    yard.store.set(&[]);
    assert_eq!((yard.files(), meant(&yard, 1).await), (vec!["a=1".to_owned()], vec!["two +a=2".to_owned()]));
}

/// A rewind whose checkpoint tells its end is forgotten by the record with the next one, and others from some number on.
#[tokio::test]
async fn the_record_knows_of_no_more_rewinds_than_it_has_to() {
    let yard = yard();
    let known = async || yard.lifecycle.record(&key()).await.unwrap().unwrap().went_back;
    for _ in 0..3 {
        yard.run("one +a=1").await;
        let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
        assert_eq!(known().await, [rewound.step]);
    }
    yard.shelf.inner().fails_at = Some(Moment::AfterRewind);
    for _ in 0..=SessionRecord::PAST_LIMIT {
        yard.run("one +a=1").await;
        let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
        assert_eq!(known().await.last(), Some(&rewound.step));
    }
    assert_eq!(known().await.len(), SessionRecord::PAST_LIMIT);
}

/// A rewind of files writes no record of a key that has none, as where it was lost.
#[tokio::test]
async fn a_key_without_a_record_gets_none_by_a_rewind_of_files() {
    let yard = yard();
    yard.run("one +a=1").await;
    assert!(matches!(yard.store.inner.remove(&key(), &Guard::Any).await, Ok(Removed::Done)));
    let rewound = yard.lifecycle.rewind(&back(1).mode(RewindMode::Files)).await.unwrap();
    assert_eq!((rewound.outcome, rewound.recorded.is_saved()), (RewindOutcome::Done, true));
    assert_eq!((yard.files().len(), yard.lifecycle.record(&key()).await.unwrap()), (0, None));
}
