//! The embedded store under a whole run: leases, state dirs, disks that are full.

use std::process::Command;

use rejoin::{Route, RunError, SessionStore as _, Why};

use crate::stage::*;

#[tokio::test]
async fn a_second_runner_is_told_who_is_there() {
    let stage = Stage::new();
    let store = rejoin::stores::FsStore::open(stage.path("store")).unwrap();
    let holder = rejoin::core::Holder { host: "elsewhere".to_owned(), pid: 4711, since: None };
    let lease = store.lease(&key(), &holder).await.unwrap();
    match stage.lifecycle().run(stage.request("x")).await {
        Err(RunError::Busy { by: Some(by), .. }) => {
            assert_eq!((by.pid, by.host.as_str()), (4711, "elsewhere"))
        }
        other => panic!("{other:?}"),
    }
    assert!(stage.calls().is_empty());
    drop(lease);
    stage.run("x").await;
}

#[tokio::test]
async fn a_state_dir_that_is_a_link_is_refused() {
    let stage = Stage::new();
    stage.run("one").await;
    let transcript = stage.transcripts().remove(0);
    let state = stage.path("store/.agent-sessions/state");
    let mailbox = transcript.strip_prefix(&state).unwrap().iter().next().unwrap().to_owned();
    let other = stage.path("other");
    std::fs::rename(state.join(&mailbox), &other).unwrap();
    std::os::unix::fs::symlink(&other, state.join(&mailbox)).unwrap();
    let before = stage.calls().len();
    assert!(matches!(stage.lifecycle().run(stage.request("two")).await, Err(RunError::Store(_))));
    assert_eq!(stage.calls().len(), before, "nothing was started");
}

