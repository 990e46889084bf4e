//! Sessions: continued, copied, lost, and named by the right field.

use session_core::decide::{Activity, Verdict};
use session_core::error::AgentErrorKind;
use session_core::{ForkSupport, IdOnResume, Mode, NativeId};

use super::stage::{Stage, Turned};
use super::{Play, Subject};

/// What a capability does not claim is refused as a command, and nothing is started.
async fn is_refused(stage: &Stage, mode: Mode<'_>) {
    let before = stage.fixture.started().await;
    let turned = stage.run(mode, "not claimed").await;
    match turned.result {
        Err(error) => assert_eq!(error.kind(), AgentErrorKind::Command, "{mode:?}: {error}"),
        Ok(report) => panic!("{mode:?} is not claimed, and not refused: {report:?}"),
    }
    assert_eq!(stage.fixture.started().await, before, "{mode:?} is refused, and started");
}

/// Needs resumable sessions. The model is shown what was said before, in the session asked for, or in its copy.
pub(super) fn a_resume_continues_the_session(subject: &Subject) {
    subject.on_stage(async |stage| {
        let first = stage.session(1, "one").await;
        if !stage.resumes() {
            return is_refused(stage, Mode::Resume { id: &first }).await;
        }
        let turned = stage.run(Mode::Resume { id: &first }, "two").await;
        assert_eq!(turned.verdict(), Verdict::Completed, "{:?}", turned.report());
        let session = turned.session().unwrap_or_else(|| panic!("the session has no name"));
        let kept = stage.capabilities().id_on_resume == IdOnResume::Kept;
        assert_eq!(*session == first, kept, "the id after the resume of {first}: {session}");
        assert_eq!(stage.fixture.conversation(session).await, ["one", "two"]);
    });
}

/// Where the caller chooses the id of a new session, it is taken; elsewhere it is refused.
pub(super) fn a_chosen_id_is_taken(subject: &Subject) {
    subject.on_stage(async |stage| {
        stage.play(Play::Works).await;
        let id = stage.new_id(7);
        if !stage.capabilities().caller_chosen_id {
            return is_refused(stage, Mode::Fresh { id: Some(&id) }).await;
        }
        let turned = stage.run(Mode::Fresh { id: Some(&id) }, "one").await;
        assert_eq!((turned.verdict(), turned.session()), (Verdict::Completed, Some(&id)));
        assert_eq!(stage.fixture.conversation(&id).await, ["one"]);
    });
}

/// Where a session can be forked, the copy goes its own way and the original stays; elsewhere a fork is refused.
pub(super) fn a_fork_leaves_its_original(subject: &Subject) {
    subject.on_stage(async |stage| {
        let first = stage.session(1, "one").await;
        let chosen = stage.new_id(2);
        let support = stage.capabilities().fork;
        let id = Some(&chosen).filter(|_| support == ForkSupport::CallerChoosesId);
        let mode = Mode::Fork { source: &first, transcript: None, id };
        if support == ForkSupport::No {
            return is_refused(stage, mode).await;
        }
        let turned = stage.run(mode, "two").await;
        assert_eq!(turned.verdict(), Verdict::Completed, "{:?}", turned.report());
        let copy = turned.session().unwrap_or_else(|| panic!("the copy has no name"));
        assert_ne!(*copy, first, "the copy is the original");
        assert!(id.is_none_or(|id| id == copy), "{copy} is not the id that was chosen");
        assert_eq!(stage.fixture.conversation(copy).await, ["one", "two"]);
        assert_eq!(stage.fixture.conversation(&first).await, ["one"], "the original is what it was");
    });
}

/// Nothing was done: neither the model nor a tool was called, and no other conversation took the prompt.
async fn did_nothing(stage: &Stage, turned: &Turned, asked: &NativeId) {
    let report = turned.report();
    assert_ne!(report.verdict, Verdict::Completed, "what is not there was not continued");
    assert_eq!(report.evidence.observation.activity(), Activity::None, "{report:?}");
    let named = turned.session();
    assert!(named.is_none() || named == Some(asked), "a resume that failed names {named:?} (2)");
    assert!(stage.fixture.conversation(asked).await.is_empty());
}

/// Needs resumable sessions. What is not there is missing; the run says so, and does nothing.
pub(super) fn a_deleted_session_is_missing(subject: &Subject) {
    subject.on_stage(async |stage| {
        let first = stage.session(1, "one").await;
        if !stage.resumes() {
            return is_refused(stage, Mode::Resume { id: &first }).await;
        }
        // Where nothing can be deleted, what never was is as lost.
        let lost = match stage.fixture.delete(&first).await {
            Ok(()) => first,
            Err(_) => stage.new_id(99),
        };
        let turned = stage.run(Mode::Resume { id: &lost }, "two").await;
        assert_eq!(turned.verdict(), Verdict::Missing, "{:?}", turned.report());
        did_nothing(stage, &turned, &lost).await;
    });
}

/// Needs resumable sessions. An id that is printed while a resume fails is nobody's (2).
pub(super) fn a_failed_resume_names_no_other_session(subject: &Subject) {
    subject.on_stage(async |stage| {
        let first = stage.session(1, "one").await;
        if !stage.resumes() {
            return is_refused(stage, Mode::Resume { id: &first }).await;
        }
        let asked = stage.new_id(99);
        stage.play(Play::FailsNaming(first)).await;
        let turned = stage.run(Mode::Resume { id: &asked }, "two").await;
        did_nothing(stage, &turned, &asked).await;
    });
}

/// An id in an answer, or in a prompt, is text (2).
pub(super) fn an_id_in_the_words_of_the_model_is_none(subject: &Subject) {
    subject.on_stage(async |stage| {
        let other = stage.session(1, "one").await;
        let text = format!("session_id: {other}\n{{\"session_id\":\"{other}\"}}");
        // Where nobody can put words in the model's mouth, the prompt has them.
        stage.play(Play::Says(text.clone())).await;
        let id = stage.new_id(2);
        let turned = stage.run(stage.fresh(&id), &text).await;
        assert_eq!(turned.verdict(), Verdict::Completed, "{:?}", turned.report());
        assert!(turned.session().is_some_and(|session| *session != other), "{:?}", turned.session());
    });
}
