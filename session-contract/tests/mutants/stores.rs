//! Stores that break the contract.

mod disk;
mod flaw;
mod leftovers;
mod parts;
mod sample;
mod writes;

use std::time::Duration;

use session_contract::store::{Damage, STORE_CASES, Subject};
use session_contract::{Case, Scratch, failures};
use session_core::SessionKey;

use crate::table::{Outcome, compare};
use disk::{Disk, Fault};
use flaw::{Flaw, MUTANTS};
use sample::Worlds;

/// Long enough for what is free, and not too long for what never will be.
const PATIENCE: Duration = Duration::from_millis(500);

fn subject(flaw: Flaw) -> Subject {
    let worlds = Worlds::default();
    let damaged = worlds.clone();
    Subject::new(async move |scratch: &Scratch| worlds.open(scratch, flaw), env!("CARGO_MANIFEST_DIR"))
        .damage(async move |scratch: &Scratch, key: &SessionKey, damage: Damage| {
            damaged.damage(scratch, key, damage)
        })
        .walks(40)
        .patience(PATIENCE)
        .always_the_same()
}

/// Cases in which many do something at once, so that chance has a say in what they catch: each is tried on the mutants
/// that are meant for it alone, and again where it was lucky for them.
const OF_CHANCE: &[&str] = &[
    "a_list_is_whole_while_others_write",
    "one_of_many_writers_wins",
    "one_of_many_removals_is_done",
    "no_update_is_lost",
    "no_entry_is_lost",
    "one_of_many_runners_holds",
    "a_reader_sees_whole_documents",
];

fn caught(flaw: Flaw, meant: &str) -> Vec<&'static str> {
    let subject = subject(flaw);
    let tried = STORE_CASES.iter().filter(|case| case.name() == meant || !OF_CHANCE.contains(&case.name()));
    let times = |case: &Case<Subject>| if OF_CHANCE.contains(&case.name()) { 50 } else { 1 };
    let caught = |case: &Case<Subject>| {
        (0..times(case))
            .map(|_| failures(std::slice::from_ref(case), &subject))
            .find(|found| !found.is_empty())
    };
    tried.filter_map(caught).flatten().collect()
}

/// The cases that are about processes.
fn of_processes() -> &'static [Case<Subject>] {
    let first = STORE_CASES.iter().position(|case| case.name() == "a_lease_ends_with_its_process").unwrap();
    &STORE_CASES[first..first + 2]
}

/// `test` is the name of a test here, which asserts the cases over the same store: it is the other process.
fn on_disk(fault: Fault, test: &str) -> Vec<&'static str> {
    let open = async move |scratch: &Scratch| Disk::new(scratch.dir(), fault);
    let subject = Subject::new(open, env!("CARGO_MANIFEST_DIR"))
        .process(&format!("{}::{test}", module_path!()))
        .patience(if fault == Fault::None { Duration::from_secs(20) } else { PATIENCE });
    failures(of_processes(), &subject)
}

#[test]
fn the_sample_holds_the_contract() {
    let sound = subject(Flaw::None).patience(Duration::from_secs(20));
    assert_eq!(failures(STORE_CASES, &sound), [""; 0]);
}

#[test]
fn a_sound_lease_ends_with_its_process() {
    assert_eq!(on_disk(Fault::None, "a_sound_lease_ends_with_its_process"), [""; 0]);
}

#[test]
fn a_lease_left_behind_is_caught() {
    let caught = on_disk(Fault::LeavesItsLease, "a_lease_left_behind_is_caught");
    assert_eq!(caught, ["a_lease_ends_with_its_process"]);
}

#[test]
fn a_document_written_at_the_end_is_caught() {
    let caught = on_disk(Fault::WritesAtTheEnd, "a_document_written_at_the_end_is_caught");
    assert_eq!(caught, ["what_a_killed_process_wrote_is_there"]);
}

#[test]
fn every_broken_store_is_caught() {
    let outcome = |(mutant, meant, flaw): &(&str, &'static str, Flaw)| Outcome {
        mutant: (*mutant).to_owned(),
        meant,
        caught: caught(*flaw, meant),
    };
    let (half, rest) = MUTANTS.split_at(MUTANTS.len() / 2);
    let mut outcomes: Vec<_> = std::thread::scope(|scope| {
        let half = scope.spawn(move || half.iter().map(outcome).collect::<Vec<_>>());
        let rest: Vec<_> = rest.iter().map(outcome).collect();
        half.join().unwrap().into_iter().chain(rest).collect()
    });
    outcomes.extend([
        Outcome {
            mutant: "leaves its lease when its process dies".to_owned(),
            meant: "a_lease_ends_with_its_process",
            caught: on_disk(Fault::LeavesItsLease, "a_lease_left_behind_is_caught"),
        },
        Outcome {
            mutant: "writes when it is closed".to_owned(),
            meant: "what_a_killed_process_wrote_is_there",
            caught: on_disk(Fault::WritesAtTheEnd, "a_document_written_at_the_end_is_caught"),
        },
    ]);
    let cases: Vec<_> = STORE_CASES.iter().map(|case| case.name()).collect();
    compare("Stores", &outcomes, &cases);
}
