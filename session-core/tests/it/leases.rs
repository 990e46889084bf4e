//! Waiting for a key that another runner has, and losing it.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use session_core::decide::{Activity, Verdict};
use session_core::error::RunError;
use session_core::*;

use crate::bench::{Bench, bench};
use crate::scripted::{Act, key, request};

async fn taken(bench: &Bench) -> Lease {
    match bench.store.inner.lease(&key(), &bench.host.holder()).await.unwrap() {
        LeaseOutcome::Held(lease) => lease,
        LeaseOutcome::Busy { by } => panic!("held by {by:?}"),
    }
}

fn patient(prompt: &str, patience: Duration) -> LlmRequest {
    let mut limits = Limits::default();
    limits.lease = patience;
    request(prompt).limits(limits)
}

#[tokio::test]
async fn who_waits_runs_when_the_other_one_is_done() {
    let bench = bench();
    bench.run("one").await;
    let mut held = Some(taken(&bench).await);
    let mut told = Vec::new();
    let mut sink = |event: &AgentEvent<'_>| {
        if let AgentEvent::Queued { by } = event {
            told.push(by.cloned());
            drop(held.take());
        }
    };
    let waiting = bench.lifecycle.run_with(patient("two", Duration::from_secs(60)), &mut sink);
    assert_eq!(waiting.await.unwrap().route, Route::Resumed);
    assert_eq!(told, [Some(bench.host.holder())], "told once, and by whom");
}

#[tokio::test]
async fn waiting_ends_when_its_time_is_over() {
    for (patience, slept) in [(0, 300), (100, 300), (301, 301), (20_000, 20_000)] {
        let bench = bench();
        let held = taken(&bench).await;
        let before = bench.host.now();
        let mut told = 0;
        let mut sink = |event: &AgentEvent<'_>| told += u32::from(matches!(event, AgentEvent::Queued { .. }));
        let asked = patient("one", Duration::from_millis(patience));
        let busy = bench.lifecycle.run_with(asked, &mut sink).await;
        assert!(matches!(&busy, Err(RunError::Busy { by: Some(_), .. })), "{busy:?}");
        assert_eq!(bench.host.now().since(before), Duration::from_millis(slept));
        assert_eq!(told, u32::from(patience > 300), "for {patience}");
        assert!(bench.agent.calls().is_empty());
        drop(held);
        bench.run("one").await;
    }
}

#[tokio::test]
async fn who_cancels_while_waiting_started_nothing() {
    let bench = bench();
    let held = taken(&bench).await;
    let cancel = Cancel::new();
    let mut sink = |event: &AgentEvent<'_>| {
        if matches!(event, AgentEvent::Queued { .. }) {
            cancel.cancel();
        }
    };
    let asked = patient("one", Duration::from_secs(60)).cancel(cancel.clone());
    let cancelled = bench.lifecycle.run_with(asked, &mut sink).await;
    assert!(matches!(cancelled, Err(RunError::Cancelled)), "{cancelled:?}");
    assert!(bench.agent.calls().is_empty());
    drop(held);
    bench.run("one").await;
}

#[tokio::test]
async fn who_is_dropped_while_waiting_leaves_nothing() {
    let bench = bench();
    let held = taken(&bench).await;
    let queued = std::sync::atomic::AtomicBool::new(false);
    let mut sink = |event: &AgentEvent<'_>| {
        queued.fetch_or(matches!(event, AgentEvent::Queued { .. }), std::sync::atomic::Ordering::SeqCst);
    };
    let mut waiting = Box::pin(bench.lifecycle.run_with(patient("one", Duration::from_secs(60)), &mut sink));
    while !queued.load(std::sync::atomic::Ordering::SeqCst) {
        let ended = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_ready())).await;
        assert!(!ended, "it did not wait");
    }
    drop(waiting);
    drop(held);
    drop(taken(&bench).await);
    assert!(bench.agent.calls().is_empty());
    assert_eq!(bench.lifecycle.record(&key()).await.unwrap(), None);
}

