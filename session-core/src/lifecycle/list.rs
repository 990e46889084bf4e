//! Lists of sessions over all agents, and what lies in one of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::codec::Decoded;
use crate::error::{CatalogError, Chain, HistoryError, StoreError};
use crate::history::{
    Lines, ListQuery, ListedSession, PageQuery, Restored, Resumability, Scope, SessionEntry, SessionsListing,
    SessionsQuery, Title, TitleSource, TranscriptPage, Unlisted, Unresumable,
};
use crate::{AgentId, Folder, NativeId, SessionCatalog, SessionKey, SessionRecord};

use super::Lifecycle;

/// What the records say of sessions.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The key of each session that any record names, and whether it is the one in force.
    pub(super) sessions: HashMap<(AgentId, NativeId), (SessionKey, bool)>,
    /// The keys that may have a state dir.
    pub(super) keys: Vec<SessionKey>,
    /// The folders that sessions are in by the records, and what they are.
    pub(super) homes: HashMap<(AgentId, NativeId), Folder>,
    /// Where those are that were relocated.
    pub(super) moved: HashMap<(AgentId, NativeId), PathBuf>,
    /// What folders were, by their paths, when sessions were begun in them.
    pub(super) folders: HashMap<PathBuf, Folder>,
    /// Keys whose record cannot be read, and why.
    pub(super) unread: Vec<(SessionKey, String)>,
    /// What keys are called.
    pub(super) names: HashMap<SessionKey, String>,
    /// Which session came from which.
    pub(super) lines: Lines,
}

impl Known {
    /// Has the session in force of a key be called what its mailbox calls it, unless somebody named it in its file: not every
    /// agent keeps names.
    pub(super) fn entitle(&self, key: Option<&SessionKey>, bound: bool, entry: &mut SessionEntry) {
        let name = key.filter(|_| bound).and_then(|key| self.names.get(key));
        let is_named = entry.title.as_ref().is_some_and(|title| title.source == TitleSource::Given);
        if let Some(name) = name.filter(|_| !is_named) {
            entry.title = Some(Title { text: name.clone(), source: TitleSource::Given });
        }
    }

    /// Whose a session is, and whether it is the one in force. `key`: what lies in the state dir of one is that one's,
    /// whatever another record says of the same id.
    fn named(&self, of: &(AgentId, NativeId), key: Option<&SessionKey>) -> Option<&(SessionKey, bool)> {
        self.sessions.get(of).filter(|(of, _)| key.is_none_or(|key| key == of))
    }

    /// Takes where the sessions of a record are.
    fn note_folders(&mut self, record: &SessionRecord) {
        let former =
            record.past.iter().map(|former| (&former.native_id, former.folder(), &former.lives_in, false));
        let bound = record
            .binding
            .iter()
            .map(|binding| (&binding.native_id, Some(binding.folder()), &binding.lives_in, true));
        // The one in force last: what its folder is counts.
        for (id, folder, lives_in, is_bound) in former.chain(bound) {
            let Some(folder) = folder else { continue };
            let of = (record.key.agent.clone(), id.clone());
            let path = folder.path.as_path().map(Path::to_owned);
            self.folders.extend(path.clone().map(|path| (path, folder.clone())));
            // Another record may have it in force.
            if !is_bound && self.sessions.get(&of).is_some_and(|(_, is_bound)| *is_bound) {
                continue;
            }
            match path.filter(|_| lives_in.is_some()) {
                Some(path) => self.moved.insert(of.clone(), path),
                None => self.moved.remove(&of),
            };
            // Of one that is not in force and stayed, its file tells.
            if is_bound || lives_in.is_some() {
                self.homes.insert(of, folder.clone());
            }
        }
    }
}

