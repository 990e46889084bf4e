//! Leftovers on a real file system: what is the store's own, what is not, and what an agent planted.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use session_core::error::StoreErrorKind;
use session_core::{
    AuditEvent, Disposed, Guard, Leftover, LeftoverKind, LeftoverOptions, Live, RunId, SessionKey,
    SessionStore as _, Timestamp, Tombstone,
};

use crate::{Fixture, holder, key, kind_at};

const NONCE: &str = "0123456789abcdef0123456789abcdef";

fn tombstone() -> Tombstone {
    let event = |kind| AuditEvent::new(Timestamp::EPOCH, RunId::new(uuid::Uuid::nil()), kind);
    Tombstone { holder: holder(1), before: event("mailbox_closing"), after: event("mailbox_closed") }
}

async fn listed(at: &Fixture) -> Vec<Leftover> {
    let options = LeftoverOptions::new(Live::none()).aside(true).logs(true);
    let mut found = at.store.leftovers(&options).await.unwrap();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

async fn names(at: &Fixture, kind: LeftoverKind) -> Vec<String> {
    listed(at).await.into_iter().filter(|found| found.kind == kind).map(|found| found.name).collect()
}

async fn remove(at: &Fixture, leftover: &Leftover) -> Disposed {
    at.store.remove_leftover(leftover, &tombstone()).await.unwrap()
}

/// Removes all of a kind, and says what came of it.
async fn remove_all(at: &Fixture, kind: LeftoverKind) -> Vec<Disposed> {
    let mut answers = Vec::new();
    for leftover in listed(at).await.iter().filter(|found| found.kind == kind) {
        answers.push(remove(at, leftover).await);
    }
    answers
}

fn age(path: &Path, age: Duration) {
    File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
}

/// Every path below, with what tells whether it was touched.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, u64)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let (path, metadata) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (metadata.mode(), metadata.ctime(), metadata.ctime_nsec(), metadata.size()));
        }
    }
    found
}

async fn state(at: &Fixture, key: &SessionKey) -> PathBuf {
    let dir = at.store.state_dir(key).await.unwrap().unwrap();
    fs::write(dir.join("session"), "x").unwrap();
    dir
}

#[tokio::test]
async fn what_is_not_the_stores_is_told_and_left() {
    let at = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("claude")).unwrap();
    let hash = &NONCE[1..];
    let mut planted =
        vec!["records/notes.txt", "records/a.json", "records/A@claude.json", "records/.tmp-short"];
    planted.extend([
        "state/file",
        "state/.gone-short",
        "state/.hidden",
        "state/a/file",
        "quarantine/a",
        "audit/a.jsonl",
    ]);
    let short = format!("state/a+{hash}");
    planted.push(&short);
    fs::create_dir(at.path("state/a")).unwrap();
    for name in &planted {
        fs::write(at.path(name), "x").unwrap();
    }
    for (name, target) in
        [("state/b", outside.path()), ("state/a/claude", outside.path()), ("state/c", Path::new("nothing"))]
    {
        symlink(target, at.path(name)).unwrap();
        planted.push(name);
    }
    for name in ["state/Upper", "state/a/Upper", "records/.tmp-folder"] {
        fs::create_dir(at.path(name)).unwrap();
        planted.push(name);
    }
    assert!(Command::new("mkfifo").arg(at.path("state/pipe")).status().unwrap().success());
    fs::create_dir(at.path("state").join(OsStr::from_bytes(b"\xff"))).unwrap();
    planted.extend(["state/pipe", "state/\u{fffd}"]);
    planted.sort_unstable();
    let before = snapshot(at.store.root());
    assert_eq!(names(&at, LeftoverKind::Foreign).await, planted);
    assert_eq!(listed(&at).await.len(), planted.len(), "nothing else");
    assert_eq!(snapshot(at.store.root()), before, "a listing changes nothing");

    // Nor is it removed by who says that it is something else.
    for found in listed(&at).await {
        for kind in [
            LeftoverKind::State,
            LeftoverKind::Folder,
            LeftoverKind::Removal,
            LeftoverKind::Temporary,
            LeftoverKind::Aside,
            LeftoverKind::Log,
        ] {
            let mut forged = found.clone();
            forged.kind = kind;
            let metadata = at.path(&found.name).symlink_metadata();
            let changed =
                metadata.map(|metadata| metadata.mtime() * 1000 + metadata.mtime_nsec() / 1_000_000);
            forged.last_used = changed.ok().map(Timestamp::from_millis);
            let disposed = remove(&at, &forged).await;
            assert!(
                matches!(disposed, Disposed::Changed | Disposed::NothingThere),
                "{forged:?}: {disposed:?}"
            );
        }
    }
    assert!(
        planted
            .iter()
            .filter(|name| !name.contains('\u{fffd}'))
            .all(|name| at.path(name).symlink_metadata().is_ok())
    );
    assert!(outside.path().join("claude").is_dir());
}

