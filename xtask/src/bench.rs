//! Runs a group of benchmarks and prints its table.

use crate::{Outcome, cargo, peers, root};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which group: `run`, `store`, `checkpoint`, `transcripts`.
    group: String,
    /// Install what others offer for the same, and measure it in turn with ours, where the group has such.
    #[arg(long)]
    peers: bool,
    /// What to hand to the benchmark, such as `--pairs 20`.
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let program = cargo::build(&["bench", "--bench", &args.group, "--no-run"], &args.group)?;
    let peers = if args.peers { Some(peers::install()?) } else { None };
    let status = std::process::Command::new(&program)
        .args(&args.rest)
        .args(peers.iter().flat_map(|folder| [std::ffi::OsStr::new("--peers"), folder.as_os_str()]))
        .current_dir(root())
        .status()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if status.success() { Ok(()) } else { Err(format!("the benchmark failed: {status}")) }
}
