//! The orchestration where it must refuse, withhold or leave things alone.

use session_core::decide::{Activity, Verdict, Why};
use session_core::error::RunError;
use session_core::*;

use crate::bench::*;
use crate::scripted::*;

#[tokio::test]
async fn three_failed_resumes_in_a_row_are_enough_for_one_run() {
    let bench = bench_with(Scripted::new(), false);
    bench.run("one").await;
    for _ in 0..3 {
        bench.agent.will([Act::Fail(Verdict::Unknown, Activity::None), Act::Work]);
        assert_eq!(bench.run("again").await.route, Route::FellBack(Why::ResumeUnrecognisedFailure));
    }
    assert_eq!(bench.run("straight").await.route, Route::FellBack(Why::ResumeKeepsFailing));
    // The next resume has one try; a success ends the row.
    assert_eq!(bench.run("works").await.route, Route::Resumed);
    assert_eq!(bench.record().await.failed_resumes, 0);
}

#[tokio::test]
async fn require_refuses_and_starts_nothing() {
    let bench = bench();
    let refuse = || request("x").resume(ResumePolicy::Require);
    assert!(matches!(
        bench.lifecycle.run(refuse()).await,
        Err(RunError::Refused { why: Why::NoPriorSession })
    ));
    let first = bench.run("one").await.session_id.unwrap();
    bench.lose(first.as_str());
    assert!(matches!(
        bench.lifecycle.run(refuse()).await,
        Err(RunError::Refused { why: Why::SessionMissing })
    ));
    assert_eq!(bench.agent.calls().len(), 1);
    assert_eq!(bench.bound().await, Some(first.to_string()));
    let log = bench.lifecycle.audit(&key(), None).await.unwrap();
    assert_eq!(log.last().unwrap().event.kind, "run_refused");
}

#[tokio::test]
async fn the_setting_switches_resuming_off_and_bindings_are_still_recorded() {
    let bench = bench();
    bench.run("one").await;
    let off = bench.lifecycle.clone().resume_setting(ResumeSetting::new().project(Some(false)));
    let second = off.run(request("two")).await.unwrap();
    assert_eq!(second.route, Route::Fresh(Why::ResumeDisabled));
    assert_eq!(second.resume_fallback, Some(Why::ResumeDisabled));
    assert_eq!(bench.bound().await, second.session_id.map(|id| id.to_string()));
}