#[tokio::test]
async fn what_belongs_to_another_user_is_left() {
    let at = Fixture::new();
    let dir = state(&at, &key("a")).await;
    let give_away = |path: &Path| std::os::unix::fs::chown(path, Some(12_345), None);
    if give_away(&dir).is_err() {
        // Without the right to give it away there is nobody else's here.
        return;
    }
    assert_eq!(names(&at, LeftoverKind::Foreign).await, ["state/a/claude"]);
    let mut forged = Leftover::new(LeftoverKind::State, "state/a/claude");
    forged.last_used = at.store.state_size(&key("a")).await.unwrap().unwrap().changed_at;
    assert_eq!(remove(&at, &forged).await, Disposed::Changed);

    let gone = format!("state/.gone-{NONCE}");
    let temporary = format!("records/.tmp-{NONCE}");
    fs::create_dir(at.path(&gone)).unwrap();
    fs::write(at.path(&temporary), "x").unwrap();
    age(&at.path(&temporary), Duration::from_secs(9999));
    let all = [temporary.as_str(), gone.as_str(), "state/a"];
    all.iter().for_each(|name| give_away(&at.path(name)).unwrap());
    assert_eq!(names(&at, LeftoverKind::Foreign).await, all);
    let removal = Leftover::new(LeftoverKind::Removal, gone.as_str());
    assert_eq!(remove(&at, &removal).await, Disposed::Changed);
    assert!(dir.join("session").is_file() && at.path(&gone).is_dir());
}

#[tokio::test]
async fn a_state_dir_without_a_record_goes_whatever_is_in_it() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("precious"), "x").unwrap();
    for key in [key("a"), key("Feature/Ä"), SessionKey::new("..", "x".repeat(64)).unwrap()] {
        let at = Fixture::new();
        let dir = state(&at, &key).await;
        at.put(&SessionKey::new(key.mailbox.as_str(), "other").unwrap(), "x").await;
        symlink(outside.path(), dir.join("link")).unwrap();
        symlink(&dir, dir.join("loop")).unwrap();
        assert!(Command::new("mkfifo").arg(dir.join("pipe")).status().unwrap().success());
        fs::create_dir_all(dir.join("closed/inner")).unwrap();
        fs::set_permissions(dir.join("closed"), Permissions::from_mode(0o000)).unwrap();
        crate::make_deep(&dir, 2000, b"x");
        // One that died had said that it began.
        at.store.append_audit(&key, &tombstone().before).await.unwrap();

        let found = listed(&at).await;
        let [leftover] =
            found.iter().filter(|found| found.kind == LeftoverKind::State).collect::<Vec<_>>()[..]
        else {
            panic!("{found:?}")
        };
        let shown = !leftover.name.contains('+');
        assert_eq!(leftover.key, shown.then(|| key.clone()));
        assert_eq!(remove(&at, leftover).await, Disposed::Removed);
        assert!(!dir.exists() && fs::read_dir(at.path("state")).unwrap().count() == 0);
        let log = at.store.audit(&key, None).await.unwrap();
        let kinds: Vec<_> = log.iter().map(|entry| entry.event.kind.as_str()).collect();
        assert_eq!(kinds, ["mailbox_closing", "mailbox_closing", "mailbox_closed"]);
        assert_eq!(remove(&at, leftover).await, Disposed::NothingThere);
    }
    assert_eq!(fs::read_to_string(outside.path().join("precious")).unwrap(), "x");
}

#[tokio::test]
async fn nothing_of_an_unreadable_record_is_touched() {
    let at = Fixture::new();
    for mailbox in ["cut", "newer", "folder", "link"] {
        state(&at, &key(mailbox)).await;
    }
    fs::write(at.path("records/cut@claude.json"), "{").unwrap();
    fs::write(at.path("records/newer@claude.json"), "{\"store\":9}\n").unwrap();
    fs::create_dir(at.path("records/folder@claude.json")).unwrap();
    symlink("nothing", at.path("records/link@claude.json")).unwrap();
    fs::write(at.path("records").join(format!("hidden+{NONCE}@claude.json")), "{").unwrap();
    // What is named in full and is a file is listed as a key, and found to be unreadable when it is loaded.
    let told = ["folder@claude".to_owned(), format!("hidden+{NONCE}@claude"), "link@claude".to_owned()];
    let told = told.map(|name| format!("records/{name}.json"));
    assert_eq!(names(&at, LeftoverKind::Unreadable).await, told);
    assert_eq!(at.store.list(&Default::default()).await.unwrap().items, [key("cut"), key("newer")]);
    assert_eq!(listed(&at).await.len(), told.len(), "and no state dir");
    for mailbox in ["cut", "newer", "folder", "link"] {
        let mut forged = Leftover::new(LeftoverKind::State, format!("state/{mailbox}/claude"));
        forged.last_used = at.store.state_size(&key(mailbox)).await.unwrap().unwrap().changed_at;
        assert_eq!(remove(&at, &forged).await, Disposed::Changed, "{mailbox}");
    }
}

