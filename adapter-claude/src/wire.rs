//! The lines of `--output-format stream-json`, as far as they matter: borrowed, and lenient.
//!
//! A line is read in one pass into borrowed fields; what only rare kinds of lines have, in a second one. Where a
//! field is not of the type it always had, the line is read again as a tree, and what does not fit is left out: a
//! change of one field does not lose the rest.

mod salvage;

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

/// Text, borrowed where it holds no escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

/// One line: what the frequent kinds have.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) parent_tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) uuid: Option<Text<'a>>,
    #[serde(rename = "isReplay")]
    pub(crate) is_replay: Option<bool>,
    #[serde(borrow)]
    pub(crate) error: Option<Text<'a>>,
    pub(crate) api_error_status: Option<u16>,
    #[serde(borrow)]
    pub(crate) message: Option<Message<'a>>,
    #[serde(borrow)]
    pub(crate) event: Option<StreamEvent<'a>>,
    #[serde(skip)]
    pub(crate) more: Option<Box<More<'a>>>,
}

/// What the frequent kinds have of the rest.
const NOTHING: &More<'static> = &More {
    subtype: None,
    session_id: None,
    compact_metadata: None,
    rate_limit_info: None,
    attempt: None,
    error_status: None,
    is_error: None,
    num_turns: None,
    duration_api_ms: None,
    total_cost_usd: None,
    terminal_reason: None,
    result: None,
    errors: None,
    usage: None,
};

impl<'a> Line<'a> {
    /// What only rare kinds have.
    pub(crate) fn more(&self) -> &More<'a> {
        self.more.as_deref().unwrap_or(NOTHING)
    }
}

/// One line: what only rare kinds have.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct More<'a> {
    #[serde(borrow)]
    pub(crate) subtype: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) session_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) compact_metadata: Option<Compaction<'a>>,
    #[serde(borrow)]
    pub(crate) rate_limit_info: Option<RateLimit<'a>>,
    // `system/api_retry`
    pub(crate) attempt: Option<u64>,
    pub(crate) error_status: Option<u16>,
    // `result`
    pub(crate) is_error: Option<bool>,
    pub(crate) num_turns: Option<u64>,
    pub(crate) duration_api_ms: Option<f64>,
    pub(crate) total_cost_usd: Option<f64>,
    #[serde(borrow)]
    pub(crate) terminal_reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) result: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) errors: Option<Vec<Text<'a>>>,
    pub(crate) usage: Option<Tokens>,
}

/// What a line says in the conversation.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) model: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) content: Content<'a>,
}

/// Blocks; a bare text is one block.
#[derive(Debug, Default)]
pub(crate) struct Content<'a>(pub(crate) Vec<Block<'a>>);

/// One block.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) tool_use_id: Option<Text<'a>>,
    pub(crate) is_error: Option<bool>,
}

impl Block<'_> {
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind.as_ref().is_some_and(|text| text.0 == kind)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of blocks")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::text(Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::text(Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Content::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = seq.next_element()? {
            blocks.push(block);
        }
        Ok(Content(blocks))
    }
}

impl<'a> Content<'a> {
    fn text(text: Text<'a>) -> Self {
        Self(vec![Block { kind: Some(Text(Cow::Borrowed("text"))), text: Some(text), ..Block::default() }])
    }
}

/// A raw event of the model's stream.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct StreamEvent<'a> {
    #[serde(borrow)]
    pub(crate) delta: Option<Delta<'a>>,
}

/// A piece of a block.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) text: Option<Text<'a>>,
}

/// What a compaction says of itself.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Compaction<'a> {
    #[serde(borrow)]
    pub(crate) preserved_messages: Option<Preserved<'a>>,
}

/// The messages that a compaction leaves, and prints again.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Preserved<'a> {
    #[serde(borrow, default)]
    pub(crate) all_uuids: Vec<Text<'a>>,
}

/// The state of a usage limit.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RateLimit<'a> {
    #[serde(borrow)]
    pub(crate) status: Option<Text<'a>>,
}

/// Token counts.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(crate) struct Tokens {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) cache_read_input_tokens: Option<u64>,
    pub(crate) cache_creation_input_tokens: Option<u64>,
}

/// Reads a line. `None`: it is no JSON object.
pub(crate) fn parse(line: &[u8]) -> Option<Line<'_>> {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let whole = std::str::from_utf8(line).ok().and_then(|text| read(text).ok());
    whole.or_else(|| salvage::line(line))
}

fn read(text: &str) -> serde_json::Result<Line<'_>> {
    let mut line: Line<'_> = serde_json::from_str(text)?;
    let frequent = ["assistant", "user", "stream_event"];
    if !line.kind.as_ref().is_some_and(|kind| frequent.contains(&kind.as_str())) {
        line.more = Some(Box::new(serde_json::from_str(text)?));
    }
    Ok(line)
}
