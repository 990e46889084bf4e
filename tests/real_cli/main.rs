//! The real agent CLIs, offline, against the fake model: what the model saw decides.
//!
//! `cargo xtask real-cli` installs the pinned versions and runs this. Without them, the one trial here is reported
//! as ignored, never as passed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "the matrix is for people")]

mod claude;
mod matrix;
mod pinned;
mod runner;
mod stage;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    // A runner that a trial starts in order to kill it is this program once more.
    if let Some(code) = runner::become_runner_if_asked() {
        return code;
    }
    let arguments = Arguments::from_args();
    let clis = pinned::installed();
    let mut trials: Vec<Trial> = clis.iter().flat_map(trials_of).collect();
    if trials.is_empty() {
        let hint = || Err("no pinned CLIs: run `cargo xtask real-cli`".into());
        trials.push(Trial::test("real_cli::needs_cargo_xtask_real_cli", hint).with_ignored_flag(true));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !clis.is_empty() && !arguments.list {
        println!("{}", matrix::render());
    }
    conclusion.exit_code()
}

/// The trials of one CLI; an agent without any is told as ignored, never as passed.
fn trials_of(cli: &pinned::Pinned) -> Vec<Trial> {
    if cli.agent == "claude" {
        return claude::trials(cli);
    }
    let hint = || Err("this agent has no trials yet".into());
    vec![Trial::test(format!("{}::{}::has_no_trials", cli.agent, cli.version), hint).with_ignored_flag(true)]
}
