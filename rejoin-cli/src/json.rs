//! The documents of `--json`: shapes of their own, so that they do not change with the library's types.
//! docs/cli/json.md names every field, and a test holds it to what is printed.

use std::path::Path;

use rejoin::core::Timestamp;
use rejoin::history::{
    Block, Descent, Entry, EntryKind, Lineage, ListedSession, Located, Notice, NoticeKind, Resumability,
    SessionKind, TitleSource, Unlisted, Unresumable,
};
use rejoin::{SessionKey, Usage};
use serde::Serialize;
use serde_json::Value;

/// A path as text; what is not UTF-8 in it is replaced.
pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[derive(Debug, Serialize)]
pub(crate) struct SessionJson {
    agent: String,
    id: String,
    mailbox: Option<String>,
    bound: bool,
    title: Option<String>,
    title_source: Option<TitleSource>,
    first_prompt: Option<String>,
    last_prompt: Option<String>,
    cwd: Option<String>,
    last_cwd: Option<String>,
    branch: Option<String>,
    began: Option<Timestamp>,
    updated: Option<Timestamp>,
    turns: Option<u64>,
    bytes: Option<u64>,
    kind: SessionKind,
    parent: Option<String>,
    descent: Option<Descent>,
    root: String,
    from: Option<String>,
    lineage: Option<Lineage>,
    resumable: bool,
    archived: bool,
    unresumable: Option<Unresumable>,
    model: Option<String>,
    usage: Option<Usage>,
    exact: bool,
    torn_tail: bool,
    skipped_lines: u64,
    path: String,
    state_dir: Option<String>,
}

