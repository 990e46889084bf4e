//! What the records of a session add up to in a list.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use session_core::history::{
    Ancestor, Descent, RawTime, Resumability, SessionEntry, SessionKind, SessionSource, Title, TitleSource,
    Unresumable,
};
use session_core::{NativeId, Timestamp, Usage, Version};

use super::record::{Message, Part, cut};

/// A session's own record.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) directory: String,
    pub(super) title: String,
    pub(super) version: String,
    pub(super) created: Option<f64>,
    pub(super) updated: Option<f64>,
    /// The first message that the user took back: it and all later ones go before the next prompt.
    pub(super) end: Option<String>,
    /// Whether all columns that should be JSON are.
    pub(super) is_sound: bool,
    /// Whether `opencode run` made it: it forbids itself to ask a person.
    pub(super) is_headless: bool,
    /// The agent's own running totals, in the versions that keep them.
    pub(super) totals: Option<Usage>,
}

/// A reply of the model.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) id: String,
    /// What a copy of it has in common with it.
    pub(super) key: Option<u64>,
    /// When it was made, as the key has it.
    pub(super) created: Option<f64>,
    /// A hash of its words, where it was asked for.
    pub(super) text: Option<u64>,
    /// The figures noted in the message itself: those of its last step.
    last_step: Usage,
    cost: Option<f64>,
    /// The figures of all of its steps, where they were asked for.
    steps: Option<(Usage, Option<f64>)>,
    /// Whether a fork copied it.
    pub(super) is_copied: bool,
}

impl Reply {
    pub(super) fn usage(&self) -> Usage {
        self.steps.map_or(self.last_step, |(usage, _)| usage)
    }

    pub(super) fn cost(&self) -> Option<f64> {
        self.steps.and_then(|(_, cost)| cost).or(self.cost)
    }
}

/// A session, and what was read of it.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) own: Session,
    pub(super) replies: Vec<Reply>,
    pub(super) fork_of: Option<String>,
    pub(super) turns: u64,
    answers: u64,
    first: Option<(String, String)>,
    last: Option<(String, String)>,
    /// The last reply: its id, its folder, its model.
    last_reply: Option<(String, Option<String>, Option<String>)>,
    first_time: Option<f64>,
    last_time: Option<f64>,
    /// Records that are none, and the last of them that the agent needs.
    pub(super) skipped: u64,
    last_broken: Option<String>,
    last_summary: Option<String>,
    /// Whether less was read of it than there is.
    pub(super) is_partial: bool,
}

impl Summary {
    pub(super) fn new(own: Session) -> Self {
        Self { own, ..Self::default() }
    }

    /// Whether a message belongs to the conversation: what the user took back does not.
    pub(super) fn holds(&self, message: &str) -> bool {
        self.own.end.as_deref().is_none_or(|end| message < end)
    }

    /// Adds a message, in any order. Returns whether its parts decide if it is a turn.
    pub(super) fn add_message(&mut self, id: &str, data: Option<&[u8]>) -> bool {
        let message = data.and_then(Message::read);
        let holds = self.holds(id);
        let is_whole = message.as_ref().is_some_and(Message::is_whole);
        if holds && !is_whole {
            self.skipped += u64::from(message.is_none());
            raise(&mut self.last_broken, id);
        }
        let Some(message) = message else { return false };
        if message.is_assistant() {
            self.replies.push(Reply {
                id: id.to_owned(),
                key: message.key(),
                created: message.created(),
                text: None,
                last_step: message
                    .tokens
                    .as_ref()
                    .map(|tokens| tokens.usage(reasoning_apart(&self.own)))
                    .unwrap_or_default(),
                cost: message.cost.filter(|cost| cost.is_finite()),
                steps: None,
                is_copied: false,
            });
        }
        if !holds {
            return false;
        }
        for time in message.time.iter().flat_map(|time| [time.created, time.completed]).flatten() {
            self.first_time = Some(self.first_time.map_or(time, |first| first.min(time)));
            self.last_time = Some(self.last_time.map_or(time, |last| last.max(time)));
        }
        if message.is_summary() {
            raise(&mut self.last_summary, id);
        }
        if message.is_assistant() {
            self.answers += 1;
            if !message.is_summary() && self.last_reply.as_ref().is_none_or(|(last, ..)| id > last.as_str()) {
                let model = message.model();
                let cwd = message.path.as_ref().and_then(|path| path.cwd.clone());
                let cwd = cwd.filter(|cwd| !cwd.is_empty());
                self.last_reply = Some((id.to_owned(), cwd, model));
            }
        }
        message.is_user()
    }

