//! A line of output as events.

use std::borrow::Cow;
use std::collections::HashSet;

use session_core::{AgentEvent, Decoder, Final, Mode, NativeId, Usage};

use crate::verdict::is_not_found;
use crate::wire::{Line, Message, More, parse};

/// How many messages of a compaction are remembered.
const PRESERVED_LIMIT: usize = 10_000;

type Emit<'e> = &'e mut dyn FnMut(&AgentEvent<'_>);

/// Reads the stream of one attempt.
#[derive(Debug)]
pub(crate) struct ClaudeDecoder {
    /// The id that the conversation must have, where that is known.
    expected: Option<NativeId>,
    /// Whether a session was to be continued or forked: only then may a start turn out to have failed.
    continues: bool,
    /// The id of an init line that nothing has confirmed yet.
    held: Option<Box<str>>,
    /// Whether there was an init line.
    began: bool,
    /// Whether the conversation was named.
    named: bool,
    /// Whether the model is known to be called.
    called: bool,
    /// Whether the last line that matters was an init line.
    just_began: bool,
    /// Whether the attempt failed before it began: what comes after it names no conversation.
    failed: bool,
    /// Messages that a compaction prints again.
    preserved: HashSet<Box<str>>,
}

impl ClaudeDecoder {
    pub(crate) fn new(mode: Mode<'_>) -> Self {
        let (expected, continues) = match mode {
            Mode::Fresh { id } => (id, false),
            Mode::Resume { id } => (Some(id), true),
            Mode::Fork { id, .. } => (id, true),
        };
        Self {
            expected: expected.cloned(),
            continues,
            held: None,
            began: false,
            named: false,
            called: false,
            just_began: false,
            failed: false,
            preserved: HashSet::new(),
        }
    }

    /// The first line of a turn. The model is asked 30 to 60 ms later (2.0.14, 2.1.197, 2.1.332), so it counts as
    /// called. An id that is not the expected one is held back until the turn goes on: versions were seen
    /// that print the init line of a throw-away session while they fail to resume.
    fn init(&mut self, line: &Line<'_>, emit: Emit<'_>) {
        self.release(emit);
        let more = line.more();
        if let Some(id) =
            more.session_id.as_ref().map(|id| id.as_str()).filter(|id| !id.is_empty() && !self.failed)
        {
            if self.continues && self.expected.as_ref().is_none_or(|expected| expected.as_str() != id) {
                self.held = Some(id.into());
            } else {
                self.named = true;
                emit(&AgentEvent::Session { id });
            }
        }
        self.began = true;
        self.just_began = true;
        if !std::mem::replace(&mut self.called, true) {
            emit(&AgentEvent::ModelCalled);
        }
    }

    /// The turn goes on: the id of its init line holds, and the model is called, also where the init line was lost.
    fn confirm(&mut self, emit: Emit<'_>) {
        self.release(emit);
        if !std::mem::replace(&mut self.called, true) {
            emit(&AgentEvent::ModelCalled);
        }
    }

    fn release(&mut self, emit: Emit<'_>) {
        self.just_began = false;
        if let Some(id) = self.held.take() {
            self.named = true;
            emit(&AgentEvent::Session { id: &id });
        }
    }

    fn system(&mut self, line: &Line<'_>, emit: Emit<'_>) {
        let more = line.more();
        let subtype = more.subtype.as_ref().map_or("system", |subtype| subtype.as_str());
        match subtype {
            "init" => self.init(line, emit),
            "api_retry" => {
                self.confirm(emit);
                emit(&AgentEvent::Retrying { attempt: more.attempt.unwrap_or(1), status: more.error_status });
            }
            // `requesting`, right before the model is asked (2.1.332).
            "status" => {
                self.confirm(emit);
                emit(&AgentEvent::Other { kind: subtype });
            }
            "compact_boundary" => {
                let preserved =
                    more.compact_metadata.as_ref().and_then(|data| data.preserved_messages.as_ref());
                let uuids = preserved.into_iter().flat_map(|messages| &messages.all_uuids);
                let room = PRESERVED_LIMIT.saturating_sub(self.preserved.len());
                self.preserved.extend(uuids.take(room).map(|uuid| Box::from(uuid.as_str())));
                self.confirm(emit);
                emit(&AgentEvent::Other { kind: subtype });
            }
            _ => emit(&AgentEvent::Other { kind: subtype }),
        }
    }

    fn assistant(&mut self, line: &Line<'_>, emit: Emit<'_>) {
        let Some(message) = &line.message else { return emit(&AgentEvent::Other { kind: "assistant" }) };
        if self.is_old(line) {
            return emit(&AgentEvent::Other { kind: "replayed_assistant" });
        }
        self.confirm(emit);
        let is_sub = line.parent_tool_use_id.is_some();
        let synthetic = message.model.as_ref().is_some_and(|model| model.as_str() == "<synthetic>");
        if synthetic || line.error.is_some() {
            return trouble(line, message, is_sub, emit);
        }
        for block in &message.content.0 {
            if block.is("text") {
                match block.text.as_ref().map(|text| text.as_str()) {
                    Some(text) if !is_sub => emit(&AgentEvent::Text(text)),
                    _ => emit(&AgentEvent::Other { kind: "subagent_text" }),
                }
            } else if block.kind.as_ref().is_some_and(|kind| kind.as_str().ends_with("tool_use")) {
                let id = block.id.as_ref().map_or("", |id| id.as_str());
                let name = block.name.as_ref().map_or("", |name| name.as_str());
                emit(&AgentEvent::ToolStarted { id, name });
            } else if block.kind.as_ref().is_some_and(|kind| kind.as_str().ends_with("tool_result")) {
                // A tool that the provider ran.
                let id = block.tool_use_id.as_ref().map_or("", |id| id.as_str());
                emit(&AgentEvent::ToolFinished { id, is_error: block.is_error == Some(true) });
            } else {
                emit(&AgentEvent::Other { kind: block.kind.as_ref().map_or("block", |kind| kind.as_str()) });
            }
        }
    }

    fn user(&mut self, line: &Line<'_>, emit: Emit<'_>) {
        let old = self.is_old(line);
        if !old {
            self.confirm(emit);
        }
        let results = line.message.iter().flat_map(|message| &message.content.0);
        let mut any = false;
        for block in results.filter(|block| !old && block.is("tool_result")) {
            any = true;
            let id = block.tool_use_id.as_ref().map_or("", |id| id.as_str());
            emit(&AgentEvent::ToolFinished { id, is_error: block.is_error == Some(true) });
        }
        if !any {
            emit(&AgentEvent::Other { kind: if old { "replayed_user" } else { "user" } });
        }
    }

    /// Whether the line repeats something from before this turn.
    fn is_old(&self, line: &Line<'_>) -> bool {
        line.is_replay == Some(true)
            || line.uuid.as_ref().is_some_and(|uuid| self.preserved.contains(uuid.as_str()))
    }

    fn result(&mut self, line: &Line<'_>, emit: Emit<'_>) {
        if self.never_began(line) {
            self.held = None;
            self.failed = true;
            if self.just_began {
                self.called = false;
                emit(&AgentEvent::Retracted);
            }
            self.just_began = false;
        } else {
            self.end(line, emit);
        }
        let more = line.more();
        let text = |text: &crate::wire::Text<'_>| text.as_str().to_owned();
        let tokens = more.usage.unwrap_or_default();
        emit(&AgentEvent::Finished(&Final {
            kind: more.subtype.as_ref().map(text).unwrap_or_default(),
            is_error: more.is_error.unwrap_or(false),
            text: more.result.as_ref().map(text).unwrap_or_default(),
            errors: more.errors.iter().flatten().map(text).collect(),
            api_status: line.api_error_status,
            turns: more.num_turns,
            usage: Usage {
                input_tokens: tokens.input_tokens.unwrap_or(0),
                output_tokens: tokens.output_tokens.unwrap_or(0),
                cache_read_tokens: tokens.cache_read_input_tokens.unwrap_or(0),
                cache_write_tokens: tokens.cache_creation_input_tokens.unwrap_or(0),
            },
            cost_usd: more.total_cost_usd,
        }));
    }

    /// A result of a turn that was under way. Where its init line was lost, a success names the conversation, too.
    fn end(&mut self, line: &Line<'_>, emit: Emit<'_>) {
        let more = line.more();
        let succeeded = more.is_error != Some(true)
            && more.subtype.as_ref().is_some_and(|kind| kind.as_str() == "success");
        if succeeded || self.began || !is_silent(more) {
            self.confirm(emit);
        }
        let id = more.session_id.as_ref().map(|id| id.as_str()).filter(|id| !id.is_empty());
        if let Some(id) = id.filter(|_| succeeded && !self.named) {
            self.named = true;
            emit(&AgentEvent::Session { id });
        }
    }

    /// Whether this result says that the session could not be continued, before anything was done: an error
    /// without a turn, a token or a call to the model, that comes first of all or right after the init line of
    /// another conversation than the one asked for. Everything counts, because a fallback hangs on it:
    /// 2.0.14 ends a turn whose stream was dropped with `num_turns: 0`, too (but not as an error).
    fn never_began(&self, line: &Line<'_>) -> bool {
        let more = line.more();
        let fails = more.is_error == Some(true)
            && more.subtype.as_ref().is_some_and(|kind| kind.as_str() == "error_during_execution");
        let errors = more.errors.as_deref().unwrap_or_default();
        let names_it = errors.is_empty() || errors.iter().any(|error| is_not_found(error.as_str()));
        let foreign = self.just_began && self.held.is_some() && names_it;
        self.continues && fails && is_silent(more) && (foreign || !self.began)
    }
}

impl Decoder for ClaudeDecoder {
    fn line(&mut self, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let Some(parsed) = parse(line) else { return AgentEvent::noise(line, emit) };
        let Some(kind) = parsed.kind.as_ref().map(|kind| kind.as_str()) else {
            return AgentEvent::noise(line, emit);
        };
        match kind {
            "system" => self.system(&parsed, emit),
            "assistant" => self.assistant(&parsed, emit),
            "user" => self.user(&parsed, emit),
            "result" => self.result(&parsed, emit),
            "stream_event" => {
                self.confirm(emit);
                let delta = parsed.event.as_ref().and_then(|event| event.delta.as_ref());
                let is_text =
                    |kind: Option<&crate::wire::Text<'_>>| kind.is_some_and(|kind| kind.0 == "text_delta");
                match delta.filter(|delta| is_text(delta.kind.as_ref())).and_then(|delta| delta.text.as_ref())
                {
                    Some(text) if parsed.parent_tool_use_id.is_none() => {
                        emit(&AgentEvent::TextDelta(text.as_str()))
                    }
                    _ => emit(&AgentEvent::Other { kind }),
                }
            }
            "rate_limit_event" => {
                let status = parsed.more().rate_limit_info.as_ref().and_then(|info| info.status.as_ref());
                if status.is_some_and(|status| status.as_str() == "rejected") {
                    self.confirm(emit);
                    let text = "the usage limit is reached";
                    emit(&AgentEvent::Trouble { code: "rate_limit", status: None, text });
                } else {
                    emit(&AgentEvent::Other { kind });
                }
            }
            kind => emit(&AgentEvent::Other { kind }),
        }
    }
}

/// Whether a result shows no trace of a call to the model.
fn is_silent(more: &More<'_>) -> bool {
    let tokens = more.usage.unwrap_or_default();
    more.num_turns.unwrap_or(0) == 0
        && more.duration_api_ms.unwrap_or(0.0) == 0.0
        && tokens.input_tokens.unwrap_or(0) == 0
        && tokens.output_tokens.unwrap_or(0) == 0
        && more.terminal_reason.is_none()
}

/// An answer that the agent made up itself, to tell of an error.
fn trouble(line: &Line<'_>, message: &Message<'_>, is_sub: bool, emit: Emit<'_>) {
    if is_sub {
        return emit(&AgentEvent::Other { kind: "subagent_trouble" });
    }
    let texts: Vec<_> = message.content.0.iter().filter_map(|block| block.text.as_ref()).collect();
    let text = match texts.as_slice() {
        [text] => Cow::Borrowed(text.as_str()),
        texts => Cow::Owned(texts.iter().map(|text| text.as_str()).collect::<Vec<_>>().join("\n")),
    };
    let code = line.error.as_ref().map_or("synthetic", |code| code.as_str());
    emit(&AgentEvent::Trouble { code, status: line.api_error_status, text: &text });
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;

/// What a whole stream amounts to, for tests.
#[cfg(test)]
pub(crate) fn decode_for_tests(asked: &session_core::Asked, stdout: &[u8]) -> session_core::Observation {
    use session_core::Asked;
    let mode = match asked {
        Asked::Fresh(id) => Mode::Fresh { id: id.as_ref() },
        Asked::Resume(id) => Mode::Resume { id },
        Asked::Fork(source) => Mode::Fork { source, transcript: None, id: None },
    };
    let mut decoder = ClaudeDecoder::new(mode);
    let mut observation = session_core::Observation::default();
    for line in stdout.split(|byte| *byte == b'\n') {
        decoder.line(line, &mut |event| observation.observe(event));
    }
    observation
}
