//! A line of a session file in full, in the words that are the same for every agent.

mod blocks;
mod value;

use session_core::Timestamp;
use session_core::history::{Block, Entry, EntryKind, RawTime, TitleSource};

use self::blocks::{Content, Message, NESTED, word};
use self::value::value;
use super::json::{Json, text};
use super::prompt::{NOT_SAID, without_reminders};

/// Kinds of lines that hold nothing of the talk.
const NOTES: &[&str] = &[
    "agent-color",
    "agent-setting",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "attribution-snapshot",
    "content-replacement",
    "cost-state",
    "file-history-delta",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "tag",
    "task-summary",
    "tools-used",
    "worktree-state",
];

/// What a line holds, as far as an entry needs it.
#[derive(Debug, Default)]
struct Line<'a> {
    /// As they are written between their quotes.
    kind: Option<&'a [u8]>,
    subtype: Option<&'a [u8]>,
    uuid: Option<String>,
    parent: Option<String>,
    time: Option<Timestamp>,
    /// The words of a line that is a title.
    title: Option<String>,
    message: Option<Message>,
    attachment: Option<Attachment>,
    sidechain: bool,
    meta: bool,
    compact_summary: bool,
    on_disk: bool,
    on_stream: bool,
}

#[derive(Debug, Default)]
struct Attachment {
    kind: Option<String>,
    mode: Option<String>,
    prompt: Option<Content>,
}

/// Reads a line. `None`: it is no record of a session file.
pub(super) fn entry(line: &[u8]) -> Option<Entry> {
    let line = line.trim_ascii();
    if line.first() != Some(&b'{') {
        return None;
    }
    let read = Line::read(line)?;
    // What the program prints has the same kinds, in another envelope.
    if read.on_stream && !read.on_disk {
        return None;
    }
    read.entry(line)
}

impl<'a> Line<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let mut read = Self::default();
        let mut json = Json::new(line);
        json.object(|json, key| {
            match key {
                b"type" => read.kind = json.maybe_string()?,
                b"subtype" => read.subtype = json.maybe_string()?,
                b"uuid" => read.uuid = word(json)?,
                b"parentUuid" => read.parent = word(json)?,
                b"timestamp" => {
                    read.time = json.maybe_string()?.and_then(|raw| RawTime::Text(text(raw)).read());
                }
                b"customTitle" | b"agentName" | b"aiTitle" | b"summary" => read.title = word(json)?,
                b"message" => read.message = Message::read(json)?,
                b"attachment" => read.attachment = Some(Attachment::read(json)?),
                b"isSidechain" => read.sidechain = json.is_true()?,
                b"isMeta" => read.meta = json.is_true()?,
                b"isCompactSummary" => read.compact_summary = json.is_true()?,
                b"sessionId" => (read.on_disk, _) = (true, json.skip()?),
                b"session_id" => (read.on_stream, _) = (true, json.skip()?),
                _ => json.skip()?,
            }
            Some(())
        })?;
        json.is_at_end().then_some(read)
    }

    /// `None`: it has no type, so it is no record.
    fn entry(mut self, line: &[u8]) -> Option<Entry> {
        let name = text(self.kind?);
        let mut message = self.message.take();
        let (model, usage, reply) = message
            .as_mut()
            .map(|message| (message.model.take(), message.usage, message.id.take()))
            .unwrap_or_default();
        let mut queued = false;
        let kind = match (&*name, message) {
            ("user", Some(message)) => self.of_user(message.content),
            ("assistant", Some(message)) => EntryKind::Reply(message.content.blocks),
            ("attachment", _) => {
                let attachment = self.attachment.take().unwrap_or_default();
                queued = attachment.is_prompt();
                attachment.kind()
            }
            ("system", _) => match self.subtype {
                Some(b"compact_boundary") => EntryKind::Boundary,
                Some(subtype) => EntryKind::Note(format!("system/{}", text(subtype))),
                None => EntryKind::Note(name.into_owned()),
            },
            ("custom-title" | "agent-name" | "ai-title" | "summary", _) => {
                let source = match &*name {
                    "custom-title" | "agent-name" => TitleSource::Given,
                    "ai-title" => TitleSource::Agent,
                    _ => TitleSource::Summary,
                };
                EntryKind::Title { source, text: self.title.take().unwrap_or_default() }
            }
            (known, _) if NOTES.contains(&known) => EntryKind::Note(name.into_owned()),
            _ => EntryKind::Unknown { name: name.into_owned(), record: value(line) },
        };
        let is_reply = matches!(kind, EntryKind::Reply(_));
        Some(Entry {
            id: self.uuid,
            parent: self.parent,
            time: self.time,
            reply: reply.filter(|_| is_reply),
            model: model.filter(|model| is_reply && model != "<synthetic>"),
            usage: usage.filter(|_| is_reply),
            sidechain: self.sidechain,
            meta: self.meta,
            queued,
            ..Entry::new(kind)
        })
    }

    /// What a line of the user's side is: typed, or written by the agent around its tools and commands.
    fn of_user(&self, content: Content) -> EntryKind {
        if self.compact_summary {
            return EntryKind::CompactSummary(content.text());
        }
        let returned = content.blocks.iter().any(|block| matches!(block, Block::ToolResult { .. }));
        if self.meta || returned || content.blocks.is_empty() {
            return EntryKind::Returned(content.blocks);
        }
        match typed(&content.blocks) {
            Typed::Nothing => EntryKind::Returned(content.blocks),
            Typed::Command(text) => EntryKind::Prompt(vec![Block::Text(text)]),
            Typed::Words => EntryKind::Prompt(content.blocks),
        }
    }
}

