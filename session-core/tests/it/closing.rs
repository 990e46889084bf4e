//! The end of a mailbox.

use std::path::PathBuf;

use session_core::decide::Why;
use session_core::*;

use crate::bench::{Bench, bench};
use crate::scripted::*;

async fn kinds(bench: &Bench) -> Vec<String> {
    let log = bench.lifecycle.audit(&key(), None).await.unwrap();
    log.into_iter().map(|entry| entry.event.kind).collect()
}

fn with_state_dir() -> Bench {
    let bench = bench();
    *bench.store.dir.lock().unwrap() = Some(PathBuf::from("/state"));
    bench
}

#[tokio::test]
async fn a_closed_mailbox_leaves_a_tombstone_and_begins_anew() {
    let bench = with_state_dir();
    let first = bench.run("one").await.session_id;
    let closed = bench.lifecycle.close_mailbox("issue-42", Closing::Done).await.unwrap();
    let [closed] = closed.as_slice() else { panic!("{closed:?}") };
    assert_eq!((&closed.key, &closed.session), (&key(), &first));
    assert!(closed.state_removed && closed.ended == 0);
    assert_eq!(bench.lifecycle.record(&key()).await.unwrap(), None);
    assert_eq!(*bench.store.dir.lock().unwrap(), None);
    assert_eq!(kinds(&bench).await, ["run_finished", "mailbox_closing", "mailbox_closed"]);
    let told = bench.lifecycle.explain(&key()).await.unwrap();
    assert!(told.to_string().contains("It was closed 1970-01-01T00:00:00Z: done."), "{told}");

    let next = bench.run("two").await;
    assert_eq!(next.route, Route::Fresh(Why::NoPriorSession));
    assert_ne!(next.session_id, first);
    assert_eq!(bench.lifecycle.explain(&key()).await.unwrap().closed, None, "it is open again");
}

#[tokio::test]
async fn what_was_never_there_is_closed_without_a_word() {
    let bench = bench();
    let closed = bench.lifecycle.close(&key(), Closing::NotFound).await.unwrap();
    assert_eq!(closed.checkpoints, None, "nobody knows of any");
    assert_eq!((closed.session, closed.state_removed), (None, false));
    assert!(kinds(&bench).await.is_empty());
    let no_name = bench.lifecycle.close_mailbox(" ", Closing::Done).await;
    assert!(matches!(no_name, Err(MailboxNotClosed::Name(_))), "{no_name:?}");
}

#[tokio::test]
async fn a_mailbox_that_is_being_run_is_not_closed() {
    let bench = bench();
    bench.run("one").await;
    let lease = bench.store.inner.lease(&key(), &bench.host.holder()).await.unwrap();
    let busy = bench.lifecycle.close(&key(), Closing::Cancelled).await;
    assert!(matches!(&busy, Err(CloseError::Busy { by: Some(_), .. })), "{busy:?}");
    drop(lease);
    assert!(bench.lifecycle.record(&key()).await.unwrap().is_some());
    assert_eq!(kinds(&bench).await, ["run_finished"]);
    assert!(bench.lifecycle.close(&key(), Closing::Cancelled).await.is_ok());
}

/// At each operation in turn the store fails: nothing goes without a word, and closing again finishes it.
#[tokio::test]
async fn closing_that_was_cut_off_is_finished_by_closing_again() {
    for operation in ["lease", "load", "append_audit", "remove", "remove_state"] {
        let bench = with_state_dir();
        let first = bench.run("one").await.session_id;
        bench.store.set(&[operation]);
        let failed = bench.lifecycle.close(&key(), Closing::Done).await;
        assert!(matches!(failed, Err(CloseError::Store { .. })), "{operation}: {failed:?}");
        bench.store.set(&[]);
        let record = bench.lifecycle.record(&key()).await.unwrap();
        let told = kinds(&bench).await.contains(&"mailbox_closing".to_owned());
        assert!(record.is_some() || told, "{operation}: it went without a word");
        let bound = record.and_then(|record| record.binding).map(|binding| binding.native_id);
        assert!(bound.is_none() || bound == first, "{operation}");
        bench.lifecycle.close(&key(), Closing::Done).await.unwrap();
        assert_eq!(bench.lifecycle.record(&key()).await.unwrap(), None, "{operation}");
        assert_eq!(*bench.store.dir.lock().unwrap(), None, "{operation}");
        assert_eq!(kinds(&bench).await.last().unwrap(), "mailbox_closed", "{operation}");
    }
}

