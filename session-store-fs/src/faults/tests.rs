//! The runs: small ones always, big ones by `cargo xtask faults`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use session_core::{AuditEntry, AuditSeq};

use super::crashes::{Crashes, Tried};
use super::disk::Lying;
use super::failing::Failing;
use super::history::{Admits, Do, Step, Under, histories};
use super::model::Checked;
use super::platter::SECTOR;
use super::survivors::{Chance, Effort};
use super::world::{World, event};

/// How much is tried; a big run is asked for by `REJOIN_FAULTS="<histories> <seed>"`.
#[derive(Debug, Clone, Copy)]
struct Extent {
    histories: u64,
    /// How many of them have every call fail.
    failing: u64,
    /// How many steps they have at most.
    steps: usize,
    effort: Effort,
    seed: u64,
    big: bool,
}

/// What every run of the tests tries.
const SMALL: Extent = Extent {
    histories: 200,
    failing: 20,
    steps: 5,
    effort: Effort { exhaustive: 2, others: 2, most: 2 },
    seed: 0,
    big: false,
};

fn extent() -> Extent {
    let Ok(text) = std::env::var("REJOIN_FAULTS") else { return SMALL };
    let numbers: Vec<u64> = text.split(' ').map(|number| number.parse().unwrap()).collect();
    let (histories, seed) = (numbers[0], numbers[1]);
    let effort = Effort { exhaustive: 4, others: 10, most: usize::MAX };
    Extent { histories, failing: histories / 10, steps: 8, effort, seed, big: true }
}

/// Plays that many histories, on all processors. One that breaks something is shrunk before it is shown.
fn play(
    count: u64,
    extent: Extent,
    shrink: bool,
    check: &(dyn Fn(&[Step], u64) -> Checked + Sync),
) -> Checked {
    let seed = extent.seed;
    let next = AtomicU64::new(0);
    let work = || -> Checked {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&seed.to_le_bytes());
            bytes[8..16].copy_from_slice(&number.to_le_bytes());
            let config = Config {
                failure_persistence: None,
                max_shrink_iters: if shrink { 2000 } else { 0 },
                ..Config::default()
            };
            let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
            let mut runner = TestRunner::new_with_rng(config, rng);
            let tree =
                histories(1..=extent.steps).new_tree(&mut runner).map_err(|error| error.to_string())?;
            let result = runner.run_one(tree, |steps| check(&steps, number).map_err(TestCaseError::fail));
            if let Err(error) = result {
                next.store(count, Ordering::Relaxed);
                return Err(format!("history {number} of seed {seed}: {error}"));
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap())
    })
}

fn crashes(extent: Extent, lying: Lying, shrink: bool) -> Checked<[u64; 2]> {
    let tried = [const { AtomicU64::new(0) }; 2];
    play(extent.histories, extent, shrink, &|steps, number| {
        let chance = Chance::new(extent.seed ^ number);
        // A disk that lies is to be found out by what comes after the opening, too.
        let (effort, opening) = (extent.effort, lying == Lying::No && number % 10 == 0);
        let mut crashes = Crashes { lying, effort, opening, chance, tried: Tried::default() };
        World::play(steps, lying, &mut crashes)?;
        tried[0].fetch_add(crashes.tried.points, Ordering::Relaxed);
        tried[1].fetch_add(crashes.tried.states, Ordering::Relaxed);
        Ok(())
    })?;
    Ok(tried.map(AtomicU64::into_inner))
}

#[test]
fn whatever_a_crash_leaves_every_key_is_right_and_whole() {
    let extent = extent();
    let [points, states] = crashes(extent, Lying::No, true).unwrap_or_else(|error| panic!("{error}"));
    report(extent, &[("histories", extent.histories), ("crash points", points), ("states", states)]);
    assert!(points.min(states) > 20 * extent.histories, "{points} points, {states} states");
}

#[test]
fn whatever_fails_is_told_and_the_next_try_succeeds() {
    let extent = extent();
    let calls = AtomicU64::new(0);
    let outcome = play(extent.failing, extent, true, &|steps, number| {
        let mut failing = Failing { opening: number % 10 == 0, calls: 0 };
        World::play(steps, Lying::No, &mut failing)?;
        calls.fetch_add(failing.calls, Ordering::Relaxed);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let calls = calls.into_inner();
    report(extent, &[("failing calls", calls)]);
    assert!(calls > 100 * extent.failing, "{calls} calls");
}

#[test]
fn a_disk_that_lies_is_found_out() {
    for lying in [Lying::NoFileSync, Lying::NoFolderSync, Lying::Overwrites] {
        let outcome = crashes(SMALL, lying, false);
        assert!(outcome.is_err(), "{lying:?}: {outcome:?}");
    }
}

/// Plays this with one key and one handle, with all crash points and all calls failing.
fn play_one(opening: bool, steps: Vec<Do>) -> Checked {
    let steps: Vec<_> = steps.into_iter().map(|what| Step { handle: 0, key: 0, what }).collect();
    let (effort, chance) = (Effort { exhaustive: 4, others: 4, most: usize::MAX }, Chance::new(0));
    let mut crashes = Crashes { lying: Lying::No, effort, opening, chance, tried: Tried::default() };
    World::play(&steps, Lying::No, &mut crashes)?;
    World::play(&steps, Lying::No, &mut Failing { opening, calls: 0 })
}

/// In an operation that was killed, or one of whose calls failed.
#[test]
fn what_was_wrong_once() {
    let save = Do::Save(Admits::Current, Under::Nothing, 10);
    for (case, steps) in [
        ("the folder of a store that another began was never synced", vec![]),
        ("nor that of a log with one entry", vec![Do::Append(10)]),
        ("nor a removal that was done already", vec![save.clone(), Do::Remove(Admits::Current)]),
        ("nor a state dir that was there already", vec![Do::StateDir]),
        ("a record that cannot be read for once was none", vec![save, Do::SetAside(Admits::Current)]),
    ] {
        assert_eq!(play_one(steps.is_empty(), steps), Ok(()), "{case}");
    }
    // A record that could not be read for once was written under no grant.
    for seed in 0..4 {
        let crash = Do::Crash { during: Box::new(Do::Load), point: 0, seed };
        let held = Do::Save(Admits::Current, Under::Held, 10);
        assert_eq!(play_one(false, vec![Do::Lease, held, crash, Do::Lease]), Ok(()), "seed {seed}");
    }
}

/// What could not be synced is cut off: if it were lost with its end, the next entry would be a part of its line.
#[test]
fn an_entry_that_ends_with_its_sector_takes_no_other_along() {
    let line = |length| {
        let entry = AuditEntry { seq: AuditSeq(1), event: event(1, length) };
        serde_json::to_vec(&entry).unwrap().len() + 1
    };
    let length = (0..SECTOR).find(|length| line(*length) % SECTOR == 0).unwrap();
    assert_eq!(play_one(false, vec![Do::Append(length)]), Ok(()));
}

/// Hands the numbers of a big run to `cargo xtask faults`.
#[expect(clippy::print_stdout, reason = "the numbers are what a big run is for")]
fn report(extent: Extent, numbers: &[(&str, u64)]) {
    for (what, number) in numbers.iter().filter(|_| extent.big) {
        println!("faults: {what}: {number}");
    }
}
