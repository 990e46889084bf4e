//! What a request says about the conversation, independent of the wire format.

use serde_json::Value;

/// A conversation as the model is shown it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conversation {
    /// What the user wrote, one text per message. A message that only carries context has none.
    pub(super) user_texts: Vec<String>,
    /// The model is asked to go on after the result of a tool.
    pub(super) after_tool_result: bool,
}

impl Conversation {
    /// Takes in a message of the user with these blocks of text.
    pub(super) fn user_said<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) {
        let said: Vec<_> = texts.into_iter().map(strip_context).filter(|text| !text.is_empty()).collect();
        if !said.is_empty() {
            self.user_texts.push(said.join("\n"));
            self.after_tool_result = false;
        }
    }

    /// The text that directives are looked for in.
    pub(super) fn last(&self) -> &str {
        self.user_texts.last().map_or("", String::as_str)
    }
}

/// The texts of a message's content, which is a text or a list of blocks.
pub(super) fn texts(content: &Value) -> impl Iterator<Item = &str> {
    let blocks = content.as_array().into_iter().flatten();
    content.as_str().into_iter().chain(blocks.filter_map(|block| block["text"].as_str()))
}

/// The blocks with which agents add context to what the user wrote.
const CONTEXT_TAGS: &[&str] = &[
    "system-reminder",
    "environment_context",
    "environment_details",
    "user_instructions",
    "permissions instructions",
    "current_datetime",
    "recommended_plugins",
    "skills_instructions",
    "apps_instructions",
    "collaboration_mode",
    "session_context",
    "turn_aborted",
    "user_shell_command",
    "skill",
];

/// How texts begin that agents put in whole, without a tag around them: the rules of a folder, the sum of what was
/// said before.
const CONTEXT_TEXTS: &[&str] =
    &["# AGENTS.md instructions", "Another language model started to solve this problem"];

/// Removes the blocks of context and the white space around what is left.
fn strip_context(text: &str) -> String {
    if CONTEXT_TEXTS.iter().any(|start| text.trim_start().starts_with(start)) {
        return String::new();
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some(after) = skip_block(from) {
            rest = after;
        } else {
            out.push('<');
            rest = &from[1..];
        }
    }
    out.push_str(rest);
    out.trim().to_owned()
}

/// What follows the block of context at the start of a text, if there is a whole one.
fn skip_block(text: &str) -> Option<&str> {
    CONTEXT_TAGS.iter().find_map(|tag| {
        let inner = text.strip_prefix('<')?.strip_prefix(tag)?;
        // The name must end here: it may be the start of a longer one.
        inner.starts_with(|c: char| c == '>' || c.is_whitespace()).then_some(())?;
        let end = format!("</{tag}>");
        inner.find(&end).map(|at| &inner[at + end.len()..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_is_no_text_of_the_user() {
        assert_eq!(strip_context("<system-reminder>x</system-reminder>\nhello"), "hello");
        assert_eq!(strip_context("a<environment_context id=\"1\">x\n</environment_context>b"), "ab");
        assert_eq!(strip_context("<permissions instructions>x</permissions instructions>"), "");
        assert_eq!(strip_context("# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>x</INSTRUCTIONS>"), "");
        assert_eq!(strip_context("Another language model started to solve this problem and …"), "");
        assert_eq!(strip_context("<turn_aborted>\nx\n</turn_aborted>"), "");
    }

    #[test]
    fn other_tags_stay() {
        for text in ["<b>x</b>", "<system-reminders>x</system-reminders>", "<system-reminder>open", "1 < 2"] {
            assert_eq!(strip_context(text), text);
        }
    }

    #[test]
    fn a_message_is_one_turn_however_many_blocks_it_has() {
        let mut conversation = Conversation::default();
        conversation.user_said(["<system-reminder>x</system-reminder>", "one", "more"]);
        conversation.after_tool_result = true;
        conversation.user_said(["<system-reminder>x</system-reminder>"]);
        assert!(conversation.after_tool_result);
        assert_eq!(conversation.user_texts, ["one\nmore"]);
        conversation.user_said(["two"]);
        assert!(!conversation.after_tool_result);
        assert_eq!(conversation.last(), "two");
    }
}
