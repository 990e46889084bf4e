//! Has a session of a state dir be found from another folder: the agent goes by the folder in its row, which is put to
//! that one. Its messages stay as they are.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use session_core::error::CatalogError;
use session_core::{Foreseen, Inspection, NativeId, Presence, Refusal, RelocateOrder, Relocated, Way};

use super::connect::open_for_writing;
use super::database::{Ailment, columns};
use super::history::DatabaseError;
use super::open::{Folder, Opened};
use super::{Asked, Found, ROWS, failed, find};
use crate::state::Family;
use crate::transcript::Store;

/// The longest file of a repository that is read, in bytes.
const NOTE: u64 = 4096;

/// Of the tree of 1.1 and before.
const OF_THE_TREE: &str = "a session of opencode 1.1 is filed by its project, and to another one its own program alone moves: \
    `opencode export` the session, then `opencode import` it in the new folder";

/// Why no session of the user's own is relocated from here: others have that database open, too.
const NOT_FROM_HERE: &str = "the user's own sessions of opencode are rows of one database, which its own program alone \
    moves: `opencode export` the session, then `opencode import` it in the new folder";

/// Why none is copied: its rows have ids that nothing else in a database may have.
const NO_COPY: &str = "a session of opencode is not copied; `opencode run --fork` makes another one of it";

const NOT_READ: &str = "this version of opencode does not read it where it lies";

/// How many relocations can be taken back: each is, or is not, before many others are done.
const KEPT: usize = 16;

/// The longest ids and parts of a session and its helpers that are held in memory, in bytes.
const LONGEST: usize = 32 << 20;

/// A relocation that was done: the rows that went along, as they were.
#[derive(Debug, Clone)]
struct Moved {
    database: PathBuf,
    session: NativeId,
    was: String,
    to: String,
    records: u64,
    rows: Vec<Row>,
}

/// A session's id, and its part below the work tree, if there is such a column.
#[derive(Debug, Clone)]
struct Row {
    id: Value,
    part: Option<Value>,
}

/// The last relocations.
#[derive(Debug, Default)]
pub(super) struct Journal(Mutex<VecDeque<Moved>>);

impl Journal {
    fn note(&self, moved: Moved) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|it| (&it.database, &it.session) != (&moved.database, &moved.session));
        all.truncate(KEPT - 1);
        all.push_front(moved);
    }

    fn take(&self, database: &Path, session: &NativeId) -> Option<Moved> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|it| it.database == database && it.session == *session)?;
        all.remove(at)
    }
}

/// Puts back what the last relocation of the session moved. `None`: none is remembered.
pub(super) fn put_back(
    journal: &Journal,
    asked: &Asked,
    from: &Path,
) -> Option<Result<Relocated, CatalogError>> {
    let moved = journal.take(from, &asked.id)?;
    Some(restore(asked, &moved).map(|done| match done {
        true => moved.done(),
        false => Relocated::Refused(Refusal::Growing),
    }))
}

/// What stands against an order before anything is looked at.
pub(super) fn foreseen(order: &RelocateOrder<'_>) -> Foreseen {
    let refused = |why: &str| Foreseen::Refused(Refusal::Unsupported(why.to_owned()));
    match (order.way, order.query.state_dir) {
        (Way::Nothing, _) => Foreseen::NothingToDo,
        (Way::Move, None) => refused(NOT_FROM_HERE),
        (Way::Move, Some(_)) => Foreseen::Done { way: Way::Move },
        _ => refused(NO_COPY),
    }
}

