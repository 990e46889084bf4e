//! Trouble of the model's service in a resumed run: no fallback, the binding kept, the next run resumes.

use rejoin::{Route, RunError, Why};

use crate::pinned::Pinned;
use crate::stage::Stage;

async fn fails(cli: &Pinned, status: u16, expected: Why) {
    let scenario = &format!("HTTP {status}");
    let stage = Stage::new(cli);
    stage.run("alpha").await.unwrap();
    let bound = stage.bound().await;
    stage.model.refuse(Some(status));
    match stage.row(scenario, true, stage.request("beta")).await {
        Err(RunError::Failed { why, run }) => {
            assert_eq!(why, expected, "{scenario}: {:?}", run.evidence);
            assert_eq!(run.attempts.len(), 1, "no fallback");
            assert_eq!(run.session_id, Some(bound.clone()), "the binding is kept");
        }
        other => panic!("{scenario}: {other:?}"),
    }
    stage.model.refuse(None);
    let next = stage.run("gamma").await.unwrap();
    assert_eq!((next.route, next.session_id), (Route::Resumed, Some(bound)));
}

pub(crate) async fn overloaded(cli: &Pinned) {
    fails(cli, 529, Why::TransientFailure).await;
}

pub(crate) async fn refused_login(cli: &Pinned) {
    fails(cli, 401, Why::Unauthenticated).await;
}

pub(crate) async fn rate_limited(cli: &Pinned) {
    fails(cli, 429, Why::RateLimited).await;
}

/// 2.1.197 and 2.1.332 try again and succeed; 2.0.14 ends with exit 0 and an error. No version runs it twice.
pub(crate) async fn dropped_stream(cli: &Pinned) {
    let stage = Stage::new(cli);
    stage.run("alpha").await.unwrap();
    let bound = stage.bound().await;
    let outcome = stage.row("dropped stream", true, stage.request("[[drop]]")).await;
    match &outcome {
        Ok(result) => assert_eq!((result.route, result.session_id.as_ref()), (Route::Resumed, Some(&bound))),
        Err(RunError::Failed { run, .. }) => {
            assert_eq!((run.attempts.len(), run.session_id.as_ref()), (1, Some(&bound)));
        }
        Err(other) => panic!("{other:?}"),
    }
    let next = stage.run("gamma").await.unwrap();
    assert_eq!((next.route, next.session_id), (Route::Resumed, Some(bound)));
}
