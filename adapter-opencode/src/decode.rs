//! A line of output as events.
//!
//! The stream has neither a first line nor a last one: the first possible line says that the model began to answer, and
//! a step that ends with `stop` can be followed by a compaction and more steps (1.2.1, 1.15.13, 1.18.33). So what the
//! run came to is told when the output is over.

use std::collections::HashSet;

use session_core::{AgentEvent, Decoder, Ended, Exit, Final, Turn, Usage, Version};

use crate::wire::{Failure, Line, Part, parse};

/// How many error texts are kept.
const ERRORS_LIMIT: usize = 8;

/// How much text of the answer is kept, in bytes.
const TEXT_LIMIT: usize = 16 << 20;

/// How many parts are known again.
const PARTS_LIMIT: usize = 10_000;

/// How many steps in a row may end with nothing before the run counts as one that never ends: where the provider cuts its
/// stream, 1.1.65, 1.2.1, 1.3.2 and 1.18.33 call the model again and again, without a pause.
const CUT_STEPS: u32 = 5;

/// The kind of the end of such a run.
pub(crate) const STREAM_CUT: &str = "stream_cut";

/// The kind of the end of a run that was told twice in a row that the conversation is too long: no compaction helped.
pub(crate) const OVERFLOW: &str = "context_overflow";

/// The kind of the end of a run that made the conversation shorter, and did not go on.
const COMPACTED: &str = "compacted";

/// The kind of the end of a run whose last word was an error.
pub(crate) const ERROR: &str = "error";