/// Puts the folder of the session to `to`, if it lies at `from` and is as large as it was, and nobody has it open. It is
/// read back, and put back where that shows anything else.
pub(super) fn relocate(
    journal: &Journal,
    asked: &Asked,
    from: &Path,
    bytes: u64,
    to: &Path,
) -> Result<Relocated, CatalogError> {
    let refused = |why: &str| Ok(Relocated::Refused(Refusal::Unsupported(why.to_owned())));
    let found = find(asked)?.filter(|found| found.look.path.as_deref() == Some(from));
    let Some(Found { store, look }) = found else { return Err(failed(from, DatabaseError::SessionGone)) };
    if look.presence == Presence::Unreadable {
        return refused(NOT_READ);
    }
    if let Store::Tree(_) = store {
        // It is found by its project, from any folder of that, and works in the one that it is asked from.
        let project = from.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let is_read = Family::of(asked.version.as_ref()) == Family::Files;
        return match is_read && project.is_some() && project == project_of(to).as_deref() {
            true => Ok(Relocated::Already { path: from.to_owned() }),
            false => refused(OF_THE_TREE),
        };
    }
    if look.began_in.as_deref() == Some(to) {
        return Ok(Relocated::Already { path: from.to_owned() });
    }
    if look.bytes != bytes {
        return Ok(Relocated::Refused(Refusal::Growing));
    }
    let was = look.began_in.as_deref().and_then(Path::to_str);
    let (Some(was), Some(folder)) = (was, to.to_str()) else {
        return refused("opencode keeps the names of folders as text, and this one is none");
    };
    let Some(moved) = put(asked, from, was, folder)? else {
        return Ok(Relocated::Refused(Refusal::Growing));
    };
    let expected = Inspection { began_in: Some(to.to_owned()), ..look.clone() };
    match find(asked) {
        Ok(Some(again)) if again.look == expected => {}
        other => {
            let error = other.err().unwrap_or_else(|| failed(from, "it was not found as it was put"));
            return Err(match restore(asked, &moved) {
                Ok(true) => error,
                _ => failed(from, format!("{}; it could not be put back", error.source)),
            });
        }
    }
    let done = moved.done();
    journal.note(moved);
    Ok(done)
}

impl Moved {
    fn done(&self) -> Relocated {
        let (from, to) = (self.database.clone(), self.database.clone());
        Relocated::Done { from, to, way: Way::Move, records: self.records, left: Vec::new(), split: false }
    }
}

/// The project of a folder, as the agent noted it in the repository: a cache, which it puts right when it is wrong.
fn project_of(folder: &Path) -> Option<String> {
    let read = |folder: &Path, name: &str| {
        let Opened::There(folder) = Folder::open(folder, Path::new("")).ok()? else { return None };
        let Opened::There(data) = folder.read(name, NOTE).ok()? else { return None };
        Some(String::from_utf8(data).ok()?.trim().to_owned())
    };
    let root = folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok())?;
    // Of another work tree, it is a file that tells where its part of the repository lies.
    let part = match read(root, ".git") {
        Some(link) => root.join(link.strip_prefix("gitdir: ")?),
        None => root.join(".git"),
    };
    let repository = read(&part, "commondir").map_or_else(|| part.clone(), |common| part.join(common));
    read(&repository, "opencode")
}

/// Puts the folder of the session, and of the helpers that it began there, from one to the other. `None`: somebody has the
/// database open, or has changed it.
fn put(asked: &Asked, path: &Path, was: &str, to: &str) -> Result<Option<Moved>, CatalogError> {
    let put = |connection: &Connection| -> Result<Option<Moved>, Ailment> {
        let Some((records, rows)) = put_in(connection, asked.id.as_str(), was, to)? else { return Ok(None) };
        let (database, session) = (path.to_owned(), asked.id.clone());
        Ok(Some(Moved { database, session, was: was.to_owned(), to: to.to_owned(), records, rows }))
    };
    Ok(alone(asked, path, put)?.flatten())
}

/// Puts back the rows that went along, to what they were; others stay. `false`: somebody has the database open, or has
/// changed it.
fn restore(asked: &Asked, moved: &Moved) -> Result<bool, CatalogError> {
    Ok(alone(asked, &moved.database, |connection| restore_in(connection, moved))?.unwrap_or(false))
}

/// Does something in a database that nobody else has open. `None`: somebody has.
pub(super) fn alone<T>(
    asked: &Asked,
    path: &Path,
    work: impl FnOnce(&Connection) -> Result<T, Ailment>,
) -> Result<Option<T>, CatalogError> {
    let connection = open_for_writing(path, asked.state.as_deref(), asked.until())?;
    let Some(connection) = connection else { return Ok(None) };
    let set = || -> Result<(), rusqlite::Error> {
        // The agent has none; what else wrote there has nothing to say here.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        // Whoever has it open, writing or not, holds a lock that this does not go with.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")
    };
    match set().map_err(Ailment::from).and_then(|()| work(&connection)).map_err(DatabaseError::from) {
        Ok(done) => Ok(Some(done)),
        Err(DatabaseError::Busy) => Ok(None),
        Err(error) => Err(failed(path, error)),
    }
}

