//! Folds a transcript, read from its end to its beginning, into what a summary is put together from. Memory is bounded by the
//! budget, not by the transcript.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::text::after_record;
use crate::evidence::head;
use crate::history::{Block, EntryKind, Located, Restored};
use crate::{Conversation, Speaker, Usage};

/// So many turns are read at a time.
pub(crate) const PAGE_TURNS: usize = 16;

const NAME_BYTES: usize = 256;
const TOOLS: usize = 64;
const FILES: usize = 512;
const TASKS: usize = 64;

/// Words, and whether something is missing at their end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) text: String,
    pub(crate) cut: bool,
}

impl Words {
    /// At most so many bytes. A prompt cannot hold NUL, so this does not either.
    fn new(text: &str, limit: usize) -> Self {
        let kept = head(text, limit);
        Self { text: kept.replace('\0', " "), cut: kept.len() < text.len() }
    }
}

/// What was said in a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TurnWords {
    /// Its number, from 1.
    pub(crate) number: u64,
    pub(crate) prompt: Words,
    pub(crate) answer: Option<Words>,
}

impl TurnWords {
    fn bytes(&self) -> usize {
        self.prompt.text.len() + self.answer.as_ref().map_or(0, |answer| answer.text.len())
    }
}

/// What a summary is put together from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Digest {
    limit: usize,
    /// The first and the last turn that count, and how many there are; `None`: all of them do.
    window: Option<(u64, u64, u64)>,
    /// Turns seen from the end.
    seen: u64,
    kept: usize,
    /// The last turns that count, oldest first: as many as the budget can hold.
    pub(crate) turns: VecDeque<TurnWords>,
    /// The prompt of the first turn that counts.
    pub(crate) first: Option<Words>,
    /// The record of another conversation that stands before it.
    pub(crate) earlier: Option<Words>,
    /// How often which tool was called.
    pub(crate) tools: BTreeMap<String, u64>,
    /// Calls of tools beyond those.
    pub(crate) other_calls: u64,
    /// The files that were named to tools, the last ones first.
    pub(crate) files: Vec<String>,
    pub(crate) more_files: bool,
    known_files: BTreeSet<String>,
    /// The last list of tasks: how each stands, and what it is.
    pub(crate) tasks: Vec<(String, String)>,
    /// Tokens of the whole conversation.
    pub(crate) usage: Option<Usage>,
    /// Whether nobody could tell what else than words there was.
    pub(crate) words_only: bool,
}

#[derive(Debug, Default)]
struct RawTurn<'a> {
    prompt: Vec<&'a [Block]>,
    reply: Option<&'a str>,
    answer: Vec<&'a str>,
    calls: Vec<(&'a str, &'a Value, bool)>,
}

impl Digest {
    /// Of all turns, or of those from a first to a last one, of so many; keeps about so many bytes of words.
    pub(crate) fn new(limit: usize, window: Option<(u64, u64, u64)>) -> Self {
        Self { limit, window, ..Self::default() }
    }

    /// Takes the page before those that it got already. Answers whether it needs one more.
    pub(crate) fn page(&mut self, entries: &[Located]) -> bool {
        let mut turns = Vec::new();
        let mut lead = RawTurn::default();
        for Located { entry, .. } in entries {
            if entry.begins_turn() {
                turns.push(RawTurn::default());
            }
            let turn = turns.last_mut().unwrap_or(&mut lead);
            match &entry.kind {
                EntryKind::Prompt(blocks) if !entry.sidechain && !entry.meta => turn.prompt.push(blocks),
                EntryKind::Reply(blocks) => {
                    turn.reply(entry.reply.as_deref(), blocks, entry.sidechain, entry.meta)
                }
                _ => {}
            }
        }
        for turn in turns.into_iter().rev() {
            self.seen += 1;
            let number = match self.window {
                None => None,
                Some((first, last, of)) => {
                    let number = (of + 1).saturating_sub(self.seen);
                    if number > last {
                        continue;
                    }
                    if number < first {
                        return false;
                    }
                    Some(number)
                }
            };
            self.take(number, &turn);
        }
        // What the agent did before the first prompt.
        if self.window.is_none_or(|(first, ..)| first == 1) {
            self.note_calls(&lead);
        }
        self.window.is_none_or(|(first, _, of)| (of + 1).saturating_sub(self.seen) > first)
    }

    fn take(&mut self, number: Option<u64>, turn: &RawTurn<'_>) {
        self.note_calls(turn);
        let prompt: Vec<_> = turn.prompt.iter().map(|blocks| words(blocks)).collect();
        let prompt = prompt.join("\n\n");
        let (earlier, asked) = after_record(&prompt);
        self.earlier = earlier.map(|record| Words::new(record, self.limit));
        self.first = Some(Words::new(asked.trim(), self.limit));
        if self.kept > self.limit {
            return;
        }
        let answer = turn.answer.join("\n");
        let words = TurnWords {
            // Without a window, they are counted at the end.
            number: number.unwrap_or(self.seen),
            prompt: Words::new(asked.trim(), self.limit),
            answer: Some(answer.trim())
                .filter(|answer| !answer.is_empty())
                .map(|text| Words::new(text, self.limit)),
        };
        self.kept += words.bytes();
        self.turns.push_front(words);
    }