impl From<&ListedSession> for SessionJson {
    fn from(listed: &ListedSession) -> Self {
        let ListedSession { agent, key, bound, root, from, entry, .. } = listed;
        let unresumable = if let Resumability::No(why) = entry.resumable { Some(why) } else { None };
        Self {
            agent: agent.to_string(),
            id: entry.id.to_string(),
            mailbox: key.as_ref().map(|key| key.mailbox.to_string()),
            bound: *bound,
            title: entry.title.as_ref().map(|title| title.text.clone()),
            title_source: entry.title.as_ref().map(|title| title.source),
            first_prompt: entry.first_prompt.clone(),
            last_prompt: entry.last_prompt.clone(),
            cwd: entry.cwd.as_deref().map(text),
            last_cwd: entry.last_cwd.as_deref().map(text),
            branch: entry.branch.clone(),
            began: entry.began,
            updated: entry.updated,
            turns: entry.turns,
            bytes: entry.bytes,
            kind: entry.kind,
            parent: entry.parent.as_ref().map(|parent| parent.id.to_string()),
            descent: entry.parent.as_ref().map(|parent| parent.descent),
            root: root.to_string(),
            from: from.as_ref().map(|(from, _)| from.to_string()),
            lineage: from.as_ref().map(|(_, lineage)| *lineage),
            resumable: unresumable.is_none(),
            archived: entry.resumable == Resumability::Archived,
            unresumable,
            model: entry.model.clone(),
            usage: entry.usage,
            exact: entry.exact,
            torn_tail: entry.torn_tail,
            skipped_lines: entry.skipped_lines,
            path: text(&entry.source.path),
            state_dir: entry.source.state_dir.as_deref().map(text),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct NoticeJson {
    path: String,
    offset: Option<u64>,
    kind: &'static str,
    reason: Option<String>,
}

impl From<&Notice> for NoticeJson {
    fn from(notice: &Notice) -> Self {
        let reason = if let NoticeKind::Unreadable(why) = &notice.kind { Some(why.clone()) } else { None };
        Self { path: text(&notice.path), offset: notice.offset, kind: notice_code(&notice.kind), reason }
    }
}

/// The stable code of a notice.
pub(crate) const fn notice_code(kind: &NoticeKind) -> &'static str {
    match kind {
        NoticeKind::SkippedLine => "skipped_line",
        NoticeKind::Recovered => "recovered",
        NoticeKind::TornTail => "torn_tail",
        NoticeKind::LineTooLong => "line_too_long",
        NoticeKind::PackedInPart => "packed_in_part",
        NoticeKind::BaseMissing => "base_missing",
        NoticeKind::LinkMissing => "link_missing",
        NoticeKind::SameId => "same_id",
        NoticeKind::Unreadable(_) => "unreadable",
        NoticeKind::OlderCopy => "older_copy",
        NoticeKind::LimitReached => "limit_reached",
        NoticeKind::TimeAhead => "time_ahead",
        _ => "other",
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct UnlistedJson {
    agent: String,
    mailbox: Option<String>,
    reason: String,
}

impl From<&Unlisted> for UnlistedJson {
    fn from(unlisted: &Unlisted) -> Self {
        Self {
            agent: unlisted.agent.to_string(),
            mailbox: unlisted.key.as_ref().map(|key| key.mailbox.to_string()),
            reason: unlisted.reason.clone(),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct EntryJson {
    kind: &'static str,
    id: Option<String>,
    parent: Option<String>,
    time: Option<Timestamp>,
    model: Option<String>,
    usage: Option<Usage>,
    sidechain: bool,
    meta: bool,
    blocks: Vec<BlockJson>,
    path: String,
    offset: Option<u64>,
    bytes: Option<u64>,
    line: Option<u64>,
}

/// A part of an entry; what it does not have is left out.
#[derive(Debug, Default, Serialize)]
pub(crate) struct BlockJson {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
}

impl BlockJson {
    fn text(r#type: &'static str, text: &str) -> Self {
        Self { r#type, text: Some(text.to_owned()), ..Self::default() }
    }

    fn value(r#type: &'static str, value: &Value) -> Self {
        Self { r#type, value: Some(value.clone()), ..Self::default() }
    }
}

impl From<&Block> for BlockJson {
    fn from(block: &Block) -> Self {
        match block {
            Block::Text(text) => Self::text("text", text),
            Block::Thinking(text) => Self::text("thinking", text),
            Block::ToolCall { id, name, input } => {
                Self { call: Some(id.clone()), tool: Some(name.clone()), ..Self::value("tool_call", input) }
            }
            Block::ToolResult { id, text, failed } => {
                Self { call: Some(id.clone()), failed: Some(*failed), ..Self::text("tool_result", text) }
            }
            Block::Attachment { media } => Self::text("attachment", media),
            Block::Other(value) => Self::value("other", value),
            _ => Self { r#type: "other", ..Self::default() },
        }
    }
}

/// The stable word for a kind of entry, and its parts.
fn parts(kind: &EntryKind) -> (&'static str, Vec<BlockJson>) {
    let all = |blocks: &[Block]| blocks.iter().map(BlockJson::from).collect();
    match kind {
        EntryKind::Prompt(blocks) => ("prompt", all(blocks)),
        EntryKind::Reply(blocks) => ("reply", all(blocks)),
        EntryKind::Returned(blocks) => ("returned", all(blocks)),
        EntryKind::Boundary => ("boundary", Vec::new()),
        EntryKind::CompactSummary(text) => ("compact_summary", vec![BlockJson::text("text", text)]),
        EntryKind::Title { text, .. } => ("title", vec![BlockJson::text("text", text)]),
        EntryKind::Note(name) => ("note", vec![BlockJson::text("text", name)]),
        EntryKind::Unknown { name, record } => {
            ("unknown", vec![BlockJson { text: Some(name.clone()), ..BlockJson::value("other", record) }])
        }
        _ => ("unknown", Vec::new()),
    }
}

impl From<&Located> for EntryJson {
    fn from(located: &Located) -> Self {
        let Located { entry, path, span, line } = located;
        let Entry { kind, id, parent, time, model, usage, sidechain, meta, .. } = entry;
        let (kind, blocks) = parts(kind);
        Self {
            kind,
            id: id.clone(),
            parent: parent.clone(),
            time: *time,
            model: model.clone(),
            usage: *usage,
            sidechain: *sidechain,
            meta: *meta,
            blocks,
            path: text(path),
            offset: span.map(|span| span.offset),
            bytes: span.map(|span| span.bytes),
            line: *line,
        }
    }
}

/// A key, as two words.
#[derive(Debug, Serialize)]
pub(crate) struct KeyJson {
    mailbox: String,
    agent: String,
}

impl From<&SessionKey> for KeyJson {
    fn from(key: &SessionKey) -> Self {
        Self { mailbox: key.mailbox.to_string(), agent: key.agent.to_string() }
    }
}
