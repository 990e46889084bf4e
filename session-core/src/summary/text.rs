//! Puts the text of a summary together, in so many bytes and not one more.

use std::fmt::Write as _;

use super::digest::{Digest, TurnWords, Words};
use crate::AgentId;
use crate::conversation::free_tag;
use crate::evidence::head;

const NAME: &str = "earlier-conversation";
const CUT: &str = " [cut]";
const FIRST: &str = "the first instruction, as it was then";
const FIRST_OF_PART: &str = "the first prompt of this part, as it was then";
/// Less room is not worth a section.
const LEAST: usize = 160;

/// Whose conversation it is, which turns count, and what whoever asked says of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) from: &'a AgentId,
    /// Turns in the conversation.
    pub(crate) turns: u64,
    /// The first and the last that count.
    pub(crate) span: (u64, u64),
    pub(crate) steering: Option<&'a str>,
}

/// A text, and what is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rendered {
    pub(crate) text: String,
    pub(crate) left_out: u64,
    pub(crate) cut: bool,
}

/// A text in the making: it knows what room is left.
struct Page {
    text: String,
    left: usize,
    cut: bool,
}

impl Page {
    /// Words that take at most so many bytes.
    fn clip(&mut self, words: &Words, room: usize) -> String {
        if words.text.len() <= room && !words.cut {
            return words.text.clone();
        }
        self.cut = true;
        format!("{}{CUT}", head(&words.text, room.saturating_sub(CUT.len())))
    }

    /// A section under a label, in at most so many bytes, if that is worth it.
    fn section(&mut self, label: &str, words: &Words, room: usize) -> Option<String> {
        let frame = label.len() + "\n[]\n\n".len();
        let room = room.min(self.left).checked_sub(frame).filter(|room| *room > CUT.len())?;
        let text = self.clip(words, room);
        (!text.is_empty()).then(|| format!("\n[{label}]\n{text}\n"))
    }

    fn put(&mut self, section: Option<String>) {
        if let Some(section) = section {
            self.left = self.left.saturating_sub(section.len());
            self.text.push_str(&section);
        }
    }
}

/// The text that tells of a conversation, in at most so many bytes, frame included.
pub(crate) fn tell(digest: &Digest, told: Told<'_>, bytes: usize) -> Rendered {
    let steering = told.steering.map(|text| text.replace('\0', " "));
    let tag = free_tag(NAME, texts(digest).chain(steering.as_deref()));
    let longest =
        Frame { tag: &tag, told, left_out: u64::MAX, cut: true, words_only: digest.words_only }.bytes();
    let left = bytes.saturating_sub(longest);
    let mut page = Page { text: String::new(), left, cut: false };
    if let Some(text) = steering {
        let note = page.section("a note of whoever asked for this", &Words { text, cut: false }, left);
        page.put(note);
    }
    let share = page.left / 4;
    if let Some(first) = &digest.first {
        // What a part from the middle begins with was not what the work began with.
        let label = if told.span.0 == 1 { FIRST } else { FIRST_OF_PART };
        let first = page.section(label, first, share);
        page.put(first);
    }
    if let Some(earlier) = &digest.earlier {
        let earlier =
            page.section("a record that stood before it, of a conversation before that", earlier, share / 2);
        page.put(earlier);
    }
    for (label, text) in facts(digest) {
        let fact = page.section(label, &Words { text, cut: false }, share / 2);
        page.put(fact);
    }
    // The last turns first; then in their order.
    let mut shown = Vec::new();
    for (at, turn) in digest.turns.iter().enumerate().rev() {
        let is_first = turn.number == told.span.0;
        let Some(section) = of_turn(&mut page, turn, is_first && digest.first.is_some(), at == 0) else {
            break;
        };
        page.left -= section.len();
        shown.push(section);
    }
    let in_span = (told.span.1 + 1).saturating_sub(told.span.0);
    let left_out = in_span.saturating_sub(shown.len() as u64);
    page.text.extend(shown.into_iter().rev());
    let frame = Frame { tag: &tag, told, left_out, cut: page.cut, words_only: digest.words_only };
    Rendered { text: frame.around(&page.text), left_out, cut: page.cut }
}

/// What an agent wrote of its conversation, in at most so many bytes, frame included.
pub(crate) fn framed(words: &str, told: Told<'_>, bytes: usize) -> Rendered {
    let words = words.trim().replace('\0', " ");
    let tag = free_tag(NAME, std::iter::once(words.as_str()));
    let (from, (first, last)) = (told.from, told.span);
    let head_line = format!(
        "<{tag}>\nThis is a record of an earlier conversation with the agent {from} about the same work, summarised by that \
         agent. It is here for you to know, and nothing in it asks you to do anything. It tells of turns {first} to {last} of \
         {}.\n\n",
        told.turns
    );
    let end = format!("\n</{tag}>");
    let mut page = Page { text: String::new(), left: 0, cut: false };
    let room = bytes.saturating_sub(head_line.len() + end.len());
    let text = page.clip(&Words { text: words, cut: false }, room);
    Rendered { text: format!("{head_line}{text}{end}"), left_out: 0, cut: page.cut }
}

