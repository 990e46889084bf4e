//! Checkpointers that break the contract.

mod copy;
mod disk;
mod flaw;
mod restore;
mod state;

use std::fs;
use std::path::PathBuf;

use session_contract::agent::Cannot;
use session_contract::checkpoint::{CHECKPOINT_CASES, Damage, Subject};
use session_contract::{Case, Scratch, checkpoint_contract, failures};
use session_core::CheckpointId;

use crate::table::{Outcome, compare, compare_meant, is_updated};
use copy::CopyCheckpointer;
use disk::Shelf;
use flaw::{Flaw, MUTANTS};

async fn open(scratch: &Scratch) -> CopyCheckpointer {
    CopyCheckpointer::open(scratch.dir(), Flaw::None)
}

async fn damage(scratch: &Scratch, id: CheckpointId, damage: Damage) -> Result<(), Cannot> {
    let shelf = Shelf::new(scratch.dir().join("store"), Flaw::None);
    let place = shelf.find_any(id).unwrap();
    let change = |path: PathBuf, change: fn(Vec<u8>) -> Vec<u8>| {
        fs::write(&path, change(fs::read(&path).unwrap())).unwrap();
    };
    match damage {
        Damage::Cut => change(place.join("sheet"), |bytes| bytes[..bytes.len() / 2].to_vec()),
        Damage::Emptied => change(place.join("sheet"), |_| Vec::new()),
        Damage::Content => {
            for entry in fs::read_dir(place).unwrap() {
                let path = entry.unwrap().path();
                if !path.ends_with("sheet") {
                    change(path, |bytes| bytes.iter().map(|byte| byte ^ 1).collect());
                }
            }
        }
        Damage::Leftover => {
            let half = place.with_file_name(format!("00000009-{}.half", uuid::Uuid::new_v4()));
            fs::create_dir(&half).unwrap();
            fs::write(half.join("sheet"), "").unwrap();
        }
    }
    Ok(())
}

checkpoint_contract!(
    copies,
    open,
    damage = damage,
    home = CopyCheckpointer::home,
    covers_ignored = true,
    file_limit = Some(CopyCheckpointer::LIMIT),
    seed = 1,
    regressions = "proptest-regressions/checkpoint.txt",
);

fn subject(flaw: Flaw) -> Subject {
    let ignores = matches!(flaw, Flaw::IgnoresTracked | Flaw::HidesIgnored);
    let open = async move |scratch: &Scratch| {
        let checkpointer = CopyCheckpointer::open(scratch.dir(), flaw);
        if ignores { checkpointer.ignoring() } else { checkpointer }
    };
    Subject::new(open, env!("CARGO_MANIFEST_DIR"))
        .damage(damage)
        .home(CopyCheckpointer::home)
        .covers_ignored(!ignores)
        .file_limit(Some(CopyCheckpointer::LIMIT))
        .walks(12)
        .always_the_same()
}

/// Cases that take long: each is tried on the mutants that are meant for it alone.
const LONG: &[&str] = &[
    "forgetting_takes_nothing_from_the_kept",
    "a_dropped_restore_is_finished",
    "a_dropped_take_is_whole_or_nothing",
    "damage_is_never_wrong_content",
    "the_repository_is_as_it_was",
    "hooks_and_filters_do_not_run",
    "every_walk_ends_as_the_model_says",
];

fn caught(flaw: Flaw, meant: &str) -> Vec<&'static str> {
    let subject = subject(flaw);
    // All cases take minutes: they are tried where the table is made anew.
    let all = is_updated();
    let is_tried = |name: &str| name == meant || (all && !LONG.contains(&name));
    let tried = CHECKPOINT_CASES.iter().filter(|case| is_tried(case.name()));
    tried.flat_map(|case| failures(std::slice::from_ref(case), &subject)).collect()
}

fn cases(names: &[&str]) -> Vec<&'static Case<Subject>> {
    CHECKPOINT_CASES.iter().filter(|case| names.contains(&case.name())).collect()
}

/// One that makes its files open to others first, and closes them when all is in them.
fn opens_first(test: &str) -> Vec<&'static str> {
    let open = async |scratch: &Scratch| CopyCheckpointer::open(scratch.dir(), Flaw::None).opening_first();
    let subject = Subject::new(open, env!("CARGO_MANIFEST_DIR"))
        .covers_ignored(true)
        .process(&format!("{}::{test}", module_path!()));
    let of_processes = cases(&["a_private_file_is_private_at_every_moment"]);
    of_processes.into_iter().flat_map(|case| failures(std::slice::from_ref(case), &subject)).collect()
}

#[test]
fn a_file_that_is_open_at_first_is_caught() {
    let caught = opens_first("a_file_that_is_open_at_first_is_caught");
    assert_eq!(caught, ["a_private_file_is_private_at_every_moment"]);
}

#[test]
fn one_that_leaves_out_what_is_ignored_holds_the_contract() {
    let open = async |scratch: &Scratch| CopyCheckpointer::open(scratch.dir(), Flaw::None).ignoring();
    let subject = Subject::new(open, env!("CARGO_MANIFEST_DIR"))
        .home(CopyCheckpointer::home)
        .file_limit(Some(CopyCheckpointer::LIMIT))
        .walks(4)
        .always_the_same();
    assert_eq!(failures(CHECKPOINT_CASES, &subject), [""; 0]);
}

#[test]
fn one_that_says_that_it_goes_by_time_may() {
    for case in cases(&["a_backdated_change_is_seen"]) {
        case.assert(&subject(Flaw::GoesByTime).sees_backdated(false));
    }
}

#[test]
fn every_broken_checkpointer_is_caught() {
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
    outcomes.push(Outcome {
        mutant: "opens a private file until it is whole".to_owned(),
        meant: "a_private_file_is_private_at_every_moment",
        caught: opens_first("a_file_that_is_open_at_first_is_caught"),
    });
    let cases: Vec<_> = CHECKPOINT_CASES.iter().map(|case| case.name()).collect();
    if is_updated() {
        compare("Checkpointers", &outcomes, &cases);
    } else {
        compare_meant("Checkpointers", &outcomes);
    }
}
