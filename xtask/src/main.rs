//! What people run by hand: `cargo xtask <command>`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for people at a terminal")]

mod bench;
mod cargo;
mod clis;
mod faults;
mod peers;
mod real_cli;
mod sandbox;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "What people run by hand")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install the pinned real CLIs below `target/` and run the suite against them, offline.
    RealCli(real_cli::Args),
    /// Record fixtures from the pinned real CLIs, offline, into the adapters' `fixtures/`.
    Capture(real_cli::CaptureArgs),
    /// Run the crash proof of the embedded store to its full extent and print its numbers.
    Faults(faults::Args),
    /// Run a group of benchmarks and print its table.
    Bench(bench::Args),
}

/// What a command could not do, in one sentence.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::RealCli(args) => real_cli::run(&args),
        Command::Capture(args) => real_cli::capture(&args),
        Command::Faults(args) => faults::run(&args),
        Command::Bench(args) => bench::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}
