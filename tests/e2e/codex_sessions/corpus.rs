//! Sessions of Codex as its versions write them, with what a list has to show of each. The same seed gives the same ones.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rejoin::core::history::{Resumability, SessionKind};
use serde_json::{Value, json};

/// What a list has to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Truth {
    pub(super) title: Option<String>,
    pub(super) first_prompt: Option<String>,
    pub(super) cwd: String,
    pub(super) last_cwd: String,
    pub(super) branch: String,
    pub(super) kind: SessionKind,
    pub(super) parent: Option<String>,
    pub(super) resumable: Resumability,
    pub(super) turns: u64,
    pub(super) output_tokens: u64,
    pub(super) skipped: u64,
    pub(super) torn: bool,
}

/// What is awkward about a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trap {
    None,
    Exec,
    Subagent,
    Archived,
    /// Repeats the header of the session that it was forked from.
    Forked,
    Compacted,
    /// What the agent puts in comes first, as prompts.
    Injected,
    /// A line longer than what is read first.
    Pasted,
    MovedOn,
    Torn,
    Glued,
    Nuls,
    Packed,
    RolledBack,
    Renamed,
}

pub(super) const TRAPS: [Trap; 15] = [
    Trap::None,
    Trap::Exec,
    Trap::Subagent,
    Trap::Archived,
    Trap::Forked,
    Trap::Compacted,
    Trap::Injected,
    Trap::Pasted,
    Trap::MovedOn,
    Trap::Torn,
    Trap::Glued,
    Trap::Nuls,
    Trap::Packed,
    Trap::RolledBack,
    Trap::Renamed,
];

/// Numbers by chance (splitmix64).
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    pub(super) fn id(&mut self) -> String {
        let (one, two) = (self.next(1 << 32), self.next(1 << 48));
        format!("{one:08x}-0000-7000-8000-{two:012x}")
    }
}

pub(super) fn record(second: u64, kind: &str, payload: &Value) -> String {
    let time = format!("2026-03-01T10:{:02}:{:02}.000Z", second / 60 % 60, second % 60);
    json!({"timestamp": time, "type": kind, "payload": payload}).to_string() + "\n"
}

pub(super) fn prompt(second: u64, text: &str) -> String {
    let sent = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let typed = json!({"type": "user_message", "message": text, "images": []});
    record(second, "response_item", &sent) + &record(second, "event_msg", &typed)
}

pub(super) fn reply(second: u64, text: &str) -> String {
    record(second, "event_msg", &json!({"type": "agent_message", "message": text}))
}

pub(super) fn meta(id: &str, extra: &Value) -> String {
    let mut payload = json!({"id": id, "cwd": "/w/main", "source": "cli", "git": {"branch": "main"},
        "base_instructions": {"text": "You are a coding agent. ".repeat(200)}});
    for (key, value) in extra.as_object().into_iter().flatten() {
        payload[key] = value.clone();
    }
    record(0, "session_meta", &payload)
}

/// Where a session's file lies below a home.
pub(super) fn place(home: &Path, id: &str, archived: bool) -> PathBuf {
    let name = format!("rollout-2026-03-01T10-00-00-{id}.jsonl");
    home.join(if archived { "archived_sessions" } else { "sessions/2026/03/01" }).join(name)
}

pub(super) fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