impl Lifecycle {
    /// Lists the sessions of all registered agents, newest first: those in their own places, which anybody may have begun,
    /// and those in the state dirs of keys. What cannot be listed is told, and stops nothing else. Nothing is run.
    ///
    /// # Errors
    /// [`StoreError`] when the store could not say which keys there are.
    ///
    /// # Cancel safety
    /// Nothing is written but what catalogs keep to be faster.
    pub async fn list(&self, query: &SessionsQuery) -> Result<SessionsListing, StoreError> {
        let mut known = self.known().await?;
        let list = ListQuery { scope: self.real(&query.list.scope).await, ..query.list.clone() };
        let mut listing = SessionsListing::default();
        for (agent, registered) in self.agents.iter() {
            if !query.agents.is_empty() && !query.agents.contains(agent) {
                continue;
            }
            let unlisted = |key: Option<&SessionKey>, reason| {
                tracing::warn!(%agent, key = key.map(tracing::field::display), reason, "sessions could not be listed");
                Unlisted { agent: agent.clone(), key: key.cloned(), reason }
            };
            let Some(catalog) = registered.catalog() else {
                listing.unlisted.push(unlisted(None, "nobody can look at its sessions".to_owned()));
                continue;
            };
            let own = ListQuery { state_dir: None, ..list.clone() };
            if let Err(error) = add(&mut listing, catalog, &own, agent, None, &known).await {
                listing.unlisted.push(unlisted(None, Chain(&error).to_string()));
            }
            for key in known.keys.iter().filter(|key| self.state_dirs && key.agent == *agent) {
                let added = match self.state_dir_there(key).await {
                    Ok(None) => Ok(()),
                    Ok(state_dir) => {
                        let inside = ListQuery { state_dir, ..list.clone() };
                        let added = add(&mut listing, catalog, &inside, agent, Some(key), &known).await;
                        added.map_err(|error| Chain(&error).to_string())
                    }
                    Err(error) => Err(Chain(&error).to_string()),
                };
                listing.unlisted.extend(added.err().map(|reason| unlisted(Some(key), reason)));
            }
        }
        listing.trace(std::mem::take(&mut known.lines));
        listing.put_in_order(list.limit);
        Ok(listing)
    }

    /// Reads a part of the transcript of a session that was listed.
    ///
    /// # Errors
    /// [`HistoryError`]: no such agent, or it cannot be read.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn page(
        &self,
        session: &ListedSession,
        query: &PageQuery,
    ) -> Result<TranscriptPage, HistoryError> {
        let catalog = self.catalog_of(&session.agent)?;
        let page = catalog.page(&session.entry.id, &session.entry.source, query).await;
        page.map_err(HistoryError::Catalog)
    }

    /// Reads a session that was listed as a whole, for what can be had back of its state. Memory grows with the number of its
    /// records, not with their size.
    ///
    /// # Errors
    /// [`HistoryError`]: no such agent, or it cannot be read.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn restore(&self, session: &ListedSession) -> Result<Restored, HistoryError> {
        let catalog = self.catalog_of(&session.agent)?;
        let restored = catalog.restore(&session.entry.id, &session.entry.source).await;
        restored.map_err(HistoryError::Catalog)
    }

    pub(super) fn catalog_of(&self, agent: &AgentId) -> Result<&dyn SessionCatalog, HistoryError> {
        let registered = self.agents.get(agent);
        let registered = registered.ok_or_else(|| HistoryError::UnknownAgent { agent: agent.clone() })?;
        registered.catalog().ok_or_else(|| HistoryError::NoCatalog { agent: agent.clone() })
    }

    /// The state dir of a key, if it is there: a list makes none.
    pub(super) async fn state_dir_there(&self, key: &SessionKey) -> Result<Option<PathBuf>, StoreError> {
        match self.store.state_size(key).await? {
            None => Ok(None),
            Some(_) => self.store.state_dir(key).await,
        }
    }

    pub(super) async fn known(&self) -> Result<Known, StoreError> {
        let mut known = Known::default();
        let mut keys = self.every_key().await?;
        // A copy that is made for a moment is nobody's session.
        keys.retain(|key| !key.is_reserved());
        for key in &keys {
            // One that cannot be read names no session; its state dir may still hold some.
            let record = match self.decoded(key).await {
                Ok(Some(Decoded::Record(record))) => *record,
                Ok(None) => continue,
                Ok(Some(Decoded::Newer(_))) => {
                    known.unread.push((key.clone(), "a newer version wrote its record".to_owned()));
                    continue;
                }
                Ok(Some(Decoded::Corrupt(_))) => {
                    known.unread.push((key.clone(), "its record cannot be read".to_owned()));
                    continue;
                }
                Err(error) => {
                    known.unread.push((key.clone(), Chain(&error).to_string()));
                    continue;
                }
            };
            known.note_folders(&record);
            known.lines.note_record(&record);
            known.names.extend(record.name.map(|name| (key.clone(), name)));
            let former = record.past.into_iter().map(|former| former.native_id);
            let candidate = record.candidate.map(|candidate| candidate.binding.native_id);
            let others = former.chain(candidate).map(|id| (id, false));
            let bound = record.binding.map(|binding| (binding.native_id, true));
            for (id, bound) in others.chain(bound) {
                let entry = known.sessions.entry((key.agent.clone(), id));
                let (of, is_bound) = entry.or_insert_with(|| (key.clone(), bound));
                // A session in force counts before one that was.
                if bound && !*is_bound {
                    (*of, *is_bound) = (key.clone(), true);
                }
            }
        }
        known.lines.settle();
        known.keys = keys;
        Ok(known)
    }

    /// The scope with real paths, as catalogs compare them; a folder that is gone stays as written.
    async fn real(&self, scope: &Scope) -> Scope {
        let mut real = HashMap::new();
        for folder in scope.folders() {
            real.insert(folder, self.real_path(folder).await);
        }
        scope.map(|folder| real.get(folder).cloned().unwrap_or_else(|| folder.to_owned()))
    }

    async fn real_path(&self, path: &Path) -> PathBuf {
        let folder = self.host.folder(path).await.ok();
        folder.as_ref().and_then(|folder| folder.path.as_path()).unwrap_or(path).to_owned()
    }
}

