//! One line of a session file, as far as it matters: borrowed, read in one pass, and lenient.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use session_core::RecordKind;
use session_core::history::RawTime;

use crate::wire::{Fields, Text, Tokens};

/// One record.
#[derive(Default, Deserialize)]
pub(super) struct Record<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) timestamp: Time<'a>,
    pub(super) ordinal: Option<u64>,
    #[serde(borrow, default)]
    pub(super) payload: Payload<'a>,
}

#[derive(Default, Deserialize)]
pub(super) struct Payload<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    /// `message` of a `response_item`
    #[serde(borrow)]
    pub(super) role: Option<Text<'a>>,
    /// `session_meta`, `turn_context`
    #[serde(borrow)]
    pub(super) cwd: Option<Text<'a>>,
    /// `session_meta`
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) history_mode: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) history_base: Option<Base<'a>>,
    #[serde(borrow, default)]
    pub(super) source: Source<'a>,
    #[serde(borrow)]
    pub(super) thread_source: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) forked_from_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) parent_thread_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) git: Option<Git<'a>>,
    /// `turn_context`
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    /// `user_message`, `agent_message`
    #[serde(borrow)]
    pub(super) message: Option<Text<'a>>,
    /// `item_completed`
    #[serde(borrow)]
    pub(super) item: Option<Item<'a>>,
    /// `token_count`
    pub(super) info: Option<Info>,
    /// `token_usage_record`
    pub(super) thread_token_usage: Option<Tokens>,
    /// `thread_rolled_back`
    pub(super) num_turns: Option<u64>,
}

#[derive(Default, Deserialize)]
pub(super) struct Base<'a> {
    #[serde(borrow)]
    pub(super) thread_id: Option<Text<'a>>,
    pub(super) end_byte_offset: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Git<'a> {
    #[serde(borrow)]
    pub(super) branch: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Info {
    pub(super) total_token_usage: Option<Tokens>,
}

#[derive(Default, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) content: Vec<Block<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
}

impl<'a> Record<'a> {
    /// `None`: it has no type, so it is no record.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        if line.trim_ascii_start().first() != Some(&b'{') {
            return None;
        }
        let record = serde_json::from_slice::<Self>(line).ok().or_else(|| Self::salvage(line))?;
        record.kind.is_some().then_some(record)
    }

    /// A record whose fields changed their type is still a record, and what did not change is still told.
    fn salvage(line: &'a [u8]) -> Option<Self> {
        let fields = Fields::of(line)?;
        let kind = Some(fields.text("type")?);
        let payload = fields.inner("payload").map(|payload| Payload {
            kind: payload.text("type"),
            role: payload.text("role"),
            cwd: payload.text("cwd"),
            id: payload.text("id"),
            history_mode: payload.text("history_mode"),
            history_base: payload
                .has("history_base")
                .then(|| payload.borrowed("history_base").unwrap_or_default()),
            source: payload.borrowed("source").unwrap_or_default(),
            thread_source: payload.text("thread_source"),
            forked_from_id: payload.text("forked_from_id"),
            parent_thread_id: payload.text("parent_thread_id"),
            git: payload.borrowed("git"),
            model: payload.text("model"),
            message: payload.text("message"),
            item: payload.inner("item").map(|item| Item {
                kind: item.text("type"),
                content: item.borrowed("content").unwrap_or_default(),
            }),
            info: payload.value("info"),
            thread_token_usage: payload.value("thread_token_usage"),
            num_turns: payload.value("num_turns"),
        });
        Some(Self {
            kind,
            timestamp: fields.borrowed("timestamp").unwrap_or_default(),
            ordinal: fields.value("ordinal"),
            payload: payload.unwrap_or_default(),
        })
    }

    pub(super) fn kind(&self) -> &str {
        words(self.kind.as_ref())
    }

    pub(super) fn is_header(&self) -> bool {
        self.kind() == "session_meta"
    }

    /// What was said is told by an event of its own. The messages beside it (`response_item`) are what the model gets:
    /// they hold what the agent puts in, too.
    pub(super) fn what(&self) -> RecordKind {
        match self.event() {
            ("user_message", _) | ("item_completed", "UserMessage") if !self.is_injected() => {
                RecordKind::Prompt
            }
            ("agent_message", _) | ("item_completed", "AgentMessage") => RecordKind::Answer,
            _ => RecordKind::Other,
        }
    }

    /// The event and, from 0.148 on, where the records are numbered, the item that it is about.
    pub(super) fn event(&self) -> (&str, &str) {
        if self.kind() != "event_msg" {
            return ("", "");
        }
        let item = self.payload.item.as_ref().and_then(|item| item.kind.as_ref());
        (words(self.payload.kind.as_ref()), words(item))
    }

    /// Whether it is a prompt of the agent's own.
    pub(super) fn is_injected(&self) -> bool {
        matches!(self.event(), ("user_message", _) | ("item_completed", "UserMessage"))
            && self.texts().next().is_some_and(is_injected)
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let blocks = self.payload.item.iter().flat_map(|item| &item.content);
        let texts = self.payload.message.iter().chain(blocks.filter_map(|block| block.text.as_ref()));
        texts.map(Text::as_str)
    }

    /// What was said.
    pub(super) fn text(&self) -> String {
        self.texts().collect::<Vec<_>>().join("\n")
    }

    /// The same, borrowed where it is one text without escapes.
    pub(super) fn into_text(self) -> Cow<'a, str> {
        match (self.payload.message, self.payload.item) {
            (Some(message), None) => message.0,
            (None, Some(item)) => {
                let mut texts = item.content.into_iter().filter_map(|block| block.text).map(|text| text.0);
                let first = texts.next().unwrap_or_default();
                texts.fold(first, |all, text| Cow::Owned(format!("{all}\n{text}")))
            }
            (message, _) => message.map(|message| message.0).unwrap_or_default(),
        }
    }
}

