//! Lists and searches: L1 to L6, F1, F2.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rejoin::adapters::{ClaudeTranscripts, CodexTranscripts};
use rejoin::core::history::{Depth, ListQuery, Listing};
use rejoin::core::{NativeId, SessionCatalog as _, TranscriptFormat};
use rejoin::transcript::FileCatalog;
use tokio::runtime::Runtime;

use crate::{Bench, floors};

fn query(depth: Depth) -> ListQuery {
    ListQuery { depth, ..ListQuery::default() }
}

/// The agent's own place.
fn claude_of(dir: &Path) -> ClaudeTranscripts {
    ClaudeTranscripts::new([("CLAUDE_CONFIG_DIR", dir)].into_iter().collect())
}

fn codex_of(dir: &Path) -> CodexTranscripts {
    CodexTranscripts::new([("CODEX_HOME", dir)].into_iter().collect())
}

fn list<F: TranscriptFormat>(runtime: &Runtime, catalog: &FileCatalog<F>, query: &ListQuery) -> Listing {
    runtime.block_on(catalog.list(query)).unwrap()
}

/// Where indices and changed copies lie, for one run of the bench.
fn scratch() -> tempfile::TempDir {
    let parent = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    tempfile::Builder::new().prefix("bench-transcripts-").tempdir_in(parent).unwrap()
}

pub(crate) fn claude(bench: &mut Bench<'_>) {
    let dir = bench.corpus.join("claude");
    let projects = dir.join("projects");
    let format = || claude_of(&dir);
    let (quick, exact) = (query(Depth::Quick), query(Depth::Exact));
    let (rounds, whole) = (bench.args.rounds, bench.args.whole);
    let scratch = scratch();
    let index = scratch.path().join("index");

    let bare = FileCatalog::new(format());
    let quick_list = list(&bench.runtime, &bare, &quick);
    bench.is_true("L1", "claude", &quick_list);
    bench.row(
        "L1 list, no index; 64 KiB of both ends of each file",
        Some(1.0),
        rounds,
        || {
            floors::read_ends(&projects, 1, true);
        },
        |runtime| drop(list(runtime, &bare, &quick)),
    );

    bench.row(
        "L4 L1 with nothing in memory, and dropping it; the same",
        Some(1.0),
        whole,
        || {
            floors::forget(&projects, 1);
            floors::read_ends(&projects, 1, true);
        },
        |runtime| {
            floors::forget(&projects, 1);
            drop(list(runtime, &bare, &quick));
        },
    );

    let indexed = FileCatalog::new(format()).index(&index);
    let first = list(&bench.runtime, &indexed, &exact);
    bench.is_true("L3", "claude", &first);
    bench.row(
        "L3 first index, all read; usage of each line, one thread",
        Some(0.6),
        whole,
        || {
            floors::usage(&projects, 1);
        },
        |runtime| {
            drop(fs::remove_file(&index));
            drop(list(runtime, &indexed, &exact));
        },
    );
    bench.row(
        "L3 the same; newlines counted, one thread",
        None,
        whole,
        || {
            floors::newlines(&projects, 1);
        },
        |runtime| {
            drop(fs::remove_file(&index));
            drop(list(runtime, &indexed, &exact));
        },
    );

    let again = list(&bench.runtime, &indexed, &exact);
    assert_eq!(again, first, "an index changes nothing");
    bench.row(
        "L2 list, index, exact; readdir, stat",
        Some(2.5),
        rounds,
        || drop(floors::stat_all(&projects, 1)),
        |runtime| drop(list(runtime, &indexed, &exact)),
    );
    bench.row(
        "L2 newest 50 of them, no index; readdir, stat",
        None,
        rounds,
        || drop(floors::stat_all(&projects, 1)),
        |runtime| drop(list(runtime, &bare, &ListQuery { limit: Some(50), ..quick.clone() })),
    );
    appended(bench, &projects, scratch.path());
}

