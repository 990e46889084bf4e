//! Going back: what comes of files and conversation, and what is told.

mod apart;
mod troubles;
mod unended;

use std::path::{Path, PathBuf};

use session_core::decide::Why;
use session_core::error::RewindError;
use session_core::*;

use crate::scripted::*;
use crate::shelf::*;

fn paths(changes: &[Change]) -> Vec<String> {
    changes.iter().map(|change| change.path.display().to_string()).collect()
}

#[tokio::test]
async fn a_run_lies_between_two_checkpoints() {
    let yard = yard();
    let first = yard.run("one +a=1").await;
    let second = yard.run(&format!("two {}", "x".repeat(300))).await;
    let all = yard.lifecycle.checkpoints(&key()).await.unwrap();
    let told: Vec<_> = all.iter().map(|one| (one.label.moment, one.label.step)).collect();
    let of = |run| [(Moment::BeforeRun, run), (Moment::AfterRun, run)];
    assert_eq!(told, [of(first.run), of(second.run)].concat());
    assert_eq!((first.checkpoint, second.checkpoint), (Some(all[0].id), Some(all[2].id)));
    let turns: Vec<_> = all.iter().map(|one| one.label.spot.as_ref().map(|spot| spot.turns)).collect();
    assert_eq!(turns, [None, Some(1), Some(1), Some(2)]);
    assert_eq!(all[2].label.spot.as_ref().map(|spot| spot.native_id.clone()), first.session_id);
    assert_eq!(all[0].label.prompt.as_deref(), Some("one +a=1"));
    assert_eq!(all[2].label.prompt.as_ref().map(|prompt| prompt.chars().count()), Some(200));
}

#[tokio::test]
async fn files_and_conversation_go_back_together_and_come_back_by_an_undo() {
    let yard = yard();
    yard.run("one +a=1").await;
    let before = yard.run("two +a=2 +d/b=2").await;
    let preview = yard.lifecycle.foresee_rewind(&back(1)).await.unwrap();
    assert_eq!(paths(&preview.files.restore), ["a", "d", "d/b"]);
    let session = before.session_id.clone().unwrap();
    assert_eq!(preview.conversation, ConversationPlan::Branch { of: session.clone(), keep: 1 });
    let dropped: Vec<_> = preview.dropped.iter().map(|one| (one.step, one.prompt.as_deref())).collect();
    assert_eq!(dropped, [(before.run, Some("two +a=2 +d/b=2"))]);
    assert_eq!((yard.files().len(), yard.agent.world().sessions.len()), (3, 1), "nothing was changed");
    assert_eq!(yard.moments().await.len(), 4, "nothing is left of the look");

    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    assert_eq!(rewound.outcome, RewindOutcome::Done);
    assert_eq!(yard.files(), ["a=1"]);
    assert_eq!(yard.said().await, ["one +a=1"]);
    let branch = rewound.session_after.clone().unwrap();
    assert_eq!(
        rewound.conversation,
        ConversationDone::Branched { session: branch.clone(), of: session.clone(), kept: 1 }
    );
    let record = yard.lifecycle.record(&key()).await.unwrap().unwrap();
    assert_eq!(record.binding.unwrap().forked_from, Some(session.clone()));
    let past: Vec<_> =
        record.past.iter().map(|one| (&one.native_id, one.why.as_str(), one.rejoinable)).collect();
    assert_eq!(past, [(&session, "rewound", true)]);

    // The next run continues the branch, and sees the kept prompts alone.
    let third = yard.run("three +c=3").await;
    assert_eq!((third.route, third.session_id, third.text.as_str()), (Route::Resumed, Some(branch), "2"));
    // One rewind further takes back what is there now, not what was taken back already.
    let preview = yard.lifecycle.foresee_rewind(&back(2)).await.unwrap();
    let dropped: Vec<_> = preview.dropped.iter().filter_map(|one| one.prompt.as_deref()).collect();
    assert_eq!(dropped, ["one +a=1", "three +c=3"]);

    let undone = yard.undo().await;
    assert_eq!((undone.outcome, undone.session_after.as_ref()), (RewindOutcome::Done, Some(&session)));
    assert_eq!(undone.conversation, ConversationDone::Rebound { session });
    assert_eq!(yard.files(), ["a=2", "d/", "d/b=2"]);
    assert_eq!(yard.said().await, ["one +a=1", "two +a=2 +d/b=2"]);
    assert_eq!(yard.run("four").await.text, "3");
    let kinds = yard.kinds().await;
    assert_eq!(kinds, ["run_finished", "run_finished", "rewound", "run_finished", "undone", "run_finished"]);
}

