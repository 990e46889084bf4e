//! Compares what Rejoin and the crate `agent-sessions`, which know nothing of each other, find in the same session files:
//! `differential claude HOME` or `differential codex HOME`; without arguments, in sessions of Claude Code that are made up.
//! Differences that are meant are counted by their reason; any other is shown, and fails.

mod ours;
#[path = "../../../session-transcript/tests/claude/session.rs"]
mod session;
mod theirs;
#[path = "../../../session-transcript/tests/claude/traps.rs"]
mod traps;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What one reader found in a file.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Each line with something in it, by the offset of its first byte.
    pub(crate) lines: BTreeMap<u64, Line>,
    /// Lines that the reader does not take for records, by their offset.
    pub(crate) refused: Vec<u64>,
    /// Lines that hold what was typed while the agent was at work.
    pub(crate) queued: Vec<u64>,
    /// Tokens of each reply.
    pub(crate) replies: BTreeMap<String, [u64; 4]>,
}

/// What one line holds.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) by: Option<By>,
    /// All of its words, white space left out.
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, String)>,
    pub(crate) results: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    User,
    Agent,
}

/// White space is where readers join what they found.
pub(crate) fn squeeze(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}

/// Differences, by what they are.
#[derive(Debug, Default)]
struct Outcome {
    files: u64,
    lines: u64,
    replies: u64,
    meant: BTreeMap<&'static str, u64>,
    others: Vec<String>,
}

/// How many sessions are made up.
const SESSIONS: u64 = 600;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let made_up = tempfile::tempdir().expect("there is a folder for temporary files");
    let (agent, home) = match &args[..] {
        [agent, home] => (agent.as_str(), Path::new(home)),
        [] => {
            make_up(made_up.path());
            ("claude", made_up.path())
        }
        _ => {
            eprintln!("differential [claude|codex HOME]");
            return ExitCode::from(2);
        }
    };
    let mut files = Vec::new();
    walk(&home.join(if agent == "claude" { "projects" } else { "sessions" }), &mut files);
    let runtime =
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime without I/O can be had");
    let mut outcome = Outcome::default();
    for path in files {
        let ours = runtime.block_on(ours::read(agent, home, &path));
        let theirs = theirs::read(agent, &path);
        outcome.files += 1;
        outcome.compare(&path, &ours, &theirs);
    }
    println!("{} files, {} lines, {} replies", outcome.files, outcome.lines, outcome.replies);
    for (reason, count) in &outcome.meant {
        println!("meant: {reason}: {count}");
    }
    for other in outcome.others.iter().take(20) {
        println!("{other}");
    }
    println!("{} differences that are not meant", outcome.others.len());
    if outcome.others.is_empty() && outcome.lines > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn make_up(home: &Path) {
    let project = home.join("projects/-work");
    std::fs::create_dir_all(&project).expect("a folder can be made");
    for seed in 1..=SESSIONS {
        let trap = traps::TRAPS[usize::try_from(seed).expect("it is small") % traps::TRAPS.len()];
        let (text, _) = traps::session(seed, trap);
        let name = format!("{seed:08}-0000-4000-8000-000000000000.jsonl");
        std::fs::write(project.join(name), text).expect("a file can be written");
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(path);
        }
    }
}

impl Outcome {
    fn compare(&mut self, path: &Path, ours: &Found, theirs: &Found) {
        let offsets: std::collections::BTreeSet<_> = ours.lines.keys().chain(theirs.lines.keys()).collect();
        for offset in offsets {
            self.lines += 1;
            let (one, other) = (ours.lines.get(offset), theirs.lines.get(offset));
            if one == other {
                continue;
            }
            match reason(*offset, one, other, ours, theirs) {
                Some(reason) => *self.meant.entry(reason).or_default() += 1,
                None => self
                    .others
                    .push(format!("{} at {offset}\n  ours   {one:?}\n  theirs {other:?}", path.display())),
            }
        }
        let ids: std::collections::BTreeSet<_> = ours.replies.keys().chain(theirs.replies.keys()).collect();
        for id in ids {
            self.replies += 1;
            let (one, other) = (ours.replies.get(id), theirs.replies.get(id));
            if one != other {
                self.others
                    .push(format!("{}: tokens of {id}: ours {one:?}, theirs {other:?}", path.display()));
            }
        }
    }
}

/// Why two readings of a line differ, where that is meant.
fn reason(
    offset: u64,
    ours: Option<&Line>,
    theirs: Option<&Line>,
    one: &Found,
    other: &Found,
) -> Option<&'static str> {
    let glued = |refused: &u64| *refused < offset && offset - refused < (1 << 20);
    match (ours, theirs) {
        (Some(_), None) if one.queued.contains(&offset) => {
            Some("a prompt that was typed while the agent was at work")
        }
        (Some(_), None) if other.refused.contains(&offset) => {
            Some("a line that they refuse, and that is a record")
        }
        (Some(_), None) if other.refused.iter().any(glued) => {
            Some("a whole record behind half of one on its line")
        }
        (Some(ours), Some(theirs)) if theirs.text.starts_with("<command-") && ours.by == theirs.by => {
            Some("a command, told as it was typed")
        }
        _ => None,
    }
}
