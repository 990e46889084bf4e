//! What a line is, in short: one pass over it, and only what is asked for is read.

use std::borrow::Cow;

use session_core::Usage;
use session_core::history::{LineFacts, LineRole, RawTime, SessionKind, TitleSource};

use super::json::{Json, text};
use super::number::{hash, record_id, short_hash};
use super::prompt::{Typed, typed};

/// What a line is that tells of the work tree that the session works in: a tree that is gone tells nothing any more.
const WORK_TREE: &[u8] = b"worktree-state";

/// What is asked for of a line; strings as they are written.
#[derive(Default)]
struct Raw<'a> {
    kind: Option<&'a [u8]>,
    subtype: Option<&'a [u8]>,
    uuid: Option<&'a [u8]>,
    parent: Option<&'a [u8]>,
    logical_parent: Option<&'a [u8]>,
    session: Option<&'a [u8]>,
    request: Option<&'a [u8]>,
    request_session: Option<&'a [u8]>,
    timestamp: Option<&'a [u8]>,
    cwd: Option<&'a [u8]>,
    branch: Option<&'a [u8]>,
    entrypoint: Option<&'a [u8]>,
    /// The words of a line that has nothing else: a title, a summary, the last prompt.
    words: Option<&'a [u8]>,
    /// Of a session that works in a work tree of its own, the folder that it was begun from.
    original_cwd: Option<&'a [u8]>,
    forked_from: Option<&'a [u8]>,
    forked: bool,
    sidechain: bool,
    meta: bool,
    summary_of_compaction: bool,
    api_error: bool,
    /// Whether a boundary says what was kept.
    anchored: bool,
    cost: Option<f64>,
    message: Option<Message<'a>>,
    attachment: Option<Attachment<'a>>,
}

#[derive(Default)]
struct Message<'a> {
    whole: &'a [u8],
    id: Option<&'a [u8]>,
    model: Option<&'a [u8]>,
    content: Option<&'a [u8]>,
    usage: Option<Usage>,
}

#[derive(Default)]
struct Attachment<'a> {
    kind: Option<&'a [u8]>,
    prompt: Option<&'a [u8]>,
    mode: Option<&'a [u8]>,
}

pub(super) fn facts(line: &[u8]) -> Option<LineFacts<'_>> {
    let line = line.trim_ascii();
    if line.first() != Some(&b'{') {
        return None;
    }
    let mut raw = Raw::default();
    raw.read(line)?;
    // Without a type, it is no record.
    let kind = raw.kind?;
    let role = raw.role(kind);
    Some(LineFacts {
        time: raw.timestamp.and_then(time),
        cwd: words(raw.cwd).or_else(|| words(raw.original_cwd.filter(|_| kind == WORK_TREE))),
        branch: words(raw.branch),
        id: raw.uuid.map(record_id),
        parent: raw.parent.map(record_id),
        logical_parent: raw.logical_parent.map(record_id),
        sidechain: raw.sidechain,
        meta: raw.meta,
        copied: raw.is_copied(),
        origin: words(raw.forked_from),
        kind: raw.entrypoint.map(|point| match point {
            [b's', b'd', b'k', b'-', ..] => SessionKind::Headless,
            _ => SessionKind::Main,
        }),
        print: raw.print(kind),
        running_cost: raw.cost.filter(|_| kind == b"cost-state"),
        anchored: raw.anchored,
        role,
    })
}

impl<'a> Raw<'a> {
    /// `None`: it is no whole object.
    fn read(&mut self, line: &'a [u8]) -> Option<()> {
        let raw = self;
        let mut json = Json::new(line);
        json.object(|json, key| {
            let field = match key {
                b"type" => &mut raw.kind,
                b"subtype" => &mut raw.subtype,
                b"uuid" => &mut raw.uuid,
                b"parentUuid" => &mut raw.parent,
                b"logicalParentUuid" => &mut raw.logical_parent,
                b"sessionId" => &mut raw.session,
                b"requestId" => &mut raw.request,
                b"requestSessionId" => &mut raw.request_session,
                b"cwd" => &mut raw.cwd,
                b"gitBranch" => &mut raw.branch,
                b"entrypoint" => &mut raw.entrypoint,
                b"customTitle" | b"agentName" | b"aiTitle" | b"summary" | b"lastPrompt" => &mut raw.words,
                b"timestamp" => {
                    raw.timestamp = Some(json.raw()?);
                    return Some(());
                }
                _ => return raw.other(json, key),
            };
            *field = json.maybe_string()?;
            Some(())
        })?;
        json.is_at_end().then_some(())
    }

