//! What a stored message or part is, in short: lenient, as whatever wrote it may be of another version.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use session_core::{Usage, without_lone_surrogates};

use crate::transcript::Summary;

/// A message, as far as a list needs it. A field of another type than it always had is one that is missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    #[serde(deserialize_with = "lenient")]
    pub(super) role: Option<String>,
    #[serde(rename = "parentID", deserialize_with = "lenient")]
    pub(super) parent: Option<String>,
    #[serde(rename = "modelID", deserialize_with = "lenient")]
    pub(super) model: Option<String>,
    #[serde(rename = "providerID", deserialize_with = "lenient")]
    pub(super) provider: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) finish: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) time: Option<Times>,
    #[serde(deserialize_with = "lenient")]
    pub(super) path: Option<Where>,
    #[serde(deserialize_with = "lenient")]
    pub(super) tokens: Option<Tokens>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cost: Option<f64>,
    pub(super) summary: Option<Summary>,
}

/// When a message was made, and done, in milliseconds since the epoch.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Times {
    #[serde(deserialize_with = "lenient")]
    pub(super) created: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) completed: Option<f64>,
}

/// Where a reply was made.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Where {
    #[serde(deserialize_with = "lenient")]
    pub(super) cwd: Option<String>,
}

/// Tokens of a step, or of the last step of a reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    #[serde(deserialize_with = "lenient")]
    input: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    output: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    reasoning: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    cache: Option<Cache>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cache {
    #[serde(deserialize_with = "lenient")]
    read: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    write: Option<u64>,
}

impl Tokens {
    /// From 1.15.13 on, what was thought is counted apart from what was written.
    pub(super) fn usage(&self, reasoning_apart: bool) -> Usage {
        let cache = self.cache.as_ref();
        let apart = self.reasoning.filter(|_| reasoning_apart).unwrap_or(0);
        Usage {
            input_tokens: self.input.unwrap_or(0),
            output_tokens: self.output.unwrap_or(0).saturating_add(apart),
            cache_read_tokens: cache.and_then(|cache| cache.read).unwrap_or(0),
            cache_write_tokens: cache.and_then(|cache| cache.write).unwrap_or(0),
        }
    }
}

impl Message {
    /// Reads one. `None`: it is none. Total over all bytes.
    pub(super) fn read(data: &[u8]) -> Option<Self> {
        parse(data)
    }

    pub(super) fn is_user(&self) -> bool {
        self.role.as_deref() == Some("user")
    }

    pub(super) fn is_assistant(&self) -> bool {
        self.role.as_deref() == Some("assistant")
    }

    pub(super) fn created(&self) -> Option<f64> {
        self.time.as_ref()?.created
    }

    pub(super) fn is_complete(&self) -> bool {
        self.time.as_ref().is_some_and(|time| time.completed.is_some())
    }

    /// Whether it has what 1.18.33 cannot do without.
    pub(super) fn is_whole(&self) -> bool {
        (self.is_user() || self.is_assistant()) && self.created().is_some()
    }

    /// Whether it is a finished summary: nothing before it reaches the model any more.
    pub(super) fn is_summary(&self) -> bool {
        self.is_assistant() && self.summary == Some(Summary::Is(true)) && self.finish.is_some()
    }

    /// The model, as the agent's option `--model` takes it.
    pub(super) fn model(&self) -> Option<String> {
        let model = self.model.as_ref().filter(|model| !model.is_empty())?;
        Some(match self.provider.as_deref() {
            Some(provider) if !provider.is_empty() => format!("{provider}/{model}"),
            _ => model.clone(),
        })
    }

    /// What a copy of the reply has in common with it: times and figures, as a copy's ids are new. `None`: too little to
    /// tell one reply from another.
    pub(super) fn key(&self) -> Option<u64> {
        let (time, tokens) = (self.time.as_ref()?, self.tokens.as_ref()?);
        let (created, cache) = (time.created?, tokens.cache.as_ref());
        let figures = [tokens.input, tokens.output, tokens.reasoning, cache?.read, cache?.write];
        if !self.is_assistant() || figures.iter().all(|figure| figure.unwrap_or(0) == 0) {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (created.to_bits(), time.completed.map(f64::to_bits), figures, &self.model).hash(&mut hasher);
        self.cost.map(f64::to_bits).hash(&mut hasher);
        Some(hasher.finish())
    }
}

/// A part, as far as a list needs it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) text: Option<String>,
    #[serde(deserialize_with = "lenient")]
    synthetic: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    ignored: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    pub(super) tokens: Option<Tokens>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cost: Option<f64>,
}

impl Part {
    /// Reads one. `None`: it is none. Total over all bytes.
    pub(super) fn read(data: &[u8]) -> Option<Self> {
        parse(data)
    }

    pub(super) fn is(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    /// Whether the agent put it there itself.
    pub(super) fn is_made_up(&self) -> bool {
        self.synthetic == Some(true) || self.ignored == Some(true)
    }

    /// Whether it makes a user's message one that somebody typed.
    pub(super) fn is_typed(&self) -> bool {
        !self.is_made_up() && !self.is("compaction")
    }

    /// What was typed in it.
    pub(super) fn words(&self) -> Option<&str> {
        let text = self.text.as_deref().filter(|_| self.is("text") && self.is_typed())?;
        Some(text.trim()).filter(|text| !text.is_empty())
    }
}

fn parse<T: for<'a> Deserialize<'a>>(data: &[u8]) -> Option<T> {
    if data.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    // A key that is there twice, or half a character, is read as the agent does.
    serde_json::from_slice(data).ok().or_else(|| serde_json::from_value(value(data)?).ok())
}

/// Reads any JSON, as the agent would.
pub(super) fn value(data: &[u8]) -> Option<serde_json::Value> {
    let text = || without_lone_surrogates(&String::from_utf8_lossy(data));
    serde_json::from_slice(data).ok().or_else(|| serde_json::from_str(&text()).ok())
}

/// Reads a field, or nothing where it is of another type.
fn lenient<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Field<T> {
        Is(T),
        Not(IgnoredAny),
    }
    Ok(match Field::deserialize(from)? {
        Field::Is(value) => Some(value),
        Field::Not(IgnoredAny) => None,
    })
}

/// The beginning of a text, of at most so many bytes.
pub(super) fn cut(text: &str, bytes: usize) -> String {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
