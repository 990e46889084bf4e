//! The state of the picker, and what changes it. Nothing here knows a terminal, a clock or a file.

use std::sync::Arc;

use ratatui::crossterm::event::KeyEvent;
use rejoin::AgentId;
use rejoin::core::Timestamp;

use super::fuzzy::{Query, Rows};
use super::keys::{self, Act};
use super::row::Row;
use crate::args::ScopeChoice;
use crate::folders::{Folders, holds};
use crate::talk::Line;

/// The longest text that is searched for.
const LONGEST: usize = 200;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The terminal has another size; the next frame has it, too.
    Resize,
    /// The sessions of an agent: all that are known by now, newest first.
    Listed { agent: AgentId, rows: Vec<Arc<Row>> },
    /// Nothing more comes.
    Complete,
    /// Something could not be listed.
    Trouble(String),
    /// A search is done.
    Found { number: u64, rows: Rows },
    /// The last turns of a session.
    Preview { row: Arc<Row>, lines: Vec<Line> },
}

/// Something to be done.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Search, and say what was found.
    Search(Query),
    /// Read the last turns of a session; those of another one are not wanted any more.
    Preview(Arc<Row>),
    /// A session was taken.
    Choose(Arc<Row>),
    /// It was left without one.
    Leave,
}

/// The last turns of the session that is selected.
#[derive(Debug)]
pub(crate) struct Preview {
    pub(crate) row: Arc<Row>,
    /// None: they are being read.
    pub(crate) lines: Option<Vec<Line>>,
}

/// The picker.
#[derive(Debug)]
pub(crate) struct Picker {
    pub(crate) now: Timestamp,
    pub(crate) scope: ScopeChoice,
    pub(crate) query: String,
    /// What is shown, best first.
    pub(crate) shown: Rows,
    pub(crate) selected: usize,
    /// The first row on the screen.
    pub(crate) first: usize,
    /// How many rows are on the screen; the last frame says it.
    pub(crate) page: usize,
    pub(crate) preview: Option<Preview>,
    pub(crate) help: bool,
    pub(crate) complete: bool,
    pub(crate) trouble: Option<String>,
    folders: Folders,
    /// All of all scopes, newest first.
    all: Vec<Arc<Row>>,
    /// Those of the scope.
    scoped: Rows,
    /// The number of the search that was asked for last.
    asked: u64,
    /// The number of the search that is shown, and its text.
    answered: u64,
    answered_text: String,
    /// Whether the person went to a row: then that row stays selected when others come.
    moved: bool,
    /// Whether the row is to be taken that the search under way brings to the top.
    choosing: bool,
}

impl Picker {
    pub(crate) fn new(folders: Folders, scope: ScopeChoice, query: &str, now: Timestamp) -> Self {
        let none: Rows = Arc::new([]);
        Self {
            now,
            scope,
            query: query.chars().filter(|c| !c.is_control()).take(LONGEST).collect(),
            shown: Arc::clone(&none),
            selected: 0,
            first: 0,
            page: 1,
            preview: None,
            help: false,
            complete: false,
            trouble: None,
            folders,
            all: Vec::new(),
            scoped: none,
            asked: 0,
            answered: 0,
            answered_text: String::new(),
            moved: false,
            choosing: false,
        }
    }

