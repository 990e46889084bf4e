//! Runs a group of benchmarks and prints its table.

use crate::{Outcome, cargo, root};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which group: `run`, `store`, `transcripts`.
    group: String,
    /// What to hand to the benchmark, such as `--pairs 20`.
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let program = cargo::build(&["bench", "--bench", &args.group, "--no-run"], &args.group)?;
    let status = std::process::Command::new(&program)
        .args(&args.rest)
        .current_dir(root())
        .status()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if status.success() { Ok(()) } else { Err(format!("the benchmark failed: {status}")) }
}