    /// Adds a message that somebody typed, with its words, if it has any.
    pub(super) fn add_prompt(&mut self, id: &str, words: Option<String>) {
        self.turns += 1;
        let Some(words) = words else { return };
        if self.first.as_ref().is_none_or(|(first, _)| id < first.as_str()) {
            self.first = Some((id.to_owned(), words.clone()));
        }
        if self.last.as_ref().is_none_or(|(last, _)| id > last.as_str()) {
            self.last = Some((id.to_owned(), words));
        }
    }

    /// Adds a finished step to the reply at this place.
    pub(super) fn add_step(&mut self, reply: usize, part: &Part) {
        if !part.is("step-finish") {
            return;
        }
        let apart = reasoning_apart(&self.own);
        let Some(reply) = self.replies.get_mut(reply) else { return };
        let (usage, cost) = reply.steps.get_or_insert_default();
        *usage += part.tokens.as_ref().map(|tokens| tokens.usage(apart)).unwrap_or_default();
        if let Some(more) = part.cost.filter(|cost| cost.is_finite()) {
            *cost = Some(cost.unwrap_or(0.0) + more);
        }
    }

    /// The agent's own totals, where they are all that is needed: nothing was copied.
    fn whole_totals(&self) -> Option<Usage> {
        let totals = self.own.totals.filter(|totals| *totals != Usage::default())?;
        self.replies.iter().all(|reply| !reply.is_copied).then_some(totals)
    }

    /// Whether the steps of its replies have to be read for its tokens.
    pub(super) fn needs_steps(&self) -> bool {
        self.whole_totals().is_none() && self.replies.iter().any(|reply| reply.last_step != Usage::default())
    }

    /// Its tokens without what was copied from another session.
    pub(super) fn usage(&self) -> Usage {
        self.whole_totals().unwrap_or_else(|| sum(self.replies.iter().filter(|reply| !reply.is_copied)))
    }

    /// Tokens of what was copied from another session.
    pub(super) fn usage_of_copies(&self) -> Usage {
        sum(self.replies.iter().filter(|reply| reply.is_copied))
    }

    /// What it cost, where that is noted, without what was copied.
    pub(super) fn cost(&self) -> Option<f64> {
        let own = self.replies.iter().filter(|reply| !reply.is_copied);
        own.filter_map(Reply::cost).reduce(|sum, more| sum + more)
    }

    pub(super) fn title(&self) -> Option<Title> {
        let text = self.own.title.trim();
        let is_one = !text.is_empty() && !is_default_title(text);
        is_one.then(|| Title { text: text.to_owned(), source: TitleSource::Agent })
    }

    pub(super) fn cwd(&self) -> Option<PathBuf> {
        Some(&self.own.directory).filter(|folder| !folder.is_empty()).map(PathBuf::from)
    }

    pub(super) fn last_cwd(&self) -> Option<PathBuf> {
        let (_, cwd, _) = self.last_reply.as_ref()?;
        cwd.as_ref().map(PathBuf::from)
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.last_reply.as_ref()?.2.as_deref()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.turns == 0 && self.answers == 0
    }

    fn resumable(&self) -> Resumability {
        let broken = self.last_broken.as_ref();
        let needed = broken.is_some_and(|id| self.last_summary.as_ref().is_none_or(|summary| id > summary));
        // What is archived is continued by the agent as any other (1.18.33).
        if !self.own.is_sound || needed {
            Resumability::No(Unresumable::Damaged)
        } else if self.own.parent.is_some() {
            Resumability::No(Unresumable::Sidechain)
        } else if self.is_empty() {
            Resumability::No(Unresumable::Empty)
        } else {
            Resumability::Yes
        }
    }

