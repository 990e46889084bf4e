//! Lists the Codex sessions of a generated corpus (a folder with `codex/` and `manifest.json`): `check` compares every field
//! with the manifest, `time` prints what lists take beside reading the beginning of each file.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark for people at a terminal")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use rejoin::adapters::CodexTranscripts;
use rejoin::core::SessionCatalog as _;
use rejoin::core::history::{
    Depth, ListQuery, Listing, Resumability, SessionEntry, SessionKind, TitleSource,
};
use rejoin::core::{EnvMap, NativeId};
use rejoin::transcript::FileCatalog;
use serde_json::{Value, json};

#[derive(Debug, Parser)]
struct Args {
    /// What to do: `check` or `time`.
    what: String,
    /// The corpus.
    corpus: PathBuf,
    /// Rounds of a figure.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Given by `cargo bench`; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    let home = args.corpus.join("codex");
    match args.what.as_str() {
        "check" if check(&args.corpus, &home).await == 0 => ExitCode::SUCCESS,
        "time" => {
            time(&home, args.rounds).await;
            ExitCode::SUCCESS
        }
        _ => ExitCode::FAILURE,
    }
}

fn catalog() -> FileCatalog<CodexTranscripts> {
    FileCatalog::new(CodexTranscripts::new(EnvMap::new()))
}

async fn list(catalog: &FileCatalog<CodexTranscripts>, home: &Path, depth: Depth) -> Listing {
    let kinds = vec![SessionKind::Main, SessionKind::Headless, SessionKind::Sidechain];
    let query = ListQuery {
        state_dir: Some(home.to_owned()),
        kinds,
        with_empty: true,
        depth,
        ..ListQuery::default()
    };
    catalog.list(&query).await.unwrap()
}

