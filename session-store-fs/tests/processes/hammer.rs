//! Many tasks in many processes at one key, and at many: never two holders, no lost update, nothing left.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use session_core::{
    Document, Guard, Holder, Lease, LeaseOutcome, Saved, SessionKey, SessionStore as _, Stored,
};
use session_store_fs::FsStore;

use crate::parent::{Running, key, now, trial};

const PROCESSES: u64 = 8;
/// In all processes together.
const TASKS: u64 = 64;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("many_processes_at_one_key_never_hold_it_twice", || hammer(1, 6)),
        trial("many_processes_at_many_keys_lose_no_update", || hammer(1000, 24)),
    ]
}

/// So many updates a task, over so many keys. Each child says for each key how often it was told that an update is done.
fn hammer(keys: u64, updates: u64) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("inside")).unwrap();
    let children: Vec<_> = (0..PROCESSES)
        .map(|process| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["child", "hammer"]).arg(dir.path());
            command.args([keys, updates, process].map(|number| number.to_string()));
            Running::spawn(&mut command)
        })
        .collect();
    let mut told: BTreeMap<String, u64> = BTreeMap::new();
    for line in children.into_iter().flat_map(Running::rest) {
        let (mailbox, count) = line.split_once(' ').unwrap();
        *told.entry(mailbox.to_owned()).or_default() += count.parse::<u64>().unwrap();
    }
    assert_eq!(told.values().sum::<u64>(), TASKS * updates, "everybody gets through");

    let store = FsStore::open(dir.path()).unwrap();
    for (mailbox, count) in &told {
        let written = read(&now(store.load(&key(mailbox))).unwrap().expect("it was written"));
        assert_eq!(written.count, *count, "of {mailbox}");
        // Nobody has to wait for a lease or a lock that nobody has.
        let lease = take(&store, &key(mailbox), 0).expect("nobody is there any more");
        assert!(lease.fence() > written.fence);
        let last = Document::new(b"0 0".to_vec());
        assert!(matches!(
            now(store.save(&key(mailbox), &last, &Guard::Any, Some(&lease))),
            Ok(Saved::Done(_))
        ));
    }
    let names = |folder: &str| {
        let folder = dir.path().join(".agent-sessions").join(folder);
        let names =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    let of_keys = |suffixes: &[&str]| {
        let names =
            told.keys().flat_map(|mailbox| suffixes.iter().map(move |s| format!("{mailbox}@claude{s}")));
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    assert_eq!(names("records"), of_keys(&[".json"]), "no temporary file is left");
    assert_eq!(names("locks"), of_keys(&[".lock", ".write"]));
    assert_eq!(names("quarantine"), [""; 0]);
    assert_eq!(fs::read_dir(dir.path().join("inside")).unwrap().count(), 0);
}

/// What a document says: how often it was updated, and by which grant last.
struct Written {
    count: u64,
    fence: u64,
}

fn read(stored: &Stored) -> Written {
    let text = String::from_utf8(stored.document.as_bytes().to_vec()).unwrap();
    let (count, fence) = text.split_once(' ').unwrap();
    Written { count: count.parse().unwrap(), fence: fence.parse().unwrap() }
}

fn take(store: &FsStore, key: &SessionKey, pid: u32) -> Option<Lease> {
    let holder = Holder { host: "hammer".to_owned(), pid, since: None };
    match now(store.lease(key, &holder)).unwrap() {
        LeaseOutcome::Held(lease) => Some(lease),
        LeaseOutcome::Busy { .. } => None,
    }
}

/// A child: its share of the tasks, on a runtime.
pub(crate) fn act(base: &Path, [keys, updates, process]: [u64; 3]) {
    let open = || fs::read_dir("/proc/self/fd").map(Iterator::count).ok();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let store = FsStore::open(base).unwrap();
    let before = open();
    let told = runtime.block_on(async {
        let base: Arc<Path> = base.into();
        let tasks: Vec<_> = (0..TASKS / PROCESSES)
            .map(|task| {
                let (store, base) = (store.clone(), Arc::clone(&base));
                tokio::spawn(
                    async move { updates_of(&store, &base, keys, updates, process * TASKS + task).await },
                )
            })
            .collect();
        let mut told: BTreeMap<String, u64> = BTreeMap::new();
        for task in tasks {
            for mailbox in task.await.unwrap() {
                *told.entry(mailbox).or_default() += 1;
            }
        }
        told
    });
    drop(runtime);
    assert!(open() <= before, "{:?} files are open, {before:?} were", open());
    for (mailbox, count) in told {
        crate::child::say(format_args!("{mailbox} {count}"));
    }
}

async fn updates_of(store: &FsStore, base: &Path, keys: u64, updates: u64, seed: u64) -> Vec<String> {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut done = Vec::new();
    while (done.len() as u64) < updates {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mailbox = format!("m{}", random % keys);
        if update(store, base, &key(&mailbox)).await {
            done.push(mailbox);
        } else {
            tokio::time::sleep(Duration::from_micros(random % 2000)).await;
        }
    }
    done
}

/// One update of a key under its lease; `false` where another one has it.
async fn update(store: &FsStore, base: &Path, key: &SessionKey) -> bool {
    let holder = Holder { host: "hammer".to_owned(), pid: std::process::id(), since: None };
    let LeaseOutcome::Held(lease) = store.lease(key, &holder).await.unwrap() else { return false };
    // Whoever is inside has a file there: nobody else can make it.
    let inside = base.join("inside").join(key.mailbox.as_str());
    File::create_new(&inside).expect("somebody else holds the lease");
    let stored = store.load(key).await.unwrap();
    let guard = stored.as_ref().map_or(Guard::Absent, |stored| Guard::Revision(stored.revision.clone()));
    let written = stored.as_ref().map_or(Written { count: 0, fence: 0 }, read);
    assert!(lease.fence() > written.fence, "grant {} after {}", lease.fence(), written.fence);
    let next = Document::new(format!("{} {}", written.count + 1, lease.fence()).into_bytes());
    let saved = store.save(key, &next, &guard, Some(&lease)).await.unwrap();
    assert!(matches!(saved, Saved::Done(_)), "under the lease, nobody else writes: {saved:?}");
    fs::remove_file(inside).unwrap();
    true
}