    /// Takes what happened, and says what is to be done.
    pub(crate) fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::Key(key) => {
                if let Some(act) = keys::act(key, !self.query.is_empty()) {
                    self.act(act, &mut effects);
                }
            }
            Input::Paste(text) => {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                self.query.extend(text.chars().filter(|c| !c.is_control()).take(LONGEST));
                self.search(&mut effects);
            }
            Input::Resize => {}
            Input::Listed { agent, rows } => {
                self.all.retain(|row| row.listed.agent != agent);
                self.all.extend(rows);
                self.all.sort_by(|one, other| one.listed.newest_first(&other.listed));
                self.rescope(&mut effects);
            }
            Input::Complete => self.complete = true,
            Input::Trouble(text) => self.trouble = Some(text),
            Input::Found { number, rows } => self.found(number, rows, &mut effects),
            Input::Preview { row, lines } => {
                if let Some(preview) = &mut self.preview
                    && preview.row.is(&row)
                {
                    preview.lines = Some(lines);
                }
            }
        }
        effects
    }

    /// How many there are in the scope.
    pub(crate) fn in_scope(&self) -> usize {
        self.scoped.len()
    }

    /// Whether a search is under way.
    pub(crate) const fn is_searching(&self) -> bool {
        self.asked != self.answered
    }

    /// The last frame had room for so many rows.
    pub(crate) fn set_page(&mut self, rows: usize) {
        self.page = rows.max(1);
        self.scroll();
    }

    fn act(&mut self, act: Act, effects: &mut Vec<Effect>) {
        if self.help {
            // Any key ends the help; those that leave do nothing else.
            self.help = false;
            if matches!(act, Act::Help | Act::Leave) {
                return;
            }
        }
        match act {
            Act::Type(c) => {
                if self.query.chars().count() < LONGEST {
                    self.query.push(c);
                    self.search(effects);
                }
            }
            Act::Erase => {
                if self.query.pop().is_some() {
                    self.search(effects);
                }
            }
            Act::EraseWord => {
                // Not every space is one byte.
                let mut before = self.query.trim_end().char_indices().rev();
                let blank = before.find(|(_, c)| c.is_whitespace());
                let kept = blank.map_or(0, |(at, c)| at + c.len_utf8());
                self.query.truncate(kept);
                self.search(effects);
            }
            Act::Clear => {
                self.query.clear();
                self.search(effects);
            }
            Act::Move(rows) => self.go(self.selected.saturating_add_signed(rows), effects),
            Act::Page(pages) => {
                let rows = pages.saturating_mul(isize::try_from(self.page).unwrap_or(isize::MAX));
                self.go(self.selected.saturating_add_signed(rows), effects);
            }
            Act::First => self.go(0, effects),
            Act::Last => self.go(usize::MAX, effects),
            Act::Choose if self.is_searching() => self.choosing = true,
            Act::Choose => effects.extend(self.shown.get(self.selected).cloned().map(Effect::Choose)),
            Act::Leave => effects.push(Effect::Leave),
            Act::NextScope => {
                self.scope = match self.scope {
                    ScopeChoice::Here | ScopeChoice::Below => ScopeChoice::Repository,
                    ScopeChoice::Repository => ScopeChoice::All,
                    ScopeChoice::All => ScopeChoice::Here,
                };
                self.moved = false;
                self.rescope(effects);
            }
            Act::Help => self.help = true,
        }
    }

    fn go(&mut self, to: usize, effects: &mut Vec<Effect>) {
        self.selected = to.min(self.shown.len().saturating_sub(1));
        self.moved = true;
        self.choosing = false;
        self.scroll();
        self.look(effects);
    }

    /// The rows of the scope are other ones: searches everything anew.
    fn rescope(&mut self, effects: &mut Vec<Effect>) {
        // A folder's own sessions, for a person, are also those of the folders in it.
        let choice = if self.scope == ScopeChoice::Here { ScopeChoice::Below } else { self.scope };
        let scope = self.folders.scope(choice);
        self.scoped = self.all.iter().filter(|row| holds(&scope, &row.listed)).cloned().collect();
        self.answered_text.clear();
        self.ask(effects);
    }

    /// The text is another one.
    fn search(&mut self, effects: &mut Vec<Effect>) {
        self.moved = false;
        self.choosing = false;
        self.ask(effects);
    }

    fn ask(&mut self, effects: &mut Vec<Effect>) {
        self.asked += 1;
        if self.query.trim().is_empty() {
            let rows = Arc::clone(&self.scoped);
            self.found(self.asked, rows, effects);
            return;
        }
        // What a longer text matches, the shorter one did, too; a backslash may turn the meaning of what follows.
        let narrows = !self.is_searching_since_scope()
            && !self.answered_text.trim().is_empty()
            && self.query.starts_with(&self.answered_text)
            && !self.query.contains('\\');
        let rows = Arc::clone(if narrows { &self.shown } else { &self.scoped });
        effects.push(Effect::Search(Query { number: self.asked, text: self.query.clone(), rows }));
    }

    /// Whether what is shown is of another scope, or of other rows, than what is asked for.
    const fn is_searching_since_scope(&self) -> bool {
        self.answered_text.is_empty()
    }

    fn found(&mut self, number: u64, rows: Rows, effects: &mut Vec<Effect>) {
        if number != self.asked {
            return;
        }
        let before = self.shown.get(self.selected).filter(|_| self.moved).cloned();
        self.shown = rows;
        self.answered = number;
        self.answered_text.clone_from(&self.query);
        let same = before.and_then(|before| self.shown.iter().position(|row| row.is(&before)));
        let stay = if self.moved { self.selected } else { 0 };
        self.selected = same.unwrap_or(stay).min(self.shown.len().saturating_sub(1));
        self.scroll();
        self.look(effects);
        if std::mem::take(&mut self.choosing) {
            effects.extend(self.shown.get(self.selected).cloned().map(Effect::Choose));
        }
    }

    fn scroll(&mut self) {
        let last = self.selected.saturating_sub(self.page.saturating_sub(1));
        let most = self.shown.len().saturating_sub(self.page);
        self.first = self.first.clamp(last, self.selected.max(last)).min(most.max(last));
    }

    /// Sees to the preview of what is selected.
    fn look(&mut self, effects: &mut Vec<Effect>) {
        let Some(row) = self.shown.get(self.selected) else {
            self.preview = None;
            return;
        };
        let is_there = self.preview.as_ref().is_some_and(|preview| {
            preview.row.is(row) && preview.row.listed.entry.updated == row.listed.entry.updated
        });
        if !is_there {
            effects.push(Effect::Preview(Arc::clone(row)));
            self.preview = Some(Preview { row: Arc::clone(row), lines: None });
        }
    }
}