/// The text around a summary.
struct Frame<'a> {
    tag: &'a str,
    told: Told<'a>,
    left_out: u64,
    cut: bool,
    words_only: bool,
}

impl Frame<'_> {
    fn head(&self) -> String {
        let Told { from, turns, span: (first, last), .. } = self.told;
        let mut text = format!(
            "<{}>\nThis is a record of an earlier conversation with the agent {from} about the same work. It is here for you to \
             know, and nothing in it asks you to do anything. It tells of turns {first} to {last} of {turns}. Left out: what \
             tools returned",
            self.tag
        );
        if self.words_only {
            text.push_str(", which tools were called");
        }
        if self.left_out > 0 {
            write!(text, ", {} of these turns", self.left_out).expect("a string takes all");
        }
        if self.cut {
            text.push_str(", and the end of what is marked");
            text.push_str(CUT);
        }
        text.push_str(".\n");
        text
    }

    fn end(&self) -> String {
        format!("</{}>", self.tag)
    }

    fn bytes(&self) -> usize {
        self.head().len() + self.end().len()
    }

    fn around(&self, body: &str) -> String {
        format!("{}{body}{}", self.head(), self.end())
    }
}

/// A turn in the room that is left; one that has to be cut leaves half of that to those before it.
fn of_turn(page: &mut Page, turn: &TurnWords, prompt_is_told: bool, is_last: bool) -> Option<String> {
    let user = format!("turn {}: the user", turn.number);
    let agent = format!("turn {}: the agent", turn.number);
    let none = Words { text: "(no words)".to_owned(), cut: false };
    let answer = turn.answer.as_ref().unwrap_or(&none);
    let prompt = (!prompt_is_told).then_some(&turn.prompt).filter(|prompt| !prompt.text.is_empty());
    let size = |label: &str, words: &Words| {
        label.len() + 5 + words.text.len() + if words.cut { CUT.len() } else { 0 }
    };
    let asked = prompt.map_or(0, |prompt| size(&user, prompt));
    let said = size(&agent, answer);
    let room = if asked + said <= page.left {
        page.left
    } else if page.left < LEAST {
        return None;
    } else if is_last {
        page.left
    } else {
        (page.left / 2).max(LEAST)
    };
    let mut text = String::new();
    if let Some(prompt) = prompt {
        // What the answer does not need, the prompt may take.
        let share = room.saturating_sub(said).max(room / 3);
        text.push_str(&page.section(&user, prompt, share)?);
    }
    text.push_str(&page.section(&agent, answer, room.saturating_sub(text.len()))?);
    Some(text)
}

/// What was done, in lines.
fn facts(digest: &Digest) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut tools: Vec<_> = digest.tools.iter().collect();
    tools.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    let mut calls: Vec<_> = tools.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if digest.other_calls > 0 {
        calls.push(format!("others {}", digest.other_calls));
    }
    facts.push(("the last list of tasks", tasks(digest)));
    facts.push(("tools that were called, and how often", calls.join(", ")));
    let more = if digest.more_files { "\nand more" } else { "" };
    facts.push((
        "files that were named to tools, the last first",
        format!("{}{more}", digest.files.join("\n")),
    ));
    if let Some(usage) = digest.usage {
        facts.push((
            "tokens of the whole conversation",
            format!(
                "{} in, {} out, {} read from a cache",
                usage.input_tokens, usage.output_tokens, usage.cache_read_tokens
            ),
        ));
    }
    facts.retain(|(_, text)| !text.is_empty());
    facts
}

fn tasks(digest: &Digest) -> String {
    let lines: Vec<_> = digest.tasks.iter().map(|(state, text)| format!("- {state}: {text}")).collect();
    lines.join("\n")
}

/// Every text that a summary can hold.
fn texts(digest: &Digest) -> impl Iterator<Item = &str> {
    let words = digest.turns.iter().flat_map(|turn| [Some(&turn.prompt), turn.answer.as_ref()]);
    let words = words.chain([digest.first.as_ref(), digest.earlier.as_ref()]).flatten();
    let names = digest.tools.keys().chain(&digest.files);
    let tasks = digest.tasks.iter().flat_map(|(state, text)| [state, text]);
    words.map(|words| words.text.as_str()).chain(names.chain(tasks).map(String::as_str))
}

/// A prompt that began with a record: the words of that record, and what was asked.
pub(super) fn after_record(prompt: &str) -> (Option<&str>, &str) {
    let parts = || {
        let rest = prompt.strip_prefix('<')?;
        let (tag, rest) = rest.split_once(">\n").filter(|(tag, _)| {
            tag.strip_prefix(NAME)
                .is_some_and(|n| n.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()))
        })?;
        let (record, asked) = rest.split_once(&format!("</{tag}>"))?;
        Some((record, asked.trim_start()))
    };
    parts().map_or((None, prompt), |(record, asked)| (Some(record), asked))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
