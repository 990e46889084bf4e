//! Where going back, summaries, recipes and projects meet.

use session_core::*;

use crate::scripted::*;
use crate::shelf::*;

fn of_key() -> SummaryRequest {
    SummaryRequest::new(key())
}

#[tokio::test]
async fn a_summary_that_waits_goes_with_the_conversation_that_it_was_for() {
    // Whoever goes back, clears or takes up the old one does not want to begin with it.
    for way in ["rewind", "clear", "rejoin"] {
        let yard = yard();
        yard.run("one +a=1").await;
        yard.run("two +a=2").await;
        let compacted = yard.lifecycle.compact(&of_key()).await.unwrap();
        assert!(yard.lifecycle.record(&key()).await.unwrap().unwrap().preamble.is_some());
        match way {
            "rewind" => drop(yard.lifecycle.rewind(&back(1)).await.unwrap()),
            "clear" => drop(yard.lifecycle.clear(&key()).await.unwrap()),
            _ => drop(yard.lifecycle.rejoin(&key(), &compacted.before).await.unwrap()),
        }
        let next = yard.run("three").await;
        assert_eq!(next.preamble, None, "{way}");
        let (_, prompt) = yard.agent.world().calls.last().unwrap().clone();
        assert_eq!(prompt, "three", "{way}");
    }
}

#[tokio::test]
async fn what_others_handed_over_still_waits_after_a_clear() {
    let yard = yard();
    yard.run("one").await;
    let other = SessionKey::new("issue-43", "scripted").unwrap();
    yard.lifecycle.run(request("elsewhere").session(SessionRef::new("issue-43", "scripted"))).await.unwrap();
    let _ = yard.lifecycle.hand_over_to(&SummaryRequest::new(other), &key()).await.unwrap();
    let _ = yard.lifecycle.clear(&key()).await.unwrap();
    assert_eq!(yard.run("two").await.preamble.as_deref(), Some("handed_over"));
}

async fn waits(yard: &Yard) -> Option<String> {
    let record = yard.lifecycle.record(&key()).await.unwrap().unwrap();
    record.preamble.map(|preamble| preamble.why)
}

/// Has a text go before the prompt of the next run of the key.
async fn pass_on(yard: &Yard, why: &str) {
    yard.run("one +a=1").await;
    if why == "compacted" {
        let _ = yard.lifecycle.compact(&of_key()).await.unwrap();
    } else {
        let other = SessionKey::new("issue-43", "scripted").unwrap();
        let there = request("elsewhere").session(SessionRef::new("issue-43", "scripted"));
        yard.lifecycle.run(there).await.unwrap();
        let _ = yard.lifecycle.hand_over_to(&SummaryRequest::new(other), &key()).await.unwrap();
    }
}

#[tokio::test]
async fn what_went_before_a_prompt_that_is_taken_back_waits_again() {
    for why in ["compacted", "handed_over"] {
        let yard = yard();
        pass_on(&yard, why).await;
        assert_eq!(yard.run("two +a=2").await.preamble.as_deref(), Some(why));
        assert_eq!(waits(&yard).await, None);
        let said = yard.said().await;
        let two = yard.lifecycle.checkpoints(&key()).await.unwrap().into_iter().rev();
        let two = two.filter(|one| one.label.key == key()).nth(1).unwrap().id;
        let files = yard.lifecycle.rewind(&back(1).mode(RewindMode::Files)).await.unwrap();
        assert_eq!((files.outcome, waits(&yard).await), (RewindOutcome::Done, None), "the prompt stays");
        let to_two = back(1).to(RewindTo::Checkpoint(two));
        let rewound = yard.lifecycle.rewind(&to_two).await.unwrap();
        assert_eq!((rewound.outcome, waits(&yard).await.as_deref()), (RewindOutcome::Done, Some(why)));
        // The conversation that holds it is back: it is told there.
        let undone = yard.undo().await;
        assert_eq!((undone.outcome, waits(&yard).await), (RewindOutcome::Done, None), "{why}");
        assert_eq!(yard.said().await, said);
        assert_eq!(yard.undo().await.outcome, RewindOutcome::Done);
        assert_eq!(waits(&yard).await.as_deref(), Some(why));
        let again = yard.run("three").await;
        assert_eq!((again.preamble.as_deref(), waits(&yard).await), (Some(why), None));
        assert!(yard.agent.world().calls.last().unwrap().1.starts_with("<earlier-conversation"));
        // Told on both ways: it waits on neither, and does before both.
        for way in ["two", "three"] {
            assert_eq!(yard.undo().await.outcome, RewindOutcome::Done);
            assert_eq!(waits(&yard).await, None, "{why}: {way}");
        }
        let _ = yard.lifecycle.rewind(&to_two).await.unwrap();
        assert_eq!(waits(&yard).await.as_deref(), Some(why));
    }
}

#[tokio::test]
async fn of_two_texts_the_later_one_waits_and_the_other_is_said() {
    let yard = yard();
    pass_on(&yard, "handed_over").await;
    yard.run("two").await;
    let other = SessionKey::new("issue-43", "scripted").unwrap();
    yard.lifecycle.run(request("more").session(SessionRef::new("issue-43", "scripted"))).await.unwrap();
    let later = yard.lifecycle.hand_over_to(&SummaryRequest::new(other), &key()).await.unwrap();
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    assert_eq!(rewound.warnings, [Warning::PreambleLost("handed_over".into())]);
    let record = yard.lifecycle.record(&key()).await.unwrap().unwrap();
    assert_eq!(record.preamble.map(|preamble| preamble.text), Some(later.summary.text));
}

#[tokio::test]
async fn a_recipe_knows_the_checkpoint_before_its_last_run() {
    let yard = yard();
    yard.lifecycle.run(request("one +a=1").seed(RecipeSeed::new("fix.yaml", "1"))).await.unwrap();
    let second = yard.run("two +a=2").await;
    let record = yard.lifecycle.record(&key()).await.unwrap().unwrap();
    assert_eq!(record.recipe().unwrap().last_checkpoint, second.checkpoint);
    assert!(second.checkpoint.is_some());
}

#[tokio::test]
async fn a_fork_enters_another_project_by_a_yes_alone() {
    let yard = yard();
    yard.run("one").await;
    let elsewhere = folder("/w/else", 9, "/w/else/.git");
    yard.host.folders.lock().unwrap().insert("/w/else".into(), elsewhere);
    let other = SessionKey::new("issue-43", "scripted").unwrap();
    let fork = ForkRequest::new(key(), other.clone(), "/w/else");
    let refused = yard.lifecycle.fork(&fork).await.unwrap_err();
    assert!(matches!(refused, session_core::error::RewindError::OtherProject { .. }), "{refused:?}");
    assert_eq!(yard.lifecycle.record(&other).await.unwrap(), None);
    let forked = yard.lifecycle.fork(&fork.enter_other_project(true)).await.unwrap();
    assert_eq!(forked.kept, 1);
}
