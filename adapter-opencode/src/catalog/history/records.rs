//! The messages of one session, whichever store it lies in.

use std::cell::RefCell;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Statement, params};
use session_core::history::SessionSource;

use super::super::open::{Folder, Opened};
use super::super::reading::read;
use super::super::tree::FILE_LIMIT;
use super::columns::{bytes_of, text_of};
use super::entries::Stored;
use super::error::DatabaseError;
use super::heads::head;
use super::summary::{Session, Summary};
use super::{rows, trees};

/// The longest message and part that are read of a transcript, in bytes.
const LONGEST: i64 = 4 << 20;

/// How many messages of a session are looked at, and how many parts of a message.
const MESSAGES: i64 = 100_000;
const PARTS: usize = 10_000;

/// The messages of a session.
pub(super) trait Records {
    fn session(&self) -> &Session;

    /// What is known of the session in sum, and the tokens of its helpers.
    fn sum_up(&self) -> Result<(Summary, session_core::Usage), DatabaseError>;

    /// The ids of its messages before this one, newest first; or behind this one, oldest first. Those that the user took
    /// back are not among them.
    fn ids(&self, from: From<'_>, most: usize) -> Result<Vec<String>, DatabaseError>;

    /// A message with its parts, as far as so many bytes go. `None`: it is not there.
    fn message(&self, id: &str, bytes: usize) -> Result<Option<Stored>, DatabaseError>;
}

/// Where to begin.
#[derive(Debug, Clone, Copy)]
pub(super) enum From<'a> {
    End,
    Before(&'a str),
    Behind(&'a str),
}

/// Does something with the messages of a session.
pub(super) fn with<T>(
    id: &str,
    source: &SessionSource,
    until: Instant,
    work: impl Fn(&dyn Records) -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    let state = source.state_dir.as_deref();
    // Whoever hands the place on may have had it from anywhere.
    let leads_out = |state: &Path| match source.path.strip_prefix(state) {
        Ok(below) => below.components().any(|component| !matches!(component, Component::Normal(_))),
        Err(_) => true,
    };
    if state.is_some_and(leads_out) {
        return Err(DatabaseError::Denied);
    }
    if let Some(root) = trees::root_of(&source.path, id) {
        return work(&Tree::open(&root, &source.path, state, id, until)?);
    }
    let done = read(&source.path, state, until, |connection| in_database(id, connection, &work))?;
    done.ok_or(DatabaseError::SessionGone)
}

/// Does something with the messages of a session of this database.
pub(super) fn in_database<T>(
    id: &str,
    connection: &Connection,
    work: impl FnOnce(&dyn Records) -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    let mut gathered = head(connection, Some(id))?;
    let place = gathered.sessions.iter().position(|session| session.own.id == id);
    let own = gathered.sessions.swap_remove(place.ok_or(DatabaseError::SessionGone)?).own;
    work(&Database::new(connection, own)?)
}

struct Database<'a> {
    connection: &'a Connection,
    own: Session,
    message: RefCell<Statement<'a>>,
    parts: RefCell<Statement<'a>>,
}

impl<'a> Database<'a> {
    fn new(connection: &'a Connection, own: Session) -> Result<Self, DatabaseError> {
        let data = format!("CASE WHEN octet_length(data) <= {LONGEST} THEN data END");
        let message =
            connection.prepare(&format!("SELECT {data} FROM message WHERE id = ?1 AND session_id = ?2"))?;
        let parts = connection.prepare(&format!(
            "SELECT id, {data} FROM part WHERE message_id = ?1 ORDER BY id LIMIT {}",
            PARTS + 1
        ))?;
        Ok(Self { connection, own, message: RefCell::new(message), parts: RefCell::new(parts) })
    }
}

impl Records for Database<'_> {
    fn session(&self) -> &Session {
        &self.own
    }

    fn sum_up(&self) -> Result<(Summary, session_core::Usage), DatabaseError> {
        let mut gathered = rows::gather(self.connection, Some(&self.own.id))?;
        if let Some(trouble) = gathered.trouble {
            return Err(trouble);
        }
        let summary = gathered.sessions.pop().ok_or(DatabaseError::SessionGone)?;
        Ok((summary, rows::usage_of_helpers(self.connection, &self.own.id)?))
    }

    fn ids(&self, from: From<'_>, most: usize) -> Result<Vec<String>, DatabaseError> {
        let (condition, bound, order) = match from {
            From::End => ("?2 IS NULL", None, "DESC"),
            From::Before(id) => ("id < ?2", Some(id), "DESC"),
            From::Behind(id) => ("id > ?2", Some(id), "ASC"),
        };
        let mut statement = self.connection.prepare(&format!(
            "SELECT id FROM message WHERE session_id = ?1 AND {condition} AND (?3 IS NULL OR id < ?3)
             ORDER BY id {order} LIMIT {MESSAGES}"
        ))?;
        let mut rows = statement.query(params![self.own.id, bound, self.own.end])?;
        let mut ids = Vec::new();
        while ids.len() < most
            && let Some(row) = rows.next()?
        {
            // Of another id, what is read of it would not be that id, nor lead on from there.
            if let ValueRef::Text(id) = row.get_ref(0)? {
                ids.extend(std::str::from_utf8(id).ok().map(str::to_owned));
            }
        }
        Ok(ids)
    }

