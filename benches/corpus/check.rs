//! Compares what is read of a corpus with the manifest of its truth, field by field.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use adapter_claude::ClaudeTranscripts;
use serde_json::{Value, json};
use session_core::history::{Resumability, SessionKind, SessionSource};
use session_core::{TranscriptFormat as _, Usage};
use session_transcript::{Bill, Summary};

/// Differences by field, with the first file of each.
#[derive(Default)]
pub(crate) struct Differences {
    compared: BTreeMap<&'static str, u64>,
    wrong: BTreeMap<String, (u64, String)>,
}

impl Differences {
    fn compare(&mut self, path: &str, field: &'static str, truth: &Value, ours: &Value) {
        *self.compared.entry(field).or_default() += 1;
        if truth != ours {
            let short = |value: &Value| value.to_string().chars().take(120).collect::<String>();
            let first = || (0, format!("{path}: truth {} ours {}", short(truth), short(ours)));
            self.wrong.entry(field.to_owned()).or_insert_with(first).0 += 1;
        }
    }

    /// Prints them, and says whether there are none.
    pub(crate) fn print(&self) -> bool {
        let compared: Vec<_> =
            self.compared.iter().map(|(field, count)| format!("{field} {count}")).collect();
        println!("compared: {}", compared.join(", "));
        for (field, (count, first)) in &self.wrong {
            println!("WRONG {field}: {count}, first: {first}");
        }
        println!("differences: {}", self.wrong.values().map(|(count, _)| count).sum::<u64>());
        self.wrong.is_empty()
    }
}

/// All session files below a folder, in a fixed order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for child in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = child.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

pub(crate) fn check(corpus: &Path) -> Differences {
    let manifest = std::fs::read(corpus.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let mut differences = Differences::default();
    let claude = corpus.join("claude");
    if claude.is_dir() {
        tree(&claude, &manifest, &mut differences);
    }
    if let Some(truth) = manifest.get("huge") {
        let path = corpus.join("huge/projects").join(truth["path"].as_str().unwrap());
        for threads in [1, 2] {
            let summary = read(&path, threads);
            one(&corpus.join("huge"), &path, &summary, truth, &mut differences);
        }
    }
    differences
}

pub(crate) fn read(path: &Path, threads: usize) -> Summary {
    let format = ClaudeTranscripts::new(Default::default());
    Summary::read(&format, File::open(path).unwrap(), threads).unwrap()
}

fn tree(state: &Path, manifest: &Value, differences: &mut Differences) {
    let mut truths = BTreeMap::new();
    for truth in manifest["sessions"].as_array().unwrap().iter().filter(|truth| truth["kind"] == "claude") {
        truths.insert(state.join("projects").join(truth["path"].as_str().unwrap()), truth);
    }
    let copies: Vec<_> = truths
        .values()
        .filter_map(|truth| Some(state.join("projects").join(truth.get("older_copy")?.as_str()?)))
        .collect();
    let (mut bill, mut helpers) = (Bill::default(), BTreeMap::<PathBuf, Bill>::new());
    for path in files(&state.join("projects")) {
        let summary = read(&path, 1);
        bill.add(&summary);
        if let Some(truth) = truths.get(&path) {
            one(state, &path, &summary, truth, differences);
        } else if path.parent().unwrap().ends_with("subagents") {
            let session = path.parent().unwrap().parent().unwrap().with_extension("jsonl");
            helpers.entry(session).or_default().add(&summary);
            let kind = entry(state, &path, &summary).map(|entry| json!(entry.kind));
            differences.compare(
                &path.to_string_lossy(),
                "kind",
                &json!(Some(SessionKind::Sidechain)),
                &json!(kind),
            );
        } else if !copies.contains(&path) {
            differences.compare(&path.to_string_lossy(), "extra", &json!(false), &json!(true));
        }
    }
    for (path, truth) in &truths {
        let sum = helpers.get(path).map(Bill::usage_of_sidechains).unwrap_or_default();
        let side = &truth["usage_sidechain"];
        if truth["listed"] == true {
            differences.compare(&path.to_string_lossy(), "usage_sidechain", side, &usage(sum));
        }
    }
    let totals = &manifest["totals"];
    differences.compare("tree", "claude_usage", &totals["claude_usage"], &usage(bill.usage()));
    let side = usage(bill.usage_of_sidechains());
    differences.compare("tree", "claude_usage_sidechain", &totals["claude_usage_sidechain"], &side);
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    })
}

