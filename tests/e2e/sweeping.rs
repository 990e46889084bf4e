//! The end of mailboxes over the embedded store: what a sweep removes, keeps and tells.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use rejoin::adapters::{ClaudeOptions, claude};
use rejoin::core::{Guard, Lifecycle, Timestamp, codec};
use rejoin::process::SystemHost;
use rejoin::stores::FsStore;
use rejoin::{
    Agent, Live, LlmRequest, Retention, Route, SessionKey, SessionRef, SessionStore as _, Sweep,
    SweepOutcome, SweepReport, Why,
};

use crate::stage::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn of(stage: &Stage, mailbox: &str, prompt: &str) -> LlmRequest {
    LlmRequest::new(prompt).cwd(stage.path("project")).session(SessionRef::new(mailbox, "claude"))
}

/// Without a grace, as nothing here is a week old.
fn at_once(live: &str) -> Sweep {
    Sweep::new(Live::of([live]).unwrap()).grace(Duration::ZERO)
}

fn lines(report: &SweepReport) -> Vec<String> {
    let of = |swept: &rejoin::Swept| {
        let what = swept.key.as_ref().map(ToString::to_string).or_else(|| swept.place.clone()).unwrap();
        format!("{what} {}", swept.reason.code())
    };
    report.swept.iter().map(of).collect()
}

#[tokio::test]
async fn a_sweep_takes_what_nobody_owns_and_nothing_else() {
    let stage = Stage::new();
    let lifecycle = stage.lifecycle();
    lifecycle.run(stage.request("one")).await.unwrap();
    let lost = ["lost/1", "Lost/1", "lost-1"];
    for mailbox in lost {
        lifecycle.run(of(&stage, mailbox, "one")).await.unwrap();
    }
    let store = FsStore::open(stage.path("store")).unwrap();
    // One whose first record was never written, and in which the agent made what it could.
    let planted = store.state_dir(&SessionKey::new("never/there", "claude").unwrap()).await.unwrap().unwrap();
    let kept = store.state_dir(&key()).await.unwrap().unwrap();
    symlink(&kept, planted.join("other mailbox")).unwrap();
    std::fs::create_dir_all(planted.join("closed/inner")).unwrap();
    std::fs::set_permissions(planted.join("closed"), std::fs::Permissions::from_mode(0o000)).unwrap();
    let long_ago = SystemTime::now() - DAY * 30;
    std::fs::File::open(&planted).unwrap().set_modified(long_ago).unwrap();

    let dry = lifecycle.sweep(&at_once("issue-42").dry_run(true)).await.unwrap();
    assert_eq!((dry.swept.len(), dry.live, stage.transcripts().len()), (4, 1, 4), "{dry}");
    assert!(dry.swept.iter().all(|swept| swept.size.is_some_and(|size| size.bytes > 0)), "{dry}");
    let real = lifecycle.sweep(&at_once("issue-42")).await.unwrap();
    assert_eq!(lines(&real), lines(&dry));
    assert!(real.swept.iter().all(|swept| matches!(swept.outcome, SweepOutcome::Removed)), "{real}");
    assert_eq!(stage.transcripts().len(), 1, "the session of the live one");
    assert_eq!(std::fs::read_dir(stage.path("store/.agent-sessions/state")).unwrap().count(), 1);
    assert_eq!(lifecycle.sweep(&at_once("issue-42")).await.unwrap().swept.len(), 0);

    assert_eq!(lifecycle.run(stage.request("two")).await.unwrap().route, Route::Resumed);
    for mailbox in lost {
        let key = SessionKey::new(mailbox, "claude").unwrap();
        let told = lifecycle.explain(&key).await.unwrap().to_string();
        assert!(told.contains("(orphaned)."), "{told}");
        let again = lifecycle.run(of(&stage, mailbox, "two")).await.unwrap();
        assert_eq!(again.route, Route::Fresh(Why::NoPriorSession), "it inherits nothing");
    }
}

#[tokio::test]
async fn what_is_being_run_is_not_swept() {
    let stage = Stage::new();
    let lifecycle = stage.lifecycle();
    lifecycle.run(stage.request("one")).await.unwrap();
    let store = FsStore::open(stage.path("store")).unwrap();
    let holder = rejoin::core::Holder { host: "elsewhere".to_owned(), pid: 4711, since: None };
    let lease = store.lease(&key(), &holder).await.unwrap();
    let report = lifecycle.sweep(&at_once("other")).await.unwrap();
    let [swept] = report.swept.as_slice() else { panic!("{report}") };
    assert!(matches!(&swept.outcome, SweepOutcome::Busy { by: Some(by) } if by.pid == 4711), "{report}");
    assert_eq!(stage.transcripts().len(), 1);
    drop(lease);
    // Room is made in live ones where that is said, but not in what was used within a day.
    let retention = Retention::new().state_at_most(0).live_too(true);
    let report = lifecycle.sweep(&Sweep::new(Live::all()).retention(retention)).await.unwrap();
    assert_eq!((report.swept.len(), stage.transcripts().len()), (0, 1), "{report}");
}

/// Moves the last use of the session into the past.
async fn unused_for(store: &FsStore, age: Duration) {
    let stored = store.load(&key()).await.unwrap().unwrap();
    let codec::Decoded::Record(mut record) = codec::decode(&stored.document, &key()) else {
        panic!("a record")
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let binding = record.binding.as_mut().unwrap();
    binding.used_at = Timestamp::EPOCH.plus(now - age);
    let saved = store.save(&key(), &codec::encode(&record), &Guard::Any, None).await;
    assert!(matches!(saved, Ok(rejoin::core::Saved::Done(_))), "{saved:?}");
}

#[tokio::test]
async fn the_agents_own_retention_is_told_before_and_after() {
    let stage = Stage::new();
    let store = FsStore::open(stage.path("store")).unwrap();
    let with = |options: ClaudeOptions| {
        let agent = claude().options(options.program(stage.program())).environment(stage.environment());
        let store = std::sync::Arc::new(store.clone());
        Lifecycle::new(store, std::sync::Arc::new(SystemHost::new())).agent(Agent::from(agent))
    };
    let (ours, theirs) = (with(ClaudeOptions::new()), with(ClaudeOptions::new().keep_retention(false)));
    theirs.run(stage.request("one")).await.unwrap();
    unused_for(&store, DAY * 25).await;
    let sweep = Sweep::new(Live::all());
    let report = theirs.sweep(&sweep).await.unwrap();
    assert_eq!((report.falling.len(), report.falling[0].after), (1, DAY * 30), "{report}");
    assert!(ours.sweep(&sweep).await.unwrap().falling.is_empty(), "it is put off for ten years");
    assert_eq!(
        ours.clone().state_dirs(false).sweep(&sweep).await.unwrap().falling.len(),
        1,
        "not for the user's runs"
    );

    unused_for(&store, DAY * 45).await;
    std::fs::remove_file(&stage.transcripts()[0]).unwrap();
    let result = theirs.run(stage.request("two")).await.unwrap();
    assert_eq!(result.resume_fallback, Some(Why::SessionMissing));
    let told = theirs.explain(&key()).await.unwrap().to_string();
    assert!(told.contains("claude deletes sessions that were not used for 30 days"), "{told}");
}
