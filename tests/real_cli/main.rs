//! The real agent CLIs, offline, against the fake model: what the model saw decides.
//!
//! `cargo xtask real-cli` installs the pinned versions and runs this. Without them, the one trial here is reported
//! as ignored, never as passed. How to add an agent is told in `agents.rs`. `cargo xtask capture` has it record fixtures in
//! place of the scenarios.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the matrix is for people")]

mod agents;
mod begun;
mod capture;
mod claude;
mod codex;
mod matrix;
mod opencode;
mod pinned;
mod runner;
mod scenarios;
mod stage;
mod workshop;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    // A runner that a trial starts in order to kill it is this program once more.
    if let Some(code) = runner::become_runner_if_asked() {
        return code;
    }
    // And so is the recorder of a CLI.
    if let Some(code) = rejoin_test_support::recorder::become_recorder_if_asked() {
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
    begun::clear();
    if clis.is_empty() || arguments.list || capture::wanted() {
        return conclusion.exit_code();
    }
    let whole = arguments.filter.is_none() && arguments.skip.is_empty() && !conclusion.has_failed();
    match matrix::finish(&clis, whole) {
        Ok(table) => println!("{table}"),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    conclusion.exit_code()
}

/// The trials of one CLI; an agent without any is a failure.
fn trials_of(cli: &pinned::Pinned) -> Vec<Trial> {
    let Some(agent) = agents::named(&cli.agent) else {
        let name = format!("{}-{}::is_not_registered", cli.agent, cli.version);
        return vec![Trial::test(name, || Err("pinned, and not registered: see agents.rs".into()))];
    };
    if capture::wanted() {
        return capture::trials(cli);
    }
    let mut trials = scenarios::trials(cli);
    trials.extend(agent.own_trials(cli));
    trials
}