#[tokio::test]
async fn a_newer_record_is_never_overwritten() {
    let bench = bench();
    let newer = Document::new(br#"{"format":{"major":1,"minor":9},"record":{}}"#.to_vec());
    assert!(matches!(bench.store.inner.save(&key(), &newer, &Guard::Any, None).await, Ok(Saved::Done(_))));
    let result = bench.run("one").await;
    assert_eq!(result.route, Route::FellBack(Why::RecordNewer));
    assert!(matches!(result.recorded, Recorded::Withheld(Why::RecordNewer)));
    assert_eq!(bench.store.inner.load(&key()).await.unwrap().unwrap().document, newer);
}

#[tokio::test]
async fn an_unreadable_record_is_set_aside_and_replaced() {
    let bench = bench();
    let torn = Document::new(br#"{"format":{"major":1,"minor":0},"rec"#.to_vec());
    assert!(matches!(bench.store.inner.save(&key(), &torn, &Guard::Any, None).await, Ok(Saved::Done(_))));
    let result = bench.run("one").await;
    assert_eq!(result.route, Route::FellBack(Why::RecordCorrupt));
    assert!(result.recorded.is_saved());
    assert_eq!(bench.store.inner.set_aside_documents(), [torn]);
    assert_eq!(bench.run("two").await.route, Route::Resumed);
}

#[tokio::test]
async fn failing_to_record_never_spoils_a_result() {
    for operations in [&["save"][..], &["append_audit"], &["save", "append_audit"], &["load"], &["lease"]] {
        let bench = bench();
        bench.run("one").await;
        bench.store.set(operations);
        let second = bench.run("two").await;
        assert_eq!(second.recorded.is_saved(), operations == ["append_audit"], "{operations:?}");
        assert_eq!(second.audit_seq.is_none(), operations.contains(&"append_audit"), "{operations:?}");
        bench.store.set(&[]);
        let third = bench.run("three").await;
        assert_eq!(third.route, Route::Resumed, "{operations:?}: nothing was lost");
    }
}

#[tokio::test]
async fn a_second_runner_is_told_who_is_there_and_starts_nothing() {
    let bench = bench();
    let lease = bench.store.inner.lease(&key(), &bench.host.holder()).await.unwrap();
    match bench.lifecycle.run(request("one")).await {
        Err(RunError::Busy { by: Some(by), .. }) => assert_eq!(by.pid, 1),
        other => panic!("{other:?}"),
    }
    assert!(bench.agent.calls().is_empty());
    drop(lease);
    bench.run("one").await;
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_leaves_the_record_as_it_was() {
    let bench = bench();
    let first = bench.run("one").await.session_id.unwrap();
    bench.agent.will([Act::CannotStart]);
    assert!(matches!(bench.lifecycle.run(request("two")).await, Err(RunError::Agent(_))));
    let record = bench.record().await;
    assert_eq!(record.binding.unwrap().native_id, first);
    assert!(record.candidate.is_none() && record.in_flight.is_none());
}

#[tokio::test]
async fn another_project_needs_a_yes_and_another_work_tree_does_not() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    bench.host.folders.lock().unwrap().extend([
        ("/w/tree".into(), folder("/w/tree", 2, "/w/demo/.git")),
        ("/w/other".into(), folder("/w/other", 3, "/w/other/.git")),
    ]);
    let there = bench.lifecycle.run(request("two").cwd("/w/tree")).await.unwrap();
    assert_eq!((there.route, there.session_id), (Route::Resumed, first));
    let other = bench.lifecycle.run(request("three").cwd("/w/other")).await.unwrap();
    assert_eq!(other.route, Route::FellBack(Why::ProjectDiffers));
}

#[tokio::test]
async fn a_malformed_id_in_the_record_never_reaches_the_agent() {
    for id in ["", "-x", "--resume", "not-a-uuid", "ses_1", "a\nb"] {
        let bench = bench();
        bench.run("one").await;
        let mut record = bench.record().await;
        record.binding.as_mut().unwrap().native_id = NativeId::new(id);
        let document = codec::encode(&record);
        assert!(matches!(
            bench.store.inner.save(&key(), &document, &Guard::Any, None).await,
            Ok(Saved::Done(_))
        ));
        let result = bench.run("two").await;
        assert_eq!(result.route, Route::FellBack(Why::IdMalformed), "{id:?}");
        assert!(bench.agent.calls().iter().all(|asked| !matches!(asked, Asked::Resume(_))));
    }
}

#[tokio::test]
async fn a_fork_leaves_the_original_as_it_is() {
    for catalog in [true, false] {
        let bench = bench_with(Scripted::new(), catalog);
        let first = bench.run("one").await.session_id.unwrap();
        let fork = |prompt: &str| {
            LlmRequest::new(prompt)
                .cwd("/w/demo")
                .session(SessionRef::new("issue-42-b", "scripted"))
                .fork_of(SessionRef::new("issue-42", "scripted"))
        };
        let forked = bench.lifecycle.run(fork("two")).await.unwrap();
        assert_eq!((forked.route, forked.text.as_str(), forked.resumed), (Route::Forked, "2", false));
        assert_ne!(forked.session_id, Some(first.clone()));
        assert_eq!(forked.cost_usd, Some(0.5), "what the original cost is not the fork's");
        let again = bench.lifecycle.run(fork("three")).await.unwrap();
        assert_eq!((again.route, again.text.as_str()), (Route::Resumed, "3"));
        let original = bench.run("four").await;
        assert_eq!((original.session_id, original.text.as_str()), (Some(first), "2"));
    }
}

#[tokio::test]
async fn a_fork_of_nothing_is_refused() {
    let bench = bench();
    let request = request("one").fork_of(SessionRef::new("nowhere", "scripted"));
    // There is nothing to copy: a silent fresh start would lose what the caller counts on.
    assert!(matches!(
        bench.lifecycle.run(request).await,
        Err(RunError::Refused { why: Why::NoPriorSession })
    ));
}

#[tokio::test]
async fn bad_requests_touch_nothing() {
    let bench = bench();
    let session = || SessionRef::new("issue-42", "scripted");
    let bad = [
        LlmRequest::new("").cwd("/w/demo").session(session()),
        LlmRequest::new(" \n").cwd("/w/demo").session(session()),
        LlmRequest::new("a\0b").cwd("/w/demo").session(session()),
        LlmRequest::new("x").cwd("/w/demo"),
        LlmRequest::new("x").session(session()),
        LlmRequest::new("x").cwd("/w/nowhere").session(session()),
        LlmRequest::new("x").cwd("/w/demo").session(SessionRef::new("a\nb", "scripted")),
        LlmRequest::new("x").cwd("/w/demo").session(SessionRef::new("y".repeat(10_000), "scripted")),
        LlmRequest::new("x").cwd("/w/demo").session(SessionRef::new("issue-42", "nobody")),
        LlmRequest::new("x").cwd("/w/demo").session(session().named("a\0b")),
        LlmRequest::new("x").cwd("/w/demo").session(session()).model("--resume"),
        LlmRequest::new("x").cwd("/w/demo").session(session()).fork_of(SessionRef::new("issue-42", "other")),
    ];
    for request in bad {
        let shown = format!("{request:?}");
        assert!(matches!(bench.lifecycle.run(request).await, Err(RunError::Request(_))), "{shown}");
    }
    assert!(bench.agent.calls().is_empty());
    assert!(bench.lifecycle.record(&key()).await.unwrap().is_none());
}

/// BR-065: what could not be saved is still in the hands of the caller, with the reason.
#[tokio::test]
async fn a_session_that_could_not_be_saved_is_still_named() {
    let bench = bench();
    bench.store.set(&["save"]);
    let first = bench.run("one").await;
    assert!(matches!(&first.recorded, Recorded::Failed(error) if error.to_string().contains("save")));
    assert_eq!(
        bench.agent.world().sessions.keys().next().cloned(),
        first.session_id.map(|id| id.to_string())
    );
    bench.agent.will([Act::FailAfterKeeping(Verdict::RateLimited)]);
    let (_, run) = bench.fails("two").await;
    assert!(run.session_id.is_some() && !run.recorded.is_saved(), "{:?}", run.recorded);
}

/// BR-151: a mailbox that is run again, anew and from a renamed branch keeps its name, and its old session is listed.
#[tokio::test]
async fn a_mailbox_is_run_again_under_its_name() {
    let bench = bench();
    let first = bench.run("one").await.session_id.unwrap();
    let anew = bench.lifecycle.run(request("two").resume(ResumePolicy::Never)).await.unwrap();
    let renamed = request("three").session(SessionRef::new("issue-42", "scripted").named("agent/issue-42b"));
    let third = bench.lifecycle.run(renamed).await.unwrap();
    assert_eq!((third.route, &third.session_id), (Route::Resumed, &anew.session_id));
    assert_eq!([anew.name.as_deref(), third.name.as_deref()], [Some("agent/issue-42"); 2]);
    assert!(bench.record().await.past.iter().any(|former| former.native_id == first && former.rejoinable));
    let other = request("four").session(SessionRef::new("issue-42b", "scripted").named("agent/issue-42"));
    assert_eq!(bench.lifecycle.run(other).await.unwrap().route, Route::Fresh(Why::NoPriorSession));
}
