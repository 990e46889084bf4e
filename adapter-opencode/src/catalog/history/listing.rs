//! The list over all stores.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use session_core::error::CatalogError;
use session_core::history::{
    ListQuery, Listing, Notice, NoticeKind, Resumability, Scope, SessionEntry, Unresumable,
};
use session_core::{EnvMap, NativeId};

use super::super::READINGS;
use super::super::reading::read;
use super::error::DatabaseError;
use super::heads::head;
use super::stores::Stores;
use super::{rows, trees};
use crate::transcript::is_session_id;

/// What all stores hold.
#[derive(Debug, Default)]
pub(super) struct Found {
    entries: Vec<SessionEntry>,
    notices: Vec<Notice>,
}

/// How much is read of each session.
#[derive(Debug, Clone, Copy)]
enum Much<'a> {
    /// All, of every one or of the one that is asked for.
    Whole(Option<&'a str>),
    /// Its own record, without its messages.
    Head,
}

impl Found {
    fn notice(&mut self, path: &Path, kind: NoticeKind) {
        self.notices.push(Notice { path: path.to_owned(), offset: None, kind });
    }

    fn trouble(&mut self, path: &Path, trouble: &DatabaseError) {
        self.notice(path, kind_of(trouble));
    }

    /// Every session once, newest first, and what was left out.
    pub(super) fn newest_first(self) -> (Vec<SessionEntry>, Vec<Notice>) {
        let mut notices = self.notices;
        let mut sessions = newest_of_each(self.entries, &mut notices);
        sessions.sort_by(SessionEntry::newest_first);
        (sessions, notices)
    }
}

/// How a notice tells it.
pub(super) fn kind_of(trouble: &DatabaseError) -> NoticeKind {
    match trouble {
        DatabaseError::TooMuch => NoticeKind::LimitReached,
        DatabaseError::Other(cause) => NoticeKind::Unreadable(format!("{trouble}: {cause}")),
        _ => NoticeKind::Unreadable(trouble.to_string()),
    }
}

/// What the sessions' own records alone tell, of all stores.
pub(super) fn heads(stores: Stores, state: Option<&Path>, reading: Duration) -> Found {
    everything(stores, state, reading, Much::Head)
}

/// Reads all stores: the databases, and what the tree holds.
fn everything(stores: Stores, state: Option<&Path>, reading: Duration, much: Much<'_>) -> Found {
    let mut found = Found::default();
    let end = Instant::now() + reading * READINGS;
    for path in &stores.databases {
        let now = Instant::now();
        if now >= end && path.symlink_metadata().is_ok() {
            found.notice(path, NoticeKind::LimitReached);
            continue;
        }
        let gathered = read(path, state, (now + reading).min(end), |connection| match much {
            Much::Whole(only) => rows::gather(connection, only),
            Much::Head => head(connection, None),
        });
        match gathered {
            Ok(None) => {}
            Err(trouble) => found.trouble(path, &trouble),
            Ok(Some(gathered)) => {
                let entries = gathered.sessions.iter().map(|session| session.entry(path, state));
                found.entries.extend(entries);
                if gathered.skipped > 0 {
                    found.notice(path, NoticeKind::SkippedLine);
                }
                if let Some(trouble) = gathered.trouble {
                    found.trouble(path, &trouble);
                }
            }
        }
    }
    let is_old = stores.has_database();
    let tree = match much {
        Much::Whole(only) => trees::gather(&stores.tree, state, end, only),
        Much::Head => trees::heads(&stores.tree, state, end),
    };
    for (path, summary) in &tree.sessions {
        let mut entry = summary.entry(path, state);
        // A session that cannot be continued anyhow has its own reason.
        if is_old && entry.resumable == Resumability::Yes {
            entry.resumable = Resumability::No(Unresumable::OlderStore);
        }
        found.entries.push(entry);
    }
    if let Some(trouble) = &tree.trouble {
        found.trouble(&stores.tree, trouble);
    }
    for path in &tree.skipped {
        found.notice(path, NoticeKind::SkippedLine);
    }
    found.notices.extend(stores.notices);
    found
}