pub(super) fn packed(text: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Writes a session, and says its id and what has to be shown.
pub(super) fn session(home: &Path, chance: &mut Chance, trap: Trap) -> (String, Truth) {
    let (id, other) = (chance.id(), chance.id());
    let mut truth = Truth {
        title: None,
        first_prompt: None,
        cwd: "/w/main".to_owned(),
        last_cwd: "/w/main".to_owned(),
        branch: "main".to_owned(),
        kind: SessionKind::Main,
        parent: None,
        resumable: Resumability::Yes,
        turns: 0,
        output_tokens: 0,
        skipped: 0,
        torn: false,
    };
    let mut text = match trap {
        Trap::Exec => {
            truth.kind = SessionKind::Headless;
            meta(&id, &json!({"source": "exec"}))
        }
        Trap::Subagent => {
            (truth.kind, truth.parent) = (SessionKind::Sidechain, Some(other.clone()));
            let source = json!({"subagent": {"thread_spawn": {"parent_thread_id": other, "depth": 1}}});
            meta(&id, &json!({"source": source, "forked_from_id": chance.id()}))
        }
        Trap::Forked => {
            truth.parent = Some(other.clone());
            let own = meta(&id, &json!({"forked_from_id": other}));
            own + &meta(&other, &json!({"cwd": "/w/other", "source": "exec", "git": {"branch": "other"}}))
        }
        _ => meta(&id, &json!({})),
    };
    if trap == Trap::Archived {
        truth.resumable = Resumability::Archived;
    }
    if trap == Trap::Injected {
        text += &prompt(1, "<environment_context>\n<cwd>/w/main</cwd>");
        text += &prompt(1, "# AGENTS.md instructions for /w/main");
    }
    let turns = 1 + chance.next(6);
    for turn in 0..turns {
        let second = 10 * turn;
        if trap == Trap::MovedOn && turn + 1 == turns {
            truth.last_cwd = "/w/tree".to_owned();
        }
        let context = json!({"cwd": truth.last_cwd, "model": "gpt-5"});
        text += &record(second, "turn_context", &context);
        let words = format!("turn {turn} of {}", chance.next(1000));
        let words =
            if trap == Trap::Pasted && turn == 0 { words.clone() + &" log".repeat(40_000) } else { words };
        text += &prompt(second + 1, &words);
        truth.turns += 1;
        let shown = words.get(..1024).unwrap_or(&words).to_owned();
        truth.first_prompt.get_or_insert(shown);
        for _ in 0..chance.next(4) {
            let output = "x\n".repeat(usize::try_from(chance.next(4000)).unwrap());
            let returned = json!({"type": "function_call_output", "call_id": "c", "output": output});
            text += &record(second + 2, "response_item", &returned);
        }
        truth.output_tokens += 1 + chance.next(100);
        let total =
            json!({"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": truth.output_tokens});
        let count = json!({"type": "token_count", "info": {"total_token_usage": total}});
        text += &record(second + 3, "event_msg", &count);
        // It is sometimes written twice.
        text += &record(second + 3, "event_msg", &count);
        text += &reply(second + 4, "done");
        if trap == Trap::Compacted {
            text += &record(second + 5, "compacted", &json!({"message": "sum", "replacement_history": []}));
        }
    }
    text += &damage(trap, &mut truth);
    if trap == Trap::RolledBack && truth.turns > 1 {
        text += &record(99, "event_msg", &json!({"type": "thread_rolled_back", "num_turns": 1}));
        truth.turns -= 1;
    }
    let path = place(home, &id, trap == Trap::Archived);
    if trap == Trap::Packed {
        write(&path.with_extension("jsonl.zst"), packed(text.as_bytes()));
    } else {
        write(&path, text);
    }
    if trap == Trap::Renamed {
        for name in ["first", "naïve 日本語"] {
            name_it(home, &id, name);
            truth.title = Some(name.to_owned());
        }
    }
    (id, truth)
}

/// What a crash leaves at the end of a file.
fn damage(trap: Trap, truth: &mut Truth) -> String {
    let half = r#"{"timestamp":"2026-03-01T10:58:00.000Z","type":"event_msg","payload":{"type":"agent_me"#;
    let typed = json!({"type": "user_message", "message": "after"});
    let whole = record(3500, "event_msg", &typed);
    match trap {
        Trap::Torn => truth.torn = true,
        Trap::Glued | Trap::Nuls => (truth.skipped, truth.turns) = (1, truth.turns + 1),
        _ => return String::new(),
    }
    match trap {
        Trap::Torn => half.to_owned(),
        Trap::Glued => half.to_owned() + &whole,
        _ => "\0".repeat(300) + &whole,
    }
}

/// Adds a name to the side file.
pub(super) fn name_it(home: &Path, id: &str, name: &str) {
    let path = home.join("session_index.jsonl");
    let mut text = fs::read_to_string(&path).unwrap_or_default();
    writeln!(text, "{}", json!({"id": id, "thread_name": name, "updated_at": "2026-03-01T10:00:00Z"}))
        .unwrap();
    write(&path, text);
}