async fn add(
    listing: &mut SessionsListing,
    catalog: &dyn SessionCatalog,
    query: &ListQuery,
    agent: &AgentId,
    key: Option<&SessionKey>,
    known: &Known,
) -> Result<(), CatalogError> {
    let found = catalog.list(query).await?;
    listing.empty += found.empty;
    listing.more |= found.more;
    listing.notices.extend(found.notices);
    listing.filed_in.extend(found.filed_in);
    // What is there is told, whether or not the rest can be found.
    let (moved, failed) = match moved_into(catalog, query, agent, &found.sessions, key, known).await {
        Ok(moved) => (moved, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    listing.sessions.extend(found.sessions.into_iter().chain(moved).map(|mut entry| {
        let of = (agent.clone(), entry.id.clone());
        let named = known.named(&of, key);
        let bound = named.is_some_and(|(_, bound)| *bound);
        if named.is_some()
            && let Some(folder) = known.moved.get(&of)
        {
            // Its file still tells of the old folder.
            entry.last_cwd = Some(folder.clone());
        }
        let key = key.or(named.map(|(of, _)| of));
        known.entitle(key, bound, &mut entry);
        ListedSession { key: key.cloned(), bound, ..ListedSession::new(agent.clone(), entry) }
    }));
    failed.map_or(Ok(()), Err)
}

/// Sessions that were relocated into a folder of the scope, and whose files do not tell of it.
async fn moved_into(
    catalog: &dyn SessionCatalog,
    query: &ListQuery,
    agent: &AgentId,
    found: &[SessionEntry],
    key: Option<&SessionKey>,
    known: &Known,
) -> Result<Vec<SessionEntry>, CatalogError> {
    let mut missing = Vec::new();
    if query.scope == Scope::All {
        return Ok(missing);
    }
    for (moved @ (of, id), folder) in &known.moved {
        let is_here = of == agent && query.scope.holds(folder) && known.named(moved, key).is_some();
        if !is_here || found.iter().any(|entry| entry.id == *id) {
            continue;
        }
        let files = match catalog.find(id, query.state_dir.as_deref()).await {
            Err(error) if error.is_unsupported() => return Ok(missing),
            files => files?,
        };
        let empty = Resumability::No(Unresumable::Empty);
        let wanted =
            |entry: &SessionEntry| query.takes(entry.kind) && (query.with_empty || entry.resumable != empty);
        missing.extend(files.into_iter().find(|entry| entry.id == *id).filter(wanted));
    }
    Ok(missing)
}
