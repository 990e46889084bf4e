//! What others take for the same: their own time, without the start of their interpreter, beside the clock of ours.

use std::path::Path;
use std::time::{Duration, Instant};

use rejoin::adapters::ClaudeTranscripts;
use rejoin::core::history::{Depth, ListQuery, PageQuery, SessionSource};
use rejoin::core::{NativeId, SessionCatalog as _};
use rejoin::transcript::FileCatalog;

use crate::figures::Pairs;
use crate::peers::{Peers, Sdk};
use crate::{Bench, floors};

const TURNS: usize = 20;

/// Theirs and ours in turn; the first round warms up.
fn row(bench: &Bench<'_>, name: &str, rounds: u32, peer: impl Fn() -> Duration, ours: impl Fn()) {
    if bench.args.only.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
        return;
    }
    let mut pairs = Pairs::default();
    for round in 0..=rounds {
        let theirs = peer();
        let start = Instant::now();
        ours();
        if round > 0 {
            pairs.push(theirs, start.elapsed());
        }
    }
    pairs.row(name, None, 4);
}

/// In the column of what the machine takes stands what they take; by the clock, whatever else is asked for.
pub(crate) fn rows(bench: &mut Bench<'_>) {
    let Some(folder) = bench.args.peers.clone() else { return };
    let peers = Peers::new(folder);
    let home = bench.corpus.join("claude");
    let of = |dir: &Path| {
        FileCatalog::new(ClaudeTranscripts::new([("CLAUDE_CONFIG_DIR", dir)].into_iter().collect()))
    };
    let scratch = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let (bare, indexed) = (of(&home), of(&home).index(scratch.path().join("index")));
    let query = |depth| ListQuery { depth, ..ListQuery::default() };
    let list =
        |catalog: &FileCatalog<_>, depth| drop(bench.runtime.block_on(catalog.list(&query(depth))).unwrap());
    let rounds = bench.args.whole;
    for sdk in Sdk::ALL {
        let theirs = || peers.sdk(sdk, &["list"], &home);
        let name = |what: &str| format!("P {}: {what}", sdk.name());
        row(bench, &name("list; ours without an index"), rounds, theirs, || list(&bare, Depth::Quick));
        list(&indexed, Depth::Exact);
        row(bench, &name("list; ours with an index, exact"), rounds, theirs, || list(&indexed, Depth::Exact));
        let there = bench.manifest.sessions.iter().find(|session| session.kind == "claude" && session.listed);
        let Some(there) = there else { continue };
        let id = NativeId::new(&there.id);
        let find = || assert!(!bench.runtime.block_on(bare.find(&id, None)).unwrap().is_empty());
        row(bench, &name("find by id"), rounds, || peers.sdk(sdk, &["find", &there.id], &home), find);
    }
    tails(bench, &peers);
    let totals = || list(&indexed, Depth::Exact);
    row(
        bench,
        "P ccusage: totals, its start included; ours with an index",
        rounds,
        || peers.ccusage(&home),
        totals,
    );
    let totals = || list(&bare, Depth::Exact);
    row(bench, "P ccusage: the same; ours without an index", rounds, || peers.ccusage(&home), totals);
}

/// Of the longest transcript, only the SDK that needs no memory of many times its size.
fn tails(bench: &Bench<'_>, peers: &Peers) {
    let home = bench.corpus.join("huge");
    if !home.join("projects").is_dir() {
        return;
    }
    let Some((long, _)) = floors::stat_all(&home.join("projects"), 1).into_iter().next() else { return };
    let Some(id) = long.file_stem().and_then(|id| id.to_str()) else { return };
    let ours = |path: &Path| {
        let catalog =
            FileCatalog::new(ClaudeTranscripts::new([("CLAUDE_CONFIG_DIR", &home)].into_iter().collect()));
        let source = SessionSource { path: path.to_owned(), state_dir: None };
        let query = PageQuery::Last { turns: TURNS };
        drop(bench.runtime.block_on(catalog.page(&NativeId::new(id), &source, &query)).unwrap());
    };
    let theirs = || peers.sdk(Sdk::TypeScript, &["tail", id], &home);
    row(bench, "P TypeScript SDK: last 20 messages of the longest; ours: turns", 1, theirs, || ours(&long));
}
