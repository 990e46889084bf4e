//! What a line is, in short.

use std::borrow::Cow;

use session_core::history::{
    Ancestor, Descent, HistoryBase, LineFacts, LineRole, SessionKind, Title, TitleSource,
};
use session_core::{NativeId, RecordKind};

use super::is_thread_id;
use super::record::{Payload, Record, Source, words};
use crate::wire::{Fields, Text, usage};

/// Tools' results and reasoning are no messages of the talk, and are not told: most of a file are such, and need not be looked
/// at again.
pub(super) fn facts(line: &[u8]) -> Option<LineFacts<'_>> {
    let mut record = Record::parse(line)?;
    let mut facts = LineFacts { time: record.timestamp.0.take(), ..LineFacts::default() };
    facts.meta = record.is_injected();
    if record.is_header() || record.kind() == "turn_context" {
        facts.cwd = filled(record.payload.cwd.take());
    }
    facts.role = match (record.kind(), record.what()) {
        ("session_meta", _) => {
            facts.branch = filled(record.payload.git.take().and_then(|git| git.branch));
            let (parent, kind) = origin(&record.payload);
            LineRole::Header { id: filled(record.payload.id.take()), parent, kind }
        }
        ("turn_context", _) => filled(record.payload.model.take()).map_or(LineRole::Other, LineRole::Model),
        ("compacted", _) => LineRole::Boundary,
        ("token_usage_record", _) => record
            .payload
            .thread_token_usage
            .map_or(LineRole::Other, |total| LineRole::RunningTotal(usage(total))),
        (_, RecordKind::Prompt) => {
            LineRole::Prompt { text: record.into_text(), command: false, queued: false }
        }
        (_, RecordKind::Answer) => LineRole::Reply { reply: None, usage: None, model: None },
        ("event_msg", RecordKind::Other) => event(&record),
        _ => LineRole::Other,
    };
    Some(facts)
}

fn event(record: &Record<'_>) -> LineRole<'static> {
    match record.event() {
        ("token_count", _) => match &record.payload.info {
            Some(info) => {
                info.total_token_usage.map_or(LineRole::Other, |total| LineRole::RunningTotal(usage(total)))
            }
            // Nothing is counted yet: by the first process of a session, and by every one of a version before 0.80.
            None => LineRole::CountsAnew,
        },
        ("thread_rolled_back", _) => LineRole::RolledBack(record.payload.num_turns.unwrap_or(0)),
        // A prompt that nobody typed.
        ("user_message", _) | ("item_completed", "UserMessage") => LineRole::Returned,
        _ => LineRole::Other,
    }
}

fn filled(text: Option<Text<'_>>) -> Option<Cow<'_, str>> {
    text.map(|text| text.0).filter(|text| !text.is_empty())
}

/// Where a session comes from, and of which kind it is.
fn origin(header: &Payload<'_>) -> (Option<Ancestor>, SessionKind) {
    let spawned_by = match &header.source {
        Source::Subagent(parent) => parent.as_ref(),
        _ => None,
    };
    let is_helper =
        matches!(header.source, Source::Subagent(_)) || words(header.thread_source.as_ref()) == "subagent";
    let id =
        |text: Option<&Text<'_>>| text.map(Text::as_str).filter(|id| is_thread_id(id)).map(NativeId::new);
    let parent = id(spawned_by).or_else(|| id(header.parent_thread_id.as_ref()));
    let forked = id(header.forked_from_id.as_ref()).or_else(|| {
        let base = id(header.history_base.as_ref()?.thread_id.as_ref());
        // After a revert, a session goes on from an earlier part of its own.
        base.filter(|base| header.id.as_ref().is_none_or(|id| id.as_str() != base.as_str()))
    });
    let spawned = |id| Ancestor { id, descent: Descent::Spawned };
    let ancestor = match (parent, forked) {
        (Some(parent), _) => Some(spawned(parent)),
        (None, Some(parent)) if is_helper => Some(spawned(parent)),
        (None, forked) => forked.map(|id| Ancestor { id, descent: Descent::Forked }),
    };
    let kind = match &header.source {
        _ if is_helper => SessionKind::Sidechain,
        Source::Word(word) if matches!(word.as_str(), "exec" | "mcp") => SessionKind::Headless,
        _ => SessionKind::Main,
    };
    (ancestor, kind)
}

pub(super) fn base(header: &[u8]) -> Option<HistoryBase> {
    // Nearly all have none, and headers are long.
    memchr::memmem::find(header, b"\"history_base\"")?;
    let record = Record::parse(header).filter(Record::is_header)?;
    let base = record.payload.history_base?;
    Some(HistoryBase { id: NativeId::new(words(base.thread_id.as_ref())), end: base.end_byte_offset })
}

/// A line of `session_index.jsonl`.
pub(super) fn title(line: &[u8]) -> Option<(NativeId, Title)> {
    let fields = Fields::of(line)?;
    let id = fields.text("id").filter(|id| is_thread_id(id.as_str()))?;
    let text = fields.text("thread_name")?.0.trim().to_owned();
    Some((NativeId::new(id.as_str()), Title { text, source: TitleSource::Given }))
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
