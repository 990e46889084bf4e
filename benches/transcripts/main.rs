//! What lists and searches of sessions cost, beside the least that anybody could do: `cargo xtask bench transcripts`.
//!
//! Floors and figures are taken in turn, in one process, each round in the other order. A figure counts only if what was
//! listed is true by the manifest of the corpus. Read the ratios, not the milliseconds.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark for people at a terminal")]

#[path = "../figures/mod.rs"]
mod figures;
mod floors;
mod lists;
mod others;
mod peers;
mod tail;
mod truth;
mod whole;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use figures::Pairs;

#[derive(Debug, Parser)]
struct Args {
    /// A folder with `claude/projects`, `codex/sessions` and `manifest.json`. Nothing in it is changed.
    #[arg(long)]
    corpus: PathBuf,
    /// Rounds a figure.
    #[arg(long, default_value_t = 11)]
    rounds: u32,
    /// Rounds of what reads everything.
    #[arg(long, default_value_t = 3)]
    whole: u32,
    /// Only rows whose name begins so.
    #[arg(long)]
    only: Option<String>,
    /// Measure the time of all processors that this process took, and not that of the clock: where others use the machine.
    #[arg(long)]
    cpu: bool,
    /// Fail when a goal is missed.
    #[arg(long)]
    check: bool,
    /// Where the programs of others are installed: they are measured, too. `cargo xtask bench transcripts --peers` gives it.
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Measure one thing in this process, for the one that asks.
    #[arg(long, hide = true)]
    solo: Option<tail::Solo>,
    /// Given by `cargo bench`; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What a group needs.
struct Bench<'a> {
    corpus: &'a Path,
    manifest: truth::Manifest,
    runtime: tokio::runtime::Runtime,
    args: &'a Args,
    met: bool,
}

fn timed<T>(cpu: bool, act: impl FnOnce() -> T) -> Duration {
    let spent = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
    };
    let (start, before) = (Instant::now(), spent());
    std::hint::black_box(act());
    if cpu { spent() - before } else { start.elapsed() }
}

impl Bench<'_> {
    /// Floor and figure in turn, each time in the other order; the first round warms up.
    fn row(
        &mut self,
        name: &str,
        goal: Option<f64>,
        rounds: u32,
        mut floor: impl FnMut(),
        mut ours: impl FnMut(&tokio::runtime::Runtime),
    ) {
        if self.args.only.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
            return;
        }
        let mut pairs = Pairs::default();
        for round in 0..=rounds {
            let (bare, own) = if round % 2 == 0 {
                let bare = timed(self.args.cpu, &mut floor);
                (bare, timed(self.args.cpu, || ours(&self.runtime)))
            } else {
                let own = timed(self.args.cpu, || ours(&self.runtime));
                (timed(self.args.cpu, &mut floor), own)
            };
            if round > 0 {
                pairs.push(bare, own);
            }
        }
        self.met &= pairs.row(name, goal, 2);
    }

    /// Whether a list is true; says what is not.
    fn is_true(&mut self, name: &str, kind: &str, listing: &rejoin::core::history::Listing) {
        let differences = truth::compare(&self.manifest, kind, listing);
        if !differences.is_none() {
            println!("| {name}: NOT TRUE: {differences} |");
            self.met = false;
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(which) = args.solo {
        tail::solo(which, &args.corpus, args.cpu);
        return ExitCode::SUCCESS;
    }
    let manifest = truth::read(&args.corpus);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let mut bench = Bench { corpus: &args.corpus, manifest, runtime, args: &args, met: true };
    println!("{} rounds, {} of what reads everything; medians\n", args.rounds, args.whole);
    Pairs::heading();
    lists::claude(&mut bench);
    lists::codex(&mut bench);
    lists::finds(&mut bench);
    tail::claude(&mut bench);
    whole::claude(&mut bench);
    others::rows(&mut bench);
    if bench.met || !args.check { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
