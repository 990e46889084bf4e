//! Sessions of all agents, with what Rejoin knows of them.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::lineage::{Lineage, Lines};
use super::listing::{ListQuery, Notice, SessionEntry, is_false};
use crate::{AgentId, NativeId, SessionKey};

/// Which sessions of which agents to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionsQuery {
    /// The agents; empty: all that are registered.
    pub agents: Vec<AgentId>,
    /// Which sessions. Its [`state_dir`](ListQuery::state_dir) is left: the agents' own places and the state dirs of all keys
    /// are looked at. Folders of its scope are resolved first, where they are there.
    pub list: ListQuery,
}

/// A session of some agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListedSession {
    /// The agent.
    pub agent: AgentId,
    /// The key that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SessionKey>,
    /// Whether it is the one that the key's next run continues.
    #[serde(default)]
    pub bound: bool,
    /// The session that its lineage begins with, as far as records, and the files that were listed, tell; itself where it
    /// comes from none. It may be one that is not listed, or is gone.
    pub root: NativeId,
    /// The session that it comes from, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<(NativeId, Lineage)>,
    /// What its file tells.
    #[serde(flatten)]
    pub entry: SessionEntry,
}

impl ListedSession {
    /// A session that belongs to no key.
    #[must_use]
    pub fn new(agent: AgentId, entry: SessionEntry) -> Self {
        Self { agent, key: None, bound: false, root: entry.id.clone(), from: None, entry }
    }

    /// Notes where it comes from.
    pub(crate) fn trace(&mut self, lines: &Lines) {
        (self.root, self.from) = lines.trace(&self.agent, &self.entry.id);
    }

    /// [The order of every list](SessionEntry::newest_first); of equal times, the agents in the order of their names.
    #[must_use]
    pub fn newest_first(&self, other: &Self) -> Ordering {
        let ages = self.entry.age().cmp(&other.entry.age());
        let agents = || self.agent.cmp(&other.agent);
        ages.then_with(agents).then_with(|| self.entry.newest_first(&other.entry))
    }
}

/// Sessions that come from one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Family<'a> {
    /// The agent.
    pub agent: &'a AgentId,
    /// The session that all come from. It need not be among them.
    pub root: &'a NativeId,
    /// Those that are listed, newest first; never empty.
    pub sessions: Vec<&'a ListedSession>,
}

/// Something that could not be listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Unlisted {
    /// The agent whose sessions are missing from the list.
    pub agent: AgentId,
    /// The key, where it is only those of its state dir.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SessionKey>,
    /// Why, in a sentence.
    pub reason: String,
}

impl Unlisted {
    /// All sessions of an agent, or of its own place.
    #[must_use]
    pub const fn new(agent: AgentId, reason: String) -> Self {
        Self { agent, key: None, reason }
    }
}

/// Sessions of several agents, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionsListing {
    /// The sessions.
    pub sessions: Vec<ListedSession>,
    /// How many without a turn were found.
    pub empty: u64,
    /// What could not be read of single files and folders, and what was put right.
    pub notices: Vec<Notice>,
    /// What could not be listed at all. Only where this is empty and the list [is complete](Self::is_complete), a session
    /// that is not listed is not there.
    pub unlisted: Vec<Unlisted>,
    /// Whether there may be more than the limit left.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more: bool,
    /// The places that are there for the one folder that was asked for, as in [`Listing`](super::Listing::filed_in).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filed_in: Vec<PathBuf>,
}

impl SessionsListing {
    /// Whether everything was looked at, but for what the limit left out.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unlisted.is_empty() && !self.notices.iter().any(Notice::is_gap)
    }

    /// The sessions by their roots: each once, in the order of the list; groups in the order of their first one, which is the
    /// newest. What a limit left out is in none.
    ///
    /// ```
    /// # use session_core::history::SessionsListing;
    /// # let listing = SessionsListing::default();
    /// for family in listing.by_root() {
    ///     println!("{} and {} others", family.root, family.sessions.len() - 1);
    /// }
    /// ```
    #[must_use]
    pub fn by_root(&self) -> Vec<Family<'_>> {
        let mut families = Vec::<Family<'_>>::new();
        let mut places = HashMap::new();
        for listed in &self.sessions {
            let (agent, root) = (&listed.agent, &listed.root);
            let place = *places.entry((agent, root)).or_insert(families.len());
            match families.get_mut(place) {
                Some(family) => family.sessions.push(listed),
                None => families.push(Family { agent, root, sessions: vec![listed] }),
            }
        }
        families
    }

    /// Notes where each session comes from: what records tell is in the lines, what files tell comes to it.
    pub(crate) fn trace(&mut self, mut lines: Lines) {
        self.sessions.iter().for_each(|listed| lines.note_file(&listed.agent, &listed.entry));
        lines.settle();
        self.sessions.iter_mut().for_each(|listed| listed.trace(&lines));
    }

    /// [Newest first](ListedSession::newest_first); at most so many.
    pub(crate) fn put_in_order(&mut self, limit: Option<usize>) {
        self.sessions.sort_by(ListedSession::newest_first);
        let limit = limit.unwrap_or(usize::MAX);
        self.more |= self.sessions.len() > limit;
        self.sessions.truncate(limit);
    }
}
