//! Sessions and keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rejoin::core::Timestamp;
use rejoin::history::{ListedSession, SessionEntry, SessionSource, Title, TitleSource};
use rejoin::{AgentId, NativeId};

use crate::args::ScopeChoice;
use crate::folders::Folders;
use crate::picker::fuzzy::{self, Rows};
use crate::picker::row::Row;
use crate::picker::state::{Effect, Input, Picker};

/// The present of these tests.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000)
}

pub(crate) fn folders() -> Folders {
    Folders {
        here: "/home/ada/shop".into(),
        trees: vec!["/home/ada/shop".into(), "/home/ada/shop-login".into()],
    }
}

pub(crate) fn session(agent: &str, id: &str, title: &str, folder: &str, hours_ago: i64) -> ListedSession {
    let source = SessionSource { path: PathBuf::from(format!("/files/{id}.jsonl")), state_dir: None };
    let mut entry = SessionEntry::new(NativeId::new(id), source);
    entry.title = Some(Title { text: title.to_owned(), source: TitleSource::Agent });
    entry.cwd = Some(folder.into());
    entry.last_cwd = Some(folder.into());
    entry.branch = Some("main".to_owned());
    entry.turns = Some(3);
    entry.updated = Some(Timestamp::from_millis(now().as_millis() - hours_ago * 3_600_000));
    ListedSession::new(AgentId::new(agent).unwrap(), entry)
}

/// Six sessions, three of them here.
pub(crate) fn sessions() -> Vec<ListedSession> {
    vec![
        session("claude", "0f3a1c", "Fix the login bug", "/home/ada/shop", 1),
        session("claude", "1b2c3d", "Write the changelog", "/home/ada/shop", 5),
        session("claude", "2c3d4e", "登录页面 – 日本語のタイトル", "/home/ada/shop/web", 30),
        session("claude", "3d4e5f", "Login over SSO", "/home/ada/shop-login", 50),
        session("claude", "4e5f60", "Tidy up the cellar", "/home/ada/cellar", 400),
        session("claude", "5f6071", "Hostile \u{1b}[2J\u{9b}31m\u{202e} title", "/home/ada/cellar", 9000),
    ]
}

/// A picker, and what carries its searches out on the spot.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) picker: Picker,
    /// What it asked for, searches aside.
    pub(crate) effects: Vec<Effect>,
    /// Searches that wait, where they are to.
    pub(crate) waiting: Vec<fuzzy::Query>,
    pub(crate) slow: bool,
}

impl Desk {
    pub(crate) fn new(scope: ScopeChoice) -> Self {
        let picker = Picker::new(folders(), scope, "", now());
        Self { picker, effects: Vec::new(), waiting: Vec::new(), slow: false }
    }

    /// With the six sessions, and nothing more to come.
    pub(crate) fn with_sessions(scope: ScopeChoice) -> Self {
        let mut desk = Self::new(scope);
        desk.list(sessions());
        desk.step(Input::Complete);
        desk
    }

    pub(crate) fn list(&mut self, sessions: Vec<ListedSession>) {
        let agent = sessions.first().map_or_else(|| AgentId::new("claude").unwrap(), |one| one.agent.clone());
        let rows = Row::of(sessions, Some("current"), Some(Path::new("/home/ada")));
        self.step(Input::Listed { agent, rows });
    }

    pub(crate) fn step(&mut self, input: Input) {
        for effect in self.picker.step(input) {
            match effect {
                Effect::Search(query) if self.slow => self.waiting.push(query),
                Effect::Search(query) => self.answer(&query),
                other => self.effects.push(other),
            }
        }
    }

    /// Carries a search out.
    pub(crate) fn answer(&mut self, query: &fuzzy::Query) {
        let rows = fuzzy::search(query, &mut fuzzy::matcher());
        self.step(Input::Found { number: query.number, rows });
    }

    pub(crate) fn key(&mut self, code: KeyCode) {
        self.step(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    pub(crate) fn control(&mut self, c: char) {
        self.step(Input::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)));
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        text.chars().for_each(|c| self.key(KeyCode::Char(c)));
    }

    pub(crate) fn shown(&self) -> Vec<&str> {
        ids(&self.picker.shown)
    }

    /// The session that was taken.
    pub(crate) fn chosen(&self) -> Option<&str> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Choose(row) => Some(row.listed.entry.id.as_str()),
            _ => None,
        })
    }

    /// The session whose last turns were asked for last.
    pub(crate) fn looked_at(&self) -> Option<&Arc<Row>> {
        self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Preview(row) => Some(row),
            _ => None,
        })
    }
}

pub(crate) fn ids(rows: &Rows) -> Vec<&str> {
    rows.iter().map(|row| row.listed.entry.id.as_str()).collect()
}
