//! The last turns of a long transcript: T1.

#![expect(clippy::print_stdout, reason = "a benchmark for people at a terminal")]

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rejoin::adapters::ClaudeTranscripts;
use rejoin::core::history::{PageQuery, SessionSource, TranscriptPage};
use rejoin::core::{EnvMap, NativeId, SessionCatalog as _};
use rejoin::transcript::FileCatalog;
use tokio::runtime::Runtime;

use crate::{Bench, floors};

const TURNS: usize = 20;
const BLOCK: u64 = 256 << 10;
const SHORT: u64 = 8 << 20;

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

pub(crate) fn claude(bench: &mut Bench<'_>) {
    let files = floors::stat_all(&bench.corpus.join("huge/projects"), 1);
    let Some((long, size)) = files.into_iter().next() else { return };
    is_true(bench, &long);
    let rounds = bench.args.rounds;
    bench.row(
        "T1 last 20 turns; backwards until 20 prompts were seen",
        Some(1.5),
        rounds,
        || floor(&long),
        |runtime| drop(last(runtime, &long)),
    );

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
