//! Sessions that are rows of a database.

use std::io;
use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, ErrorCode, params};
use session_core::error::CatalogError;
use session_core::{Conversation, Inspection, NativeId, Presence, RecordKind, Said, Speaker, Version};

use super::reading::read;
use super::{Asked, ROWS, Tally, failed, join, unreadable};
use crate::transcript::{Message, Part};

/// Columns of a session that the agent reads as JSON: where one is not, it says that there is no session (1.15.13,
/// 1.18.33).
pub(super) const JSON_COLUMNS: &[&str] = &["metadata", "model", "permission", "revert", "summary_diffs"];

/// What was found in place of an answer.
pub(super) enum Ailment {
    /// It is no database, or its pages are damaged.
    Damaged,
    /// It may not be read.
    Denied,
    /// Its tables are not those that are known.
    Unknown,
    /// There is more in it than is read in the time that there is.
    Endless,
    /// Nobody can tell: it is locked, or SQLite failed.
    Other(rusqlite::Error),
    /// The system failed.
    System(io::Error),
}

impl From<io::Error> for Ailment {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::System(error),
        }
    }
}

impl From<rusqlite::Error> for Ailment {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Self::Damaged,
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => Self::Denied,
            Some(ErrorCode::OperationInterrupted | ErrorCode::TooBig) => Self::Endless,
            _ => Self::Other(error),
        }
    }
}

/// A session's row.
pub(super) struct Row {
    directory: String,
    /// Whether all columns that should be JSON are.
    is_sound: bool,
    /// The first message that the user took back, or an id behind all: it and all later ones go before the next prompt.
    pub(super) end: String,
}

pub(super) fn inspect(path: &Path, asked: &Asked, until: Instant) -> Result<Inspection, CatalogError> {
    let looked = read(path, asked.state.as_deref(), until, |connection| {
        tally(connection, &asked.id, asked.version.as_ref())
    });
    match looked {
        Ok(None | Some(None)) => Ok(Inspection::MISSING),
        Ok(Some(Some(tally))) => Ok(tally.sum_up(path)),
        Err(Ailment::Damaged) => Ok(Inspection {
            presence: Presence::Damaged,
            path: Some(path.to_owned()),
            in_the_way: true,
            ..Inspection::MISSING
        }),
        Err(Ailment::Denied | Ailment::Unknown | Ailment::Endless) => Ok(unreadable(path)),
        Err(Ailment::Other(error)) => Err(failed(path, error)),
        Err(Ailment::System(error)) => Err(failed(path, error)),
    }
}

fn tally(
    connection: &Connection,
    id: &NativeId,
    version: Option<&Version>,
) -> Result<Option<Tally>, Ailment> {
    let Some(row) = session(connection, id)? else { return Ok(None) };
    let mut tally = Tally { began_in: Some(row.directory.into()), ..Tally::default() };
    if !row.is_sound {
        tally.broken += 1;
    }
    // 1.18.33 needs more of a message than the older ones.
    let strict = version.is_none_or(|version| version.at_least(1, 17, 0));
    let end = row.end;
    let mut floor = String::new();
    let mut statement = connection.prepare(
        "SELECT m.id, m.data, EXISTS (SELECT 1 FROM part p WHERE p.message_id = m.id) FROM (
           SELECT id, data FROM message WHERE session_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3
         ) m ORDER BY m.id",
    )?;
    let mut rows = statement.query(params![id.as_str(), end, ROWS])?;
    let (mut broken, mut holes) = (0, 0);
    while let Some(row) = rows.next()? {
        let data = bytes_of(row, 1)?;
        let has_parts: bool = row.get(2)?;
        tally.bytes += data.len() as u64;
        let Some(message) = Message::read(&data).filter(|message| !strict || message.is_whole()) else {
            broken += 1;
            continue;
        };
        if !message.is_whole() {
            holes += 1;
        }
        match message.kind() {
            Some(RecordKind::Prompt) if has_parts => tally.user_turns += 1,
            Some(RecordKind::Answer) if has_parts => tally.answers += 1,
            _ => {}
        }
        if message.is_summary() {
            // What lies before a summary is read no more.
            (broken, holes) = (0, 0);
            floor = message.parent.unwrap_or_default();
        }
    }
    tally.broken += broken;
    tally.holes = holes;
    let (count, bytes): (i64, i64) = connection.query_row(
        "SELECT coalesce(sum(NOT json_valid(data)), 0), coalesce(sum(octet_length(data)), 0) FROM (
           SELECT data FROM part WHERE session_id = ?1 AND message_id >= ?2 AND message_id < ?3
           ORDER BY message_id DESC LIMIT ?4)",
        params![id.as_str(), floor, end, ROWS],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    tally.broken += count.unsigned_abs();
    tally.bytes += bytes.unsigned_abs();
    Ok(Some(tally))
}

