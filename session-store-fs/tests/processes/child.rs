//! What the children do. They answer in lines on stdout, and wait for their stdin to end.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use session_core::error::{StoreError, StoreErrorKind};
use session_core::{
    AuditEvent, Document, Guard, Holder, LeaseOutcome, RunId, Saved, SessionKey, SessionStore as _, Timestamp,
};
use session_store_fs::FsStore;

use crate::parent::{key, now};

pub(crate) fn act(what: &str, arguments: &[String]) {
    let base = Path::new(&arguments[0]);
    match what {
        "lease" => lease(base, false),
        "lease_and_spawn" => lease(base, true),
        "increments" => increments(base, arguments[1].parse().unwrap()),
        "write_for_ever" => write_for_ever(base),
        "hammer" => {
            let number = |at: usize| arguments[at].parse().unwrap();
            crate::hammer::act(base, [number(1), number(2), number(3)]);
        }
        "work" => crate::kills::work(base, arguments[1].parse().unwrap()),
        "sweep" => crate::sweeps::act(base),
        "modes" => modes(base),
        "full" => full(base),
        "limited" => limited(base),
        "fill" => fill(base),
        "read_only" => read_only(base),
        "no_files" => no_files(base),
        "denied" => denied(base),
        other => panic!("no such child: {other}"),
    }
}

pub(crate) fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

fn wait() {
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn us() -> Holder {
    Holder { host: "child".to_owned(), pid: std::process::id(), since: None }
}

fn lease(base: &Path, spawn: bool) {
    let store = FsStore::open(base).unwrap();
    match now(store.lease(&key("a"), &us())).unwrap() {
        LeaseOutcome::Busy { by } => say(format_args!("busy {}", by.unwrap().pid)),
        LeaseOutcome::Held(lease) if spawn => {
            let null = Stdio::null;
            let mut sleep = Command::new("sleep");
            let mut grandchild =
                sleep.arg("600").stdin(null()).stdout(null()).stderr(null()).spawn().unwrap();
            say(format_args!("held {} {}", lease.fence(), grandchild.id()));
            wait();
            grandchild.kill().unwrap();
            grandchild.wait().unwrap();
        }
        LeaseOutcome::Held(lease) => {
            say(format_args!("held {}", lease.fence()));
            wait();
        }
    }
}

fn increments(base: &Path, times: u32) {
    let store = FsStore::open(base).unwrap();
    let mut done = 0;
    while done < times {
        let stored = now(store.load(&key("count"))).unwrap().unwrap();
        let count: u32 = str::from_utf8(stored.document.as_bytes()).unwrap().parse().unwrap();
        let next = Document::new((count + 1).to_string().into_bytes());
        let saved = now(store.save(&key("count"), &next, &Guard::Revision(stored.revision), None)).unwrap();
        done += u32::from(matches!(saved, Saved::Done(_)));
        now(store.append_audit(&key("count"), &event())).unwrap();
    }
}

pub(crate) fn event() -> AuditEvent {
    AuditEvent::new(Timestamp::EPOCH, RunId::new(uuid::Uuid::nil()), "run_finished")
}

/// Documents whose length is their number, one after the other; each is acknowledged on stdout.
fn write_for_ever(base: &Path) {
    let store = FsStore::open(base).unwrap();
    let first = now(store.load(&key("a"))).unwrap().map_or(1, |stored| stored.document.as_bytes().len() + 1);
    for length in first.. {
        let document = Document::new(vec![b'x'; length]);
        assert!(matches!(now(store.save(&key("a"), &document, &Guard::Any, None)).unwrap(), Saved::Done(_)));
        let seq = now(store.append_audit(&key("a"), &event())).unwrap();
        say(format_args!("{length} {}", seq.0));
    }
}

/// Says the mode of everything below the base.
fn modes(base: &Path) {
    let store = FsStore::open(base).unwrap();
    let _ = now(store.save(&key("a"), &Document::new(vec![]), &Guard::Any, None)).unwrap();
    now(store.append_audit(&key("a"), &event())).unwrap();
    let _lease = now(store.lease(&key("a"), &us())).unwrap();
    now(store.state_dir(&key("a"))).unwrap();
    tell_modes(store.root());
}

fn tell_modes(path: &Path) {
    let metadata = path.symlink_metadata().unwrap();
    let kind = if metadata.is_dir() { "dir" } else { "file" };
    say(format_args!("{kind} {:o} {}", metadata.permissions().mode() & 0o7777, path.display()));
    if metadata.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| tell_modes(&entry.unwrap().path()));
    }
}

fn assert_unavailable<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(std::error::Error::source(&error).unwrap().is::<std::io::Error>());
}

