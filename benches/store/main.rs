//! What the embedded store costs, beside the bare system calls that it cannot do without: `cargo xtask bench store`.
//!
//! Each figure comes from pairs taken in turn, on the same file system, by one thread: the store is asked without a runtime, so
//! that it works where it is asked. What a task of a runtime adds is a row of its own. Read the ratios, not the milliseconds.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark for people at a terminal")]

#[path = "../figures/mod.rs"]
mod figures;

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use clap::Parser;
use figures::Pairs;
use rejoin::SessionStore as _;
use rejoin::core::{
    AuditEvent, Document, Guard, Holder, Lease, LeaseOutcome, ListOptions, RunId, Saved, SessionKey,
    Timestamp,
};
use rejoin::stores::FsStore;

#[derive(Debug, Parser)]
struct Args {
    /// Pairs a figure.
    #[arg(long, default_value_t = 300)]
    pairs: u32,
    /// Keys to list.
    #[arg(long, default_value_t = 100_000)]
    keys: u32,
    /// Where to measure; a folder of its own is made there and removed. Without it, in the build folder.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Fail when a goal is missed.
    #[arg(long)]
    check: bool,
    /// Given by `cargo bench`; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Without a runtime, every operation is done when it is asked for.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("the store works on the caller's thread"),
    }
}

fn timed<T>(act: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    std::hint::black_box(act());
    start.elapsed()
}

/// Both in turn, each time in the other order; the first pair warms up.
fn pairs(count: u32, mut bare: impl FnMut(u32), mut ours: impl FnMut(u32)) -> Pairs {
    let mut pairs = Pairs::default();
    for n in 0..=count {
        let (a, b) = if n % 2 == 0 {
            let a = timed(|| bare(n));
            (a, timed(|| ours(n)))
        } else {
            let b = timed(|| ours(n));
            (timed(|| bare(n)), b)
        };
        if n > 0 {
            pairs.push(a, b);
        }
    }
    pairs
}

fn key(mailbox: &str) -> SessionKey {
    SessionKey::new(mailbox, "claude").unwrap()
}

fn holder() -> Holder {
    Holder { host: "bench".to_owned(), pid: std::process::id(), since: None }
}

fn lease(store: &FsStore, key: &SessionKey) -> Lease {
    match now(store.lease(key, &holder())).unwrap() {
        LeaseOutcome::Held(lease) => lease,
        LeaseOutcome::Busy { by } => panic!("held by {by:?}"),
    }
}

/// Write, fsync, rename, fsync of the folder.
fn replace(folder: &Path, name: &str, content: &[u8]) {
    let temporary = folder.join("temporary");
    let mut file = File::create(&temporary).unwrap();
    file.write_all(content).unwrap();
    file.sync_all().unwrap();
    fs::rename(&temporary, folder.join(name)).unwrap();
    File::open(folder).unwrap().sync_all().unwrap();
}

fn event() -> AuditEvent {
    let run: RunId = serde_json::from_str("\"00000000-0000-4000-8000-000000000007\"").unwrap();
    let mut event = AuditEvent::new(Timestamp::from_millis(1_700_000_000_456), run, "run_finished");
    event.detail = Some("x".repeat(200));
    event
}

