//! A session's file, and lines to put into it.

use std::fs;
use std::path::{Path, PathBuf};

use rejoin::NativeId;
use rejoin::adapters::ClaudeTranscripts;
use rejoin::core::history::{Block, EntryKind, PageQuery, Restored, SessionSource, TranscriptPage};
use rejoin::core::{BranchOrder, Branched, EnvMap, SessionCatalog as _, SessionQuery, Spot, Timestamp};
use rejoin::transcript::FileCatalog;
use serde_json::{Value, json};

const ID: &str = "11111111-1111-4111-8111-111111111111";

pub(crate) struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    pub(crate) fn new(text: impl AsRef<[u8]>) -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap() };
        desk.write("projects/-w", ID, text);
        desk
    }

    pub(crate) fn of(lines: &[Value]) -> Self {
        Self::new(jsonl(lines))
    }

    /// A file of a helper.
    pub(crate) fn helper(&self, name: &str, lines: &[Value]) {
        self.write(&format!("projects/-w/{ID}/subagents"), name, jsonl(lines));
    }

    fn write(&self, folder: &str, name: &str, text: impl AsRef<[u8]>) {
        let folder = self.folder.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.jsonl")), text).unwrap();
    }

    fn source(&self) -> SessionSource {
        let state = self.folder.path().to_owned();
        let path: PathBuf = state.join("projects/-w").join(format!("{ID}.jsonl"));
        SessionSource { path, state_dir: Some(state) }
    }

    fn catalog() -> FileCatalog<ClaudeTranscripts> {
        FileCatalog::new(ClaudeTranscripts::new(EnvMap::new()))
    }

    pub(crate) fn last(&self, turns: usize) -> TranscriptPage {
        self.page(&PageQuery::Last { turns })
    }

    pub(crate) fn page(&self, query: &PageQuery) -> TranscriptPage {
        let (catalog, id, source) = (Self::catalog(), NativeId::new(ID), self.source());
        runtime().block_on(catalog.page(&id, &source, query)).unwrap()
    }

    fn query<'a>(id: &'a NativeId, state_dir: &'a Path) -> SessionQuery<'a> {
        SessionQuery { id, cwd: Path::new("/w"), state_dir: Some(state_dir), version: None }
    }

    /// Where the session stands.
    pub(crate) fn spot(&self) -> Spot {
        let native_id = NativeId::new(ID);
        let (catalog, query) = (Self::catalog(), Self::query(&native_id, self.folder.path()));
        let look = runtime().block_on(catalog.inspect(query)).unwrap();
        Spot { native_id, turns: look.user_turns, bytes: Some(look.bytes) }
    }

    /// A copy of it up to there.
    pub(crate) fn branch(&self, keep: &Spot) -> Self {
        let copy = tempfile::tempdir().unwrap();
        let order = BranchOrder {
            query: Self::query(&keep.native_id, self.folder.path()),
            keep,
            into: Some(copy.path()),
            seed: uuid::Uuid::from_u128(7),
            now: Timestamp::from_millis(1_790_000_000_000),
        };
        match runtime().block_on(Self::catalog().branch(order)).unwrap() {
            Branched::Done(branch) => Self::new(fs::read(branch.path).unwrap()),
            refused => panic!("{refused:?}"),
        }
    }

    pub(crate) fn restored(&self) -> Restored {
        runtime().block_on(Self::catalog().restore(&NativeId::new(ID), &self.source())).unwrap()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

pub(crate) fn jsonl(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A short name as an id.
pub(crate) fn uuid(name: &str) -> String {
    let number = name.bytes().fold(0_u64, |number, byte| number * 256 + u64::from(byte));
    format!("{number:08x}-0000-4000-8000-000000000000")
}

fn record(kind: &str, name: &str, parent: Option<&str>, message: Value) -> Value {
    // The same name, the same time: copies of a record have it under another id.
    let second = name.trim_start_matches(char::is_alphabetic).parse::<u64>().unwrap_or(0) % 60;
    json!({"type": kind, "uuid": uuid(name), "parentUuid": parent.map(uuid), "sessionId": ID, "isSidechain": false,
        "timestamp": format!("2026-05-08T18:29:{second:02}.000Z"), "cwd": "/w", "gitBranch": "main", "message": message})
}

pub(crate) fn user(name: &str, parent: Option<&str>, text: &str) -> Value {
    record("user", name, parent, json!({"role": "user", "content": text}))
}

pub(crate) fn returned(name: &str, parent: &str, call: &str) -> Value {
    let content = json!([{"type": "tool_result", "tool_use_id": call, "content": "done"}]);
    record("user", name, Some(parent), json!({"role": "user", "content": content}))
}

pub(crate) fn reply(name: &str, parent: &str, content: Value, output: u64) -> Value {
    let usage = json!({"input_tokens": 1, "output_tokens": output});
    let message = json!({"id": format!("msg_{name}"), "model": "claude-x", "role": "assistant", "content": content,
        "usage": usage});
    record("assistant", name, Some(parent), message)
}

pub(crate) fn said(name: &str, parent: &str, text: &str) -> Value {
    reply(name, parent, json!([{"type": "text", "text": text}]), 1)
}

pub(crate) fn call(name: &str, parent: &str, id: &str) -> Value {
    reply(name, parent, json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]), 1)
}

pub(crate) fn boundary(name: &str, before: &str, metadata: Value) -> Value {
    json!({"type": "system", "subtype": "compact_boundary", "uuid": uuid(name), "parentUuid": null,
        "logicalParentUuid": uuid(before), "sessionId": ID, "timestamp": "2026-05-08T18:30:00.000Z",
        "content": "Conversation compacted", "compactMetadata": metadata})
}

pub(crate) fn summary(name: &str, parent: &str, text: &str) -> Value {
    let mut record = user(name, Some(parent), text);
    record["isCompactSummary"] = json!(true);
    record
}

/// What prompts and replies of a page say.
pub(crate) fn texts(page: &TranscriptPage) -> Vec<String> {
    let text = |blocks: &[Block]| match blocks {
        [Block::Text(text)] => text.clone(),
        other => format!("{other:?}"),
    };
    page.entries
        .iter()
        .filter_map(|located| match &located.entry.kind {
            EntryKind::Prompt(blocks) | EntryKind::Reply(blocks) => Some(text(blocks)),
            EntryKind::Boundary => Some("boundary".to_owned()),
            EntryKind::CompactSummary(_) => Some("summary".to_owned()),
            _ => None,
        })
        .collect()
}
