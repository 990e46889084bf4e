//! The lines and records of one turn, with the fields that readers rely on.

use serde_json::{Value, json};
use uuid::Uuid;

/// What one turn costs, in US dollars.
pub(super) const TURN_COST: f64 = 0.01;

/// The milliseconds that a turn claims to take.
const DURATION_MS: u64 = 12;

pub(super) fn new_uuid() -> String {
    Uuid::new_v4().to_string()
}

pub(super) fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// The tokens of `calls` calls of the model.
pub(super) fn usage(calls: u64) -> Value {
    json!({
        "input_tokens": 100 * calls,
        "output_tokens": 20 * calls,
        "cache_creation_input_tokens": 7 * calls,
        "cache_read_input_tokens": 3 * calls,
    })
}

/// The usage of a session after `calls` more calls of this model.
pub(super) fn add_model_usage(mut usage: Value, model: &str, calls: u64, cost: f64) -> Value {
    let old = usage[model].take();
    let tokens = |name: &str, each: u64| old[name].as_u64().unwrap_or(0) + each * calls;
    usage[model] = json!({
        "inputTokens": tokens("inputTokens", 100),
        "outputTokens": tokens("outputTokens", 20),
        "cacheReadInputTokens": tokens("cacheReadInputTokens", 3),
        "cacheCreationInputTokens": tokens("cacheCreationInputTokens", 7),
        "thinkingTokens": 0,
        "cacheCreationEphemeral5mInputTokens": 0,
        "cacheCreationEphemeral1hInputTokens": 0,
        "webSearchRequests": 0,
        "costUSD": old["costUSD"].as_f64().unwrap_or(0.0) + cost,
    });
    usage
}

pub(super) fn title_changed(id: &str, title: &str) -> Value {
    json!({
        "type": "system",
        "subtype": "session_title_changed",
        "title": title,
        "uuid": new_uuid(),
        "session_id": id,
    })
}

pub(super) fn init(id: &str, cwd: &str, model: &str, version: &str) -> Value {
    json!({
        "type": "system",
        "subtype": "init",
        "cwd": cwd,
        "session_id": id,
        "tools": ["Task", "Bash", "Edit", "Read", "Write"],
        "mcp_servers": [],
        "model": model,
        "permissionMode": "default",
        "slash_commands": [],
        "apiKeySource": "ANTHROPIC_API_KEY",
        "claude_code_version": version,
        "output_style": "default",
        "agents": [],
        "skills": [],
        "plugins": [],
        "uuid": new_uuid(),
        "original_cwd": cwd,
    })
}

/// The message of the assistant with one block.
pub(super) fn message(model: &str, block: &Value, stop_reason: Option<&str>) -> Value {
    json!({
        "id": format!("msg_{}", Uuid::new_v4().simple()),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block],
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage(1),
    })
}

/// A line for a message which is also a record.
pub(super) fn message_line(kind: &str, id: &str, uuid: &str, message: &Value) -> Value {
    json!({
        "type": kind,
        "message": message,
        "parent_tool_use_id": null,
        "session_id": id,
        "uuid": uuid,
        "timestamp": now(),
    })
}

/// The end of a turn that was answered.
#[derive(Debug)]
pub(super) struct Answered<'a> {
    pub(super) id: &'a str,
    pub(super) text: &'a str,
    pub(super) model_calls: u64,
    pub(super) total_cost: f64,
    pub(super) model_usage: &'a Value,
}

impl Answered<'_> {
    pub(super) fn result(&self) -> Value {
        json!({
            "type": "result",
            "subtype": "success",
            "is_error": false,
            "api_error_status": null,
            "duration_ms": DURATION_MS,
            "duration_api_ms": DURATION_MS,
            "num_turns": self.model_calls,
            "result": self.text,
            "stop_reason": "end_turn",
            "session_id": self.id,
            "total_cost_usd": self.total_cost,
            "usage": usage(self.model_calls),
            "modelUsage": self.model_usage,
            "permission_denials": [],
            "terminal_reason": "completed",
            "uuid": new_uuid(),
        })
    }
}

/// The record of what a session cost so far, complete enough for the real CLI to go on from it.
pub(super) fn cost_state(id: &str, total_cost: f64, model_usage: &Value) -> Value {
    json!({
        "type": "cost-state",
        "sessionId": id,
        "totalCostUSD": total_cost,
        "totalAPIDuration": DURATION_MS,
        "totalAPIDurationWithoutRetries": DURATION_MS,
        "totalToolDuration": 0,
        "totalLinesAdded": 0,
        "totalLinesRemoved": 0,
        "totalDuration": DURATION_MS,
        "startTime": jiff::Timestamp::now().as_millisecond(),
        "modelUsage": model_usage,
        "hasUnknownModelCost": false,
    })
}

/// The only line of a resume that failed.
pub(super) fn failed_resume(id: &str, error: &str) -> Value {
    json!({
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": true,
        "duration_ms": 0,
        "duration_api_ms": 0,
        "num_turns": 0,
        "stop_reason": null,
        "session_id": id,
        "total_cost_usd": 0,
        "usage": usage(0),
        "modelUsage": {},
        "permission_denials": [],
        "uuid": new_uuid(),
        "errors": [error],
        "result_index": 0,
    })
}
