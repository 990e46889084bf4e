//! Search in what was said.

use std::fmt::Debug;
use std::ops::Range;
use std::path::PathBuf;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::listing::{Notice, Scope, SessionKind, SessionSource};
use super::page::Span;
use crate::{NativeId, Timestamp};

/// What to search for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// The state dir to search in; `None`: the agent's own place.
    pub state_dir: Option<PathBuf>,
    /// What has to occur, all of it in one prompt, reply or title, in any letter case. One of several words is searched
    /// for as it is, with its spaces.
    pub words: Vec<String>,
    /// Whose folders.
    pub scope: Scope,
    /// Of which kinds; empty: of any, those of helpers as told beside. To ask for helpers' is to search them.
    pub kinds: Vec<SessionKind>,
    /// Whether what helpers said is searched, too.
    pub with_sidechains: bool,
    /// How many hits at the most, counted after everything else was left out.
    pub limit: Option<usize>,
}

impl SearchQuery {
    /// Whether sessions of a kind are searched.
    #[must_use]
    pub fn takes(&self, kind: SessionKind) -> bool {
        match self.kinds.as_slice() {
            [] => self.with_sidechains || kind != SessionKind::Sidechain,
            kinds => kinds.contains(&kind),
        }
    }
}

/// Where words were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HitPlace {
    /// In a prompt.
    Prompt,
    /// In a reply.
    Reply,
    /// In a title.
    Title,
}

/// A record that holds the words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The session.
    pub id: NativeId,
    /// Where it lies.
    pub source: SessionSource,
    /// What kind of record.
    pub place: HitPlace,
    /// Where in the file; `None`: it is a row of a database, or a title that lies beside the file.
    pub span: Option<Span>,
    /// When it was written, where it is told.
    pub time: Option<Timestamp>,
    /// What stands around the first of the words, on one line and without control characters.
    pub excerpt: String,
    /// Where in the excerpt the first of the words stands, in bytes.
    pub matched: Range<usize>,
}

/// What a search comes upon.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Searched {
    /// The words were found.
    Hit(Box<Hit>),
    /// Something was left out.
    Notice(Notice),
}

/// A search that goes on while it is asked. Dropping it ends it.
#[async_trait]
pub trait Search: Debug + Send {
    /// The next hit or notice: sessions by the time of their file, newest first, and in each the last record first. `None`:
    /// everything was searched, or the limit reached.
    ///
    /// # Cancel safety
    /// Yes: what was not returned comes next time.
    async fn next(&mut self) -> Option<Searched>;
}
