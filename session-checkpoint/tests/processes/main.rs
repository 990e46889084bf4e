//! The checkpointer in processes of their own, which are killed or meet.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod child;
mod full;
mod parent;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, child, what, rest @ ..] = arguments.as_slice()
        && child == "child"
    {
        child::act(what, rest);
        return ExitCode::SUCCESS;
    }
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let trials = vec![
        trial("a_take_that_is_killed_leaves_what_is_kept_whole", parent::killed_takes),
        trial("a_forget_that_is_killed_leaves_what_is_kept_whole", parent::killed_forgets),
        trial("those_who_take_and_those_who_forget_do_not_harm_one_another", parent::meeting),
        trial("another_file_system_in_the_tree_is_left_out", parent::mounted),
        trial("on_a_full_disk_checkpoints_are_dropped_and_make_room", parent::full),
        trial("what_may_not_be_read_is_named_and_covered_once_it_may", parent::unreadable),
        trial("a_checkpoint_that_could_not_be_written_heals_on_the_next_one", parent::unwritable),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