/// How many messages it has, and what was changed.
fn put_in(
    connection: &Connection,
    id: &str,
    was: &str,
    to: &str,
) -> Result<Option<(u64, Vec<Row>)>, Ailment> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Exclusive)?;
    let records = || -> Result<i64, rusqlite::Error> {
        connection.query_row("SELECT count(*) FROM message WHERE session_id = ?1", [id], |row| row.get(0))
    };
    let before = records()?;
    let has_part = has_part(connection)?;
    let rows = rows(connection, id, was, has_part)?;
    // The part of it below the work tree, or all of it where there is none.
    let part = match has_part {
        true => {
            ", path = CASE WHEN '/' || path = ?2 THEN substr(?3, 2)
               WHEN path = '' OR substr(?3, -length(path) - 1) = '/' || path THEN path END"
        }
        false => "",
    };
    let changed = connection.execute(
        &format!("{OWN} UPDATE session SET directory = ?3{part} WHERE id IN own AND directory = ?2"),
        params![id, was, to],
    )?;
    let is_there: bool = connection.query_row(
        "SELECT count(*) = 1 FROM session WHERE id = ?1 AND directory = ?2",
        params![id, to],
        |row| row.get(0),
    )?;
    if !is_there || changed != rows.len() || records()? != before {
        // Somebody was faster. The transaction is taken back.
        return Ok(None);
    }
    transaction.commit()?;
    Ok(Some((before.unsigned_abs(), rows)))
}

/// The session and its helpers, and theirs.
const OWN: &str = "WITH RECURSIVE own(id) AS (
    VALUES (?1) UNION SELECT s.id FROM session s JOIN own ON s.parent_id = own.id)";

fn has_part(connection: &Connection) -> Result<bool, Ailment> {
    Ok(columns(connection, "session")?.iter().any(|column| column == "path"))
}

/// The session and its helpers that are in a folder.
fn rows(connection: &Connection, id: &str, folder: &str, has_part: bool) -> Result<Vec<Row>, Ailment> {
    let part = if has_part { "path" } else { "NULL" };
    let sql = format!("{OWN} SELECT id, {part} FROM session WHERE id IN own AND directory = ?2 LIMIT ?3");
    let mut statement = connection.prepare(&sql)?;
    let mut found = statement.query(params![id, folder, ROWS])?;
    let (mut rows, mut left) = (Vec::new(), LONGEST);
    while let Some(row) = found.next()? {
        let held = |column| {
            row.get_ref(column).map(|value| value.as_bytes_or_null().ok().flatten().map_or(0, <[u8]>::len))
        };
        // What is left out is not moved either: then the counts differ.
        let Some(rest) = left.checked_sub(held(0)? + held(1)?) else { break };
        left = rest;
        rows.push(Row { id: row.get(0)?, part: if has_part { Some(row.get(1)?) } else { None } });
    }
    Ok(rows)
}

fn restore_in(connection: &Connection, moved: &Moved) -> Result<bool, Ailment> {
    let Moved { session, was, to, .. } = moved;
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Exclusive)?;
    // One that somebody changed since stays.
    let set = |part| format!("UPDATE session SET directory = ?2{part} WHERE id = ?1 AND directory = ?3");
    for Row { id, part } in &moved.rows {
        match part {
            Some(part) => connection.execute(&set(", path = ?4"), params![id, was, to, part])?,
            None => connection.execute(&set(""), params![id, was, to])?,
        };
    }
    let is_back: bool = connection.query_row(
        "SELECT count(*) = 1 FROM session WHERE id = ?1 AND directory = ?2",
        params![session.as_str(), was],
        |row| row.get(0),
    )?;
    if is_back {
        transaction.commit()?;
    }
    Ok(is_back)
}