/// Runs on a small file system of its own, and fills it.
fn full(base: &Path) {
    let store = FsStore::open(base).unwrap();
    let save = |text: &str| {
        let document = Document::new(text.as_bytes().to_vec());
        now(store.save(&key("a"), &document, &Guard::Any, None))
    };
    let text = |key: &SessionKey| now(store.load(key)).unwrap().map(|s| s.document.as_bytes().to_vec());
    let _ = save("old").unwrap();
    assert_eq!(now(store.append_audit(&key("a"), &event())).unwrap().0, 1);
    drop(now(store.lease(&key("a"), &us())).unwrap());

    let mut filler = File::create(base.join("filler")).unwrap();
    let mut block = 1 << 20;
    while block > 0 {
        if filler.write(&vec![1; block]).is_err() {
            block /= 2;
        }
    }
    assert_unavailable(save("new"));
    assert_unavailable(save(&"long".repeat(100_000)));
    assert_eq!(text(&key("a")).unwrap(), b"old");
    // An entry may still fit into the last block of the log; at some point none does.
    let mut appended = 1;
    let failed = loop {
        match now(store.append_audit(&key("a"), &event())) {
            Ok(seq) => appended = seq.0,
            Err(error) => break Err::<(), _>(error),
        }
    };
    assert_unavailable(failed);
    assert_eq!(now(store.audit(&key("a"), None)).unwrap().len() as u64, appended);
    let log = std::fs::read(store.root().join("audit/a@claude.jsonl")).unwrap();
    assert!(log.ends_with(b"\n"), "no half-written entry stays");
    // A lease that was granted once needs no space.
    let LeaseOutcome::Held(lease) = now(store.lease(&key("a"), &us())).unwrap() else { panic!("busy") };
    assert_eq!(lease.fence(), 2);
    let leftovers = std::fs::read_dir(store.root().join("records")).unwrap().count();
    assert_eq!(leftovers, 1, "no half-written file stays");

    drop(filler);
    std::fs::remove_file(base.join("filler")).unwrap();
    let _ = save("new").unwrap();
    assert_eq!(text(&key("a")).unwrap(), b"new");
    assert_eq!(now(store.append_audit(&key("a"), &event())).unwrap().0, appended + 1);
    say("done");
}

fn fill(base: &Path) {
    let store = FsStore::open(base).unwrap();
    let _ = now(store.save(&key("a"), &Document::new(b"old".to_vec()), &Guard::Any, None)).unwrap();
    now(store.append_audit(&key("a"), &event())).unwrap();
    now(store.state_dir(&key("a"))).unwrap();
}

/// Runs on a file system that cannot be written.
fn read_only(base: &Path) {
    let store = FsStore::open(base).unwrap();
    assert_eq!(now(store.load(&key("a"))).unwrap().unwrap().document.as_bytes(), b"old");
    assert_eq!(now(store.load(&key("b"))).unwrap(), None);
    assert_eq!(now(store.audit(&key("a"), None)).unwrap().len(), 1);
    assert_eq!(now(store.list(&Default::default())).unwrap().items, [key("a")]);
    let document = Document::new(b"new".to_vec());
    for refused in [
        now(store.save(&key("a"), &document, &Guard::Any, None)).map(drop),
        now(store.remove(&key("a"), &Guard::Any)).map(drop),
        now(store.set_aside(&key("a"), &Guard::Any)).map(drop),
        now(store.append_audit(&key("a"), &event())).map(drop),
        now(store.lease(&key("a"), &us())).map(drop),
        now(store.state_dir(&key("b"))).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::PermissionDenied, "{error}");
        assert!(error.to_string().contains(".agent-sessions"), "{error}");
    }
    say("done");
}

/// Runs with a limit on the length of files: a write ends half way.
fn limited(base: &Path) {
    let store = FsStore::open(base).unwrap();
    let document = Document::new(vec![b'x'; 100_000]);
    let error = now(store.save(&key("a"), &document, &Guard::Any, None)).unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().is::<std::io::Error>(), "{error}");
    assert_eq!(std::fs::read_dir(store.root().join("records")).unwrap().count(), 1);
    assert_eq!(now(store.load(&key("a"))).unwrap().unwrap().document.as_bytes(), b"old");
    say("done");
}

/// Runs with few file descriptors, and uses them up.
fn no_files(base: &Path) {
    let store = FsStore::open(base).unwrap();
    let _ = now(store.save(&key("a"), &Document::new(b"x".to_vec()), &Guard::Any, None)).unwrap();
    let mut open = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        open.push(file);
    }
    assert_unavailable(now(store.load(&key("a"))));
    assert_unavailable(now(store.save(&key("a"), &Document::new(vec![]), &Guard::Any, None)));
    assert_unavailable(now(store.lease(&key("a"), &us())));
    assert_unavailable(now(store.list(&Default::default())));
    assert_unavailable(now(store.audit(&key("a"), None)));
    assert_unavailable(now(store.append_audit(&key("a"), &event())));
    assert_unavailable(now(store.state_dir(&key("a"))));
    drop(open);
    assert_eq!(now(store.load(&key("a"))).unwrap().unwrap().document.as_bytes(), b"x");
    say("done");
}

/// Looks at a record that it may not read, and at one that is not there.
fn denied(base: &Path) {
    let store = match FsStore::open(base) {
        Ok(store) => store,
        Err(error) => return say(format_args!("open {:?}", error.kind())),
    };
    let listed = now(store.list(&Default::default())).unwrap().items.len();
    let kind = |result: Result<Option<_>, StoreError>| match result {
        Ok(found) => if found.is_some() { "found" } else { "absent" }.to_owned(),
        Err(error) => format!("{:?}", error.kind()),
    };
    let denied = kind(now(store.load(&key("a"))).map(|stored| stored.map(drop)));
    let absent = kind(now(store.load(&key("b"))).map(|stored| stored.map(drop)));
    say(format_args!("{denied} {absent} {listed}"));
}
