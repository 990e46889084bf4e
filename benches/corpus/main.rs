//! Whole session files of a corpus: `check` compares what is read with the manifest of its truth, `time` prints what reading
//! takes beside counting newlines.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark for people at a terminal")]

mod check;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use session_transcript::Bill;

#[derive(Debug, Parser)]
struct Args {
    /// What to do: `check` or `time`.
    what: String,
    /// The corpus: a folder with `manifest.json`.
    corpus: PathBuf,
    /// Rounds of a figure.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Given by `cargo bench`; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let good = match args.what.as_str() {
        "check" => check::check(&args.corpus).print(),
        "time" => time(&args.corpus, args.rounds),
        _ => false,
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn time(corpus: &Path, rounds: usize) -> bool {
    for (name, folder, goals) in
        [("huge", "huge/projects", [3.5, 2.0]), ("tree", "claude/projects", [4.4, 2.2])]
    {
        let files = check::files(&corpus.join(folder));
        for (threads, goal) in [1, 2].into_iter().zip(goals) {
            let (mut bare, mut ours) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                bare.push(took(|| newlines(&files)));
                ours.push(took(|| parse(&files, threads)));
            }
            let ratios = bare.iter().zip(&ours).map(|(bare, ours)| ours.as_secs_f64() / bare.as_secs_f64());
            let ratio = median(ratios.collect());
            let millis = |all: &[Duration]| median(all.iter().map(|it| it.as_secs_f64() * 1e3).collect());
            println!(
                "{name} on {threads}: newlines {:.0} ms, fold {:.0} ms, ratio {ratio:.2}, goal {goal}",
                millis(&bare),
                millis(&ours)
            );
        }
    }
    true
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn took(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

/// On one thread, whatever is compared with it.
fn newlines(files: &[PathBuf]) {
    let mut buffer = vec![0; 1 << 20];
    let mut lines = 0;
    for path in files {
        let mut file = File::open(path).unwrap();
        loop {
            let read = file.read(&mut buffer).unwrap();
            if read == 0 {
                break;
            }
            lines += memchr::memchr_iter(b'\n', &buffer[..read]).count();
        }
    }
    std::hint::black_box(lines);
}

/// One large file on all threads, or many files side by side.
fn parse(files: &[PathBuf], threads: usize) {
    if let [file] = files {
        std::hint::black_box(check::read(file, threads).counts());
        return;
    }
    let next = AtomicUsize::new(0);
    let bills: Vec<Bill> = std::thread::scope(|scope| {
        let work = || {
            let mut bill = Bill::default();
            while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                bill.add(&check::read(path, 1));
            }
            bill
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut all = Bill::default();
    bills.iter().for_each(|bill| all.add_all(bill));
    std::hint::black_box(all.usage());
}
