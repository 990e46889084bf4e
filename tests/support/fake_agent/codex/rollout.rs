//! The session file of Codex 0.171: one record a line, numbered.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A session file, open for one more turn.
#[derive(Debug)]
pub(super) struct Rollout {
    id: String,
    path: PathBuf,
    records: Vec<Value>,
}

impl Rollout {
    /// A new one; nothing is written yet.
    pub(super) fn fresh(home: &Path, id: &str) -> Self {
        let now = jiff::Timestamp::now();
        let folder = home.join("sessions").join(now.strftime("%Y/%m/%d").to_string());
        let name = format!("rollout-{}-{id}.jsonl", now.strftime("%Y-%m-%dT%H-%M-%S"));
        Self { id: id.to_owned(), path: folder.join(name), records: Vec::new() }
    }

    /// The one of this id, or what the CLI says of a file that it cannot read.
    pub(super) fn find(home: &Path, id: &str) -> Option<Result<Self, String>> {
        let path = search(&home.join("sessions"), &format!("-{id}.jsonl"))?;
        Some(Self::read(id, path))
    }

    fn read(id: &str, path: PathBuf) -> Result<Self, String> {
        let shown = path.display().to_string();
        let bytes = std::fs::read(&path).map_err(|error| format!("{error} (code -32603)"))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| "stream did not contain valid UTF-8 (code -32603)".to_owned())?;
        if text.trim().is_empty() {
            return Err(format!("rollout at {shown} is empty (code -32603)"));
        }
        let mut lines = text.lines();
        let first: Option<Value> = lines.next().and_then(|line| serde_json::from_str(line).ok());
        let Some(first) = first.filter(|first| first["type"] == "session_meta") else {
            return Err(format!("failed to read session metadata from {shown} (code -32603)"));
        };
        // Damaged lines are skipped in silence.
        let rest = lines.filter_map(|line| serde_json::from_str(line).ok());
        let records: Vec<Value> = std::iter::once(first).chain(rest).collect();
        if records.last().is_some_and(|last| last.get("ordinal").is_none()) {
            return Err(format!(
                "final paginated rollout record at {shown} is missing an ordinal (code -32603)"
            ));
        }
        Ok(Self { id: id.to_owned(), path, records })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the user said, oldest first.
    pub(super) fn user_texts(&self) -> Vec<String> {
        let items = self.records.iter().map(|record| &record["payload"]["item"]);
        items
            .filter(|item| item["type"] == "UserMessage")
            .filter_map(|item| item["content"][0]["text"].as_str().map(str::to_owned))
            .collect()
    }

    /// Saves the start of a turn.
    pub(super) fn begin(&mut self, cwd: &str, version: &str, prompt: &str) {
        if self.records.is_empty() {
            let (id, now) = (&self.id, now());
            self.append("session_meta", &json!({
                "session_id": id, "id": id, "timestamp": now, "cwd": cwd, "originator": "codex_exec",
                "cli_version": version, "source": "exec", "thread_source": "user", "model_provider": "scripted",
                "history_mode": "paginated",
            }));
        }
        self.append(
            "event_msg",
            &json!({"type": "task_started", "turn_attribution": {"turn_trigger": "exec"}}),
        );
        self.append("turn_context", &json!({"cwd": cwd, "approval_policy": "never", "model": "scripted"}));
        let content = json!([{"type": "input_text", "text": prompt}]);
        self.append(
            "response_item",
            &json!({"type": "message", "role": "user", "content": content,
            "internal_chat_message_metadata_passthrough": {"content_item_kinds": ["user.text"]}}),
        );
        self.item(&json!({"type": "UserMessage", "content": [{"type": "text", "text": prompt}]}));
    }

    /// Saves the end of it.
    pub(super) fn end(&mut self, text: &str, usage: &Value) {
        self.item(&json!({"type": "AgentMessage", "content": [{"type": "Text", "text": text}]}));
        let content = json!([{"type": "output_text", "text": text}]);
        self.append("response_item", &json!({"type": "message", "role": "assistant", "content": content}));
        self.append("event_msg", &json!({"type": "token_count", "info": {"total_token_usage": usage}}));
        self.append("event_msg", &json!({"type": "task_complete", "last_agent_message": text}));
    }

    fn item(&mut self, item: &Value) {
        let id = self.id.clone();
        self.append("event_msg", &json!({"type": "item_completed", "thread_id": id, "item": item}));
    }

    /// Appends a record. Like the real CLI it goes on in silence when it cannot be saved.
    fn append(&mut self, kind: &str, payload: &Value) {
        let last = self.records.iter().filter_map(|record| record["ordinal"].as_u64()).next_back();
        let ordinal = last.map_or(0, |last| last + 1);
        let record = json!({"timestamp": now(), "ordinal": ordinal, "type": kind, "payload": payload});
        let _ = self.write(&record);
        self.records.push(record);
    }

    fn write(&self, record: &Value) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        // A line cut off by a crash is healed.
        let open = std::fs::read(&self.path)?.last().is_some_and(|last| *last != b'\n');
        let start = if open { "\n" } else { "" };
        File::write_all(&mut file, format!("{start}{record}\n").as_bytes())
    }
}

fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// The file below the folder whose name ends so.
fn search(folder: &Path, end: &str) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if entry.file_name().to_str().is_some_and(|name| name.ends_with(end)) {
                return Some(path);
            }
        }
    }
    None
}
