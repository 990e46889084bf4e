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
    assert_eq!((closed.session, closed.state_removed), (None, false));
    assert!(kinds(&bench).await.is_empty());
    let no_name = bench.lifecycle.close_mailbox(" ", Closing::Done).await;
    assert!(matches!(no_name, Err(CloseError::Name(_))), "{no_name:?}");
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
