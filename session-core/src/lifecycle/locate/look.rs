//! One look: the sessions that one sign leads to.

use std::path::{Path, PathBuf};

use crate::decide::{Given, Sign};
use crate::error::{CatalogError, Chain};
use crate::history::{ListedSession, Resumability, SessionEntry, SessionSource, Unresumable};
use crate::resolution::{Look, Wanted};
use crate::{Agent, AgentId, Inspection, NativeId, Presence, SessionKey, SessionQuery};

use super::{Lifecycle, Search, keys_of};

/// The beginning of an id has at least so many bytes.
const PREFIX: usize = 8;

impl Lifecycle {
    pub(super) async fn seen_by(&self, search: &mut Search<'_>, sign: Sign) -> Vec<ListedSession> {
        match sign {
            Sign::Id => self.by_id(search, sign).await,
            Sign::Key => self.by_key(search).await,
            Sign::Roster => self.by_roster(search).await,
            Sign::Title => {
                let text = search.text.to_lowercase();
                let named: Vec<SessionKey> = search
                    .known
                    .names
                    .iter()
                    .filter(|(_, name)| name.trim().to_lowercase() == text)
                    .map(|(key, _)| key.clone())
                    .collect();
                let is = |session: &&ListedSession| {
                    let title = session.entry.title.as_ref();
                    title.is_some_and(|title| title.text.trim().to_lowercase() == text)
                        || (session.bound && session.key.as_ref().is_some_and(|key| named.contains(key)))
                };
                self.listed(search, sign).await.iter().filter(is).cloned().collect()
            }
            Sign::Prefix => {
                let text = search.text.to_ascii_lowercase();
                let is = |session: &&ListedSession| {
                    text.len() >= PREFIX && session.entry.id.as_str().to_ascii_lowercase().starts_with(&text)
                };
                self.listed(search, sign).await.iter().filter(is).cloned().collect()
            }
            Sign::Words => {
                let text = search.text.to_lowercase();
                let words: Vec<&str> = text.split_whitespace().collect();
                let is = |session: &&ListedSession| {
                    let title = session.entry.title.as_ref().map(|title| title.text.to_lowercase());
                    let prompt = session.entry.first_prompt.as_ref().map(|prompt| prompt.to_lowercase());
                    let holds = |word: &&str| {
                        [&title, &prompt].iter().any(|text| text.as_ref().is_some_and(|t| t.contains(*word)))
                    };
                    !words.is_empty() && words.iter().all(holds)
                };
                self.listed(search, sign).await.iter().filter(is).cloned().collect()
            }
            Sign::Project => self.listed(search, sign).await.to_vec(),
            Sign::Tree => self.in_the_trees(search).await,
        }
    }

    /// In the agents' own places, and where a record says that it is.
    async fn by_id(&self, search: &mut Search<'_>, sign: Sign) -> Vec<ListedSession> {
        let id = NativeId::new(search.text);
        let mut found = Vec::new();
        for (agent, registered) in self.agents_of(search.seek) {
            if !id.is_argument_safe() || !registered.adapter().accepts_id(&id) {
                continue;
            }
            let key = search.known.sessions.get(&(agent.clone(), id.clone())).cloned();
            found.extend(self.find(search, sign, (agent, registered), &id, None).await);
            if let Some((key, _)) = key {
                found.extend(self.find_in_key(search, sign, &key, registered, &id).await);
            }
        }
        found
    }

    async fn by_key(&self, search: &mut Search<'_>) -> Vec<ListedSession> {
        let keys = match &search.seek.what {
            Wanted::Key(key) => vec![key.clone()],
            _ => keys_of(&search.known, search.text, search.seek.agent.as_ref()),
        };
        let mut found = Vec::new();
        for key in keys {
            let Some(registered) = self.agents.get(&key.agent) else { continue };
            let bound = search.known.sessions.iter().find(|(_, (of, bound))| *bound && *of == key);
            let Some(id) = bound.map(|((_, id), _)| id.clone()) else { continue };
            let mut own = self.find_in_key(search, Sign::Key, &key, registered, &id).await;
            if own.is_empty() {
                own = self.find(search, Sign::Key, (&key.agent, registered), &id, None).await;
            }
            found.append(&mut own);
        }
        found
    }

    async fn by_roster(&self, search: &mut Search<'_>) -> Vec<ListedSession> {
        let (running, trouble) = match self.roster.running().await {
            Ok(running) => (running, None),
            Err(trouble) => (Vec::new(), Some(trouble)),
        };
        let text = search.text.to_lowercase();
        let meant: Vec<_> = running
            .into_iter()
            .filter(|one| one.name.as_ref().is_some_and(|name| name.trim().to_lowercase() == text))
            .collect();
        let look = Look { sign: Sign::Roster, agent: None, place: None, found: meant.len(), trouble };
        search.looked_at.push(look);
        let mut found = Vec::new();
        for one in meant {
            let wanted = search.seek.agent.as_ref().is_none_or(|agent| *agent == one.agent);
            if let Some(registered) = self.agents.get(&one.agent).filter(|_| wanted) {
                found.extend(self.find(search, Sign::Roster, (&one.agent, registered), &one.id, None).await);
            }
        }
        found
    }