/// Whether a text of the user's side is one that the agent puts in.
pub(super) fn is_injected(text: &str) -> bool {
    const STARTS: &[&str] = &[
        "<environment_context>",
        "<user_instructions>",
        "# AGENTS.md instructions",
        "<turn_aborted>",
        "<permissions instructions>",
        "<skills_instructions>",
        "<subagent_notification>",
        "<user_shell_command>",
    ];
    let text = text.trim_start();
    STARTS.iter().any(|start| text.starts_with(start))
}

pub(super) fn words<'t>(text: Option<&'t Text<'_>>) -> &'t str {
    text.map_or("", Text::as_str)
}

/// A time, of whatever type.
#[derive(Default)]
pub(super) struct Time<'a>(pub(super) Option<RawTime<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Time<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

struct TimeVisitor;

impl<'de> Visitor<'de> for TimeVisitor {
    type Value = Time<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Time(Some(RawTime::Text(Cow::Borrowed(text)))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Time(Some(RawTime::Text(Cow::Owned(text.to_owned())))))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Time(Some(RawTime::Number(number))))
    }

    #[expect(clippy::cast_precision_loss, reason = "no time is that large")]
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Time(Some(RawTime::Number(number as f64))))
    }

    #[expect(clippy::cast_precision_loss, reason = "no time is that large")]
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Time(Some(RawTime::Number(number as f64))))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Time(None))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Time(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Time(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Time(None))
    }
}

/// Who began a session: a word, or an object that says more.
#[derive(Default)]
pub(super) enum Source<'a> {
    #[default]
    Unknown,
    Word(Text<'a>),
    /// With the session that began it, where that is told.
    Subagent(Option<Text<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Source<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourceVisitor)
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = Source<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a source")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Source::Word(Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Source::Word(Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Source::Unknown)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut source = Source::Unknown;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if key.as_str() == "subagent" {
                // `"review"`, `{"other":"…"}`, `{"thread_spawn":{…}}`; as a tree it would take many times its size.
                let spawned: &RawValue = map.next_value()?;
                let spawn = Fields::of(spawned.get().as_bytes()).and_then(|it| it.inner("thread_spawn"));
                source = Source::Subagent(spawn.and_then(|spawn| spawn.text("parent_thread_id")));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(source)
    }
}
