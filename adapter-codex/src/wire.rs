//! The lines of `exec --json`, as far as they matter: borrowed, and lenient.
//!
//! Texts are read as bytes, so that what is not UTF-8, and half a surrogate pair, costs the text and not the line.
//! Where a field is not of the type it always had, the line is read again field by field, and what does not fit is
//! left out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde_json::value::RawValue;
use session_core::Usage;

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
        Ok(Text(String::from_utf8_lossy(bytes)))
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
    /// `thread.started`
    #[serde(borrow)]
    pub(crate) thread_id: Option<Text<'a>>,
    /// `error`
    #[serde(borrow)]
    pub(crate) message: Option<Text<'a>>,
    /// `turn.failed`
    #[serde(borrow)]
    pub(crate) error: Option<Failure<'a>>,
    /// `turn.completed`
    pub(crate) usage: Option<Tokens>,
    /// `item.…`
    #[serde(borrow)]
    pub(crate) item: Option<Item<'a>>,
}

/// What a turn failed of.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Failure<'a> {
    #[serde(borrow)]
    pub(crate) message: Option<Text<'a>>,
}

/// Something that the agent said or did.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Item<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<Text<'a>>,
    /// `agent_message`
    #[serde(borrow)]
    pub(crate) text: Option<Text<'a>>,
    /// `error`
    #[serde(borrow)]
    pub(crate) message: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) status: Option<Text<'a>>,
}

/// Token counts. What is read from a cache, or written to it, is a part of `input_tokens`.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(crate) struct Tokens {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) cached_input_tokens: Option<u64>,
    pub(crate) cache_write_input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
}

/// The agent counts what it read from a cache, and what it wrote to one, as input.
pub(crate) fn usage(tokens: Tokens) -> Usage {
    let read = tokens.cached_input_tokens.unwrap_or(0);
    let written = tokens.cache_write_input_tokens.unwrap_or(0);
    Usage {
        input_tokens: tokens.input_tokens.unwrap_or(0).saturating_sub(read).saturating_sub(written),
        output_tokens: tokens.output_tokens.unwrap_or(0),
        cache_read_tokens: read,
        cache_write_tokens: written,
    }
}

/// Reads a line. `None`: it is no JSON object. A byte order mark before it, as wrappers may write one, is nothing.
pub(crate) fn parse(line: &[u8]) -> Option<Line<'_>> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if line.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    serde_json::from_slice(line).ok().or_else(|| salvage(line))
}

/// A JSON object, field by field.
pub(crate) struct Fields<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Fields<'a> {
    pub(crate) fn of(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok().map(Self)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A field as it is written.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|value| value.get())
    }

    pub(crate) fn borrowed<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.0.get(name)?.get()).ok()
    }

    pub(crate) fn inner(&self, name: &str) -> Option<Self> {
        Self::of(self.0.get(name)?.get().as_bytes())
    }

    pub(crate) fn text(&self, name: &str) -> Option<Text<'a>> {
        serde_json::from_str(self.0.get(name)?.get()).ok()
    }

    pub(crate) fn value<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.0.get(name)?.get()).ok()
    }
}

fn salvage(line: &[u8]) -> Option<Line<'_>> {
    let fields = Fields::of(line)?;
    let item = fields.inner("item").map(|item| Item {
        id: item.text("id"),
        kind: item.text("type"),
        text: item.text("text"),
        message: item.text("message"),
        status: item.text("status"),
    });
    let usage = fields.inner("usage").map(|usage| Tokens {
        input_tokens: usage.value("input_tokens"),
        cached_input_tokens: usage.value("cached_input_tokens"),
        cache_write_input_tokens: usage.value("cache_write_input_tokens"),
        output_tokens: usage.value("output_tokens"),
    });
    let error = match fields.inner("error") {
        Some(error) => Some(Failure { message: error.text("message") }),
        None => fields.text("error").map(|message| Failure { message: Some(message) }),
    };
    Some(Line {
        kind: fields.text("type"),
        thread_id: fields.text("thread_id"),
        message: fields.text("message"),
        error,
        usage,
        item,
    })
}
