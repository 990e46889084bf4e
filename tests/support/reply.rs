//! The answer which proves what context arrived.

use serde::{Deserialize, Serialize};

/// How many characters of a user text an answer repeats.
const SHOWN: usize = 80;

/// The default answer of the fake agent and the fake model: what they saw of the conversation.
///
/// A fresh session answers with one user turn, its first resume with two. As text it is one line of JSON,
/// `{"user_turns":2,"first":"…","last":"…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextReply {
    /// The number of messages the user wrote.
    pub user_turns: usize,
    /// The first 80 characters of the first one.
    pub first: String,
    /// The last 80 characters of the last one.
    pub last: String,
}

impl ContextReply {
    /// Sums up a conversation by its user texts, oldest first.
    #[must_use]
    pub fn of(user_texts: &[String]) -> Self {
        let first = user_texts.first().map(|text| text.chars().take(SHOWN).collect());
        let last = user_texts.last().map(|text| {
            let cut = text.chars().count().saturating_sub(SHOWN);
            text.chars().skip(cut).collect()
        });
        Self {
            user_turns: user_texts.len(),
            first: first.unwrap_or_default(),
            last: last.unwrap_or_default(),
        }
    }

    /// The answer as the agent says it.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings always serialize")
    }

    /// Reads an answer back; `None` when it is something else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text.trim()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_shows_both_ends_of_the_conversation() {
        let texts = [format!("a{}", "b".repeat(100)), format!("{}ü", "c".repeat(100))];
        let reply = ContextReply::of(&texts);
        assert_eq!(reply.user_turns, 2);
        assert_eq!(reply.first, format!("a{}", "b".repeat(79)));
        assert_eq!(reply.last, format!("{}ü", "c".repeat(79)));
        assert_eq!(ContextReply::parse(&reply.to_text()), Some(reply));
    }

    #[test]
    fn an_empty_conversation_has_an_answer() {
        assert_eq!(ContextReply::of(&[]).to_text(), r#"{"user_turns":0,"first":"","last":""}"#);
    }
}