    /// How a list shows it.
    pub(super) fn entry(&self, path: &Path, state: Option<&Path>) -> SessionEntry {
        let source = SessionSource { path: path.to_owned(), state_dir: state.map(Path::to_owned) };
        let mut entry = SessionEntry::new(NativeId::new(&self.own.id), source);
        let time = |millis: Option<f64>| -> Option<Timestamp> { RawTime::Number(millis?).read() };
        let words = |prompt: &Option<(String, String)>| prompt.as_ref().map(|(_, words)| words.clone());
        let shown = |title: Title| Title { text: cut(&title.text, SessionEntry::PROMPT), ..title };
        entry.title = self.title().map(shown);
        entry.first_prompt = words(&self.first);
        entry.last_prompt = words(&self.last);
        entry.cwd = self.cwd();
        entry.last_cwd = self.last_cwd().or_else(|| self.cwd());
        entry.began = time(self.own.created).or_else(|| time(self.first_time));
        entry.updated = time(self.own.updated).or_else(|| time(self.last_time)).or(entry.began);
        entry.turns = Some(self.turns);
        let spawned = self.own.parent.as_ref().map(|id| (id, Descent::Spawned));
        let ancestor = spawned.or_else(|| self.fork_of.as_ref().map(|id| (id, Descent::Forked)));
        entry.parent = ancestor.map(|(id, descent)| Ancestor { id: NativeId::new(id), descent });
        entry.kind = match (&self.own.parent, self.own.is_headless) {
            (Some(_), _) => SessionKind::Sidechain,
            (None, true) => SessionKind::Headless,
            (None, false) => SessionKind::Main,
        };
        entry.resumable = self.resumable();
        entry.usage = Some(self.usage());
        entry.model = self.model().map(str::to_owned);
        entry.exact = !self.is_partial;
        if self.is_partial {
            (entry.turns, entry.usage) = (None, None);
        }
        entry.skipped_lines = self.skipped;
        entry
    }
}

/// Whether the version that made the session counts apart what was thought.
pub(super) fn reasoning_apart(own: &Session) -> bool {
    Version::parse(&own.version).is_none_or(|version| version.at_least(1, 15, 13))
}

fn sum<'a>(replies: impl Iterator<Item = &'a Reply>) -> Usage {
    replies.fold(Usage::default(), |mut sum, reply| {
        sum += reply.usage();
        sum
    })
}

fn raise(last: &mut Option<String>, id: &str) {
    if last.as_deref().is_none_or(|last| id > last) {
        *last = Some(id.to_owned());
    }
}

/// Whether it is the one that the agent gives before it has made one up, also in a fork.
fn is_default_title(title: &str) -> bool {
    let time = ["New session - ", "Child session - "].iter().find_map(|start| title.strip_prefix(start));
    let is_digits = |text: Option<&str>| {
        text.is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    time.is_some_and(|time| {
        is_digits(time.get(..4)) && time.get(4..5) == Some("-") && is_digits(time.get(5..7))
    })
}

/// The words of one message as they come, part by part: the first that are some.
#[derive(Debug, Default)]
pub(super) struct Typed {
    is_typed: bool,
    /// The words, with the id of their part.
    words: Option<(String, String)>,
}

impl Typed {
    /// Adds a part, in any order. `None`: one that was not read.
    pub(super) fn add(&mut self, id: &str, part: Option<&Part>) {
        self.is_typed |= part.is_none_or(Part::is_typed);
        if let Some(words) = part.and_then(Part::words)
            && self.words.as_ref().is_none_or(|(first, _)| id < first.as_str())
        {
            self.words = Some((id.to_owned(), cut(words, SessionEntry::PROMPT)));
        }
    }

    /// What it adds up to. `None`: nobody typed it.
    pub(super) fn done(self) -> Option<Option<String>> {
        self.is_typed.then(|| self.words.map(|(_, words)| words))
    }
}

/// The words of a reply, whatever the ids of its parts are.
#[derive(Debug, Default)]
pub(super) struct Words(DefaultHasher);

impl Words {
    /// Adds a part. The parts come in order.
    pub(super) fn add(&mut self, part: &Part) {
        if let Some(text) = part.text.as_deref().filter(|_| part.is("text") || part.is("reasoning")) {
            text.hash(&mut self.0);
        }
    }

    pub(super) fn done(&self) -> u64 {
        self.0.finish()
    }
}
