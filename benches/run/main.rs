//! What a run costs, beside what the machine costs anyway: `cargo xtask bench run`.
//!
//! Each figure comes from pairs taken in turn in one process: the scripted agent spawned and drained bare, and the
//! same agent run by Rejoin over the store in memory. Read the ratios, not the milliseconds. What the embedded
//! store adds is measured apart.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark for people at a terminal")]

#[path = "../figures/mod.rs"]
mod figures;
mod stream;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use figures::{Pairs, millis};
use rejoin::adapters::{ClaudeOptions, claude};
use rejoin::core::Program;
use rejoin::process::Environment;
use rejoin::stores::{FsStore, MemoryStore};
use rejoin::{LlmRequest, ResumePolicy, SessionRef, Sessions};
use rejoin_test_support::fake_agent;
use serde_json::json;

#[derive(Debug, Parser)]
struct Args {
    /// Pairs a figure.
    #[arg(long, default_value_t = 50)]
    pairs: usize,
    /// Fail when a goal is missed.
    #[arg(long)]
    check: bool,
    /// Given by `cargo bench`; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

struct Case {
    program: PathBuf,
    script: PathBuf,
    home: PathBuf,
}

impl Case {
    /// An agent that prints so many messages, so many in ten of them deltas, and ends. It prints line by line, as
    /// agents do, or all at once, as fast as the system can.
    fn new(folder: &Path, name: &str, messages: u64, deltas_in_ten: u64, step: &str) -> Self {
        let file = folder.join(format!("{name}.jsonl"));
        stream::write(&file, messages, deltas_in_ten);
        let script = folder.join(format!("{name}.json"));
        let cases = json!({ "stdin": "ignore", "cases": [{ "steps": [{ step: file }] }] });
        std::fs::write(&script, cases.to_string()).unwrap();
        Self { program: std::env::current_exe().unwrap(), script, home: folder.to_owned() }
    }

    fn bare(&self) -> Duration {
        let start = Instant::now();
        let mut child = Command::new(&self.program)
            .args(fake_agent::leading_args(&self.script))
            .env_clear()
            .env("HOME", &self.home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut buffer = vec![0; 256 * 1024];
        while stdout.read(&mut buffer).unwrap() > 0 {}
        assert!(child.wait().unwrap().success());
        start.elapsed()
    }

    fn sessions(&self, store: impl rejoin::SessionStore) -> Sessions {
        let args = fake_agent::leading_args(&self.script);
        let program =
            args.into_iter().fold(Program::new(&self.program), |program, arg| program.leading_arg(arg));
        let agent = claude()
            .options(ClaudeOptions::new().program(program))
            .environment(Environment::bare().set("HOME", &self.home));
        Sessions::builder(store).agent(agent).build()
    }

    async fn run(&self, sessions: &Sessions) -> Duration {
        let request = LlmRequest::new("x")
            .cwd(&self.home)
            .session(SessionRef::new("issue-42", "claude"))
            .resume(ResumePolicy::Never);
        let start = Instant::now();
        let result = sessions.run(request).await.unwrap();
        assert_eq!(result.text, "done");
        start.elapsed()
    }
}

/// Runs pairs in turn and prints a row; says whether the goal is met.
async fn pairs(name: &str, goal: Option<f64>, pairs: usize, case: &Case, sessions: &Sessions) -> bool {
    // The first run probes the version; it and a first bare one warm everything up.
    case.bare();
    case.run(sessions).await;
    let mut all = Pairs::default();
    for pair in 0..pairs {
        let (bare, ours) = if pair % 2 == 0 {
            let bare = case.bare();
            (bare, case.run(sessions).await)
        } else {
            let ours = case.run(sessions).await;
            (case.bare(), ours)
        };
        all.push(bare, ours);
    }
    all.row(name, goal, 2)
}

/// The most memory that this process ever had resident, in MiB; children do not count.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
}

fn main() -> ExitCode {
    if let Some(code) = fake_agent::become_agent_if_asked() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure(&Args::parse()))
}

async fn measure(args: &Args) -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (lines, at_once) = ("stdout_lines", "stdout_file");
    let short = Case::new(folder, "short", 3, 0, lines);
    let whole = Case::new(folder, "whole", 20_000, 0, lines);
    let deltas = Case::new(folder, "deltas", 20_000, 9, lines);
    let whole_at_once = Case::new(folder, "whole-at-once", 20_000, 0, at_once);
    let deltas_at_once = Case::new(folder, "deltas-at-once", 20_000, 9, at_once);

    println!("{} pairs each, medians\n", args.pairs);
    Pairs::heading();
    let mut met = true;
    for (name, goal, case) in [
        ("R1 one run of 5 messages", Some(1.3), &short),
        ("R2 20,000 whole messages", Some(1.6), &whole),
        ("R2 20,000 messages, 90 % deltas", Some(2.2), &deltas),
        ("20,000 whole messages, printed all at once", None, &whole_at_once),
        ("20,000 messages, 90 % deltas, printed all at once", None, &deltas_at_once),
    ] {
        met &= pairs(name, goal, args.pairs, case, &case.sessions(MemoryStore::new())).await;
    }

    let (in_memory, on_disk) =
        (short.sessions(MemoryStore::new()), short.sessions(FsStore::open(folder).unwrap()));
    short.run(&in_memory).await;
    short.run(&on_disk).await;
    let mut extra = Vec::new();
    for _ in 0..args.pairs {
        let memory = short.run(&in_memory).await;
        extra.push(short.run(&on_disk).await.saturating_sub(memory));
    }
    println!(
        "\nThe embedded store adds {:.2} ms to a run: a lease, two durable writes, one audit event.",
        millis(&extra)
    );

    // Peaks never fall, so the longer stream comes last; only what it adds counts.
    let sessions = whole.sessions(MemoryStore::new());
    whole.run(&sessions).await;
    let before = peak_mib();
    let long = Case::new(folder, "long", 160_000, 0, lines);
    let size = std::fs::metadata(folder.join("long.jsonl")).unwrap().len() / 1_000_000;
    long.run(&long.sessions(MemoryStore::new())).await;
    match (before, peak_mib()) {
        (Some(before), Some(after)) => {
            println!(
                "A stream of {size} MB: peak memory {after:.0} MiB, {before:.0} MiB before it was read."
            );
        }
        _ => println!("A stream of {size} MB was read; this system does not tell the peak of memory."),
    }
    if met || !args.check { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