    fn message(&self, id: &str, bytes: usize) -> Result<Option<Stored>, DatabaseError> {
        let mut statement = self.message.borrow_mut();
        let mut rows = statement.query(params![id, self.own.id])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let data = bytes_of(row, 0)?.map(<[u8]>::to_vec);
        drop(rows);
        let mut stored = Stored { id: id.to_owned(), data, ..Stored::default() };
        let mut left = bytes.saturating_sub(stored.data.as_ref().map_or(0, Vec::len));
        let mut statement = self.parts.borrow_mut();
        let mut rows = statement.query(params![id])?;
        while let Some(row) = rows.next()? {
            let Some(part) = text_of(row, 0)? else { continue };
            let data = bytes_of(row, 1)?;
            let size = data.map_or(0, <[u8]>::len);
            if stored.parts.len() >= PARTS || (size > left && !stored.parts.is_empty()) {
                stored.is_cut = true;
                break;
            }
            left = left.saturating_sub(size);
            stored.parts.push((part, data.map(<[u8]>::to_vec)));
        }
        Ok(Some(stored))
    }
}

struct Tree {
    root: PathBuf,
    state: Option<PathBuf>,
    own: Session,
    /// `None`: there are none.
    messages: Option<Folder>,
    names: Vec<String>,
    parts: Opened<Folder>,
    until: Instant,
}

impl Tree {
    fn open(
        root: &Path,
        path: &Path,
        state: Option<&Path>,
        id: &str,
        until: Instant,
    ) -> Result<Self, DatabaseError> {
        let storage = trees::storage(root, state)?.ok_or(DatabaseError::SessionGone)?;
        let project = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let sessions = there(storage.folder("session")?)?.ok_or(DatabaseError::SessionGone)?;
        let folder = sessions.folder(project.ok_or(DatabaseError::SessionGone)?)?;
        let folder = there(folder)?.ok_or(DatabaseError::SessionGone)?;
        let data = there(folder.read(&format!("{id}.json"), FILE_LIMIT)?)?;
        let own = trees::own(id, &data.ok_or(DatabaseError::SessionGone)?);
        let messages = match there(storage.folder("message")?)? {
            Some(all) => there(all.folder(id)?)?,
            None => None,
        };
        let mut names = match &messages {
            Some(messages) => messages.names(".json", trees::FILES)?,
            None => Vec::new(),
        };
        names.retain(|name| own.end.as_ref().is_none_or(|end| name < end));
        let parts = storage.folder("part")?;
        Ok(Self {
            root: root.to_owned(),
            state: state.map(Path::to_owned),
            own,
            messages,
            names,
            parts,
            until,
        })
    }
}

fn there<T>(opened: Opened<T>) -> Result<Option<T>, DatabaseError> {
    match opened {
        Opened::There(there) => Ok(Some(there)),
        Opened::Nothing => Ok(None),
        Opened::Unusable => Err(DatabaseError::Denied),
    }
}

impl Records for Tree {
    fn session(&self) -> &Session {
        &self.own
    }

    fn sum_up(&self) -> Result<(Summary, session_core::Usage), DatabaseError> {
        // Which replies were copied, and which sessions are helpers, only the others tell.
        let gathered = trees::gather(&self.root, self.state.as_deref(), self.until, None);
        if let Some(trouble) = gathered.trouble {
            return Err(trouble);
        }
        let all: Vec<_> = gathered.sessions.into_iter().map(|(_, summary)| summary).collect();
        let helpers = trees::usage_of_helpers(&all, &self.own.id);
        let own = all.into_iter().find(|summary| summary.own.id == self.own.id);
        Ok((own.ok_or(DatabaseError::SessionGone)?, helpers))
    }

    fn ids(&self, from: From<'_>, most: usize) -> Result<Vec<String>, DatabaseError> {
        let names = self.names.iter();
        Ok(match from {
            From::End => names.rev().take(most).cloned().collect(),
            From::Before(id) => names.rev().filter(|name| name.as_str() < id).take(most).cloned().collect(),
            From::Behind(id) => names.filter(|name| name.as_str() > id).take(most).cloned().collect(),
        })
    }

    fn message(&self, id: &str, bytes: usize) -> Result<Option<Stored>, DatabaseError> {
        if Instant::now() >= self.until {
            return Err(DatabaseError::TooMuch);
        }
        let Some(messages) = &self.messages else { return Ok(None) };
        let data = match messages.read(&format!("{id}.json"), LONGEST.unsigned_abs())? {
            Opened::Nothing => return Ok(None),
            Opened::Unusable => None,
            Opened::There(data) => Some(data),
        };
        let mut stored = Stored { id: id.to_owned(), data, ..Stored::default() };
        let mut left = bytes;
        trees::each_part(&self.parts, id, LONGEST.unsigned_abs(), &mut |part, data| {
            let size = data.map_or(0, <[u8]>::len);
            if stored.parts.len() >= PARTS || (size > left && !stored.parts.is_empty()) {
                stored.is_cut = true;
                return false;
            }
            left = left.saturating_sub(size);
            stored.parts.push((part.to_owned(), data.map(<[u8]>::to_vec)));
            true
        })?;
        Ok(Some(stored))
    }
}