/// L5: beside the same list of the same tree with nothing appended, which is what L2 is.
fn appended(bench: &mut Bench<'_>, projects: &Path, scratch: &Path) {
    let name = "L5 list, index, ten appended to; L2 of it, both in turn";
    if bench.args.only.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
        return;
    }
    // The same files by other names, and copies of those that are written to.
    let tree = |name: &str| {
        let mut own: Vec<PathBuf> = Vec::new();
        for (at, (path, _)) in floors::stat_all(projects, 1).into_iter().enumerate() {
            let to = scratch.join(name).join("projects").join(path.strip_prefix(projects).unwrap());
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            if at % 500 == 77 && own.len() < 10 {
                fs::copy(&path, &to).unwrap();
                own.push(to);
            } else {
                fs::hard_link(&path, &to).or_else(|_| fs::copy(&path, &to).map(drop)).unwrap();
            }
        }
        own
    };
    let exact = query(Depth::Exact);
    let catalog =
        |name: &str| FileCatalog::new(claude_of(&scratch.join(name))).index(scratch.join(name).join("index"));
    let (still, growing) = (catalog("still"), catalog("growing"));
    tree("still");
    let own = tree("growing");
    // A stamp of just now is not trusted: both begin when the clock went on.
    std::thread::sleep(std::time::Duration::from_millis(100));
    drop(list(&bench.runtime, &still, &exact));
    drop(list(&bench.runtime, &growing, &exact));
    let (index, before) = (scratch.join("growing/index"), scratch.join("growing/before"));
    fs::copy(&index, &before).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut pairs = crate::figures::Pairs::default();
    for round in 0..=bench.args.rounds {
        for path in &own {
            let line = format!(
                "{{\"type\":\"user\",\"uuid\":\"00000000-0000-4000-8000-{round:012x}\",\
                 \"timestamp\":\"2026-06-01T00:00:00.000Z\",\
                 \"message\":{{\"role\":\"user\",\"content\":\"one more {round}\"}}}}\n"
            );
            File::options().append(true).open(path).unwrap().write_all(line.as_bytes()).unwrap();
        }
        let unchanged = crate::timed(bench.args.cpu, || list(&runtime, &still, &exact));
        let changed = crate::timed(bench.args.cpu, || list(&runtime, &growing, &exact));
        // Back to an index that knows none of what was appended.
        fs::copy(&before, &index).unwrap();
        if round > 0 {
            pairs.push(unchanged, changed);
        }
    }
    bench.met &= pairs.row(name, Some(1.2), 2);
}

pub(crate) fn codex(bench: &mut Bench<'_>) {
    let dir = bench.corpus.join("codex");
    let catalog = FileCatalog::new(codex_of(&dir));
    let (quick, exact) = (query(Depth::Quick), query(Depth::Exact));
    if bench.runtime.block_on(catalog.list(&quick)).is_err() {
        return;
    }
    let (quick_list, all) = (list(&bench.runtime, &catalog, &quick), list(&bench.runtime, &catalog, &exact));
    bench.is_true("L6", "codex", &quick_list);
    bench.is_true("L6 exact", "codex", &all);
    let rounds = bench.args.rounds;
    bench.row(
        "L6 list of Codex, no index; 64 KiB of the beginning of each file",
        Some(1.0),
        rounds,
        || {
            floors::read_ends(&dir, 4, false);
        },
        |runtime| drop(list(runtime, &catalog, &quick)),
    );
}

/// How often a search is asked for in a round: one alone is too short for the clock.
const TIMES: usize = 20;

pub(crate) fn finds(bench: &mut Bench<'_>) {
    let dir = bench.corpus.join("claude");
    let projects = dir.join("projects");
    let catalog = FileCatalog::new(claude_of(&dir));
    let there: Vec<NativeId> = bench
        .manifest
        .sessions
        .iter()
        .filter(|session| session.kind == "claude" && session.listed)
        .step_by(200)
        .take(TIMES)
        .map(|session| NativeId::new(&session.id))
        .collect();
    let missing = NativeId::new("00000000-0000-4000-8000-000000000000");
    let rounds = bench.args.rounds;
    let floor = || {
        for _ in 0..TIMES {
            assert_eq!(floors::open_in_each(&projects, &format!("{missing}.jsonl")), 0);
        }
    };
    // A third of what the quicker of two SDKs takes, which is 7.2 times this floor.
    bench.row("F1 20 found by id; 20 times an open in every project", Some(2.5), rounds, floor, |runtime| {
        for id in &there {
            assert!(!runtime.block_on(catalog.find(id, None)).unwrap().is_empty());
        }
    });
    bench.row("F1 20 not found; 20 times an open in every project", Some(2.0), rounds, floor, |runtime| {
        for _ in 0..TIMES {
            assert!(runtime.block_on(catalog.find(&missing, None)).unwrap().is_empty());
        }
    });
    let codex_dir = bench.corpus.join("codex");
    let codex = FileCatalog::new(codex_of(&codex_dir));
    if bench.runtime.block_on(codex.find(&missing, None)).is_err() {
        return;
    }
    // A tenth of what Codex itself takes, which is 323 times this floor.
    bench.row(
        "F2 20 not found by Codex's; 20 times an open in every project",
        Some(32.0),
        rounds,
        floor,
        |runtime| {
            for _ in 0..TIMES {
                assert!(runtime.block_on(codex.find(&missing, None)).unwrap().is_empty());
            }
        },
    );
}