/// Every place that has the session, newest first.
pub(in super::super) fn find(
    env: &EnvMap,
    state: Option<&Path>,
    reading: Duration,
    id: &NativeId,
) -> Result<Vec<SessionEntry>, CatalogError> {
    if !is_session_id(id.as_str()) {
        return Ok(Vec::new());
    }
    let mut found = everything(Stores::of(env, state)?, state, reading, Much::Whole(Some(id.as_str())));
    found.entries.sort_by_key(|entry| std::cmp::Reverse((!is_of_tree(entry), entry.updated)));
    if found.entries.is_empty() {
        // What could not be read may hold it.
        let unread = found.notices.into_iter().find_map(|notice| match notice.kind {
            NoticeKind::Unreadable(why) => Some((notice.path, why)),
            NoticeKind::LimitReached => {
                Some((notice.path, "there is more in it than can be read".to_owned()))
            }
            _ => None,
        });
        if let Some((path, why)) = unread {
            return Err(super::super::failed(&path, why));
        }
    }
    Ok(found.entries)
}

/// The sessions that are asked for, newest first.
pub(in super::super) fn list(
    env: &EnvMap,
    reading: Duration,
    query: &ListQuery,
) -> Result<Listing, CatalogError> {
    let state = query.state_dir.as_deref();
    let found = everything(Stores::of(env, state)?, state, reading, Much::Whole(None));
    let (mut sessions, notices) = found.newest_first();
    let mut listing = Listing { notices, ..Listing::default() };
    let mut folders = Folders::default();
    let scope = query.scope.map(|folder| folders.real(folder));
    sessions.retain(|entry| {
        query.takes(entry.kind)
            && match &scope {
                Scope::All => true,
                scope => [&entry.cwd, &entry.last_cwd]
                    .into_iter()
                    .flatten()
                    .any(|folder| scope.holds(&folders.real(folder))),
            }
    });
    let is_empty = |entry: &SessionEntry| entry.turns == Some(0);
    listing.empty = sessions.iter().filter(|entry| is_empty(entry)).count() as u64;
    if !query.with_empty {
        sessions.retain(|entry| !is_empty(entry));
    }
    let limit = query.limit.unwrap_or(usize::MAX);
    listing.more = sessions.len() > limit;
    sessions.truncate(limit);
    listing.sessions = sessions;
    Ok(listing)
}

fn is_of_tree(entry: &SessionEntry) -> bool {
    trees::root_of(&entry.source.path, entry.id.as_str()).is_some()
}

/// Each session once: that of a database before that of the tree, then the one that was written last.
fn newest_of_each(entries: Vec<SessionEntry>, notices: &mut Vec<Notice>) -> Vec<SessionEntry> {
    let mut kept: Vec<SessionEntry> = Vec::with_capacity(entries.len());
    let mut places: HashMap<NativeId, usize> = HashMap::with_capacity(entries.len());
    for mut entry in entries {
        if let Some(&place) = places.get(&entry.id) {
            let rank = |entry: &SessionEntry| (!is_of_tree(entry), entry.updated);
            if rank(&entry) > rank(&kept[place]) {
                std::mem::swap(&mut kept[place], &mut entry);
            }
            notices.push(Notice { path: entry.source.path, offset: None, kind: NoticeKind::OlderCopy });
        } else {
            places.insert(entry.id.clone(), kept.len());
            kept.push(entry);
        }
    }
    kept
}

/// Folders as real paths, and as written where they are gone.
#[derive(Debug, Default)]
pub(super) struct Folders(HashMap<PathBuf, PathBuf>);

impl Folders {
    pub(super) fn real(&mut self, folder: &Path) -> PathBuf {
        if let Some(real) = self.0.get(folder) {
            return real.clone();
        }
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        self.0.insert(folder.to_owned(), real.clone());
        real
    }
}
