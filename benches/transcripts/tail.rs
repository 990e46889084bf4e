//! The last turns of a long transcript: T1.

#![expect(clippy::print_stdout, reason = "a benchmark for people at a terminal")]

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rejoin::adapters::ClaudeTranscripts;
use rejoin::core::history::{PageQuery, SessionSource, TranscriptPage};
use rejoin::core::{EnvMap, NativeId, SessionCatalog as _};
use rejoin::transcript::FileCatalog;
use tokio::runtime::Runtime;

use crate::{Bench, floors};

const TURNS: usize = 20;
const BLOCK: u64 = 256 << 10;
const SHORT: u64 = 8 << 20;
const LOOKS: usize = 21;

/// Reads backwards until so many prompts were seen, tells them by three words in the whole line, and makes nothing of them.
fn floor(path: &Path) {
    let file = File::open(path).unwrap();
    let mut at = file.metadata().unwrap().len();
    let (mut carried, mut seen) = (Vec::new(), 0);
    while at > 0 && seen < TURNS {
        let length = BLOCK.min(at);
        at -= length;
        let length = usize::try_from(length).unwrap();
        let mut block = vec![0; length + carried.len()];
        file.read_exact_at(&mut block[..length], at).unwrap();
        block[length..].copy_from_slice(&carried);
        let (mut end, mut whole) = (block.len(), 0);
        for newline in memchr::memrchr_iter(b'\n', &block[..length]) {
            let line = &block[(newline + 1).min(end)..end];
            let holds = |part: &[u8], mark: &str| memchr::memmem::find(part, mark.as_bytes()).is_some();
            // What tells a prompt from what a tool returned stands behind the content.
            let others = ["\"type\":\"tool_result\"", "\"isMeta\":true", "\"isCompactSummary\":true"];
            let prompt = holds(&line[..line.len().min(400)], "\"type\":\"user\"")
                && !others.iter().any(|mark| holds(line, mark));
            seen += usize::from(prompt);
            (end, whole) = (newline, newline);
        }
        carried = if whole == 0 { block } else { block[..end].to_vec() };
    }
    std::hint::black_box(seen);
}

fn last(runtime: &Runtime, path: &Path) -> TranscriptPage {
    let catalog = FileCatalog::new(ClaudeTranscripts::new(EnvMap::default()));
    let source = SessionSource { path: path.to_owned(), state_dir: None };
    runtime.block_on(catalog.page(&NativeId::new("s"), &source, &PageQuery::Last { turns: TURNS })).unwrap()
}

/// What is measured in a process of its own.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Solo {
    Floor,
    Ours,
}

/// The median of some looks, in nanoseconds, for the process that asked.
pub(crate) fn solo(which: Solo, corpus: &Path, cpu: bool) {
    let Some((long, _)) = floors::stat_all(&corpus.join("huge/projects"), 1).into_iter().next() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let mut times: Vec<_> = (0..LOOKS)
        .map(|_| match which {
            Solo::Floor => crate::timed(cpu, || floor(&long)),
            Solo::Ours => crate::timed(cpu, || drop(last(&runtime, &long))),
        })
        .collect();
    times.sort();
    println!("{}", times[LOOKS / 2].as_nanos());
}

/// In a process of its own, as the goal is told: what an allocator kept of other rows would be no part of it.
fn alone(bench: &Bench<'_>, which: &str) -> Duration {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.arg("--corpus").arg(bench.corpus).args(["--solo", which]);
    command.args(bench.args.cpu.then_some("--cpu"));
    let told = command.output().unwrap().stdout;
    Duration::from_nanos(std::str::from_utf8(&told).unwrap().trim().parse().unwrap())
}

pub(crate) fn claude(bench: &mut Bench<'_>) {
    let files = floors::stat_all(&bench.corpus.join("huge/projects"), 1);
    let Some((long, size)) = files.into_iter().next() else { return };
    is_true(bench, &long);
    let rounds = bench.args.rounds;
    let name = "T1 last 20 turns; backwards until 20 prompts were seen";
    if bench.args.only.as_ref().is_none_or(|only| name.starts_with(only.as_str())) {
        let mut pairs = crate::figures::Pairs::default();
        for _ in 0..rounds {
            pairs.push(alone(bench, "floor"), alone(bench, "ours"));
        }
        bench.met &= pairs.row(name, Some(1.5), 2);
    }

    let scratch = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let short: PathBuf = scratch.path().join("short.jsonl");
    let mut bytes = vec![0; usize::try_from(SHORT.min(size)).unwrap()];
    let at = size - bytes.len() as u64;
    File::open(&long).unwrap().read_exact_at(&mut bytes, at).unwrap();
    let begin = memchr::memchr(b'\n', &bytes).map_or(0, |end| end + 1);
    std::fs::write(&short, &bytes[begin..]).unwrap();
    let other = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    bench.row(
        "T1 the same of a long file; of its last 8 MB alone",
        Some(1.5),
        rounds,
        || drop(last(&other, &short)),
        |runtime| drop(last(runtime, &long)),
    );
}

fn is_true(bench: &mut Bench<'_>, path: &Path) {
    let Some(huge) = &bench.manifest.huge else { return };
    let expected = huge.tail.prompts.iter().rev().take(TURNS).rev();
    let expected: Vec<_> = expected.map(|prompt| (Some(prompt.uuid.clone()), prompt.offset)).collect();
    let page = last(&bench.runtime, path);
    let turns = page.entries.iter().filter(|located| located.entry.begins_turn());
    let turns: Vec<_> =
        turns.map(|located| (located.entry.id.clone(), located.span.unwrap().offset)).collect();
    if turns != expected {
        println!("| T1: NOT TRUE: {turns:?} |");
        bench.met = false;
    }
}
