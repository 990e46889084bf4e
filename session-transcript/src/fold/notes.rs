//! What lines say of the session as a whole: the first or the last word counts.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use session_core::Timestamp;
use session_core::history::{
    HistoryBase, LineFacts, LineRole, RawTime, SessionEntry, SessionKind, TitleSource,
};

use super::head::Head;

/// What lines say of the main conversation, or of those of helpers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Talk {
    /// Lines that belong to it.
    pub(crate) lines: u64,
    /// The first prompt in words, and the first command.
    pub(crate) first_prompt: Option<String>,
    pub(crate) first_command: Option<String>,
    /// The last prompt that was typed.
    pub(crate) last_typed: Option<String>,
    /// Folders, of the first and the last line that names one.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) last_cwd: Option<PathBuf>,
    pub(crate) branch: Option<String>,
    pub(crate) model: Option<String>,
    /// Whether somebody said something.
    pub(crate) said: bool,
}

/// What lines say of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Notes {
    pub(crate) main: Talk,
    pub(crate) helpers: Talk,
    /// Titles, by who gave them: the last one of each. An empty one was taken back.
    pub(crate) given: Option<String>,
    pub(crate) made_up: Option<String>,
    pub(crate) summary: Option<String>,
    /// The last prompt, as the agent notes it.
    pub(crate) last_noted: Option<String>,
    /// Times, in milliseconds.
    pub(crate) began: Option<i64>,
    pub(crate) updated: Option<i64>,
    /// The first header, if it stands before everything that was said.
    pub(crate) head: Option<Head>,
    /// What the first line says that tells.
    pub(crate) kind: Option<SessionKind>,
    pub(crate) origin: Option<String>,
}

impl Talk {
    fn take(&mut self, facts: &LineFacts<'_>) {
        match &facts.role {
            LineRole::Prompt { text, command, queued: false } if !facts.meta => self.prompt(text, *command),
            LineRole::Model(model) => set(&mut self.model, Some(model)),
            LineRole::Reply { reply, model, .. } => {
                self.said |= reply.is_some();
                set(&mut self.model, model.as_deref());
            }
            _ => {}
        }
        if let Some(cwd) = facts.cwd.as_ref().filter(|cwd| is_path(cwd)) {
            if self.cwd.is_none() {
                self.cwd = Some(PathBuf::from(&**cwd));
            }
            if self.last_cwd.as_deref().and_then(|last| last.to_str()) != Some(cwd) {
                self.last_cwd = Some(PathBuf::from(&**cwd));
            }
        }
        set(&mut self.branch, facts.branch.as_deref());
    }

    fn prompt(&mut self, text: &str, command: bool) {
        let blank = text.trim().is_empty();
        let first = if command { &mut self.first_command } else { &mut self.first_prompt };
        if first.is_none() && !blank {
            *first = Some(cut(text).to_owned());
        }
        // An image alone says something; white space does not.
        self.said |= !command && (text.is_empty() || !blank);
        if !command && !blank {
            set(&mut self.last_typed, Some(text));
        }
    }

    fn append(&mut self, later: Self) {
        self.lines += later.lines;
        keep_first(&mut self.first_prompt, later.first_prompt);
        keep_first(&mut self.first_command, later.first_command);
        keep_first(&mut self.cwd, later.cwd);
        keep_last(&mut self.last_typed, later.last_typed);
        keep_last(&mut self.last_cwd, later.last_cwd);
        keep_last(&mut self.branch, later.branch);
        keep_last(&mut self.model, later.model);
        self.said |= later.said;
    }
}