fn main() -> ExitCode {
    let args = Args::parse();
    let parent =
        args.dir.clone().unwrap_or_else(|| std::env::current_exe().unwrap().parent().unwrap().to_owned());
    let folder = tempfile::Builder::new().prefix("bench-store-").tempdir_in(parent).unwrap();
    let base = folder.path();
    let bare = base.join("bare");
    fs::create_dir(&bare).unwrap();
    let store = FsStore::open(base).unwrap();
    let a = key("a");
    println!("{} pairs each, medians\n", args.pairs);
    Pairs::heading();
    let mut met = true;

    // A record of a mailbox with some history.
    let document = Document::new(vec![b'x'; 2048]);
    let held = lease(&store, &a);
    let mut guard = Guard::Absent;
    let saves = pairs(
        args.pairs,
        |_| replace(&bare, "record", document.as_bytes()),
        |_| match now(store.save(&a, &document, &guard, Some(&held))).unwrap() {
            Saved::Done(revision) => guard = Guard::Revision(revision),
            refused => panic!("{refused:?}"),
        },
    );
    drop(held);
    met &= saves.row(
        "save of 2 KiB under guard and lease; write, fsync, rename, fsync of the folder",
        Some(1.3),
        3,
    );

    let mut line = serde_json::to_vec(&event()).unwrap();
    line.push(b'\n');
    let appends = pairs(
        args.pairs,
        |_| {
            let mut file = OpenOptions::new().append(true).create(true).open(bare.join("log")).unwrap();
            file.write_all(&line).unwrap();
            file.sync_data().unwrap();
        },
        |_| assert!(now(store.append_audit(&a, &event())).is_ok()),
    );
    met &= appends.row("audit append; append, fdatasync", Some(1.5), 3);

    let record = base.join(".agent-sessions/records/a@claude.json");
    let loads = pairs(
        args.pairs * 10,
        |_| drop(fs::read(&record).unwrap()),
        |_| drop(now(store.load(&a)).unwrap().unwrap()),
    );
    met &= loads.row("load of 2 KiB; open, read", Some(2.0), 4);

    // The file itself, so that the way to it is as long.
    drop(lease(&store, &a));
    let lock = base.join(".agent-sessions/locks/a@claude.lock");
    let bare_lock = |names: Option<usize>| {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&lock).unwrap();
        file.try_lock().unwrap();
        if let Some(length) = names {
            let mut content = [0; 1024];
            (&file).read_exact(&mut content).unwrap();
            file.write_all_at(&content[..length], 0).unwrap();
        }
        file.unlock().unwrap();
    };
    let locks = pairs(args.pairs * 10, |_| bare_lock(None), |_| drop(lease(&store, &a)));
    met &= locks.row("lease and its end; open, lock, unlock", Some(2.0), 4);
    let named = pairs(args.pairs * 10, |_| bare_lock(Some(512)), |_| drop(lease(&store, &a)));
    met &= named.row("the same; open, lock, read who it was, write who it is, unlock", Some(2.0), 4);

    // Written as the store would have, but for the fsync of each.
    let content = String::from_utf8(fs::read(&record).unwrap()).unwrap();
    let records = base.join(".agent-sessions/records");
    for n in 0..args.keys {
        let own = content.replacen("\"mailbox\":\"a\"", &format!("\"mailbox\":\"issue-{n}\""), 1);
        fs::write(records.join(format!("issue-{n}@claude.json")), own).unwrap();
    }
    let all = ListOptions::default();
    let lists = pairs(
        (args.pairs / 30).max(3),
        |_| {
            let names = fs::read_dir(&records).unwrap().map(|entry| entry.unwrap().file_name());
            assert_eq!(names.count(), args.keys as usize + 1);
        },
        |_| assert_eq!(now(store.list(&all)).unwrap().items.len(), args.keys as usize + 1),
    );
    met &= lists.row(&format!("list of {} keys; readdir", args.keys), Some(3.0), 1);

    // Another layout of an embedded store, as durable: one database for all, one commit a save.
    let database = rusqlite::Connection::open(bare.join("records.sqlite")).unwrap();
    database.pragma_update(None, "journal_mode", "wal").unwrap();
    database.pragma_update(None, "synchronous", "full").unwrap();
    database
        .execute("create table records (key text primary key, revision integer, document blob)", ())
        .unwrap();
    let upsert = "insert into records values ('a', 1, ?1)
        on conflict (key) do update set revision = revision + 1, document = excluded.document";
    let mut statement = database.prepare(upsert).unwrap();
    let in_sqlite = pairs(
        args.pairs,
        |_| assert_eq!(statement.execute([document.as_bytes()]).unwrap(), 1),
        |_| assert!(matches!(now(store.save(&a, &document, &Guard::Any, None)), Ok(Saved::Done(_)))),
    );
    in_sqlite.row("save of 2 KiB; SQLite, WAL, synchronous = full", None, 3);

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let hops = pairs(
        args.pairs * 10,
        |_| drop(now(store.load(&a)).unwrap()),
        |_| drop(runtime.block_on(store.load(&a)).unwrap()),
    );
    hops.row("load from a task of a runtime; the same without one", None, 4);
    if met || !args.check { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