    fn note_calls(&mut self, turn: &RawTurn<'_>) {
        for (name, input, is_helper) in turn.calls.iter().rev() {
            let name = Words::new(name, NAME_BYTES / 4).text;
            let is_full = self.tools.len() >= TOOLS && !self.tools.contains_key(&name);
            if is_full {
                self.other_calls += 1;
            } else {
                *self.tools.entry(name).or_default() += 1;
            }
            for file in files_of(input).iter().rev() {
                let file = Words::new(file, NAME_BYTES).text;
                if self.known_files.contains(&file) {
                } else if self.files.len() < FILES {
                    self.known_files.insert(file.clone());
                    self.files.push(file);
                } else {
                    self.more_files = true;
                }
            }
            if self.tasks.is_empty() && !is_helper {
                self.tasks = tasks_of(input);
            }
        }
    }

    /// What was said, where nobody reads pages.
    pub(crate) fn said(&mut self, conversation: &Conversation) {
        self.words_only = true;
        let mut turns: Vec<TurnWords> = Vec::new();
        for said in &conversation.said {
            let text = Words::new(said.text.trim(), self.limit);
            match (said.by, turns.last_mut()) {
                (Speaker::Agent, Some(turn)) => turn.answer = Some(text),
                (Speaker::User, _) => turns.push(TurnWords { number: 0, prompt: text, answer: None }),
                (Speaker::Agent, None) => {}
            }
        }
        self.seen = turns.len() as u64;
        for (turn, number) in turns.iter_mut().zip(1..) {
            turn.number = number;
        }
        self.first = turns.first().filter(|_| conversation.left_out == 0).map(|turn| turn.prompt.clone());
        self.turns = turns.into();
    }

    /// Ends the reading. Answers how many turns there are in all, as far as it read.
    pub(crate) fn finish(&mut self, restored: Option<&Restored>) -> u64 {
        self.usage = restored.map(|restored| restored.usage);
        match self.window {
            Some((_, _, of)) => of,
            None if self.words_only => self.seen,
            None => {
                for turn in &mut self.turns {
                    turn.number = self.seen + 1 - turn.number;
                }
                self.seen
            }
        }
    }
}

impl<'a> RawTurn<'a> {
    fn reply(&mut self, reply: Option<&'a str>, blocks: &'a [Block], sidechain: bool, meta: bool) {
        let mut begins = reply.is_none() || reply != self.reply;
        for block in blocks {
            match block {
                // The last reply with words is the answer.
                Block::Text(text) if !sidechain && !meta && !text.trim().is_empty() => {
                    if std::mem::take(&mut begins) {
                        self.answer.clear();
                        self.reply = reply;
                    }
                    self.answer.push(text);
                }
                Block::ToolCall { name, input, .. } => self.calls.push((name, input, sidechain)),
                _ => {}
            }
        }
    }
}

fn words(blocks: &[Block]) -> String {
    let mut words = Vec::new();
    for block in blocks {
        match block {
            Block::Text(text) => words.push(text.clone()),
            Block::Attachment { media } => words.push(format!("[attachment: {media}]")),
            _ => {}
        }
    }
    words.join("\n")
}

/// The files that a tool was given: by the fields that the agents' tools have for it, and by the heads of a patch.
fn files_of(input: &Value) -> Vec<String> {
    let Some(fields) = input.as_object() else { return input.as_str().map(patched).unwrap_or_default() };
    let mut files = Vec::new();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("file_path" | "filePath" | "notebook_path", Value::String(path)) => files.push(path.clone()),
            (_, Value::String(text)) => files.extend(patched(text)),
            (_, Value::Array(parts)) => {
                files.extend(parts.iter().filter_map(Value::as_str).flat_map(patched))
            }
            _ => {}
        }
    }
    files
}

fn patched(text: &str) -> Vec<String> {
    if !text.contains("*** Begin Patch") {
        return Vec::new();
    }
    let heads = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let path =
        |line: &str| heads.iter().find_map(|head| line.strip_prefix(head)).map(|path| path.trim().to_owned());
    text.lines().filter_map(path).collect()
}

/// The tasks that a tool was given, where it was given a list of them, or a plan in words.
fn tasks_of(input: &Value) -> Vec<(String, String)> {
    let text_of = |task: &Value, names: &[&str]| {
        names
            .iter()
            .find_map(|name| task.get(name)?.as_str())
            .map(|text| Words::new(text.trim(), NAME_BYTES).text)
    };
    match input.get("todos").or_else(|| input.get("plan")) {
        Some(Value::Array(tasks)) => {
            let task = |task| {
                Some((text_of(task, &["status", "state"])?, text_of(task, &["content", "step", "text"])?))
            };
            tasks.iter().filter_map(task).take(TASKS).collect()
        }
        Some(Value::String(plan)) => vec![("plan".to_owned(), Words::new(plan.trim(), NAME_BYTES * 8).text)],
        _ => Vec::new(),
    }
}
