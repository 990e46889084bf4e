//! A stored message with its parts, as one entry of a transcript.

use serde_json::Value;
use session_core::Usage;
use session_core::history::{Block, Entry, EntryKind, RawTime};

use super::record::{Message, Part, value};

/// A message with its parts, as stored.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) id: String,
    /// `None`: it is too long, or may not be read.
    pub(super) data: Option<Vec<u8>>,
    /// The parts that were read, the oldest first. `None`: one that is too long, or may not be read.
    pub(super) parts: Vec<(String, Option<Vec<u8>>)>,
    /// Whether it has more parts than were read.
    pub(super) is_cut: bool,
}

impl Stored {
    pub(super) fn message(&self) -> Option<Message> {
        Message::read(self.data.as_deref()?)
    }

    pub(super) fn read_parts(&self) -> impl Iterator<Item = Part> {
        self.parts.iter().filter_map(|(_, data)| Part::read(data.as_deref()?))
    }

    /// Whether somebody typed it: it is a turn.
    pub(super) fn is_prompt(&self) -> bool {
        let typed =
            |data: &Option<Vec<u8>>| data.as_deref().and_then(Part::read).is_none_or(|part| part.is_typed());
        self.message().is_some_and(|message| message.is_user())
            && self.parts.iter().any(|(_, data)| typed(data))
    }

    /// Its words in one text.
    pub(super) fn text(&self) -> String {
        let texts = self.read_parts().filter(|part| part.is("text") && !part.is_made_up());
        texts.filter_map(|part| part.text).collect::<Vec<_>>().join("\n")
    }

    /// The entry, and how many parts of it are no records. `None`: the message is none.
    pub(super) fn entry(&self, sidechain: bool, reasoning_apart: bool) -> Option<(Entry, u64)> {
        let message = self.message()?;
        let record = value(self.data.as_deref()?)?;
        let (mut blocks, mut skipped) = (Vec::new(), 0);
        for (_, data) in &self.parts {
            match data.as_deref().map(value) {
                Some(Some(part)) => add_blocks(part, &mut blocks),
                Some(None) | None => skipped += 1,
            }
        }
        let has_compaction = self.read_parts().any(|part| part.is("compaction"));
        let usage = message.is_assistant().then(|| self.usage(&message, reasoning_apart));
        let kind = if message.is_user() && has_compaction {
            EntryKind::Boundary
        } else if message.is_user() {
            EntryKind::Prompt(blocks)
        } else if message.is_summary() {
            EntryKind::CompactSummary(self.text())
        } else if message.is_assistant() {
            // An error of the whole reply belongs to no part.
            if let Some(error) = record.get("error") {
                blocks.push(Block::Other(serde_json::json!({ "type": "error", "error": error })));
            }
            EntryKind::Reply(blocks)
        } else {
            EntryKind::Unknown { name: message.role.clone().unwrap_or_else(|| "message".to_owned()), record }
        };
        let mut entry = Entry::new(kind);
        entry.id = Some(self.id.clone());
        entry.parent = message.parent.clone();
        entry.time = message.created().and_then(|millis| RawTime::Number(millis).read());
        entry.reply = message.is_assistant().then(|| self.id.clone());
        entry.model = if message.is_assistant() { message.model() } else { None };
        entry.usage = usage;
        entry.sidechain = sidechain;
        entry.meta = message.is_user() && !self.parts.is_empty() && !self.is_prompt();
        Some((entry, skipped))
    }

    /// The sum of its finished steps, else what is noted in the message itself.
    fn usage(&self, message: &Message, reasoning_apart: bool) -> Usage {
        let steps = self.read_parts().filter(|part| part.is("step-finish"));
        let sum = steps.fold(None, |sum: Option<Usage>, step| {
            let mut sum = sum.unwrap_or_default();
            sum += step.tokens.map(|tokens| tokens.usage(reasoning_apart)).unwrap_or_default();
            Some(sum)
        });
        let noted = message.tokens.as_ref().map(|tokens| tokens.usage(reasoning_apart));
        sum.or(noted).unwrap_or_default()
    }
}

/// What a part is. One that is not known stays as it was written, and so does one that is no part of the talk.
fn add_blocks(part: Value, blocks: &mut Vec<Block>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let made_up = part["synthetic"] == true || part["ignored"] == true;
    match part["type"].as_str() {
        Some("text") if part["text"].is_string() && !made_up => blocks.push(Block::Text(text(&part["text"]))),
        Some("reasoning") if part["text"].is_string() => blocks.push(Block::Thinking(text(&part["text"]))),
        Some("file") => blocks.push(Block::Attachment { media: text(&part["mime"]) }),
        Some("tool") => {
            let (id, state) = (text(&part["callID"]), &part["state"]);
            let name = text(&part["tool"]);
            blocks.push(Block::ToolCall { id: id.clone(), name, input: state["input"].clone() });
            match state["status"].as_str() {
                Some("completed") => {
                    blocks.push(Block::ToolResult { id, text: text(&state["output"]), failed: false });
                }
                Some("error") => {
                    blocks.push(Block::ToolResult { id, text: text(&state["error"]), failed: true });
                }
                // It has no result yet, or never will.
                _ => {}
            }
        }
        _ => blocks.push(Block::Other(part)),
    }
}