    /// In every state dir: an index that misses a session is no reason to call it lost.
    async fn in_the_trees(&self, search: &mut Search<'_>) -> Vec<ListedSession> {
        if !matches!(search.asked, Given::Id | Given::IdLike) {
            return Vec::new();
        }
        let id = NativeId::new(search.text);
        let mut found = Vec::new();
        for (agent, registered) in self.agents_of(search.seek) {
            if !id.is_argument_safe() || !registered.adapter().accepts_id(&id) {
                continue;
            }
            let keys: Vec<_> = search.known.keys.iter().filter(|key| key.agent == *agent).cloned().collect();
            for key in keys {
                found.extend(self.find_in_key(search, Sign::Tree, &key, registered, &id).await);
            }
        }
        found
    }

    async fn find_in_key(
        &self,
        search: &mut Search<'_>,
        sign: Sign,
        key: &SessionKey,
        registered: &Agent,
        id: &NativeId,
    ) -> Vec<ListedSession> {
        if !self.state_dirs {
            return Vec::new();
        }
        match self.state_dir_there(key).await {
            Ok(None) => Vec::new(),
            Ok(Some(dir)) => self.find(search, sign, (&key.agent, registered), id, Some((key, &dir))).await,
            Err(error) => {
                let (agent, trouble) = (Some(key.agent.clone()), Some(Chain(&error).to_string()));
                search.looked_at.push(Look { sign, agent, place: None, found: 0, trouble });
                Vec::new()
            }
        }
    }

    /// Asks a catalog for one session, in one place. One that cannot find is asked for the file that a run would continue.
    async fn find(
        &self,
        search: &mut Search<'_>,
        sign: Sign,
        (agent, registered): (&AgentId, &Agent),
        id: &NativeId,
        state: Option<(&SessionKey, &PathBuf)>,
    ) -> Vec<ListedSession> {
        let dir = state.map(|(_, dir)| dir.as_path());
        let (mut entries, trouble) = match registered.catalog() {
            None => (Vec::new(), Some("nobody can look at its sessions".to_owned())),
            Some(catalog) => {
                let found = match catalog.find(id, dir).await {
                    Err(error) if error.is_unsupported() => {
                        let here = search.here.folder.path.as_path().unwrap_or(&search.seek.from);
                        let query = SessionQuery { id, cwd: here, state_dir: dir, version: None };
                        catalog.inspect(query).await.map(|look| entry_of(id, dir, look).into_iter().collect())
                    }
                    found => found,
                };
                match found {
                    Ok(entries) => (entries, None),
                    Err(error) => (Vec::new(), Some(Chain(&error).to_string())),
                }
            }
        };
        entries.retain(|entry| entry.id == *id);
        let place = dir.map(Path::to_owned);
        let look = Look { sign, agent: Some(agent.clone()), place, found: entries.len(), trouble };
        search.looked_at.push(look);
        let named = search.known.sessions.get(&(agent.clone(), id.clone()));
        let named = named.filter(|(of, _)| state.is_none_or(|(key, _)| key == of));
        let bound = named.is_some_and(|(_, bound)| *bound);
        let key = state.map(|(key, _)| key).or(named.map(|(of, _)| of)).cloned();
        let listed = |mut entry| {
            search.known.entitle(key.as_ref(), bound, &mut entry);
            let listed = ListedSession::new(agent.clone(), entry);
            let mut listed = ListedSession { key: key.clone(), bound, ..listed };
            listed.trace(&search.known.lines);
            listed
        };
        entries.into_iter().map(listed).collect()
    }
}

/// What a look at a session's file tells for a list.
fn entry_of(id: &NativeId, state_dir: Option<&Path>, look: Inspection) -> Option<SessionEntry> {
    let resumable = match look.presence {
        Presence::Missing => return None,
        Presence::Present if look.archived => Resumability::Archived,
        Presence::Present => Resumability::Yes,
        Presence::Empty => Resumability::No(Unresumable::Empty),
        Presence::Damaged => Resumability::No(Unresumable::Damaged),
        Presence::Unreadable => Resumability::No(Unresumable::Unreadable),
    };
    let source =
        SessionSource { path: look.path.unwrap_or_default(), state_dir: state_dir.map(Path::to_owned) };
    let mut entry = SessionEntry::new(id.clone(), source);
    (entry.cwd, entry.resumable) = (look.began_in, resumable);
    (entry.bytes, entry.turns) = (Some(look.bytes), Some(look.user_turns));
    (entry.skipped_lines, entry.torn_tail) = (look.skipped_lines, look.torn_tail);
    Some(entry)
}

impl CatalogError {
    /// Whether the catalog cannot do that at all.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        let error = self.source.downcast_ref::<std::io::Error>();
        error.is_some_and(|error| error.kind() == std::io::ErrorKind::Unsupported)
    }
}