#[tokio::test]
async fn what_changed_since_it_was_listed_is_left() {
    let at = Fixture::new();
    let dir = state(&at, &key("a")).await;
    age(&dir.join("session"), Duration::from_secs(9999));
    age(&dir, Duration::from_secs(9999));
    let before = listed(&at).await.remove(0);
    // An agent that was not waited for goes on deep in it.
    fs::create_dir(dir.join("deep")).unwrap();
    age(&dir, Duration::from_secs(9999));
    assert_eq!(remove(&at, &before).await, Disposed::Changed);
    // Somebody runs it.
    let before = listed(&at).await.remove(0);
    let lease = at.store.lease(&key("a"), &holder(7)).await.unwrap();
    assert_eq!(remove(&at, &before).await, Disposed::Busy { by: Some(holder(7)) });
    drop(lease);
    // It was exchanged for a link to another's.
    let other = state(&at, &key("b")).await;
    fs::remove_dir_all(&dir).unwrap();
    symlink(&other, &dir).unwrap();
    assert_eq!(remove(&at, &before).await, Disposed::Changed);
    assert!(other.join("session").is_file());
    assert!(at.store.audit(&key("a"), None).await.unwrap().is_empty(), "nothing is told of what stays");
}

#[tokio::test]
async fn what_dead_removals_and_writers_left_goes() {
    let (at, outside) = (Fixture::new(), tempfile::tempdir().unwrap());
    fs::create_dir_all(at.path(&format!("state/.gone-{NONCE}/deep"))).unwrap();
    symlink(outside.path(), at.path(&format!("state/.gone-{}", NONCE.replace('0', "1")))).unwrap();
    let (old, young, link) = (NONCE, NONCE.replace('0', "1"), NONCE.replace('0', "2"));
    for name in [format!("records/.tmp-{old}"), format!(".tmp-{old}")] {
        fs::write(at.path(&name), "x").unwrap();
        age(&at.path(&name), Duration::from_secs(2 * 60 * 60));
    }
    fs::write(at.path(&format!("records/.tmp-{young}")), "x").unwrap();
    symlink(outside.path(), at.path(&format!("records/.tmp-{link}"))).unwrap();
    fs::create_dir(at.path("state/empty")).unwrap();
    assert_eq!(remove_all(&at, LeftoverKind::Removal).await, [Disposed::Removed, Disposed::Removed]);
    assert_eq!(remove_all(&at, LeftoverKind::Temporary).await, [Disposed::Removed, Disposed::Removed]);
    let empty = listed(&at).await.into_iter().find(|found| found.kind == LeftoverKind::Folder).unwrap();
    fs::create_dir(at.path("state/empty/claude")).unwrap();
    assert_eq!(remove(&at, &empty).await, Disposed::Changed, "somebody lives there");
    fs::remove_dir(at.path("state/empty/claude")).unwrap();
    assert_eq!(remove_all(&at, LeftoverKind::Folder).await, [Disposed::Removed]);
    let left: Vec<_> = listed(&at).await.into_iter().map(|found| found.name).collect();
    assert_eq!(left, [format!("records/.tmp-{link}")], "the young one is somebody's");
    assert!(at.path(&format!("records/.tmp-{young}")).is_file());
    assert!(outside.path().is_dir());
}

