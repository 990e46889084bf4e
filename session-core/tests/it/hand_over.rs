//! A conversation in the hands of another agent.

use session_core::error::HandOverError;
use session_core::*;

use crate::bench::{bench, bench_with};
use crate::scripted::*;

#[tokio::test]
async fn what_was_said_is_handed_over_and_nothing_is_run_or_written() {
    let bench = bench();
    for prompt in ["one", "two", "three"] {
        bench.run(prompt).await;
    }
    let before = (bench.record().await, bench.agent.calls().len());
    let whole = bench.lifecycle.hand_over(&key(), 1000).await.unwrap();
    assert_eq!((whole.messages, whole.left_out, whole.cut), (3, 0, false));
    let last = bench.lifecycle.hand_over(&key(), 8).await.unwrap();
    assert_eq!((last.messages, last.left_out), (2, 1));
    assert!(last.text.contains("two") && !last.text.contains("one\n"), "{}", last.text);
    assert_eq!((bench.record().await, bench.agent.calls().len()), before);
}

#[tokio::test]
async fn what_cannot_be_handed_over_is_an_error_with_a_name() {
    let bench = bench();
    let none = bench.lifecycle.hand_over(&key(), 100).await;
    assert!(matches!(none, Err(HandOverError::NoSession { key: of }) if of == key()));
    let stranger = SessionKey::new("issue-42", "stranger").unwrap();
    let unknown = bench.lifecycle.hand_over(&stranger, 100).await;
    assert!(matches!(unknown, Err(HandOverError::UnknownAgent { agent }) if agent == stranger.agent));
    let blind = bench_with(Scripted::new(), false);
    blind.run("one").await;
    assert!(matches!(blind.lifecycle.hand_over(&key(), 100).await, Err(HandOverError::NoCatalog { .. })));
    bench.run("one").await;
    bench.store.fail.lock().unwrap().push("load");
    assert!(matches!(bench.lifecycle.hand_over(&key(), 100).await, Err(HandOverError::Store(_))));
}