/// What somebody typed.
enum Typed {
    Words,
    /// A command of the agent's own, as it was typed.
    Command(String),
    /// The agent wrote it.
    Nothing,
}

fn typed(blocks: &[Block]) -> Typed {
    let texts = || {
        blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(without_reminders(text)),
            _ => None,
        })
    };
    // Slashes at the beginning of a prompt are a block of their own.
    let said = texts().find(|text| !text.is_empty()).unwrap_or_default();
    let inside = |tag: &str| {
        let (_, rest) = said.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once(&format!("</{tag}>"))?.0.trim())
    };
    if said.is_empty() {
        let silent = |block: &Block| matches!(block, Block::Text(text) if !text.is_empty());
        // Reminders alone.
        return if blocks.iter().all(silent) { Typed::Nothing } else { Typed::Words };
    }
    if NOT_SAID.iter().any(|start| said.starts_with(start)) {
        Typed::Nothing
    } else if said.starts_with("<command-name>") || said.starts_with("<command-message>") {
        let name = inside("command-name").or_else(|| inside("command-message")).unwrap_or_default();
        let arguments = inside("command-args").unwrap_or_default();
        Typed::Command(format!("{name} {arguments}").trim_end().to_owned())
    } else if said.starts_with("<bash-input>") {
        Typed::Command(format!("!{}", inside("bash-input").unwrap_or_default()))
    } else {
        Typed::Words
    }
}

impl Attachment {
    fn read(json: &mut Json<'_>) -> Option<Self> {
        let mut read = Self::default();
        json.object(|json, key| {
            match key {
                b"type" => read.kind = word(json)?,
                b"commandMode" => read.mode = word(json)?,
                b"prompt" => read.prompt = Some(Content::read(json, NESTED)?),
                _ => json.skip()?,
            }
            Some(())
        })?;
        Some(read)
    }

    /// Whether it was typed while the agent was at work.
    fn is_prompt(&self) -> bool {
        self.kind.as_deref() == Some("queued_command")
            && self.mode.as_deref().is_none_or(|mode| mode == "prompt")
            && self.prompt.is_some()
    }

    fn kind(self) -> EntryKind {
        if self.is_prompt() {
            return EntryKind::Prompt(self.prompt.unwrap_or_default().blocks);
        }
        EntryKind::Note(
            self.kind.map_or_else(|| "attachment".to_owned(), |kind| format!("attachment/{kind}")),
        )
    }
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