impl Notes {
    /// Takes a line, and says at which time it was written. `base`: where a header says that the history begins.
    pub(super) fn take(
        &mut self,
        facts: &LineFacts<'_>,
        base: impl FnOnce() -> Option<HistoryBase>,
    ) -> Option<i64> {
        match &facts.role {
            LineRole::Title { source, text } => {
                let title = match source {
                    TitleSource::Given => &mut self.given,
                    TitleSource::Agent => &mut self.made_up,
                    TitleSource::Summary => &mut self.summary,
                };
                set(title, Some(text));
            }
            LineRole::LastPrompt(text) => set(&mut self.last_noted, Some(text)),
            _ => {}
        }
        let talk = if facts.sidechain { &mut self.helpers } else { &mut self.main };
        talk.lines += u64::from(is_talk(facts));
        if let LineRole::Header { .. } = facts.role {
            // Folders of headers that follow are those of other sessions.
            if self.is_silent() {
                self.headed(Head::of(facts, if self.head.is_none() { base() } else { None }));
            }
        } else {
            talk.take(facts);
        }
        let time = facts.time.as_ref().and_then(RawTime::read).map(Timestamp::as_millis);
        self.began = self.began.or(time);
        self.updated = time.or(self.updated);
        self.kind = self.kind.or(facts.kind);
        if self.origin.is_none() {
            self.origin = facts.origin.as_deref().map(|origin| cut(origin).to_owned());
        }
        time
    }

    /// Takes what later lines say.
    pub(super) fn append(&mut self, later: Self) {
        if self.is_silent() {
            self.headed(later.head);
        }
        self.main.append(later.main);
        self.helpers.append(later.helpers);
        keep_last(&mut self.given, later.given);
        keep_last(&mut self.made_up, later.made_up);
        keep_last(&mut self.summary, later.summary);
        keep_last(&mut self.last_noted, later.last_noted);
        keep_first(&mut self.began, later.began);
        keep_last(&mut self.updated, later.updated);
        keep_first(&mut self.kind, later.kind);
        keep_first(&mut self.origin, later.origin);
    }

    /// Takes a header that stands before everything that was said.
    fn headed(&mut self, header: Option<Head>) {
        match (&mut self.head, header) {
            (Some(head), Some(header)) => head.fill(header),
            (head, header) => keep_first(head, header),
        }
    }

    const fn is_silent(&self) -> bool {
        self.main.lines + self.helpers.lines == 0
    }

    /// What kind of session it is.
    pub(crate) fn kind(&self) -> SessionKind {
        match (self.head.as_ref().map(|head| head.kind), self.kind) {
            (Some(SessionKind::Sidechain), _) => SessionKind::Sidechain,
            _ if self.main.lines == 0 && self.helpers.lines > 0 => SessionKind::Sidechain,
            (Some(SessionKind::Headless), _) | (_, Some(SessionKind::Headless)) => SessionKind::Headless,
            _ => SessionKind::Main,
        }
    }

    /// The conversation that it is about.
    pub(crate) const fn talk(&self) -> &Talk {
        if self.main.lines == 0 && self.helpers.lines > 0 { &self.helpers } else { &self.main }
    }
}

/// Whether it is a record of a conversation.
pub(super) const fn is_talk(facts: &LineFacts<'_>) -> bool {
    let said = matches!(
        facts.role,
        LineRole::Prompt { .. }
            | LineRole::Reply { .. }
            | LineRole::Returned
            | LineRole::Boundary
            | LineRole::CompactSummary
    );
    said || facts.id.is_some()
}

fn keep_first<T>(known: &mut Option<T>, later: Option<T>) {
    if known.is_none() {
        *known = later;
    }
}

fn keep_last<T>(known: &mut Option<T>, later: Option<T>) {
    if later.is_some() {
        *known = later;
    }
}

/// Whether a system may have it: one that is longer than any is no folder, and cutting it would make it another one.
pub(super) const fn is_path(path: &str) -> bool {
    path.len() <= 4096
}

/// Sets it, as far as a list shows it, where it is something else; most lines say the same as the one before.
fn set(known: &mut Option<String>, said: Option<&str>) {
    if let Some(said) = said.map(cut)
        && known.as_deref() != Some(said)
    {
        *known = Some(said.to_owned());
    }
}

/// As much of it as a list shows.
pub(crate) fn cut(text: &str) -> &str {
    let mut end = text.len().min(SessionEntry::PROMPT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