#[tokio::test]
async fn what_was_set_aside_and_logs_of_nothing_are_listed_where_they_are_wanted() {
    let at = Fixture::new();
    for mailbox in ["aside", "with record", "with state", "gone"] {
        at.put(&key(mailbox), "x").await;
        at.store.append_audit(&key(mailbox), &tombstone().before).await.unwrap();
    }
    at.store.set_aside(&key("aside"), &Guard::Any).await.unwrap().unwrap();
    for mailbox in ["with state", "gone"] {
        let _ = at.store.remove(&key(mailbox), &Guard::Any).await.unwrap();
    }
    state(&at, &key("with state")).await;
    fs::create_dir_all(at.path(&format!("quarantine/b@claude.{NONCE}/inner"))).unwrap();
    let plain = at.store.leftovers(&LeftoverOptions::new(Live::none())).await.unwrap();
    assert_eq!(plain.len(), 1, "only the state dir: {plain:?}");

    assert_eq!(names(&at, LeftoverKind::Log).await, ["audit/aside@claude.jsonl", "audit/gone@claude.jsonl"]);
    let log = listed(&at).await.into_iter().find(|found| found.kind == LeftoverKind::Log).unwrap();
    at.put(&key("aside"), "back").await;
    assert_eq!(remove(&at, &log).await, Disposed::Changed, "it is a key's again");
    let live = LeftoverOptions::new(Live::of(["gone"]).unwrap()).logs(true);
    let of_live = at.store.leftovers(&live).await.unwrap();
    assert!(of_live.iter().any(|found| found.live && found.kind == LeftoverKind::Log));
    assert_eq!(remove_all(&at, LeftoverKind::Log).await, [Disposed::Removed]);
    assert!(at.store.audit(&key("gone"), None).await.unwrap().is_empty());
    assert_eq!(at.store.audit(&key("aside"), None).await.unwrap().len(), 1);
    assert_eq!(remove_all(&at, LeftoverKind::Aside).await, [Disposed::Removed, Disposed::Removed]);
    assert_eq!(fs::read_dir(at.path("quarantine")).unwrap().count(), 0);
    assert_eq!(at.get(&key("with record")).await.unwrap().as_deref(), Some("x"));
}

/// A record that nobody wrote for months may be found unreadable today.
#[tokio::test]
async fn what_was_set_aside_is_as_old_as_that_and_not_as_its_content() {
    let at = Fixture::new();
    let (path, began) = (at.path("records/a@claude.json"), SystemTime::now());
    fs::write(&path, "{").unwrap();
    age(&path, Duration::from_secs(90 * 24 * 60 * 60));
    at.store.set_aside(&key("a"), &Guard::Any).await.unwrap().unwrap();
    let [aside] = &listed(&at).await[..] else { panic!("one thing is listed") };
    let began = began.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    // Clocks of files go in steps.
    assert!(aside.last_used.unwrap().as_millis() + 60_000 > i64::try_from(began).unwrap(), "{aside:?}");
    assert_eq!(remove(&at, aside).await, Disposed::Removed);
}

#[tokio::test]
async fn a_folder_of_the_store_that_has_gone_is_not_an_empty_one() {
    for folder in ["state", "records"] {
        let at = Fixture::new();
        state(&at, &key("a")).await;
        let leftover = listed(&at).await.remove(0);
        fs::rename(at.path(folder), at.path("elsewhere")).unwrap();
        let options = LeftoverOptions::new(Live::none());
        assert_eq!(kind_at(at.store.leftovers(&options).await, folder), StoreErrorKind::Unavailable);
        match folder {
            "records" => {
                let removed = at.store.remove_leftover(&leftover, &tombstone()).await;
                assert_eq!(kind_at(removed, "records"), StoreErrorKind::Unavailable);
                assert!(at.path("state/a/claude").is_dir());
            }
            _ => assert_eq!(remove(&at, &leftover).await, Disposed::NothingThere),
        }
        // Nor is one that a link stands for.
        symlink(at.path("elsewhere"), at.path(folder)).unwrap();
        assert!(at.store.leftovers(&options).await.is_err());
    }
}

/// Somebody who writes on and on into what is being removed is not waited for without end.
#[tokio::test(flavor = "multi_thread")]
async fn a_removal_ends_also_where_somebody_still_writes() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    let at = Fixture::new();
    let dir = state(&at, &key("a")).await;
    let (stop, began) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (stopped, begun) = (stop.clone(), began.clone());
    // From within, so that it goes along when the folder is moved.
    let writer = std::thread::spawn(move || {
        let inside = File::open(&dir).unwrap();
        for name in 0_u64.. {
            let made = rustix::fs::mkdirat(&inside, name.to_string(), rustix::fs::Mode::RWXU);
            begun.store(true, Ordering::SeqCst);
            if stopped.load(Ordering::SeqCst) || made == Err(rustix::io::Errno::NOENT) {
                break;
            }
        }
    });
    while !began.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    let session_core::LeaseOutcome::Held(lease) = at.store.lease(&key("a"), &holder(1)).await.unwrap() else {
        panic!("it is free")
    };
    let removed = at.store.remove_state(&key("a"), &lease).await;
    stop.store(true, Ordering::SeqCst);
    writer.join().unwrap();
    assert!(!at.path("state/a").exists(), "it is out of the way in any case");
    if removed.is_err() {
        assert_eq!(kind_at(removed, ".gone-"), StoreErrorKind::Unavailable);
        assert!(
            remove_all(&at, LeftoverKind::Removal).await.iter().all(|answer| *answer == Disposed::Removed)
        );
    }
    assert_eq!(listed(&at).await, []);
}
