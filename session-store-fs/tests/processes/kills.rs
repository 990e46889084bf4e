//! A worker that is killed at a random moment, over and over: what it acknowledged stays, what it was about is whole, and
//! the next one goes on at once.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use libtest_mimic::Trial;
use session_core::{
    AuditEvent, AuditSeq, Document, Guard, Holder, Lease, LeaseOutcome, Removed, Revision, RunId, Saved,
    SessionKey, SessionStore as _, Stored, Timestamp,
};
use session_store_fs::FsStore;

use crate::parent::{Running, now, trial};

const KEYS: usize = 3;
/// How many workers die in one store, before a new one is begun.
const ROUNDS: u64 = 25;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("whenever_a_worker_is_killed_what_it_acknowledged_stays", kills)]
}

/// A big run is asked for by `REJOIN_KILLS="<kills> <seed>"`.
#[expect(clippy::print_stdout, reason = "the number is what a big run is for")]
fn kills() {
    let asked = std::env::var("REJOIN_KILLS").ok();
    let numbers: Option<Vec<u64>> =
        asked.map(|text| text.split(' ').map(|number| number.parse().unwrap()).collect());
    let (kills, seed) = numbers.as_ref().map_or((50, 0), |numbers| (numbers[0], numbers[1]));
    let (stores, next, done) = (kills.div_ceil(ROUNDS), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let store = next.fetch_add(1, Ordering::Relaxed);
                    if store >= stores {
                        break;
                    }
                    let rounds = ROUNDS.min(kills - store * ROUNDS);
                    one_store(mixed(seed, store), rounds);
                    done.fetch_add(rounds, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(done.into_inner(), kills);
    if numbers.is_some() {
        println!("faults: kills: {kills}");
    }
}

/// What a worker does, one after the other: the parent knows it, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Save(usize),
    Remove,
    Append,
    Lease,
}

fn task(seed: u64, number: u64) -> (usize, Task) {
    let chance = mixed(seed, number);
    let length = [10, 10, 300, 5000][(chance >> 16) as usize % 4];
    let task = match chance >> 8 & 15 {
        0..8 => Task::Save(length),
        8 => Task::Remove,
        9..13 => Task::Append,
        _ => Task::Lease,
    };
    ((chance & 0xff) as usize % KEYS, task)
}

/// One number out of two (the finaliser of SplitMix64).
const fn mixed(a: u64, b: u64) -> u64 {
    let z = a.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(b.wrapping_mul(0xd1b5_4a32_d192_ed03));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn key(index: usize) -> SessionKey {
    SessionKey::new(["a", "A", "issue/42"][index], "claude").unwrap()
}

fn document(seed: u64, number: u64, key: usize, length: usize) -> Document {
    let mut bytes = format!("{key} {seed} {number} ").into_bytes();
    bytes.resize(bytes.len() + length, b'.');
    Document::new(bytes)
}

fn event(seed: u64, number: u64) -> AuditEvent {
    let run = uuid::Uuid::from_u64_pair(seed, number);
    AuditEvent::new(Timestamp::EPOCH, RunId::new(run), "run_finished")
}

fn lease(store: &FsStore, key: usize) -> Lease {
    let us = Holder { host: "here".to_owned(), pid: std::process::id(), since: None };
    match now(store.lease(&self::key(key), &us)).unwrap() {
        LeaseOutcome::Held(lease) => lease,
        LeaseOutcome::Busy { by } => panic!("the lease is busy: {by:?}"),
    }
}

/// The child: works until it is killed, and says of each task on a line when it is done.
pub(crate) fn work(base: &Path, seed: u64) {
    let store = FsStore::open(base).unwrap();
    let mut leases: [Option<Lease>; KEYS] = Default::default();
    let mut out = std::io::stdout();
    for number in 0.. {
        let (index, task) = task(seed, number);
        let name = key(index);
        let current = now(store.load(&name)).unwrap().map(|stored| stored.revision);
        let guard = current.map_or(Guard::Absent, Guard::Revision);
        let said = match task {
            Task::Save(length) => {
                let document = document(seed, number, index, length);
                match now(store.save(&name, &document, &guard, leases[index].as_ref())).unwrap() {
                    Saved::Done(revision) => revision.as_str().to_owned(),
                    refused => panic!("{refused:?}"),
                }
            }
            Task::Remove => match now(store.remove(&name, &Guard::Any)).unwrap() {
                Removed::Done | Removed::NothingThere => "removed".to_owned(),
                refused @ Removed::Refused { .. } => panic!("{refused:?}"),
            },
            Task::Append => now(store.append_audit(&name, &event(seed, number))).unwrap().0.to_string(),
            Task::Lease => {
                leases[index] = None;
                let lease = leases[index].insert(lease(&store, index));
                lease.fence().to_string()
            }
        };
        // One write to a pipe, which is whole.
        out.write_all(format!("{said}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
    }
}

/// What was acknowledged of a key.
#[derive(Default)]
struct Slot {
    current: Option<Stored>,
    old: Option<Revision>,
    events: Vec<(AuditSeq, AuditEvent)>,
    fence: u64,
}

fn one_store(seed: u64, rounds: u64) {
    let dir = tempfile::tempdir().unwrap();
    let store = FsStore::open(dir.path()).unwrap();
    let mut slots: [Slot; KEYS] = Default::default();
    for round in 0..rounds {
        let seed = mixed(seed, round);
        let lines = kill_one(dir.path(), seed);
        for (number, line) in lines.iter().enumerate() {
            acknowledged(&mut slots, seed, number as u64, line);
        }
        // A new handle now and then; the other has seen all of them die.
        let fresh = (round % 4 == 0).then(|| FsStore::open(dir.path()).unwrap());
        check(fresh.as_ref().unwrap_or(&store), &mut slots, seed, lines.len() as u64);
    }
    let names = std::fs::read_dir(store.root().join("records")).unwrap();
    let left =
        names.filter(|entry| entry.as_ref().unwrap().file_name().as_encoded_bytes().starts_with(b".tmp-"));
    assert!(left.count() as u64 <= rounds, "at most one file of each who died");
}

/// Starts a worker, lets it get somewhere, kills it, and says what it said.
fn kill_one(base: &Path, seed: u64) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut child = Running::spawn(command.args(["child", "work"]).arg(base).arg(seed.to_string()));
    let mut lines = Vec::new();
    for _ in 0..mixed(seed, 1) % 12 {
        lines.push(child.line());
    }
    // Another place each time, also before the store is open.
    (0..mixed(seed, 2) % 200_000).for_each(|i| {
        std::hint::black_box(i);
    });
    child.kill();
    lines.extend(std::iter::repeat_with(|| child.line()).take_while(|line| !line.is_empty()));
    lines
}

fn acknowledged(slots: &mut [Slot; KEYS], seed: u64, number: u64, line: &str) {
    let (index, task) = task(seed, number);
    let slot = &mut slots[index];
    match task {
        Task::Save(length) => {
            let document = document(seed, number, index, length);
            let next = Stored { document, revision: Revision::new(line) };
            slot.old = slot.current.replace(next).map(|stored| stored.revision).or(slot.old.take());
        }
        Task::Remove => {
            slot.old = slot.current.take().map(|stored| stored.revision).or(slot.old.take());
        }
        Task::Append => {
            let seq = AuditSeq(line.parse().unwrap());
            assert!(Some(seq) > slot.events.last().map(|(seq, _)| *seq), "{seq:?} is no later number");
            slot.events.push((seq, event(seed, number)));
        }
        Task::Lease => {
            let fence = line.parse().unwrap();
            assert!(fence > slot.fence, "grant {fence} after {}", slot.fence);
            slot.fence = fence;
        }
    }
}

/// Looks at all keys; one task was cut off, or not begun.
fn check(store: &FsStore, slots: &mut [Slot; KEYS], seed: u64, number: u64) {
    let (cut_off, task) = task(seed, number);
    let mut there = Vec::new();
    for (index, slot) in slots.iter_mut().enumerate() {
        let name = key(index);
        let task = (index == cut_off).then_some(task);
        let found = now(store.load(&name)).unwrap();
        if found != slot.current {
            match (&found, task) {
                (Some(stored), Some(Task::Save(length))) => {
                    assert_eq!(stored.document, document(seed, number, index, length));
                    assert_ne!(slot.old.as_ref(), Some(&stored.revision));
                }
                (None, Some(Task::Remove)) => {}
                _ => panic!("{found:?} is there in place of {:?}", slot.current),
            }
            slot.old = slot.current.take().map(|stored| stored.revision).or(slot.old.take());
            slot.current = found;
        }
        there.extend(slot.current.is_some().then_some(name.clone()));
        check_log(store, slot, &name, task.map(|task| (task, event(seed, number))));

        let lease = lease(store, index);
        assert!(lease.fence() > slot.fence, "grant {} after {}", lease.fence(), slot.fence);
        slot.fence = lease.fence();
        if let Some(old) = slot.old.clone() {
            let answer = now(store.save(&name, &Document::new(vec![]), &Guard::Revision(old), None)).unwrap();
            assert!(matches!(answer, Saved::Refused { .. }), "{answer:?} by a guard of before");
        }
    }
    let listed = now(store.list(&Default::default())).unwrap().items;
    assert_eq!(listed.len(), there.len(), "{listed:?} are listed, {there:?} are there");
    assert!(there.iter().all(|name| listed.contains(name)));
}

fn check_log(store: &FsStore, slot: &mut Slot, name: &SessionKey, task: Option<(Task, AuditEvent)>) {
    let found = now(store.audit(name, None)).unwrap();
    let found: Vec<_> = found.into_iter().map(|entry| (entry.seq, entry.event)).collect();
    let rest = found.strip_prefix(&slot.events[..]).expect("an acknowledged entry is lost");
    match (rest, task) {
        ([], _) => {}
        ([(seq, event)], Some((Task::Append, written))) if *event == written => {
            assert!(Some(*seq) > slot.events.last().map(|(seq, _)| *seq));
            slot.events.push((*seq, event.clone()));
        }
        _ => panic!("nobody wrote {rest:?}"),
    }
}