fn entry(state: &Path, path: &Path, summary: &Summary) -> Option<session_core::history::SessionEntry> {
    let format = ClaudeTranscripts::new(Default::default());
    let file = format.session_file(path.strip_prefix(state.join("projects")).unwrap())?;
    Some(summary.entry(&file, SessionSource { path: path.to_owned(), state_dir: None }))
}

fn one(state: &Path, path: &Path, summary: &Summary, truth: &Value, differences: &mut Differences) {
    let name = path.to_string_lossy();
    let counts = summary.counts();
    let entry = entry(state, path, summary);
    let listed = entry
        .as_ref()
        .is_some_and(|entry| entry.resumable == Resumability::Yes && entry.kind != SessionKind::Sidechain);
    let [custom, ai, summary_line] = summary.titles();
    let sidechain = entry.as_ref().is_some_and(|entry| entry.kind == SessionKind::Sidechain);
    let title = entry.as_ref().and_then(|entry| entry.title.clone());
    let title = title.filter(|title| title.source != session_core::history::TitleSource::Summary);
    let first = entry.as_ref().and_then(|entry| entry.first_prompt.clone());
    let cut = |text: &Value| text.as_str().map(|text| text[..text.floor_char_boundary(1024)].to_owned());
    let ours = [
        ("listed", json!(listed)),
        ("id", json!(entry.as_ref().map(|entry| entry.id.as_str()))),
        ("first_prompt", json!(first)),
        ("custom_title", json!(custom)),
        ("ai_title", json!(ai)),
        ("title", json!(title.map(|title| title.text))),
        ("legacy_summary", json!(summary_line)),
        ("last_prompt", json!(summary.last_noted_prompt())),
        ("cwd", json!(entry.as_ref().and_then(|entry| entry.cwd.clone()))),
        ("last_cwd", json!(entry.as_ref().and_then(|entry| entry.last_cwd.clone()))),
        ("git_branch", json!(entry.as_ref().and_then(|entry| entry.branch.clone()))),
        ("lines", json!(counts.lines)),
        ("bytes", json!(counts.bytes)),
        ("human_prompts", json!(counts.prompts)),
        ("messages", json!(counts.messages)),
        ("messages_queued", json!(counts.messages + counts.queued)),
        ("messages_full", json!(counts.all_messages)),
        ("assistant_replies", json!(counts.replies)),
        ("compactions", json!(counts.compactions)),
        ("usage", usage(counts.usage)),
        ("usage_new", usage(counts.usage_new)),
    ];
    for (field, ours) in ours {
        let Some(truth_of_field) = truth.get(field) else { continue };
        match field {
            "first_prompt" => differences.compare(&name, field, &json!(cut(truth_of_field)), &ours),
            "id" if truth["listed"] == false => {}
            _ => differences.compare(&name, field, truth_of_field, &ours),
        }
    }
    if sidechain {
        let ours = usage(counts.usage_of_sidechains);
        differences.compare(&name, "usage_sidechain", &truth["usage_sidechain"], &ours);
    }
    // Times are set to the last one in the file, to the millisecond.
    let updated = entry.and_then(|entry| entry.updated).map(session_core::Timestamp::as_millis);
    if truth["listed"] == true && updated.is_none() {
        differences.compare(&name, "updated", &truth["mtime"], &json!(updated));
    }
    let torn = truth["traps"].as_array().is_some_and(|traps| traps.iter().any(|trap| trap == "torn_tail"));
    differences.compare(&name, "skipped", &json!(0), &json!(counts.skipped));
    let notices = summary.notices(path).0.len();
    differences.compare(&name, "notices", &json!(usize::from(torn)), &json!(notices));
}