/// The bytes of a column, whatever it is.
pub(super) fn bytes_of(row: &rusqlite::Row<'_>, column: usize) -> Result<Vec<u8>, rusqlite::Error> {
    use rusqlite::types::ValueRef;
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => Vec::new(),
    })
}

/// `None`: there is no such session, or no table for one.
pub(super) fn session(connection: &Connection, id: &NativeId) -> Result<Option<Row>, Ailment> {
    let columns = columns(connection, "session")?;
    if columns.is_empty() {
        return Ok(None);
    }
    let there = |name: &str| columns.iter().any(|column| column == name);
    let messages = self::columns(connection, "message")?;
    let known = there("id") && there("directory") && messages.iter().any(|column| column == "data");
    if !known || self::columns(connection, "part")?.is_empty() {
        return Err(Ailment::Unknown);
    }
    let sound: Vec<_> = JSON_COLUMNS
        .iter()
        .filter(|name| there(name))
        .map(|name| format!("({name} IS NULL OR json_valid({name}))"))
        .collect();
    let sound = if sound.is_empty() { "1".to_owned() } else { sound.join(" AND ") };
    let revert = if there("revert") {
        "CASE WHEN json_valid(revert) THEN json_extract(revert, '$.messageID') END"
    } else {
        "NULL"
    };
    let sql = format!("SELECT directory, {sound}, {revert} FROM session WHERE id = ?1");
    let row = connection.query_row(&sql, [id.as_str()], |row| {
        Ok(Row {
            directory: String::from_utf8_lossy(&bytes_of(row, 0)?).into_owned(),
            is_sound: row.get(1)?,
            end: row.get(2).unwrap_or_else(|_| "\u{10ffff}".to_owned()),
        })
    });
    match row {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
        row => Ok(Some(row?)),
    }
}

pub(super) fn columns(connection: &Connection, table: &str) -> Result<Vec<String>, Ailment> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

pub(super) fn last_said(
    path: &Path,
    asked: &Asked,
    until: Instant,
    bytes: usize,
) -> Result<Conversation, CatalogError> {
    let said = read(path, asked.state.as_deref(), until, |connection| said(connection, &asked.id, bytes));
    said.map(Option::unwrap_or_default).map_err(|ailment| match ailment {
        Ailment::Other(error) => failed(path, error),
        Ailment::System(error) => failed(path, error),
        Ailment::Damaged => failed(path, "it is damaged"),
        Ailment::Denied => failed(path, "it may not be read"),
        Ailment::Unknown => failed(path, "its tables are not known"),
        Ailment::Endless => failed(path, "there is more in it than can be read"),
    })
}

fn said(connection: &Connection, id: &NativeId, bytes: usize) -> Result<Conversation, Ailment> {
    let mut conversation = Conversation::default();
    let Some(row) = session(connection, id)? else { return Ok(conversation) };
    let mut statement = connection.prepare(
        "SELECT m.id, m.data, p.data FROM (
           SELECT id, data FROM message WHERE session_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3
         ) m JOIN part p ON p.message_id = m.id ORDER BY m.id, p.id",
    )?;
    let mut rows = statement.query(params![id.as_str(), row.end, ROWS])?;
    let mut open: Option<(String, Said)> = None;
    while let Some(row) = rows.next()? {
        let message: String = row.get(0)?;
        let kind = Message::read(&bytes_of(row, 1)?).and_then(|message| message.kind());
        let by = match kind {
            Some(RecordKind::Prompt) => Speaker::User,
            Some(RecordKind::Answer) => Speaker::Agent,
            _ => continue,
        };
        let Some(words) = Part::words(&bytes_of(row, 2)?) else { continue };
        match &mut open {
            // The parts of a message are one thing said.
            Some((id, said)) if *id == message => join(&mut said.text, &words, bytes),
            _ => {
                if let Some((_, said)) = open.replace((message, Said { by, text: words })) {
                    conversation.push(said, bytes);
                }
            }
        }
    }
    if let Some((_, said)) = open {
        conversation.push(said, bytes);
    }
    Ok(conversation)
}
