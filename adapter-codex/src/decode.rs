//! A line of output as events.

use std::collections::HashSet;

use session_core::{AgentEvent, Decoder, Final};

use crate::wire::{Item, Line, Tokens, parse, usage};

/// How many tools that have not ended are remembered.
const OPEN_LIMIT: usize = 10_000;

/// The code of the trouble that there is nothing to resume: the run goes on, and ends well (0.171).
pub(crate) const UNSAVED: &str = "transcript_unsaved";

/// What kinds of items are no tools. Whatever else a version may have counts as one: it may have acted.
const NO_TOOLS: &[&str] = &["agent_message", "error", "reasoning", "todo_list"];

type Emit<'e> = &'e mut dyn FnMut(&AgentEvent<'_>);

/// Reads the stream of one attempt.
#[derive(Debug, Default)]
pub(crate) struct CodexDecoder {
    /// Whether the model is known to be called.
    called: bool,
    /// The last message of the agent: no line repeats it at the end.
    answer: String,
    /// Tools that were started and did not end.
    open: HashSet<Box<str>>,
    /// Model calls that were tried again.
    retries: u64,
}

impl CodexDecoder {
    /// The first line of a run. No version tried prints it when it fails to resume, so its id always holds. The model
    /// is asked some 30 ms later (0.130, 0.171), so it counts as called.
    fn started(&mut self, line: &Line<'_>, emit: Emit<'_>) {
        if let Some(id) = line.thread_id.as_ref().map(|id| id.as_str()).filter(|id| !id.is_empty()) {
            emit(&AgentEvent::Session { id });
        }
        self.confirm(emit);
    }

    /// The turn goes on, so the model is called, also where the lines before were lost.
    fn confirm(&mut self, emit: Emit<'_>) {
        if !std::mem::replace(&mut self.called, true) {
            emit(&AgentEvent::ModelCalled);
        }
    }

    fn item(&mut self, event: &str, item: &Item<'_>, emit: Emit<'_>) {
        let kind = item.kind.as_ref().map_or("item", |kind| kind.as_str());
        let completed = event == "item.completed";
        match kind {
            "agent_message" if completed => {
                let text = item.text.as_ref().map_or("", |text| text.as_str());
                text.clone_into(&mut self.answer);
                self.confirm(emit);
                emit(&AgentEvent::Text(text));
            }
            // What the agent warns of; the turn goes on. Printed before the turn, too.
            "error" => match item.message.as_ref().map(|text| text.as_str()) {
                Some(text) if is_unsaved(text) => {
                    emit(&AgentEvent::Trouble { code: UNSAVED, status: None, text });
                }
                _ => emit(&AgentEvent::Other { kind: "warning" }),
            },
            kind if NO_TOOLS.contains(&kind) => {
                self.confirm(emit);
                emit(&AgentEvent::Other { kind });
            }
            kind => {
                self.confirm(emit);
                let id = item.id.as_ref().map_or("", |id| id.as_str());
                let known = if completed { self.open.remove(id) } else { self.open.contains(id) };
                if !known {
                    // 0.63 says of a change of files only that it is done.
                    emit(&AgentEvent::ToolStarted { id, name: kind });
                    if !completed && self.open.len() < OPEN_LIMIT {
                        self.open.insert(id.into());
                    }
                }
                if completed {
                    let status = item.status.as_ref().map_or("", |status| status.as_str());
                    emit(&AgentEvent::ToolFinished { id, is_error: matches!(status, "failed" | "declined") });
                } else if known {
                    emit(&AgentEvent::Other { kind });
                }
            }
        }
    }

    /// Never the end: a try that failed is told by one, too.
    fn error(&mut self, text: &str, emit: Emit<'_>) {
        self.confirm(emit);
        let status = status_in(text);
        if let Some(attempt) = text.strip_prefix("Reconnecting... ") {
            self.retries += 1;
            let number = attempt.split_once('/').and_then(|(number, _)| number.parse().ok());
            emit(&AgentEvent::Retrying { attempt: number.unwrap_or(self.retries), status });
        } else {
            emit(&AgentEvent::Trouble { code: "error", status, text });
        }
    }

    fn completed(&mut self, tokens: Tokens, emit: Emit<'_>) {
        self.confirm(emit);
        emit(&AgentEvent::Finished(&Final {
            kind: "turn.completed".to_owned(),
            text: std::mem::take(&mut self.answer),
            usage: usage(tokens),
            ..Final::default()
        }));
    }

    fn failed(&mut self, text: &str, emit: Emit<'_>) {
        self.confirm(emit);
        emit(&AgentEvent::Finished(&Final {
            kind: "turn.failed".to_owned(),
            is_error: true,
            errors: vec![text.to_owned()],
            api_status: status_in(text),
            ..Final::default()
        }));
    }
}

impl Decoder for CodexDecoder {
    fn line(&mut self, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let Some(parsed) = parse(line) else { return AgentEvent::noise(line, emit) };
        let Some(kind) = parsed.kind.as_ref().map(|kind| kind.as_str()) else {
            return AgentEvent::noise(line, emit);
        };
        let text = |text: Option<&crate::wire::Text<'_>>| {
            text.map_or("the agent did not say", |text| text.as_str()).to_owned()
        };
        match (kind, &parsed.item) {
            ("thread.started", _) => self.started(&parsed, emit),
            ("turn.started", _) => {
                self.confirm(emit);
                emit(&AgentEvent::Other { kind });
            }
            ("turn.completed", _) => self.completed(parsed.usage.unwrap_or_default(), emit),
            ("turn.failed", _) => {
                self.failed(&text(parsed.error.as_ref().and_then(|error| error.message.as_ref())), emit);
            }
            ("error", _) => self.error(&text(parsed.message.as_ref()), emit),
            ("item.started" | "item.updated" | "item.completed", Some(item)) => self.item(kind, item, emit),
            _ => emit(&AgentEvent::Other { kind }),
        }
    }
}

/// Whether the agent says that it could not keep what was said.
fn is_unsaved(text: &str) -> bool {
    text.starts_with("Failed to save the conversation transcript")
}

/// The status in `unexpected status 401 Unauthorized: …` and in `exceeded retry limit, last status: 429 Too Many
/// Requests`: there is no field for it in any version tried.
pub(crate) fn status_in(text: &str) -> Option<u16> {
    let after = |words: &str| text.split_once(words).map(|(_, rest)| rest);
    let digits = after("unexpected status ").or_else(|| after("last status: "))?.get(..3)?;
    digits.parse().ok()
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;

/// What a whole stream amounts to, for tests.
#[cfg(test)]
pub(crate) fn decode_for_tests(stdout: &[u8]) -> session_core::Observation {
    let mut decoder = CodexDecoder::default();
    let mut observation = session_core::Observation::default();
    for line in stdout.split(|byte| *byte == b'\n') {
        decoder.line(line, &mut |event| observation.observe(event));
    }
    observation
}
