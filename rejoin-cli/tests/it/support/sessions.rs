//! Session files as Claude Code and Codex write them, in short.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Machine, write};

/// The session that was used last, with a title of its own.
pub(crate) const LOGIN: &str = "0f3a1c00-1111-4111-8111-000000000001";
/// One in the same folder, called by its first prompt.
pub(crate) const CHANGELOG: &str = "1b2c3d00-1111-4111-8111-000000000002";
/// One of another folder, with the title of [`LOGIN`].
pub(crate) const ELSEWHERE: &str = "2c3d4e00-1111-4111-8111-000000000003";
/// One without a turn.
pub(crate) const EMPTY: &str = "3d4e5f00-1111-4111-8111-000000000004";
/// A session of Codex.
pub(crate) const CODEX: &str = "019b8d2b-b6f8-713f-b434-8bd03b8dece5";
/// A title that two sessions of the project have.
pub(crate) const TITLE: &str = "Fix the login bug";

/// One of each.
pub(crate) fn some(machine: &Machine) {
    let elsewhere = machine.folder("elsewhere");
    Claude::new(machine, LOGIN, &machine.project, 30)
        .turn("The login page is broken", "I look at it.")
        .tool("Edit", "login.rs", "changed")
        .turn("Now add a test", "There is one now.")
        .title(TITLE)
        .write();
    Claude::new(machine, CHANGELOG, &machine.project, 20).turn("Write the changelog", "Done.").write();
    Claude::new(machine, ELSEWHERE, &elsewhere, 10)
        .turn("Sort the cellar", "Sorted.")
        .title("Sort the cellar")
        .write();
    Claude::new(machine, EMPTY, &machine.project, 5).write();
    codex(machine, CODEX, &machine.project, "Explain the cache", "It keeps things.");
}

/// A session of Claude Code that is being written.
#[derive(Debug)]
pub(crate) struct Claude {
    id: String,
    cwd: PathBuf,
    path: PathBuf,
    minute: u32,
    lines: Vec<Value>,
    parent: Option<String>,
    records: u32,
}

impl Claude {
    /// One that begins at this minute of a day.
    pub(crate) fn new(machine: &Machine, id: &str, cwd: &Path, minute: u32) -> Self {
        let folder: String =
            cwd.to_str().unwrap().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = machine.home.join(".claude/projects").join(folder).join(format!("{id}.jsonl"));
        let lines = vec![json!({ "type": "mode", "mode": "normal", "sessionId": id })];
        Self { id: id.to_owned(), cwd: cwd.to_owned(), path, minute, lines, parent: None, records: 0 }
    }

    fn record(&mut self, kind: &str, message: &Value) {
        self.records += 1;
        let uuid = format!("{}-1111-4111-8111-{:012}", &self.id[..8], self.records);
        let time = format!("2026-03-09T14:{:02}:{:02}.000Z", self.minute, self.records);
        let mut record = json!({
            "parentUuid": self.parent, "isSidechain": false, "type": kind, "message": message, "uuid": uuid,
            "timestamp": time, "userType": "external", "entrypoint": "cli", "cwd": self.cwd,
            "sessionId": self.id, "version": "2.1.332", "gitBranch": "main",
        });
        if kind == "assistant" {
            record["requestId"] = json!(format!("req_{}", self.records));
        }
        self.lines.push(record);
        self.parent = Some(uuid);
    }

    fn reply(&mut self, content: &Value) {
        let id = format!("msg_{}_{}", self.id, self.records);
        let usage = json!({
            "input_tokens": 100, "output_tokens": 20,
            "cache_read_input_tokens": 3, "cache_creation_input_tokens": 7,
        });
        self.record("assistant", &json!({
            "model": "claude-opus-5-5", "id": id, "type": "message", "role": "assistant", "content": content,
            "stop_reason": null, "stop_sequence": null, "usage": usage,
        }));
    }

    pub(crate) fn turn(mut self, prompt: &str, answer: &str) -> Self {
        self.record("user", &json!({ "role": "user", "content": prompt }));
        self.reply(&json!([{ "type": "text", "text": answer }]));
        self
    }

    pub(crate) fn tool(mut self, name: &str, file: &str, result: &str) -> Self {
        let call = format!("toolu_{}", self.records);
        self.reply(&json!([{ "type": "thinking", "thinking": "Which file?", "signature": "" }]));
        self.reply(
            &json!([{ "type": "tool_use", "id": call, "name": name, "input": { "file_path": file } }]),
        );
        self.record("user", &json!({
            "role": "user",
            "content": [{ "type": "tool_result", "tool_use_id": call, "content": result, "is_error": false }],
        }));
        self
    }

    pub(crate) fn title(mut self, title: &str) -> Self {
        self.lines.push(json!({ "type": "custom-title", "customTitle": title, "sessionId": self.id }));
        self
    }

    /// What its file holds.
    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    pub(crate) fn write(self) -> PathBuf {
        write(&self.path, &self.text());
        self.path
    }
}

/// A session of Codex with one turn.
pub(crate) fn codex(machine: &Machine, id: &str, cwd: &Path, prompt: &str, answer: &str) -> PathBuf {
    let name = format!("rollout-2026-01-05T08-00-11-{id}.jsonl");
    let path = machine.home.join(".codex/sessions/2026/01/05").join(name);
    let item = |role: &str, kind: &str, text: &str| {
        json!({
            "type": "response_item",
            "payload": { "type": "message", "role": role, "content": [{ "type": kind, "text": text }] },
        })
    };
    let lines = [
        json!({ "type": "session_meta", "payload": {
            "id": id, "session_id": id, "timestamp": "2026-01-05T08:00:11.000Z", "cwd": cwd,
            "originator": "codex_cli_rs", "cli_version": "0.171.0", "source": "cli", "model_provider": "openai",
            "git": { "branch": "main" },
        } }),
        json!({ "type": "turn_context", "payload": { "cwd": cwd, "model": "gpt-5.5-codex" } }),
        item("user", "input_text", prompt),
        json!({ "type": "event_msg", "payload": { "type": "user_message", "message": prompt } }),
        json!({ "type": "event_msg", "payload": { "type": "agent_message", "message": answer } }),
        item("assistant", "output_text", answer),
    ];
    let text: String = lines
        .into_iter()
        .enumerate()
        .map(|(number, mut line)| {
            line["timestamp"] = json!(format!("2026-01-05T08:00:{:02}.000Z", number + 11));
            format!("{line}\n")
        })
        .collect();
    write(&path, &text);
    path
}
