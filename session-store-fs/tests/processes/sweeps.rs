//! Sweepers that are killed, wherever they are.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use libtest_mimic::Trial;
use session_core::error::FolderError;
use session_core::{
    Document, Folder, Guard, Holder, Lifecycle, Live, SessionKey, SessionRecord, SessionStore as _, Sweep,
    SweepReport, Timestamp, async_trait, codec,
};
use session_store_fs::FsStore;

use crate::child::say;
use crate::parent::{Running, key, now, trial};

const KEYS: usize = 24;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("a_killed_sweep_is_finished_by_the_next_and_takes_no_live_one", killed)]
}

/// The clock, and nothing else of a machine.
#[derive(Debug)]
struct Clock;

#[async_trait]
impl session_core::Host for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::EPOCH.plus(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap())
    }
    async fn sleep(&self, _: Duration) {}
    fn random_id(&self) -> uuid::Uuid {
        uuid::Uuid::new_v4()
    }
    fn holder(&self) -> Holder {
        Holder { host: "sweeper".to_owned(), pid: std::process::id(), since: None }
    }
    async fn folder(&self, path: &Path) -> Result<Folder, FolderError> {
        Err(FolderError::Missing { path: path.to_owned() })
    }
}

fn sweep(base: &Path) -> SweepReport {
    let lifecycle = Lifecycle::new(Arc::new(FsStore::open(base).unwrap()), Arc::new(Clock));
    let sweep = Sweep::new(Live::of(["live"]).unwrap()).grace(Duration::ZERO);
    now(lifecycle.sweep(&sweep)).unwrap()
}

/// The child: it says when it begins.
pub(crate) fn act(base: &Path) {
    say("begun");
    let report = sweep(base);
    say(report.swept.len());
}

/// A state dir with a tree in it, and a record where that is wanted; names of every kind.
fn furnish(store: &FsStore, key: &SessionKey, with_record: bool) {
    let dir = now(store.state_dir(key)).unwrap().unwrap();
    for folder in 0..10 {
        let folder = dir.join(format!("{folder}/inner"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("file"), "x").unwrap();
    }
    if with_record {
        let record = codec::encode(&SessionRecord::new(key.clone(), Timestamp::EPOCH));
        let _ = now(store.save(key, &record, &Guard::Absent, None)).unwrap();
    }
}

fn killed() {
    let dir = tempfile::tempdir().unwrap();
    let store = FsStore::open(dir.path()).unwrap();
    let keys: Vec<_> =
        (0..KEYS).map(|n| key(&if n % 3 == 0 { format!("Lost/{n}") } else { format!("lost-{n}") })).collect();
    for (n, key) in keys.iter().enumerate() {
        furnish(&store, key, n % 2 == 0);
    }
    furnish(&store, &key("live"), true);
    let live: Document = now(store.load(&key("live"))).unwrap().unwrap().document;
    let kinds = |key: &SessionKey| -> Vec<String> {
        now(store.audit(key, None)).unwrap().into_iter().map(|entry| entry.event.kind).collect()
    };
    let names = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(store.root().join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    };
    let mut cut_off = 0;
    for round in 0..KEYS {
        let mut child = Running::start("sweep", dir.path());
        assert_eq!(child.line(), "begun");
        // As soon as the next key has its word, or as something is out of the way and being removed; a little later each time.
        let told = names("audit").len();
        let is_at_it = || match round % 2 {
            0 => names("audit").len() > told,
            _ => names("state").iter().any(|name| name.starts_with(".gone-")),
        };
        while !is_at_it() && child.child.try_wait().unwrap().is_none() {}
        (0..round * 500).for_each(|i| {
            std::hint::black_box(i);
        });
        child.kill();
        cut_off += usize::from(names("state").len() > 1);
        for (n, key) in keys.iter().enumerate().filter(|(n, _)| n % 2 == 0) {
            let gone = now(store.load(key)).unwrap().is_none();
            assert!(!gone || kinds(key).contains(&"mailbox_closing".to_owned()), "{n} went without a word");
        }
    }
    assert!(cut_off > 2, "{cut_off} were killed before they were done");
    let report = sweep(dir.path());
    assert_eq!(report.failures().count(), 0, "{report}");
    assert_eq!(sweep(dir.path()).swept.len(), 0, "nothing is left to be swept");
    for key in &keys {
        assert_eq!(now(store.load(key)).unwrap(), None);
        assert!(kinds(key).contains(&"mailbox_closing".to_owned()), "{key} went without a word");
    }
    assert_eq!(now(store.load(&key("live"))).unwrap().unwrap().document, live);
    let left: Vec<_> =
        std::fs::read_dir(store.root().join("state")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["live"]);
    let tree = store.root().join("state/live/claude");
    assert!((0..10).all(|folder| tree.join(format!("{folder}/inner/file")).is_file()));
}