    fn other(&mut self, json: &mut Json<'a>, key: &[u8]) -> Option<()> {
        let flag = match key {
            b"isSidechain" => &mut self.sidechain,
            b"isMeta" => &mut self.meta,
            b"isCompactSummary" => &mut self.summary_of_compaction,
            b"isApiErrorMessage" => &mut self.api_error,
            b"message" => {
                return self.message.insert(Message::default()).read(json);
            }
            b"attachment" => {
                self.attachment = Some(Attachment::read(json)?);
                return Some(());
            }
            b"totalCostUSD" => {
                self.cost = std::str::from_utf8(json.raw()?).ok().and_then(|cost| cost.parse().ok());
                return Some(());
            }
            b"compactMetadata" => {
                return json.object(|json, key| {
                    self.anchored |=
                        matches!(key, b"preservedSegment" | b"preservedMessages") && json.peek()? == b'{';
                    json.skip()
                });
            }
            b"worktreeSession" => {
                return json.object(|json, key| {
                    if key == b"originalCwd" {
                        self.original_cwd = json.maybe_string()?;
                        return Some(());
                    }
                    json.skip()
                });
            }
            b"forkedFrom" => {
                self.forked = json.peek()? == b'{';
                return json.object(|json, key| {
                    if key == b"sessionId" {
                        self.forked_from = json.maybe_string()?;
                        return Some(());
                    }
                    json.skip()
                });
            }
            _ => return json.skip(),
        };
        *flag = json.is_true()?;
        Some(())
    }

    fn role(&self, kind: &[u8]) -> LineRole<'a> {
        let title = |source| LineRole::Title { source, text: words(self.words).unwrap_or_default() };
        match kind {
            b"user" => self.user(),
            b"assistant" => self.reply(),
            b"attachment" => self.queued(),
            b"system" if self.subtype == Some(b"compact_boundary") => LineRole::Boundary,
            b"custom-title" | b"agent-name" => title(TitleSource::Given),
            b"ai-title" => title(TitleSource::Agent),
            b"summary" => title(TitleSource::Summary),
            b"last-prompt" => words(self.words).map_or(LineRole::Other, LineRole::LastPrompt),
            // What stands in a queue before anything was said came from a program.
            b"queue-operation" => {
                LineRole::Header { id: words(self.session), parent: None, kind: SessionKind::Headless }
            }
            // The agent writes it anew at each end: only before anything was said does it tell where the session began.
            WORK_TREE if self.original_cwd.is_some() => {
                LineRole::Header { id: None, parent: None, kind: SessionKind::Main }
            }
            _ => LineRole::Other,
        }
    }

    fn user(&self) -> LineRole<'a> {
        if self.summary_of_compaction {
            return LineRole::CompactSummary;
        }
        let content = self.message.as_ref().filter(|_| !self.meta).and_then(|message| message.content);
        match content.filter(|content| !is_returned(content)).and_then(typed) {
            Some(Typed { text, command }) => LineRole::Prompt { text, command, queued: false },
            None => LineRole::Returned,
        }
    }

    fn reply(&self) -> LineRole<'a> {
        let nothing = LineRole::Reply { reply: None, usage: None, model: None };
        let Some(message) = &self.message else { return nothing };
        if self.api_error || message.model == Some(b"<synthetic>") {
            // The agent wrote it itself.
            return nothing;
        }
        let reply = match message.id {
            Some(id) => Some(hash(&[id, self.request.unwrap_or_default()])),
            None => self.uuid.map(|uuid| hash(&[uuid])),
        };
        let model = words(message.model);
        LineRole::Reply { reply: reply.map(session_core::history::RecordId), usage: message.usage, model }
    }

    /// What was typed while the agent was at work.
    fn queued(&self) -> LineRole<'a> {
        let attachment = self.attachment.as_ref();
        let queued = attachment.filter(|it| it.kind == Some(b"queued_command"));
        match queued.filter(|it| it.mode.is_none_or(|mode| mode == b"prompt")).and_then(|it| it.prompt) {
            Some(prompt) => match typed(prompt) {
                Some(Typed { text, command }) => LineRole::Prompt { text, command, queued: true },
                None => LineRole::Other,
            },
            None => LineRole::Other,
        }
    }

    fn is_copied(&self) -> bool {
        self.forked
            || self.request_session.is_some_and(|session| self.session.is_some_and(|own| own != session))
    }

    fn print(&self, kind: &[u8]) -> Option<u64> {
        let (whole, time) = (self.message.as_ref()?.whole, self.timestamp?);
        let (head, tail) = (whole.len().min(64), whole.len().saturating_sub(64));
        Some(short_hash(&[kind, time, &whole.len().to_le_bytes(), &whole[..head], &whole[tail..]]))
    }
}

