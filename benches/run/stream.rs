//! stream-json as Claude Code prints it, the same bytes every time.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde_json::json;

/// A small linear congruential generator: the benchmark needs variety, not randomness.
struct Numbers(u64);

impl Numbers {
    const fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn words(&mut self, count: u64) -> String {
        const WORDS: [&str; 12] = [
            "session", "token", "parser", "cache", "store", "lease", "retry", "worker", "branch", "merge",
            "fixture", "schema",
        ];
        (0..count).map(|_| WORDS[usize::try_from(self.next(12)).unwrap()]).collect::<Vec<_>>().join(" ")
    }
}

/// Writes an init line, so many messages of which so many in ten are partial deltas, and the result.
pub(crate) fn write(file: &Path, count: u64, deltas_in_ten: u64) {
    let mut numbers = Numbers(1);
    let id = "11111111-1111-4111-8111-111111111111";
    let mut out = BufWriter::new(std::fs::File::create(file).unwrap());
    let mut line = |value: serde_json::Value| writeln!(out, "{value}").unwrap();
    line(json!({ "type": "system", "subtype": "init", "cwd": "/home/dev/work", "session_id": id,
        "tools": ["Bash", "Read", "Edit"], "mcp_servers": [], "model": "claude-opus-4-6",
        "permissionMode": "default", "claude_code_version": "2.1.240", "uuid": id }));
    let mut tool = 0;
    for at in 0..count {
        if numbers.next(10) < deltas_in_ten {
            line(json!({ "type": "stream_event", "uuid": id, "session_id": id, "parent_tool_use_id": null,
                "event": { "type": "content_block_delta", "index": 0,
                    "delta": { "type": "text_delta", "text": numbers.words(4) } } }));
            continue;
        }
        let usage = json!({ "input_tokens": numbers.next(9), "cache_creation_input_tokens": numbers.next(4000),
            "cache_read_input_tokens": numbers.next(90_000), "output_tokens": numbers.next(900) });
        let content = match at % 3 {
            0 => {
                let length = 20 + numbers.next(180);
                json!([{ "type": "text", "text": numbers.words(length) }])
            }
            1 => {
                tool = numbers.next(u64::MAX);
                json!([{ "type": "tool_use", "id": format!("toolu_{tool:023x}"), "name": "Bash",
                    "input": { "command": numbers.words(9), "description": numbers.words(5) } }])
            }
            _ => {
                let length = 20 + numbers.next(480);
                json!([{ "tool_use_id": format!("toolu_{tool:023x}"), "type": "tool_result",
                    "content": numbers.words(length), "is_error": false }])
            }
        };
        let (kind, message) = if at % 3 == 2 {
            ("user", json!({ "role": "user", "content": content }))
        } else {
            let message = json!({ "model": "claude-opus-4-6", "id": format!("msg_{:023x}", numbers.next(u64::MAX)),
                "type": "message", "role": "assistant", "content": content, "stop_reason": null, "usage": usage });
            ("assistant", message)
        };
        line(
            json!({ "type": kind, "message": message, "parent_tool_use_id": null, "session_id": id, "uuid": id }),
        );
    }
    line(
        json!({ "type": "result", "subtype": "success", "is_error": false, "duration_ms": 10, "num_turns": 1,
        "result": "done", "session_id": id, "total_cost_usd": 0.01, "permission_denials": [], "uuid": id,
        "usage": { "input_tokens": 1, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 1,
            "output_tokens": 1 } }),
    );
    out.flush().unwrap();
}
