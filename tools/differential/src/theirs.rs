//! What `agent-sessions` finds.

use std::path::Path;

use agent_sessions::{Agent, Event, ReadOptions, Role, StreamError, TailMode, read_from};

use crate::{By, Found, squeeze};

pub(crate) fn read(agent: &str, path: &Path) -> Found {
    let agent = if agent == "claude" { Agent::ClaudeCode } else { Agent::Codex };
    let mut options = ReadOptions::default();
    (options.max_file_bytes, options.max_line_bytes) = (None, Some(32 << 20));
    options.tail = TailMode::AllowIncomplete;
    let file = std::io::BufReader::new(std::fs::File::open(path).expect("the walk found it"));
    let mut found = Found::default();
    let reader = read_from(agent, file, &options).expect("the options are valid");
    for event in reader {
        let event = match event {
            Ok(event) => event,
            Err(StreamError::Line { byte_start, .. }) => {
                found.refused.push(byte_start);
                continue;
            }
            Err(error) => panic!("{}: {error}", path.display()),
        };
        let offset = event.location.byte_start;
        match event.value {
            Event::Message(message) => {
                let by = match message.role {
                    Role::User => By::User,
                    Role::Assistant => By::Agent,
                    _ => continue,
                };
                let line = found.lines.entry(offset).or_default();
                (line.by, line.text) = (Some(by), squeeze(&message.text));
            }
            Event::ToolCall(call) => {
                let call = (call.id.unwrap_or_default(), call.name);
                found.lines.entry(offset).or_default().calls.push(call);
            }
            Event::ToolResult(result) => {
                found.lines.entry(offset).or_default().results.push(result.call_id.unwrap_or_default());
            }
            Event::Usage(usage) => {
                let Some(key) = usage.dedup_key else { continue };
                let id = key.split_once(':').map_or(key.as_str(), |(_, id)| id).to_owned();
                let counts = usage.counts;
                let tokens = [counts.input, counts.output, counts.cache_read, counts.cache_write];
                let tokens = tokens.map(Option::unwrap_or_default);
                let known = found.replies.entry(id).or_default();
                // Of several lines of a reply, the one with most is whole.
                if tokens[1] >= known[1] {
                    *known = tokens;
                }
            }
            _ => {}
        }
    }
    found
}