impl<'a> Message<'a> {
    fn read(&mut self, json: &mut Json<'a>) -> Option<()> {
        let message = self;
        let before = *json;
        json.object(|json, key| {
            match key {
                b"id" => message.id = json.maybe_string()?,
                b"model" => message.model = json.maybe_string()?,
                b"usage" => message.usage = usage(json)?,
                b"content" => message.content = Some(json.raw()?),
                _ => return json.skip(),
            }
            Some(())
        })?;
        message.whole = before.until(json);
        Some(())
    }
}

/// Whether one of the blocks of a content is what a tool returned. Mostly, the first one tells.
fn is_returned(content: &[u8]) -> bool {
    let mut returned = false;
    let _stops_early = Json::new(content).array(|json| {
        json.object(|json, key| {
            if key == b"type" {
                returned |= json.maybe_string()? == Some(b"tool_result");
                // The rest does not matter any more.
                return (!returned).then_some(());
            }
            json.skip()
        })
    });
    returned
}

/// The tokens of a message; none where it is no object.
pub(super) fn usage(json: &mut Json<'_>) -> Option<Option<Usage>> {
    let mut usage = (json.peek()? == b'{').then(Usage::default);
    json.object(|json, key| {
        let Some(usage) = &mut usage else { return json.skip() };
        let field = match key {
            b"input_tokens" => &mut usage.input_tokens,
            b"output_tokens" => &mut usage.output_tokens,
            b"cache_read_input_tokens" => &mut usage.cache_read_tokens,
            b"cache_creation_input_tokens" => &mut usage.cache_write_tokens,
            _ => return json.skip(),
        };
        *field = json.maybe_number()?.unwrap_or_default();
        Some(())
    })?;
    Some(usage)
}

impl<'a> Attachment<'a> {
    fn read(json: &mut Json<'a>) -> Option<Self> {
        let mut attachment = Self::default();
        json.object(|json, key| {
            match key {
                b"type" => attachment.kind = json.maybe_string()?,
                b"commandMode" => attachment.mode = json.maybe_string()?,
                b"prompt" => attachment.prompt = Some(json.raw()?),
                _ => return json.skip(),
            }
            Some(())
        })?;
        Some(attachment)
    }
}

fn words(raw: Option<&[u8]>) -> Option<Cow<'_, str>> {
    raw.map(text).filter(|text| !text.is_empty())
}

fn time(raw: &[u8]) -> Option<RawTime<'_>> {
    match raw {
        [b'"', inside @ .., b'"'] => Some(RawTime::Text(text(inside))),
        _ => std::str::from_utf8(raw).ok()?.parse().ok().map(RawTime::Number),
    }
}