#[tokio::test]
async fn who_lost_the_lease_before_the_start_starts_nothing() {
    let bench = bench();
    bench.store.set(&["fence"]);
    let busy = bench.lifecycle.run(request("one")).await;
    assert!(matches!(busy, Err(RunError::Busy { .. })), "{busy:?}");
    assert!(bench.agent.calls().is_empty());
}

#[tokio::test]
async fn who_lost_the_lease_in_a_run_has_the_answer_and_is_told() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    let store = bench.store.clone();
    let mut sink = move |event: &AgentEvent<'_>| {
        if matches!(event, AgentEvent::Started { .. }) {
            store.set(&["fence"]);
        }
    };
    let result = bench.lifecycle.run_with(request("two"), &mut sink).await.unwrap();
    assert!(matches!(result.recorded, Recorded::LostLease), "{:?}", result.recorded);
    assert!(!result.recorded.is_saved());
    let record = bench.record().await;
    assert_eq!(record.binding.unwrap().native_id, first.unwrap());
    assert!(record.in_flight.is_some(), "what the successor finds is what it was");
}

/// The successor's run looks like one that died: ending it would be the last thing to do.
#[tokio::test]
async fn who_lost_the_lease_ends_nobody() {
    let bench = bench();
    bench.agent.will([Act::Hang]);
    let mut hanging = Box::pin(bench.lifecycle.run(request("one")));
    while bench.agent.calls().is_empty() {
        let ended = poll_fn(|context| Poll::Ready(hanging.as_mut().poll(context).is_ready())).await;
        assert!(!ended);
    }
    drop(hanging);
    assert!(bench.record().await.in_flight.is_some());
    bench.store.set(&["fence"]);
    let busy = bench.lifecycle.run(request("two")).await;
    assert!(matches!(busy, Err(RunError::Busy { .. })), "{busy:?}");
    let closed = bench.lifecycle.close(&key(), Closing::Done).await;
    assert!(matches!(closed, Err(CloseError::Busy { .. })), "{closed:?}");
    assert!(bench.agent.world().reaped.is_empty());
    assert!(bench.record().await.in_flight.is_some());
    bench.store.set(&[]);
    bench.run("three").await;
    assert_eq!(bench.agent.world().reaped.len(), 1);
}

#[tokio::test]
async fn after_a_lost_lease_no_prompt_is_given_again() {
    let bench = bench();
    let first = bench.run("one").await.session_id.unwrap();
    bench.agent.will([Act::Fail(Verdict::Missing, Activity::None)]);
    let store = bench.store.clone();
    let mut sink = move |event: &AgentEvent<'_>| {
        if matches!(event, AgentEvent::Started { .. }) {
            store.set(&["fence"]);
        }
    };
    let busy = bench.lifecycle.run_with(request("two"), &mut sink).await;
    assert!(matches!(busy, Err(RunError::Busy { .. })), "{busy:?}");
    assert_eq!(bench.agent.calls().len(), 2, "the resume, and no fallback");
    assert_eq!(bench.bound().await, Some(first.to_string()));
}

/// A store that cannot be asked for a moment says nothing of who has the key.
#[tokio::test]
async fn trouble_while_waiting_is_waited_out() {
    let bench = bench();
    let held = taken(&bench).await;
    let store = bench.store.clone();
    let mut sink = |event: &AgentEvent<'_>| {
        if matches!(event, AgentEvent::Queued { .. }) {
            store.set(&["lease"]);
        }
    };
    let busy = bench.lifecycle.run_with(patient("one", Duration::from_secs(5)), &mut sink).await;
    assert!(matches!(&busy, Err(RunError::Busy { by: Some(_), .. })), "{busy:?}");
    assert!(bench.agent.calls().is_empty());
    drop(held);
    bench.store.set(&[]);
    bench.run("one").await;
}