/// A small disk of its own, taken away at the end.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(at: std::path::PathBuf) -> Option<Self> {
        let status =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&at).output();
        status.is_ok_and(|output| output.status.success()).then_some(Self(at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// With the right to mount, the disk is full for real; without it, the folder of the records is a file, which no
/// write gets past either.
#[tokio::test]
async fn a_disk_that_is_full_loses_nothing() {
    let stage = Stage::new();
    let disk = SmallDisk::mount(stage.path("store"));
    let first = stage.run("one").await.session_id.unwrap();
    let ballast = stage.path("store/ballast");
    let records = stage.path("store/.agent-sessions/records");
    if disk.is_some() {
        let full = (0..64).try_for_each(|_| {
            use std::io::Write as _;
            std::fs::OpenOptions::new().create(true).append(true).open(&ballast)?.write_all(&[0; 8192])
        });
        assert!(full.is_err(), "the disk is full");
    } else {
        std::fs::rename(&records, stage.path("records")).unwrap();
        std::fs::write(&records, "").unwrap();
    }
    match stage.lifecycle().run(stage.request("two")).await {
        Ok(second) => assert!(!second.recorded.is_saved(), "{:?}", second.recorded),
        Err(RunError::Failed { run, .. }) => assert!(!run.recorded.is_saved()),
        Err(RunError::Store(_)) => {}
        Err(other) => panic!("{other:?}"),
    }
    if disk.is_some() {
        std::fs::remove_file(&ballast).unwrap();
    } else {
        std::fs::remove_file(&records).unwrap();
        std::fs::rename(stage.path("records"), &records).unwrap();
    }
    let third = stage.run("three").await;
    assert_eq!((third.route, third.session_id), (Route::Resumed, Some(first)));
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_refused_and_untouched() {
    let stage = Stage::new();
    stage.run("one").await;
    let version = stage.path("store/.agent-sessions/version.json");
    std::fs::write(&version, "{\"store\":99}").unwrap();
    let error = rejoin::stores::FsStore::open(stage.path("store")).unwrap_err();
    assert_eq!(error.kind(), rejoin::error::StoreErrorKind::Newer);
    assert_eq!(std::fs::read_to_string(&version).unwrap(), "{\"store\":99}");
}

#[tokio::test]
async fn the_audit_tells_the_story() {
    let stage = Stage::new();
    stage.run("one").await;
    stage.run("two").await;
    std::fs::remove_file(&stage.transcripts()[0]).unwrap();
    let third = stage.run("three").await;
    let log = stage.lifecycle().audit(&key(), None).await.unwrap();
    let story: Vec<_> =
        log.iter().map(|e| (e.event.route.as_deref().unwrap(), e.event.why.as_deref())).collect();
    assert_eq!(
        story,
        [("fresh", Some("no_prior_session")), ("resumed", None), ("fell_back", Some("session_missing"))]
    );
    assert_eq!(third.audit_seq, Some(log[2].seq));
    assert_eq!(third.route, Route::FellBack(Why::SessionMissing));
}

/// A branch that is deleted and made again for other work inherits nothing.
#[tokio::test]
async fn a_closed_mailbox_leaves_nothing_but_its_log() {
    let stage = Stage::new();
    let first = stage.run("one").await;
    assert_eq!(stage.transcripts().len(), 1);
    let closed = stage.lifecycle().close_mailbox("issue-42", rejoin::Closing::Cancelled).await.unwrap();
    assert_eq!(closed.iter().filter(|closed| closed.session == first.session_id).count(), 1);
    let left: Vec<_> = stage
        .files("store/.agent-sessions")
        .into_iter()
        .map(|path| path.strip_prefix(stage.path("store/.agent-sessions")).unwrap().to_owned())
        .filter(|path| path.starts_with("records") || path.starts_with("state") || path.starts_with("audit"))
        .collect();
    assert_eq!(left, [std::path::Path::new("audit/issue-42@claude.jsonl")]);
    let next = stage.run("two").await;
    assert_eq!(next.route, Route::Fresh(Why::NoPriorSession));
    assert_ne!(next.session_id, first.session_id);
}

/// BR-021: without state dirs, the look and the agent go to the same place, the one that the agent's environment names.
#[tokio::test]
async fn the_look_and_the_agent_share_the_configured_folder() {
    let stage = Stage::new();
    let elsewhere = stage.path("alt");
    let environment = stage.environment().set("CLAUDE_CONFIG_DIR", &elsewhere);
    let lifecycle = stage.lifecycle_of(stage.program(), environment).state_dirs(false);
    let first = lifecycle.run(stage.request("one")).await.unwrap();
    let second = lifecycle.run(stage.request("two")).await.unwrap();
    assert_eq!((second.route, second.session_id), (Route::Resumed, first.session_id));
    assert!(!second.warnings.contains(&rejoin::Warning::NotPersisted), "{:?}", second.warnings);
    assert_eq!(
        stage.files("alt").iter().filter(|path| path.extension().is_some_and(|e| e == "jsonl")).count(),
        1
    );
    assert!(stage.files("home").is_empty() && stage.transcripts().is_empty());
}

/// BR-017: two runs at once of a mailbox that has nothing yet; neither's session wipes out the other's.
#[tokio::test]
async fn two_first_runs_at_once_make_one_conversation() {
    let stage = Stage::new();
    let mut limits = rejoin::Limits::default();
    limits.lease = limits.total;
    let (left, right) = (stage.lifecycle(), stage.lifecycle());
    let ask = |prompt| stage.request(prompt).limits(limits.clone());
    let (one, two) = tokio::join!(left.run(ask("one")), right.run(ask("two")));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(one.resumed != two.resumed, "{:?} and {:?}", one.route, two.route);
    assert_eq!(one.session_id, two.session_id);
    assert!(stage.record().await.past.is_empty() && stage.transcripts().len() == 1);
}

#[tokio::test]
async fn a_session_in_another_configuration_folder_is_found_again_when_it_is_set_back() {
    let stage = Stage::new();
    let set_to = |folder: &str| {
        let environment = stage.environment().set("CLAUDE_CONFIG_DIR", stage.path(folder));
        stage.lifecycle_of(stage.program(), environment).state_dirs(false)
    };
    let first = set_to("one").run(stage.request("alpha")).await.unwrap();
    let away = set_to("two").run(stage.request("beta")).await.unwrap();
    assert_eq!(away.route, Route::FellBack(Why::HomeDiffers));
    let back = set_to("one").run(stage.request("gamma")).await.unwrap();
    assert_eq!((back.route, back.session_id), (Route::Resumed, first.session_id));
    let seen = rejoin_test_support::ContextReply::parse(&back.text).unwrap();
    assert_eq!(seen.user_turns, 2);
}
