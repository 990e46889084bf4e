//! What a line is, in full.

use serde::Deserialize as _;
use serde_json::Value;
use session_core::RecordKind;
use session_core::history::{Block, Entry, EntryKind, RawTime};

use super::record::Record;
use crate::wire::{Tokens, usage};

/// Records that are no part of the talk.
const NOTES: &[&str] = &["session_meta", "turn_context", "world_state", "token_usage_record"];

/// Events that are no part of the talk, or tell again what another record tells.
const EVENTS: &[&str] = &[
    "agent_message",
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "background_event",
    "context_compacted",
    "entered_review_mode",
    "error",
    "exec_command_begin",
    "exec_command_end",
    "exited_review_mode",
    "item_completed",
    "item_started",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
    "patch_apply_begin",
    "patch_apply_end",
    "plan_update",
    "stream_error",
    "task_complete",
    "task_started",
    "thread_rolled_back",
    "thread_settings_applied",
    "token_count",
    "turn_aborted",
    "turn_diff",
    "undo_completed",
    "user_message",
    "view_image_tool_call",
    "warning",
    "web_search_begin",
    "web_search_end",
];

/// How many values a tree may hold: some megabytes.
const NODES: usize = 32 << 10;

pub(super) fn entry(line: &[u8]) -> Option<Entry> {
    let record = Record::parse(line)?;
    let time = record.timestamp.0.as_ref().and_then(RawTime::read);
    let value = tree(line);
    let payload = &value["payload"];
    let mut entry = Entry { time, ..Entry::new(kind(&record, payload, &value)) };
    entry.id = text(payload, &["id", "call_id", "response_id", "turn_id"]);
    match record.kind() {
        "turn_context" => entry.model = text(payload, &["model"]),
        "token_usage_record" => {
            entry.reply = text(payload, &["response_id"]);
            entry.usage = Tokens::deserialize(&payload["usage"]).ok().map(usage);
        }
        "response_item" => entry.meta = text(payload, &["type"]).as_deref() == Some("message"),
        _ => entry.meta = record.is_injected(),
    }
    Some(entry)
}

/// The line as a tree; one that would take too much memory stays the text that it is.
fn tree(line: &[u8]) -> Value {
    if line.len() > NODES && nodes(line) > NODES {
        return Value::String(String::from_utf8_lossy(line).into_owned());
    }
    // What is not UTF-8 was made good by the reader of records, where it is read at all.
    serde_json::from_slice(line)
        .or_else(|_| serde_json::from_str(&String::from_utf8_lossy(line)))
        .unwrap_or(Value::Null)
}

/// How many values there are at the most: what stands inside of texts is none.
fn nodes(line: &[u8]) -> usize {
    let (mut nodes, mut inside, mut escaped) = (0, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = inside,
            b'"' => inside = !inside,
            b',' | b'[' | b'{' if !inside => nodes += 1,
            _ => {}
        }
    }
    nodes
}

fn kind(record: &Record<'_>, payload: &Value, whole: &Value) -> EntryKind {
    let name = payload["type"].as_str().unwrap_or_default();
    let unknown = |name: &str| EntryKind::Unknown { name: name.to_owned(), record: whole.clone() };
    match (record.kind(), record.what()) {
        (_, RecordKind::Prompt) => EntryKind::Prompt(said(record, payload)),
        (_, RecordKind::Answer) => EntryKind::Reply(said(record, payload)),
        ("compacted", _) => match payload["message"].as_str().filter(|summary| !summary.is_empty()) {
            Some(summary) => EntryKind::CompactSummary(summary.to_owned()),
            None => EntryKind::Boundary,
        },
        ("response_item", _) => item(name, payload).unwrap_or_else(|| unknown(name)),
        ("event_msg", _) if name == "item_completed" => {
            EntryKind::Note(format!("item_completed {}", record.event().1))
        }
        ("event_msg", _) if EVENTS.contains(&name) => EntryKind::Note(name.to_owned()),
        ("event_msg", _) => unknown(name),
        (kind, _) if NOTES.contains(&kind) => EntryKind::Note(kind.to_owned()),
        (kind, _) => unknown(kind),
    }
}

/// The words of a prompt or reply, and what came with them.
fn said(record: &Record<'_>, payload: &Value) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(items) = payload["item"]["content"].as_array() {
        blocks.extend(items.iter().map(|item| match (item["text"].as_str(), item["type"].as_str()) {
            (Some(text), _) => Block::Text(text.to_owned()),
            (None, Some(media)) if media.to_ascii_lowercase().contains("image") => {
                Block::Attachment { media: media.to_owned() }
            }
            _ => Block::Other(item.clone()),
        }));
    } else {
        let text = record.text();
        if !text.is_empty() {
            blocks.push(Block::Text(text));
        }
    }
    let images = ["images", "local_images"].iter().filter_map(|list| payload[list].as_array());
    blocks.extend(images.flatten().map(|_| Block::Attachment { media: "image".to_owned() }));
    blocks
}

/// What goes to the model and comes from it. Its messages are told by events, too, and are notes here.
fn item(name: &str, payload: &Value) -> Option<EntryKind> {
    let call = |input: Value| {
        let id = text(payload, &["call_id", "id"]).unwrap_or_default();
        let name = text(payload, &["name"]).unwrap_or_else(|| name.to_owned());
        EntryKind::Reply(vec![Block::ToolCall { id, name, input }])
    };
    Some(match name {
        "message" => EntryKind::Note(format!("message {}", payload["role"].as_str().unwrap_or_default())),
        "ghost_snapshot" => EntryKind::Note(name.to_owned()),
        "reasoning" => EntryKind::Reply(thoughts(payload)),
        "function_call" => {
            let arguments = payload["arguments"].as_str().unwrap_or_default();
            call(serde_json::from_str(arguments).unwrap_or_else(|_| payload["arguments"].clone()))
        }
        "custom_tool_call" => call(payload["input"].clone()),
        "local_shell_call" => call(payload["action"].clone()),
        // It has its result in itself.
        "web_search_call" | "image_generation_call" => EntryKind::Reply(vec![Block::Other(payload.clone())]),
        "function_call_output" | "custom_tool_call_output" => {
            let id = text(payload, &["call_id"]).unwrap_or_default();
            let (text, failed) = output(&payload["output"]);
            EntryKind::Returned(vec![Block::ToolResult { id, text, failed }])
        }
        _ => return None,
    })
}

fn thoughts(payload: &Value) -> Vec<Block> {
    let lists = ["summary", "content"].iter().filter_map(|list| payload[list].as_array());
    let texts = lists.flatten().filter_map(|item| item["text"].as_str());
    texts.map(|text| Block::Thinking(text.to_owned())).collect()
}

/// What a tool returned: a text, which may be an object in itself, or parts.
fn output(output: &Value) -> (String, bool) {
    match output {
        Value::String(text) => {
            let inner: Option<Value> =
                text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten();
            let code = inner.as_ref().and_then(|inner| inner["metadata"]["exit_code"].as_i64());
            let words = inner.as_ref().filter(|_| code.is_some()).and_then(|inner| inner["output"].as_str());
            (words.unwrap_or(text).to_owned(), code.is_some_and(|code| code != 0))
        }
        Value::Array(parts) => {
            let texts: Vec<_> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            (texts.join("\n"), false)
        }
        Value::Object(fields) => {
            let failed = fields.get("success").and_then(Value::as_bool) == Some(false);
            (self::output(&output["content"]).0, failed)
        }
        _ => (String::new(), false),
    }
}

/// The first of these fields that is a text.
fn text(payload: &Value, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| payload[name].as_str()).map(str::to_owned)
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