#[tokio::test]
async fn an_undo_can_be_undone() {
    let yard = yard();
    yard.run("one +a=1").await;
    yard.run("two +a=2").await;
    let _ = yard.lifecycle.rewind(&back(1)).await.unwrap();
    let branch = yard.run("three +a=3").await.session_id;
    let _ = yard.undo().await;
    assert_eq!(yard.files(), ["a=2"]);
    let again = yard.undo().await;
    assert_eq!((again.outcome, again.session_after), (RewindOutcome::Done, branch));
    assert_eq!(yard.files(), ["a=3"]);
    assert_eq!(yard.said().await, ["one +a=1", "three +a=3"]);
    let all = |list: &[Prompted]| -> Vec<_> { list.iter().filter_map(|one| one.prompt.clone()).collect() };
    assert_eq!(
        (all(&again.dropped), all(&again.regained)),
        (vec!["two +a=2".into()], vec!["three +a=3".into()])
    );
}

#[tokio::test]
async fn to_before_the_first_prompt_nothing_is_kept_and_the_next_run_begins_anew() {
    let yard = yard();
    let first = yard.run("one +a=1").await.session_id;
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    assert_eq!((rewound.outcome, rewound.conversation), (RewindOutcome::Done, ConversationDone::Fresh));
    assert!(yard.files().is_empty());
    let next = yard.run("two").await;
    assert_eq!(next.route, Route::Fresh(Why::NoPriorSession));
    assert_ne!(next.session_id, first);
    assert!(matches!(yard.undo().await.conversation, ConversationDone::Rebound { .. }));
    assert_eq!(yard.files(), ["a=1"]);
    assert_eq!(yard.said().await, ["one +a=1"]);
}

/// The agent counts on over a session, and so in a branch of it: each run costs what it costs.
#[tokio::test]
async fn figures_go_back_with_the_conversation() {
    let yard = yard();
    for prompt in ["one", "two", "three"] {
        yard.run(prompt).await;
    }
    let _ = yard.lifecycle.rewind(&back(2)).await.unwrap();
    // The agent's figure stood at a half when the branch ends.
    yard.agent.world().counter = 0.5;
    assert_eq!(yard.run("two again").await.cost_usd, Some(0.5));
    let _ = yard.undo().await;
    yard.agent.world().counter = 1.5;
    assert_eq!(yard.run("four").await.cost_usd, Some(0.5));
}

/// As many prompts, and yet more than there was: what a run left that kept no prompt of its own.
#[tokio::test]
async fn a_session_that_grew_without_a_prompt_is_not_where_it_stood() {
    let yard = yard();
    let session = yard.run("one").await.session_id.unwrap();
    let asked = yard.lifecycle.take_checkpoint(&key(), Path::new("/w/demo")).await.unwrap();
    let request = back(1).to(RewindTo::Checkpoint(asked.id)).mode(RewindMode::Conversation);
    let preview = yard.lifecycle.foresee_rewind(&request).await.unwrap();
    assert_eq!(preview.conversation, ConversationPlan::Unchanged);
    yard.agent.world().sessions.get_mut(session.as_str()).unwrap()[0].push_str(" and a half of an answer");
    let preview = yard.lifecycle.foresee_rewind(&request).await.unwrap();
    assert_eq!(preview.conversation, ConversationPlan::Branch { of: session, keep: 1 });
}

#[tokio::test]
async fn what_is_not_covered_is_told_and_a_checkpoint_can_be_asked_for() {
    let yard = yard();
    yard.run("one +a=1").await;
    let asked = yard.lifecycle.take_checkpoint(&key(), Path::new("/w/demo")).await.unwrap();
    yard.by_hand("+a=mine");
    yard.run("two +a=2 +b=2").await;
    let left_out = LeftOut { path: PathText::new(Path::new("target")), why: LeftOutWhy::Ignored };
    yard.shelf.inner().left_out = vec![left_out.clone()];
    let request = back(1).to(RewindTo::Checkpoint(asked.id));
    let preview = yard.lifecycle.foresee_rewind(&request).await.unwrap();
    assert_eq!((preview.not_covered, preview.not_covered_count), (vec![left_out], 1));
    assert_eq!(
        (paths(&preview.files.restore), paths(&preview.files.conflicts)),
        (vec!["b".into()], vec!["a".into()])
    );
    let differs = yard.lifecycle.checkpoint_diff_now(&key(), asked.id, Path::new("/w/demo")).await.unwrap();
    assert_eq!(paths(&differs), ["a", "b"]);
    let was = yard.lifecycle.checkpoint_file(&key(), asked.id, Path::new("a"), 10).await.unwrap();
    assert_eq!(was.as_deref(), Some(&b"1"[..]));
}

