//! Has a session of a state dir be found from another folder: the agent goes by the folder in its row, which is put to
//! that one. Its messages stay as they are.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use session_core::error::CatalogError;
use session_core::{Inspection, Presence, Refusal, Relocated, Way};

use super::connect::open_for_writing;
use super::database::{Ailment, columns};
use super::history::DatabaseError;
use super::open::{Folder, Opened};
use super::{Asked, Found, failed, find};
use crate::state::Family;
use crate::transcript::Store;

/// The longest file of a repository that is read, in bytes.
const NOTE: u64 = 4096;

/// Of the tree of 1.1 and before.
const OF_THE_TREE: &str = "a session of opencode 1.1 is filed by its project, and to another one its own program alone moves: \
    `opencode export` the session, then `opencode import` it in the new folder";

const NOT_READ: &str = "this version of opencode does not read it where it lies";

/// Puts the folder of the session to `to`, if it lies at `from` and is as large as it was, and nobody has it open. It is
/// read back, and put back where that shows anything else.
pub(super) fn relocate(asked: &Asked, from: &Path, bytes: u64, to: &Path) -> Result<Relocated, CatalogError> {
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
    let Some(records) = put(asked, from, was, folder)? else {
        return Ok(Relocated::Refused(Refusal::Growing));
    };
    let expected = Inspection { began_in: Some(to.to_owned()), ..look.clone() };
    match find(asked) {
        Ok(Some(again)) if again.look == expected => {}
        other => {
            let error = other.err().unwrap_or_else(|| failed(from, "it was not found as it was put"));
            return Err(match put(asked, from, folder, was) {
                Ok(Some(_)) => error,
                _ => failed(from, format!("{}; it could not be put back", error.source)),
            });
        }
    }
    let (from, to) = (from.to_owned(), from.to_owned());
    Ok(Relocated::Done { from, to, way: Way::Move, records, left: Vec::new(), split: false })
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

/// Puts the folder of the session, and of the helpers that it began there, from one to the other, and counts its messages.
/// `None`: somebody has the database open, or has changed it.
fn put(asked: &Asked, path: &Path, was: &str, to: &str) -> Result<Option<u64>, CatalogError> {
    let connection = open_for_writing(path, asked.state.as_deref(), asked.until())?;
    let Some(connection) = connection else { return Ok(None) };
    match put_in(&connection, asked.id.as_str(), was, to).map_err(DatabaseError::from) {
        Ok(records) => Ok(records),
        Err(DatabaseError::Busy) => Ok(None),
        Err(error) => Err(failed(path, error)),
    }
}

fn put_in(connection: &Connection, id: &str, was: &str, to: &str) -> Result<Option<u64>, Ailment> {
    // The agent has none; what else wrote there has nothing to say here.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    // Whoever has it open, writing or not, holds a lock that this does not go with.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Exclusive)?;
    let records = || -> Result<i64, rusqlite::Error> {
        connection.query_row("SELECT count(*) FROM message WHERE session_id = ?1", [id], |row| row.get(0))
    };
    let before = records()?;
    // The part of it below the work tree, or all of it where there is none.
    let part = match columns(connection, "session")?.iter().any(|column| column == "path") {
        true => {
            ", path = CASE WHEN '/' || path = ?2 THEN substr(?3, 2)
               WHEN path = '' OR substr(?3, -length(path) - 1) = '/' || path THEN path END"
        }
        false => "",
    };
    connection.execute(
        &format!(
            "WITH RECURSIVE own(id) AS (
               VALUES (?1) UNION SELECT s.id FROM session s JOIN own ON s.parent_id = own.id)
             UPDATE session SET directory = ?3{part} WHERE id IN own AND directory = ?2"
        ),
        params![id, was, to],
    )?;
    let is_there: bool = connection.query_row(
        "SELECT count(*) = 1 FROM session WHERE id = ?1 AND directory = ?2",
        params![id, to],
        |row| row.get(0),
    )?;
    if !is_there || records()? != before {
        // Somebody was faster. The transaction is taken back.
        return Ok(None);
    }
    transaction.commit()?;
    Ok(Some(before.unsigned_abs()))
}
