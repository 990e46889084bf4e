//! What the model says, before it is put into a wire format.

use serde_json::Value;
use uuid::Uuid;

use super::directives::Usage;
use super::stream::{Ending, Part};

/// One answer of the model.
#[derive(Debug)]
pub(super) struct Answer {
    /// Unique; every format puts its own prefix before it.
    pub(super) id: String,
    pub(super) model: String,
    pub(super) content: Content,
    /// The tokens that the prompt asks for; without it, those that the format usually reports.
    pub(super) usage: Option<Usage>,
}

/// What an answer holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Text(String),
    Tool(String, Value),
}

impl Answer {
    pub(super) fn new(model: &str, content: Content, usage: Option<Usage>) -> Self {
        Self { id: Uuid::new_v4().simple().to_string(), model: model.to_owned(), content, usage }
    }
}

/// One server-sent event with this data, named after its type where it has one.
pub(super) fn event(data: &Value) -> Part {
    let name = data["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
    Part::Bytes(format!("{name}data: {data}\n\n").into())
}

/// The parts of a stream: all of them, or the first one and what the prompt asked for after it.
pub(super) fn ended(mut parts: Vec<Part>, ending: Ending) -> Vec<Part> {
    match ending {
        Ending::Whole => {}
        Ending::Cut => parts.truncate(1),
        Ending::Broken => {
            parts.truncate(1);
            parts.extend([Part::Flush, Part::Break]);
        }
    }
    parts
}