type Emit<'e> = &'e mut dyn FnMut(&AgentEvent<'_>);

/// Reads the stream of one attempt.
#[derive(Debug, Default)]
pub(crate) struct OpencodeDecoder {
    /// Whether `output` leaves the tokens of reasoning out (1.15.13, 1.18.33; 1.1.65 and 1.2.1 count them in).
    reasoning_apart: bool,
    /// Whether it ends with 0 also where it refuses (up to 1.14).
    refuses_with_zero: bool,
    /// The last conversation named.
    named: Option<String>,
    /// Whether the model is known to be called.
    called: bool,
    /// Parts that were told.
    told: HashSet<Box<str>>,
    /// Steps that ended.
    steps: u64,
    /// Steps in a row that ended with nothing.
    cut: u32,
    /// Whether the step under way brought something.
    brought: bool,
    /// Whether the step under way said something.
    spoke: bool,
    /// What the last step that spoke said.
    text: String,
    /// Why the last step ended.
    reason: Option<String>,
    /// Errors since the last step began.
    errors: Vec<String>,
    /// How many of those said that the conversation is too long.
    overflows: u32,
    /// Whether the step under way, or the next one, makes the conversation shorter.
    compacts: bool,
    status: Option<u16>,
    usage: Usage,
    cost: f64,
}

impl OpencodeDecoder {
    fn of(version: Option<&Version>) -> Self {
        Self {
            reasoning_apart: version.is_none_or(|version| version.at_least(1, 15, 13)),
            refuses_with_zero: version.is_some_and(|version| !version.at_least(1, 15, 0)),
            ..Self::default()
        }
    }

    pub(crate) fn new(turn: &Turn<'_>) -> Self {
        Self::of(turn.installation.version.as_ref())
    }

    /// A line that there is only when the model was called: it names the conversation.
    fn confirm(&mut self, line: &Line, emit: Emit<'_>) {
        if let Some(id) = line.session.as_deref().filter(|id| !id.is_empty())
            && self.named.as_deref() != Some(id)
        {
            self.named = Some(id.to_owned());
            emit(&AgentEvent::Session { id });
        }
        if !std::mem::replace(&mut self.called, true) {
            emit(&AgentEvent::ModelCalled);
        }
    }

    /// Whether the part was told before: what it cost, and what it said, is counted once.
    fn is_told_again(&mut self, part: Option<&Part>) -> bool {
        let Some(id) = part.and_then(|part| part.id.as_deref()) else { return false };
        let known = self.told.contains(id);
        if !known && self.told.len() < PARTS_LIMIT {
            self.told.insert(id.into());
        }
        known
    }

    fn step_began(&mut self) {
        (self.brought, self.spoke) = (false, false);
        // The agent went on after what went wrong before.
        self.errors.clear();
        self.overflows = 0;
        self.status = None;
    }

    fn said(&mut self, text: &str, emit: Emit<'_>) {
        if !std::mem::replace(&mut self.spoke, true) {
            self.text.clear();
        }
        self.brought = true;
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let room = TEXT_LIMIT.saturating_sub(self.text.len());
        let end = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        self.text.push_str(&text[..end.unwrap_or(0)]);
        emit(&AgentEvent::Text(text));
    }

    fn tool(&mut self, part: &Part, emit: Emit<'_>) {
        self.brought = true;
        let id = part.call_id.as_deref().unwrap_or_default();
        let name = part.tool.as_deref().unwrap_or_default();
        let status = part.state.as_ref().and_then(|state| state.status.as_deref());
        // The line comes when the tool is done.
        emit(&AgentEvent::ToolStarted { id, name });
        emit(&AgentEvent::ToolFinished { id, is_error: status != Some("completed") });
    }

    fn step_ended(&mut self, part: &Part, emit: Emit<'_>) {
        self.steps += 1;
        // Its end is not that of the answer.
        self.reason =
            if std::mem::take(&mut self.compacts) { Some(COMPACTED.to_owned()) } else { part.reason.clone() };
        if let Some(tokens) = &part.tokens {
            let apart = tokens.reasoning.filter(|_| self.reasoning_apart).unwrap_or(0);
            let cache = |read: fn(&crate::wire::Cache) -> Option<u64>| {
                tokens.cache.as_ref().and_then(read).unwrap_or(0)
            };
            self.usage += Usage {
                input_tokens: tokens.input.unwrap_or(0),
                output_tokens: tokens.output.unwrap_or(0).saturating_add(apart),
                cache_read_tokens: cache(|cache| cache.read),
                cache_write_tokens: cache(|cache| cache.write),
            };
        }
        self.cost += part.cost.filter(|cost| cost.is_finite()).unwrap_or(0.0);
        let ended_well = matches!(self.reason.as_deref(), Some("stop" | "tool-calls"));
        self.cut = if ended_well || self.brought { 0 } else { self.cut + 1 };
        emit(&AgentEvent::Other { kind: "step_finish" });
        if self.cut == CUT_STEPS {
            self.finish(emit);
        }
    }

    fn failed(&mut self, failure: &Failure, line: &Line, emit: Emit<'_>) {
        let data = failure.data.as_ref();
        let code = failure.name.as_deref().unwrap_or("error");
        let status = data.and_then(|data| data.status_code);
        // These come from a call of the model; the rest may come from before it.
        let from_model = matches!(
            code,
            "APIError" | "ContextOverflowError" | "MessageOutputLengthError" | "MessageAbortedError"
        );
        if from_model || status.is_some() {
            self.confirm(line, emit);
        }
        let mut text = data.and_then(|data| data.message.clone()).unwrap_or_else(|| code.to_owned());
        if let Some(reference) = data.and_then(|data| data.reference.as_ref()) {
            text = format!("{text} ({reference})");
        }
        emit(&AgentEvent::Trouble { code, status, text: &text });
        self.status = status.or(self.status);
        if code == "ContextOverflowError" {
            self.overflows += 1;
            self.compacts = true;
        }
        if self.errors.len() < ERRORS_LIMIT && !self.errors.contains(&text) {
            self.errors.push(text);
        }
    }

    fn finish(&self, emit: Emit<'_>) {
        let kind = if self.cut >= CUT_STEPS {
            STREAM_CUT
        } else if self.overflows > 1 {
            OVERFLOW
        } else if self.errors.is_empty() {
            self.reason.as_deref().unwrap_or("unfinished")
        } else {
            ERROR
        };
        emit(&AgentEvent::Finished(&Final {
            kind: kind.to_owned(),
            is_error: matches!(kind, ERROR | OVERFLOW | STREAM_CUT),
            text: self.text.clone(),
            errors: self.errors.clone(),
            api_status: self.status,
            turns: Some(self.steps),
            usage: self.usage,
            cost_usd: (self.steps > 0).then_some(self.cost),
        }));
    }
}

impl Decoder for OpencodeDecoder {
    fn line(&mut self, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)) {
        // A byte order mark is no part of a line.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if line.trim_ascii().is_empty() {
            return;
        }
        let parsed = parse(line);
        let Some((kind, parsed)) = parsed.and_then(|line| Some((line.kind.clone()?, line))) else {
            return AgentEvent::noise(line, emit);
        };
        if self.is_told_again(parsed.part.as_ref()) {
            return emit(&AgentEvent::Other { kind: &kind });
        }
        match (kind.as_str(), &parsed.part, &parsed.error) {
            ("step_start", ..) => {
                self.confirm(&parsed, emit);
                self.step_began();
                emit(&AgentEvent::Other { kind: "step_start" });
            }
            // What the agent puts into the conversation itself.
            ("text", Some(Part { synthetic: Some(true), .. }), _) => {
                emit(&AgentEvent::Other { kind: "synthetic_text" });
            }
            ("text", Some(Part { text: Some(text), .. }), _) => {
                self.confirm(&parsed, emit);
                self.said(text, emit);
            }
            ("tool_use", Some(part), _) => {
                self.confirm(&parsed, emit);
                self.tool(part, emit);
            }
            ("step_finish", Some(part), _) => {
                self.confirm(&parsed, emit);
                self.step_ended(part, emit);
            }
            ("error", _, Some(failure)) => self.failed(failure, &parsed, emit),
            (kind, ..) => {
                if kind == "reasoning" {
                    self.confirm(&parsed, emit);
                    self.brought = true;
                }
                emit(&AgentEvent::Other { kind });
            }
        }
    }

    fn end(&mut self, ended: &Ended<'_>, emit: &mut dyn FnMut(&AgentEvent<'_>)) {
        if !self.called && self.errors.is_empty() && is_silent_end(ended, self.refuses_with_zero) {
            self.called = true;
            emit(&AgentEvent::ModelCalled);
        }
        if self.steps > 0 || !self.errors.is_empty() {
            self.finish(emit);
        }
    }
}

