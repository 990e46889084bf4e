//! All of a long transcript, and what a whole tree cost: T2, T3.

#![expect(clippy::print_stdout, reason = "a benchmark for people at a terminal")]

use std::fs::File;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rejoin::adapters::ClaudeTranscripts;
use rejoin::core::{EnvMap, Usage};
use session_transcript::{Bill, Summary};

use crate::truth::Tokens;
use crate::{Bench, floors};

fn read(path: &Path, threads: usize) -> Summary {
    Summary::read(&ClaudeTranscripts::new(EnvMap::default()), File::open(path).unwrap(), threads).unwrap()
}

/// Side by side, each file on one thread.
fn total(files: &[PathBuf], threads: usize) -> Usage {
    let next = AtomicUsize::new(0);
    let bills: Vec<Bill> = std::thread::scope(|scope| {
        let work = || {
            let mut bill = Bill::default();
            while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                bill.add(&read(path, 1));
            }
            bill
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut all = Bill::default();
    bills.iter().for_each(|bill| all.add_all(bill));
    all.usage()
}

pub(crate) fn claude(bench: &mut Bench<'_>) {
    let whole = bench.args.whole;
    let huge = bench.corpus.join("huge/projects");
    if let Some((path, _)) = floors::stat_all(&huge, 1).into_iter().next() {
        let truth = bench.manifest.huge.as_ref().map(|huge| huge.usage);
        is_true(bench, "T2", truth, || read(&path, 2).counts().usage);
        for (threads, goal) in [(1, 3.5), (2, 2.0)] {
            bench.row(
                &format!("T2 all of 1 GB, typed, threads: {threads}; its newlines counted, one thread"),
                Some(goal),
                whole,
                || {
                    black_box(floors::newlines(&huge, 1));
                },
                |_| {
                    black_box(read(&path, threads).counts());
                },
            );
        }
    }
    let projects = bench.corpus.join("claude/projects");
    let files: Vec<_> = floors::stat_all(&projects, 3).into_iter().map(|(path, _)| path).collect();
    let truth = bench.manifest.totals.as_ref().map(|totals| totals.claude_usage);
    is_true(bench, "T3", truth, || total(&files, 2));
    bench.row(
        "T3 tokens of the tree, two threads; its newlines counted, one thread",
        Some(2.2),
        whole,
        || {
            black_box(floors::newlines(&projects, 3));
        },
        |_| {
            black_box(total(&files, 2));
        },
    );
}

fn is_true(bench: &mut Bench<'_>, name: &str, truth: Option<Tokens>, ours: impl FnOnce() -> Usage) {
    if bench
        .args
        .only
        .as_ref()
        .is_some_and(|only| !only.starts_with(name) && !name.starts_with(only.as_str()))
    {
        return;
    }
    let ours = Tokens::from(ours());
    if truth.is_some_and(|truth| truth != ours) {
        println!("| {name}: NOT TRUE: {ours:?} |");
        bench.met = false;
    }
}