async fn check(corpus: &Path, home: &Path) -> u64 {
    let manifest = std::fs::read(corpus.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let truths: BTreeMap<&str, &Value> = manifest["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|truth| truth["kind"] == "codex")
        .map(|truth| (truth["id"].as_str().unwrap(), truth))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let indexed = catalog().index(folder.path().join("index"));
    let mut wrong = 0;
    let runs = [
        ("quick, no index", catalog(), Depth::Quick),
        ("exact, no index", catalog(), Depth::Exact),
        ("exact, first index", indexed.clone(), Depth::Exact),
        ("exact, index", indexed.clone(), Depth::Exact),
        ("quick, index", indexed, Depth::Quick),
    ];
    for (name, catalog, depth) in runs {
        let listing = list(&catalog, home, depth).await;
        let mut differences = BTreeMap::<&str, (u64, String)>::new();
        let mut fields = 0_u64;
        let mut compare = |id: &str, field: &'static str, truth: &Value, ours: &Value| {
            fields += 1;
            if truth != ours {
                let first = || (0, format!("{id}: truth {truth} ours {ours}"));
                differences.entry(field).or_insert_with(first).0 += 1;
            }
        };
        let mut left = truths.clone();
        for entry in &listing.sessions {
            match left.remove(entry.id.as_str()) {
                Some(truth) => {
                    one(entry, truth, depth == Depth::Exact || name == "quick, index", &mut compare)
                }
                None => compare(entry.id.as_str(), "extra", &json!(false), &json!(true)),
            }
        }
        for id in left.keys() {
            compare(id, "missed", &json!(false), &json!(true));
        }
        compare("list", "notices", &json!(0), &json!(listing.notices.len()));
        for (field, (count, first)) in &differences {
            println!("{name}: WRONG {field}: {count}, first {first}");
        }
        println!(
            "{name}: {} sessions, {fields} comparisons, {} wrong fields",
            listing.sessions.len(),
            differences.len()
        );
        wrong += differences.len() as u64;
    }
    wrong
}

fn one(
    entry: &SessionEntry,
    truth: &Value,
    whole: bool,
    compare: &mut impl FnMut(&str, &'static str, &Value, &Value),
) {
    let id = entry.id.as_str();
    let mut same = |field, ours: Value| compare(id, field, &truth[field], &ours);
    let archived = entry.resumable == Resumability::Archived;
    same("listed", json!(entry.kind != SessionKind::Sidechain && !archived));
    same("title", json!(entry.title.as_ref().map(|title| &title.text)));
    same("first_prompt", json!(entry.first_prompt));
    same("cwd", json!(entry.cwd));
    same("git_branch", json!(entry.branch));
    same("bytes", json!(entry.bytes));
    let kind = match &truth["source"] {
        Value::Object(_) => SessionKind::Sidechain,
        source if *source == "exec" => SessionKind::Headless,
        _ => SessionKind::Main,
    };
    compare(id, "kind", &json!(kind), &json!(entry.kind));
    let given = entry.title.as_ref().is_none_or(|title| title.source == TitleSource::Given);
    compare(id, "title source", &json!(true), &json!(given));
    let parent = truth["source"].pointer("/subagent/thread_spawn/parent_thread_id");
    compare(id, "parent", &json!(parent), &json!(entry.parent.as_ref().map(|parent| &parent.id)));
    let path = entry.source.path.to_string_lossy();
    compare(id, "path", &json!(true), &json!(path.ends_with(truth["path"].as_str().unwrap())));
    if !whole {
        return;
    }
    compare(id, "exact", &json!(true), &json!(entry.exact));
    compare(id, "turns", &truth["turns"], &json!(entry.turns));
    compare(id, "skipped", &json!(0), &json!(entry.skipped_lines));
    let usage = entry.usage.unwrap_or_default();
    let tokens = &truth["usage"];
    let input = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
    compare(id, "input", &tokens["input_tokens"], &json!(input));
    compare(id, "cached", &tokens["cached_input_tokens"], &json!(usage.cache_read_tokens));
    compare(id, "output", &tokens["output_tokens"], &json!(usage.output_tokens));
}

async fn time(home: &Path, rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let indexed = catalog().index(folder.path().join("index"));
    list(&indexed, home, Depth::Exact).await;
    let missing = NativeId::new("01a227c8-c852-73b0-9992-9153893082ac");
    let mut figures = BTreeMap::<&str, Vec<Duration>>::new();
    for _ in 0..rounds {
        let mut add = |name, took| figures.entry(name).or_default().push(took);
        let begin = Instant::now();
        floor(home);
        add("floor: walk, stat, 64 KiB head, one thread", begin.elapsed());
        let begin = Instant::now();
        list(&catalog(), home, Depth::Quick).await;
        add("list, no index, quick", begin.elapsed());
        let begin = Instant::now();
        list(&catalog(), home, Depth::Exact).await;
        add("list, no index, exact", begin.elapsed());
        let begin = Instant::now();
        list(&indexed, home, Depth::Exact).await;
        add("list, index, exact", begin.elapsed());
        let begin = Instant::now();
        assert!(catalog().find(&missing, Some(home)).await.unwrap().is_empty());
        add("find, miss", begin.elapsed());
    }
    let median = |all: &mut Vec<Duration>| {
        all.sort();
        all[all.len() / 2].as_secs_f64() * 1e3
    };
    let floor = median(figures.get_mut("floor: walk, stat, 64 KiB head, one thread").unwrap());
    for (name, all) in &mut figures {
        let took = median(all);
        println!("{name}: {took:.1} ms, {:.2} of the floor", took / floor);
    }
}

/// The least that reading the beginning of every file takes.
fn floor(home: &Path) {
    let mut folders = vec![home.join("sessions"), home.join("archived_sessions")];
    let mut buffer = vec![0; 64 << 10];
    while let Some(folder) = folders.pop() {
        for child in std::fs::read_dir(folder).unwrap().flatten() {
            let metadata = child.metadata().unwrap();
            if metadata.is_dir() {
                folders.push(child.path());
            } else {
                let mut file = File::open(child.path()).unwrap();
                std::hint::black_box(file.read(&mut buffer).unwrap());
            }
        }
    }
}