/// What up to 1.14 says when it refuses before it calls the model, and then ends with 0 (1.1.65, 1.2.1).
const REFUSALS: &[&str] =
    &["NotFoundError", "Session not found", "storage/session/", "ZodError", "SyntaxError", "SQLITE_"];

/// Whether a process of which nothing was heard may have called the model all the same: it was ended, as nothing is said
/// before the answer; or it ended well, as 1.15.13 does when it works in another folder, and as the launcher of 1.1.65 and
/// 1.2.1 does when the program below it is killed. Only a reason that is known proves the contrary there, as the agent and
/// its plugins write other lines, too. One that ends badly and has not called the model gives some reason.
fn is_silent_end(ended: &Ended<'_>, refuses_with_zero: bool) -> bool {
    let mut lines = ended.stderr_tail.lines().filter(|line| is_own_word(line));
    match ended.exit {
        Exit::Code(0) => {
            let refused = lines.any(|line| REFUSALS.iter().any(|refusal| line.contains(refusal)));
            !(refuses_with_zero && refused)
        }
        // From 128 on it is a signal, told by a launcher.
        Exit::Code(code) if code < 128 => lines.next().is_none(),
        Exit::Code(_) | Exit::Signal(_) | Exit::Unknown => true,
    }
}

/// Whether the line is more than what there may be in any run: what 1.2 to 1.15 say at a start with a new data folder, lines
/// of the log (without a network 1.1.65 and 1.2.1 write one on each start), and warnings of the runtime.
fn is_own_word(line: &str) -> bool {
    const OTHERS: &[&str] = &[
        "Performing one time database migration",
        "sqlite-migration:",
        "Database migration complete",
        " service=",
        "Warning:",
        "(Use `node --trace-",
        "permission requested: ",
    ];
    !line.trim().is_empty() && !OTHERS.iter().any(|other| line.contains(other))
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;

/// What a whole stream amounts to, for tests.
#[cfg(test)]
pub(crate) fn decode_for_tests(version: &str, stdout: &[u8], ended: &Ended<'_>) -> session_core::Observation {
    let version = session_core::Version::parse(version);
    let mut decoder = OpencodeDecoder::of(version.as_ref());
    let mut observation = session_core::Observation::default();
    for line in stdout.split(|byte| *byte == b'\n') {
        decoder.line(line, &mut |event| observation.observe(event));
    }
    decoder.end(ended, &mut |event| observation.observe(event));
    observation
}