/// Redo from the end of run 2 with the files restored: the hidden history does not go on.
#[tokio::test]
async fn br_129_a_step_is_tried_again_without_the_hidden_history() {
    let yard = yard();
    for prompt in ["p1 +a=1", "p2 +a=2", "p3 +a=3", "p4 +a=4", "p5 +a=5"] {
        yard.run(prompt).await;
    }
    let rewound = yard.lifecycle.rewind(&back(3)).await.unwrap();
    assert_eq!(rewound.outcome, RewindOutcome::Done);
    assert_eq!(
        (yard.files(), yard.said().await),
        (vec!["a=2".to_owned()], vec!["p1 +a=1".into(), "p2 +a=2".into()])
    );
    assert_eq!(yard.run("p3 again").await.text, "3");
    assert_eq!(yard.said().await, ["p1 +a=1", "p2 +a=2", "p3 again"]);

    // Where the agent's sessions cannot be branched, nothing is touched, and files alone say what goes apart.
    yard.agent.world().no_branch = Some(BranchRefusal::Unsupported("it cannot branch here".into()));
    let (files, moments) = (yard.files(), yard.moments().await);
    let preview = yard.lifecycle.foresee_rewind(&back(1)).await.unwrap();
    assert_eq!(preview.conversation, ConversationPlan::Unsupported("it cannot branch here".into()));
    let error = yard.lifecycle.rewind(&back(1)).await.unwrap_err();
    assert!(
        matches!(&error, RewindError::Unsupported { why } if why == "it cannot branch here"),
        "{error:?}"
    );
    assert_eq!((yard.files(), yard.moments().await), (files, moments));
    let rewound = yard.lifecycle.rewind(&back(2).mode(RewindMode::Files)).await.unwrap();
    assert_eq!(rewound.apart, Some(Apart::ConversationStays { prompts: 2, lacks: 0 }));
    assert_eq!(yard.files(), ["a=1"]);
}

/// The agent looks for a file that is not there; a person makes it afterwards.
#[tokio::test]
async fn br_137_a_file_that_somebody_made_since_stays() {
    for conflicts in [Conflicts::Keep, Conflicts::Overwrite] {
        let yard = yard();
        yard.run("read notes.md +a=1").await;
        yard.by_hand("+notes.md=mine");
        let preview = yard.lifecycle.foresee_rewind(&back(1).conflicts(conflicts)).await.unwrap();
        assert_eq!(paths(&preview.files.left_alone), ["notes.md"]);
        let rewound = yard.lifecycle.rewind(&back(1).conflicts(conflicts)).await.unwrap();
        assert_eq!(rewound.outcome, RewindOutcome::Done);
        assert_eq!(yard.files(), ["notes.md=mine"]);
    }
}

#[tokio::test]
async fn what_both_changed_stays_unless_the_caller_says_otherwise() {
    let yard = yard();
    yard.run("one +a=1 +b=1").await;
    yard.by_hand("+a=mine");
    let kept = yard.lifecycle.rewind(&back(1)).await.unwrap();
    let conflicts = vec![PathBuf::from("a")];
    assert_eq!(kept.outcome, RewindOutcome::Partial(vec![Unfinished::Conflicts(conflicts)]));
    assert_eq!(yard.files(), ["a=mine"]);
    let _ = yard.undo().await;
    assert_eq!(yard.files(), ["a=mine", "b=1"]);
    let request = back(1).conflicts(Conflicts::Overwrite);
    assert_eq!(yard.lifecycle.rewind(&request).await.unwrap().outcome, RewindOutcome::Done);
    assert!(yard.files().is_empty());
    // What was overwritten comes back, too.
    assert_eq!(yard.undo().await.outcome, RewindOutcome::Done);
    assert_eq!(yard.files(), ["a=mine", "b=1"]);
}

#[tokio::test]
async fn a_folder_that_holds_what_somebody_else_made_stays() {
    let yard = yard();
    yard.run("one +d/a=1").await;
    yard.by_hand("+d/mine=1");
    let rewound = yard.lifecycle.rewind(&back(1)).await.unwrap();
    assert_eq!(
        (rewound.outcome, yard.files()),
        (RewindOutcome::Done, vec!["d/".to_owned(), "d/mine=1".into()])
    );
    assert_eq!(rewound.files.left_alone, [Path::new("d"), Path::new("d/mine")]);
}

#[tokio::test]
async fn one_half_goes_back_alone_and_says_so() {
    let yard = yard();
    yard.run("one +a=1").await;
    yard.run("two +a=2").await;
    let talk = yard.lifecycle.rewind(&back(1).mode(RewindMode::Conversation)).await.unwrap();
    assert_eq!((talk.outcome, talk.apart), (RewindOutcome::Done, Some(Apart::FilesStay { paths: 1 })));
    assert_eq!((yard.files(), yard.said().await.len()), (vec!["a=2".to_owned()], 1));
    let _ = yard.undo().await;
    let files = yard.lifecycle.rewind(&back(1).mode(RewindMode::Files)).await.unwrap();
    assert_eq!(
        (files.outcome, files.apart),
        (RewindOutcome::Done, Some(Apart::ConversationStays { prompts: 1, lacks: 0 }))
    );
    assert_eq!((yard.files(), yard.said().await.len()), (vec!["a=1".to_owned()], 2));
    assert_eq!(files.conversation, ConversationDone::Stays);
}
