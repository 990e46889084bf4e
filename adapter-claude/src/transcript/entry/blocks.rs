//! The message of a line, and its blocks.

use serde_json::Value;
use session_core::history::Block;
use session_core::{Usage, without_lone_surrogates};

use crate::transcript::facts::usage;
use crate::transcript::json::Json;

/// Memory that a value may take as a tree. One that would take more stays the text that it is.
const TREE: usize = 4 << 20;

/// How many lists of blocks may lie in each other: those of a message, and those that a tool returned.
pub(super) const NESTED: u8 = 2;

/// What one node of a tree takes, with its place in a map.
const NODE: usize = 128;

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

/// What a string says, by what is written, with its quotes. What is no text in it becomes the replacement character.
pub(super) fn owned(raw: &[u8]) -> String {
    let inside = raw.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(raw);
    if let Some(text) = std::str::from_utf8(inside).ok().and_then(unescaped) {
        return text;
    }
    serde_json::from_slice(raw).unwrap_or_else(|_| {
        let written = String::from_utf8_lossy(raw);
        serde_json::from_str(&without_lone_surrogates(&written)).unwrap_or_else(|_| written.into_owned())
    })
}

/// The text without its escapes, piece by piece. `None`: it has one that is seldom.
fn unescaped(written: &str) -> Option<String> {
    let mut text = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        text.push(match rest.as_bytes().get(at + 1)? {
            b'n' => '\n',
            b't' => '\t',
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'r' => '\r',
            _ => return None,
        });
        rest = &rest[at + 2..];
    }
    text.push_str(rest);
    Some(text)
}

/// The value. One that is no JSON, or too much of it, is given as the text that was written.
pub(super) fn value(raw: &[u8]) -> Value {
    let nodes = || raw.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    let tree = (raw.len() <= TREE / NODE || nodes() <= TREE / NODE).then(|| {
        serde_json::from_slice(raw)
            .or_else(|_| serde_json::from_str(&without_lone_surrogates(&String::from_utf8_lossy(raw))))
    });
    match tree {
        Some(Ok(value)) => value,
        _ => Value::String(String::from_utf8_lossy(raw).into_owned()),
    }
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
        let mut blocks = Vec::new();
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
    input: Option<&'a [u8]>,
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
                b"input" => &mut fields.input,
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
        b"\"tool_use\"" | b"\"server_tool_use\"" | b"\"mcp_tool_use\"" => Block::ToolCall {
            id: text_of(fields.id)?,
            name: text_of(fields.name)?,
            input: fields.input.map_or(Value::Null, value),
        },
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
