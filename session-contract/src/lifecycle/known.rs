//! Walks that once broke something, as plain lists of steps: each is walked again over every store.

use session_core::ResumePolicy;
use session_core::decide::{Activity, Verdict};

use super::step::{Act, Deed, Fault, Health, Place, Point, Run, Setup, Step, Then, Which};

/// A version that copies a session on a resume, and one that does not; indices of `VERSIONS`.
const COPIES: usize = 5;
const KEEPS: usize = 1;

fn run(mailbox: usize, folder: usize, acts: &[Act]) -> Step {
    Step::Run(plain(mailbox, folder, acts))
}

fn plain(mailbox: usize, folder: usize, acts: &[Act]) -> Run {
    Run {
        mailbox,
        folder,
        policy: ResumePolicy::Prefer,
        consent: false,
        fork: false,
        acts: acts.to_vec(),
        fault: None,
        then: Then::KillLater,
        times: 1,
    }
}

const fn act(place: Place, deed: Deed) -> Act {
    Act { place, deed }
}

const DIES: Deed = Deed::Stop(Point::Kept);

/// A walk that is known.
pub(super) struct Known {
    pub(super) name: &'static str,
    version: usize,
    steps: fn() -> Vec<Step>,
}

impl Known {
    pub(super) fn walk(&self) -> (Setup, Vec<Step>) {
        (Setup { catalog: true, version: self.version }, (self.steps)())
    }
}

/// Every known walk.
pub(super) const KNOWN: &[Known] = &[
    Known {
        name: "a session of one turn was taken for the copy of another",
        version: COPIES,
        steps: || vec![run(0, 0, &[]), run(0, 0, &[act(Place::Stray, Deed::Work)]), run(0, 0, &[])],
    },
    Known {
        name: "a failure in another session bound it",
        version: COPIES,
        steps: || {
            let fails =
                Deed::Fail { verdict: Verdict::RateLimited, activity: Activity::ModelCalled, keeps: true };
            vec![run(0, 0, &[]), run(0, 0, &[act(Place::Stray, fails)]), run(0, 0, &[])]
        },
    },
    Known {
        name: "a runner that died in another session bound it",
        version: COPIES,
        steps: || vec![run(0, 0, &[]), run(0, 0, &[]), run(0, 0, &[act(Place::Stray, DIES)]), run(0, 0, &[])],
    },
    Known {
        name: "what may be no copy took the place of an original that was lost",
        version: COPIES,
        steps: || {
            let original = Which { mailbox: 0, back: 1 };
            vec![
                run(0, 0, &[]),
                run(0, 0, &[act(Place::Stray, DIES)]),
                Step::Befall(original, Health::Gone),
                run(0, 0, &[]),
                run(0, 0, &[]),
            ]
        },
    },
    Known {
        name: "the session of another mailbox was found by its folder",
        version: KEEPS,
        steps: || {
            let here = Which { mailbox: 0, back: 1 };
            vec![
                run(1, 0, &[]),
                run(0, 0, &[]),
                run(0, 2, &[]),
                run(0, 0, &[act(Place::Foreign, DIES)]),
                Step::Befall(here, Health::Gone),
                run(0, 0, &[]),
            ]
        },
    },
    Known {
        name: "a runner that died when it was refused had used up the skip",
        version: KEEPS,
        steps: || {
            let strays = act(Place::Stray, Deed::Work);
            vec![
                run(0, 0, &[]),
                Step::Run(Run { times: 3, ..plain(0, 0, &[strays]) }),
                Step::Run(Run {
                    policy: ResumePolicy::Require,
                    fault: Some(Fault::Death { at: 3, after: false }),
                    ..plain(0, 0, &[])
                }),
                run(0, 0, &[]),
            ]
        },
    },
    Known {
        name: "a write that failed before a dead run was ended turned a fork into a run without one",
        version: 0,
        steps: || {
            let silent = act(Place::Own, Deed::Stop(Point::Silent));
            let forks = Run {
                policy: ResumePolicy::Never,
                fork: true,
                fault: Some(Fault::FirstSave),
                then: Then::Kill,
                ..plain(1, 0, &[])
            };
            vec![Step::Run(Run { then: Then::Kill, ..plain(1, 0, &[silent]) }), Step::Run(forks)]
        },
    },
];

#[cfg(test)]
mod tests {
    use session_core::MemoryStore;

    use super::KNOWN;
    use crate::lifecycle::Walks;

    /// Walks the known walk of this number over the store in memory.
    fn again(number: usize) {
        let walks = Walks::new(async |_: &_| MemoryStore::new(), env!("CARGO_MANIFEST_DIR"));
        let (setup, steps) = KNOWN[number].walk();
        walks
            .walk(&setup, &steps)
            .unwrap_or_else(|violation| panic!("{}: {violation:#?}", KNOWN[number].name));
    }

    macro_rules! again {
        ($($name:ident = $number:literal,)*) => { $(#[test] fn $name() { again($number); })* };
    }

    again! {
        a_session_of_one_turn_is_not_taken_for_the_copy_of_another = 0,
        a_failure_in_another_session_does_not_bind_it = 1,
        a_runner_that_dies_in_another_session_does_not_bind_it = 2,
        what_may_be_no_copy_does_not_take_the_place_of_an_original_that_is_lost = 3,
        the_session_of_another_mailbox_is_not_found_by_its_folder = 4,
        a_runner_that_dies_when_it_is_refused_has_used_up_the_skip = 5,
        a_write_that_failed_before_a_dead_run_was_ended_forbids_no_fork = 6,
    }

    #[test]
    fn each_known_walk_is_a_test() {
        assert_eq!(KNOWN.len(), 7, "add a test for it");
    }
}
