//! The message of a line, and its blocks.

use serde_json::Value;
use session_core::Usage;
use session_core::history::Block;

use super::value::{next, owned, value};
use crate::transcript::facts::usage;
use crate::transcript::json::Json;

/// How many lists of blocks may lie in each other: those of a message, and those that a tool returned.
pub(super) const NESTED: u8 = 2;

/// What a line says in the conversation.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) content: Content,
}

/// Blocks; a bare text is one.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) blocks: Vec<Block>,
}

/// The next value, if it is a string; any other is stepped over.
pub(super) fn word(json: &mut Json<'_>) -> Option<Option<String>> {
    if json.peek()? == b'"' { Some(Some(owned(json.raw()?))) } else { json.skip().map(|()| None) }
}

impl Message {
    /// `None` inside: it is no object.
    pub(super) fn read(json: &mut Json<'_>) -> Option<Option<Self>> {
        if json.peek()? != b'{' {
            return json.skip().map(|()| None);
        }
        let mut read = Self::default();
        json.object(|json, key| {
            match key {
                b"id" => read.id = word(json)?,
                b"model" => read.model = word(json)?,
                b"usage" => read.usage = usage(json)?,
                b"content" => read.content = Content::read(json, NESTED)?,
                _ => json.skip()?,
            }
            Some(())
        })?;
        Some(Some(read))
    }
}

impl Content {
    /// Of what is no text and no list of blocks, nothing; no deeper than so many lists.
    pub(super) fn read(json: &mut Json<'_>, depth: u8) -> Option<Self> {
        // Mostly, there is one.
        let mut blocks = Vec::with_capacity(1);
        match json.peek()? {
            b'"' => blocks.push(Block::Text(owned(json.raw()?))),
            b'[' if depth > 0 => json.array(|json| {
                blocks.push(block(json, depth - 1)?);
                Some(())
            })?,
            _ => json.skip()?,
        }
        Some(Self { blocks })
    }

    /// Its words.
    fn into_text(mut self) -> String {
        match self.blocks.as_mut_slice() {
            [Block::Text(text)] => std::mem::take(text),
            _ => self.text(),
        }
    }

    /// Its words.
    pub(super) fn text(&self) -> String {
        let mut all = String::new();
        for block in &self.blocks {
            let text = match block {
                Block::Text(text) => text.as_str(),
                Block::Other(Value::String(text)) => text.as_str(),
                _ => continue,
            };
            if !all.is_empty() {
                all.push('\n');
            }
            all.push_str(text);
        }
        all
    }
}

/// The fields of a block, as they are written.
#[derive(Debug, Default)]
struct Fields<'a> {
    kind: Option<&'a [u8]>,
    text: Option<&'a [u8]>,
    thinking: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
    input: Value,
    call: Option<&'a [u8]>,
    content: Content,
    source: Option<&'a [u8]>,
    failed: bool,
}

impl<'a> Fields<'a> {
    fn read(json: &mut Json<'a>, depth: u8) -> Option<Self> {
        let mut fields = Self::default();
        json.object(|json, key| {
            let field = match key {
                b"type" => &mut fields.kind,
                b"text" => &mut fields.text,
                b"thinking" => &mut fields.thinking,
                b"id" => &mut fields.id,
                b"name" => &mut fields.name,
                b"input" => {
                    fields.input = next(json)?;
                    return Some(());
                }
                b"tool_use_id" => &mut fields.call,
                b"content" => {
                    fields.content = Content::read(json, depth)?;
                    return Some(());
                }
                b"source" => &mut fields.source,
                b"is_error" => {
                    fields.failed = json.is_true()?;
                    return Some(());
                }
                _ => return json.skip(),
            };
            *field = Some(json.raw()?);
            Some(())
        })?;
        Some(fields)
    }
}

fn text_of(raw: Option<&[u8]>) -> Option<String> {
    raw.filter(|raw| raw.first() == Some(&b'"')).map(owned)
}

fn block(json: &mut Json<'_>, depth: u8) -> Option<Block> {
    json.peek()?;
    let begin = *json;
    let known =
        if json.peek()? == b'{' { known(Fields::read(json, depth)?) } else { json.skip().map(|()| None)? };
    Some(known.unwrap_or_else(|| Block::Other(value(begin.until(json)))))
}

/// `None`: a block of another kind, or without what its kind always has.
fn known(fields: Fields<'_>) -> Option<Block> {
    Some(match fields.kind? {
        b"\"text\"" => Block::Text(text_of(fields.text)?),
        b"\"thinking\"" => Block::Thinking(text_of(fields.thinking)?),
        b"\"tool_use\"" | b"\"server_tool_use\"" | b"\"mcp_tool_use\"" => {
            Block::ToolCall { id: text_of(fields.id)?, name: text_of(fields.name)?, input: fields.input }
        }
        b"\"tool_result\"" => Block::ToolResult {
            id: text_of(fields.call)?,
            text: fields.content.into_text(),
            failed: fields.failed,
        },
        kind @ (b"\"image\"" | b"\"document\"") => {
            let media = fields.source.and_then(media);
            Block::Attachment { media: media.unwrap_or_else(|| owned(kind)) }
        }
        _ => return None,
    })
}

fn media(source: &[u8]) -> Option<String> {
    let mut media = None;
    Json::new(source).object(|json, key| {
        if key == b"media_type" {
            media = word(json)?;
            return Some(());
        }
        json.skip()
    })?;
    media
}