/// A full disk takes no record; what goes makes room on it.
#[tokio::test]
async fn where_nothing_can_be_written_over_the_rest_is_closed_and_nobody_ended() {
    let bench = with_state_dir();
    bench.run("one").await;
    bench.store.set(&["save"]);
    assert!(bench.lifecycle.close(&key(), Closing::Done).await.unwrap().state_removed);
    assert_eq!(bench.lifecycle.record(&key()).await.unwrap(), None);
    assert_eq!(kinds(&bench).await, ["run_finished", "mailbox_closing", "mailbox_closed"]);
    // Who is to end what a dead runner left has to prove that the key is still its own.
    let bench = with_state_dir();
    bench.agent.will([Act::Hang]);
    crate::keeping::die_in(&bench, request("one"), 1).await;
    bench.store.set(&["save"]);
    let failed = bench.lifecycle.close(&key(), Closing::Done).await;
    assert!(matches!(failed, Err(CloseError::Store { .. })), "{failed:?}");
    assert!(bench.record().await.in_flight.is_some() && bench.store.dir.lock().unwrap().is_some());
}

#[tokio::test]
async fn what_cannot_be_read_is_kept_and_what_is_newer_is_left_alone() {
    let bench = bench();
    let torn = Document::new(br#"{"format":{"major":1,"minor":0},"rec"#.to_vec());
    assert!(matches!(bench.store.inner.save(&key(), &torn, &Guard::Any, None).await, Ok(Saved::Done(_))));
    let closed = bench.lifecycle.close(&key(), Closing::Done).await.unwrap();
    assert_eq!(closed.session, None);
    assert_eq!(bench.store.inner.set_aside_documents(), [torn]);
    let newer = Document::new(br#"{"format":{"major":1,"minor":9},"record":{}}"#.to_vec());
    assert!(matches!(bench.store.inner.save(&key(), &newer, &Guard::Any, None).await, Ok(Saved::Done(_))));
    let refused = bench.lifecycle.close(&key(), Closing::Done).await;
    assert!(matches!(refused, Err(CloseError::Newer { .. })), "{refused:?}");
    assert_eq!(bench.store.inner.load(&key()).await.unwrap().unwrap().document, newer);
}

/// An agent that cannot be closed stops none of the others.
#[tokio::test]
async fn a_mailbox_is_closed_for_every_agent_that_it_can_be() {
    let bench = bench();
    bench.run("one").await;
    let lifecycle = bench.lifecycle.clone();
    let lifecycle = ["before", "then"]
        .into_iter()
        .fold(lifecycle, |lifecycle, id| lifecycle.agent(Agent::new(Scripted::named(id))));
    let busy = SessionKey::new("issue-42", "before").unwrap();
    let lease = bench.store.inner.lease(&busy, &bench.host.holder()).await.unwrap();
    let failed = lifecycle.close_mailbox("issue-42", Closing::Done).await.unwrap_err();
    let text = failed.to_string();
    let MailboxNotClosed::Agents { closed, source, others } = failed else { panic!("{text}") };
    assert_eq!(text, "the mailbox could not be closed for 1 of 3 agents");
    assert!(matches!(*source, CloseError::Busy { key, .. } if key == busy) && others.is_empty());
    assert_eq!(
        closed.iter().map(|closed| closed.key.agent.as_str()).collect::<Vec<_>>(),
        ["scripted", "then"]
    );
    assert_eq!(bench.lifecycle.record(&key()).await.unwrap(), None);
    drop(lease);
    assert_eq!(lifecycle.close_mailbox("issue-42", Closing::Done).await.unwrap().len(), 3);
}

#[tokio::test]
async fn the_tombstone_names_a_session_that_had_just_begun() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    bench.agent.will([Act::Hang]);
    crate::keeping::die_in(&bench, request("two").resume(ResumePolicy::Never), 2).await;
    let candidate = bench.record().await.candidate.map(|candidate| candidate.binding.native_id);
    assert!(candidate.is_some(), "the run had begun one");
    let closed = bench.lifecycle.close(&key(), Closing::Cancelled).await.unwrap();
    assert_eq!((&closed.session, &closed.candidate), (&first, &candidate));
    let log = bench.lifecycle.audit(&key(), None).await.unwrap();
    for entry in &log[log.len() - 2..] {
        assert_eq!((&entry.event.before, &entry.event.candidate), (&first, &candidate));
    }
    let told = bench.lifecycle.explain(&key()).await.unwrap().to_string();
    let candidate = candidate.unwrap();
    assert!(told.contains(&format!("cancelled. The session {candidate} had just begun.")), "{told}");
}

#[tokio::test]
async fn a_mailbox_that_was_closed_and_run_again_is_open_also_where_the_run_died() {
    let bench = bench();
    bench.run("one").await;
    bench.lifecycle.close(&key(), Closing::Done).await.unwrap();
    assert!(bench.lifecycle.explain(&key()).await.unwrap().closed.is_some());
    bench.agent.will([Act::Hang]);
    crate::keeping::die_in(&bench, request("two"), 2).await;
    let told = bench.lifecycle.explain(&key()).await.unwrap();
    assert!(told.closed.is_none() && told.in_flight_since.is_some(), "{told}");
    // One that is being closed is not open again.
    let bench = crate::bench::bench();
    bench.run("one").await;
    bench.store.set(&["remove"]);
    bench.lifecycle.close(&key(), Closing::Done).await.unwrap_err();
    assert!(bench.lifecycle.explain(&key()).await.unwrap().closed.is_some());
}
