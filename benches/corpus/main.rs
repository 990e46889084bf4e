//! Whole session files of a corpus, compared with the manifest of its truth.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark for people at a terminal")]

mod check;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

#[derive(Debug, Parser)]
struct Args {
    /// What to do: `check`.
    what: String,
    /// The corpus: a folder with `manifest.json`.
    corpus: PathBuf,
    /// Given by `cargo bench`; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let good = args.what == "check" && check::check(&args.corpus).print();
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
