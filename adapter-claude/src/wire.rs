//! The lines of `--output-format stream-json`, as far as they matter: borrowed, and lenient.
//!
//! A line is read in one pass into borrowed fields. Where a field is not of the type it always had, the line
//! is read again as a tree, and what does not fit is left out: a change of one field does not lose the rest.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;

/// Text, borrowed where it holds no escapes. Lone surrogates and bytes that are not UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As bytes: serde_json lets lone surrogates pass there, which JavaScript writes.
        deserializer.deserialize_bytes(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        // The check alone is much faster than the repair.
        Ok(Text(std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(String::from_utf8_lossy(bytes).into_owned())))
    }
}

/// One line.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) subtype: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) session_id: Option<Text<'a>>,
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
        // serde_json reads texts and arrays under this name.
        deserializer.deserialize_bytes(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of blocks")
    }

    fn visit_borrowed_bytes<E: serde::de::Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Content::text(TextVisitor.visit_borrowed_bytes::<E>(bytes)?))
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Content::text(TextVisitor.visit_bytes::<E>(bytes)?))
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
    serde_json::from_slice(line).ok().or_else(|| Some(salvage(&serde_json::from_slice(line).ok()?)))
}

/// What fits, of a line that does not fit as a whole.
fn salvage(value: &Value) -> Line<'static> {
    let text = |value: &Value, key: &str| value[key].as_str().map(|text| Text(Cow::Owned(text.to_owned())));
    let status = |key: &str| value[key].as_u64().and_then(|status| u16::try_from(status).ok());
    let message = value["message"].is_object().then(|| {
        let message = &value["message"];
        let content = match &message["content"] {
            Value::Array(blocks) => Content(
                blocks
                    .iter()
                    .map(|block| Block {
                        kind: text(block, "type"),
                        text: text(block, "text"),
                        id: text(block, "id"),
                        name: text(block, "name"),
                        tool_use_id: text(block, "tool_use_id"),
                        is_error: block["is_error"].as_bool(),
                    })
                    .collect(),
            ),
            _ => text(message, "content").map(Content::text).unwrap_or_default(),
        };
        Message { model: text(message, "model"), content }
    });
    let delta = &value["event"]["delta"];
    let errors = value["errors"].as_array().map(|errors| {
        errors
            .iter()
            .map(|error| Text(Cow::Owned(error.as_str().map_or_else(|| error.to_string(), str::to_owned))))
            .collect()
    });
    let tokens = |key: &str| value["usage"][key].as_u64();
    Line {
        kind: text(value, "type"),
        subtype: text(value, "subtype"),
        session_id: text(value, "session_id"),
        parent_tool_use_id: text(value, "parent_tool_use_id"),
        uuid: text(value, "uuid"),
        is_replay: value["isReplay"].as_bool(),
        error: text(value, "error").or_else(|| text(&value["error"], "type")),
        api_error_status: status("api_error_status"),
        message,
        event: Some(StreamEvent {
            delta: Some(Delta { kind: text(delta, "type"), text: text(delta, "text") }),
        }),
        compact_metadata: None,
        rate_limit_info: Some(RateLimit { status: text(&value["rate_limit_info"], "status") }),
        attempt: value["attempt"].as_u64(),
        error_status: status("error_status"),
        is_error: value["is_error"].as_bool(),
        num_turns: value["num_turns"].as_u64(),
        duration_api_ms: value["duration_api_ms"].as_f64(),
        total_cost_usd: value["total_cost_usd"].as_f64(),
        terminal_reason: text(value, "terminal_reason"),
        result: text(value, "result"),
        errors,
        usage: Some(Tokens {
            input_tokens: tokens("input_tokens"),
            output_tokens: tokens("output_tokens"),
            cache_read_input_tokens: tokens("cache_read_input_tokens"),
            cache_creation_input_tokens: tokens("cache_creation_input_tokens"),
        }),
    }
}
