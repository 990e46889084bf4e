//! What a person is told of a key.

use session_core::decide::{Activity, Verdict};
use session_core::*;

use crate::bench::bench;
use crate::scripted::*;

#[tokio::test]
async fn a_fallback_is_told_with_what_was_tried() {
    let bench = bench();
    let first = bench.run("one").await.session_id.unwrap();
    bench.agent.will([Act::Fail(Verdict::Incompatible, Activity::None)]);
    let second = bench.run("two").await.session_id.unwrap();
    let told = bench.lifecycle.explain(&key()).await.unwrap();
    let text = told.to_string();
    let expected = format!(
        "issue-42@scripted (agent/issue-42)
The session in force is {second}, last used 1970-01-01T00:00:00Z by version 1.2.3.
The last run, 1970-01-01T00:00:00Z, fell back to a new session: the agent refuses what the session holds (session_incompatible).
  1. resume of {first}: incompatible, before the model was called
  2. fallback as {second}: completed
  In force before: {first}; after: {second}.
Failed resumes in a row, up to the last run: 1.
Before: {first}, left 1970-01-01T00:00:00Z (the agent refuses what the session holds (session_incompatible)); it may be joined again."
    );
    assert_eq!(text, expected);
    let json = serde_json::to_value(&told).unwrap();
    assert_eq!(json["last_run"]["why"], "session_incompatible");
    assert_eq!(json["session"]["native_id"], second.as_str());
}

#[tokio::test]
async fn the_other_ends_of_a_run_are_told_too() {
    let bench = bench();
    let nothing = bench.lifecycle.explain(&key()).await.unwrap().to_string();
    assert!(
        nothing.contains("No session is bound") && nothing.ends_with("No run is in the log."),
        "{nothing}"
    );
    bench.run("one").await;
    let fresh = bench.lifecycle.explain(&key()).await.unwrap().to_string();
    assert!(fresh.contains("started a new session: this mailbox has no session to continue"), "{fresh}");
    bench.run("two").await;
    assert!(bench.lifecycle.explain(&key()).await.unwrap().to_string().contains("continued the session."));
    bench.agent.will([Act::Fail(Verdict::RateLimited, Activity::Acted)]);
    bench.fails("three").await;
    let failed = bench.lifecycle.explain(&key()).await.unwrap().to_string();
    assert!(failed.contains("failed: a usage limit ended the run (rate_limited)."), "{failed}");
    assert!(failed.contains("rate limited, after a tool had run"), "{failed}");
    bench.agent.will([Act::CannotStart]);
    bench.lifecycle.run(request("four")).await.unwrap_err();
    let never = bench.lifecycle.explain(&key()).await.unwrap().to_string();
    assert!(never.contains("failed.\n  scripted: /bin/scripted could not be started"), "{never}");
    let require = request("five").resume(ResumePolicy::Require);
    bench.lose(&bench.bound().await.unwrap());
    bench.lifecycle.run(require).await.unwrap_err();
    let refused = bench.lifecycle.explain(&key()).await.unwrap().to_string();
    assert!(
        refused.contains("was refused: the agent no longer has the session (session_missing)."),
        "{refused}"
    );
}

#[tokio::test]
async fn what_was_done_after_the_last_run_is_told() {
    let bench = bench();
    bench.run("one").await;
    bench.lifecycle.clear(&key()).await.unwrap();
    let told = bench.lifecycle.explain(&key()).await.unwrap();
    assert_eq!(told.since.len(), 1);
    let text = told.to_string();
    assert!(text.contains("\nAfter that, 1970-01-01T00:00:00Z: a new conversation was begun"), "{text}");
    bench.run("two").await;
    let told = bench.lifecycle.explain(&key()).await.unwrap();
    assert!(told.since.is_empty(), "{told}");
}
