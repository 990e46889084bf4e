//! The sessions' own rows. Which columns there are depends on the version that made the table.

use rusqlite::{Connection, params};
use session_core::Usage;

use super::super::database::{JSON_COLUMNS, columns};
use super::columns::{count, number_of, text_of};
use super::error::DatabaseError;
use super::summary::{Session, Summary};
use crate::transcript::is_session_id;

/// How many sessions of one database are read for a list.
const SESSIONS: i64 = 100_000;

/// The longest JSON in the row of a session that is looked into, in bytes.
const LONGEST_JSON: i64 = 1 << 20;

/// The sessions of a database.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) sessions: Vec<Summary>,
    /// Rows of sessions whose ids are none.
    pub(super) skipped: u64,
    /// What kept it from being read whole.
    pub(super) trouble: Option<DatabaseError>,
}

/// Reads the sessions' own rows alone, or that of the one that is asked for.
pub(super) fn head(connection: &Connection, only: Option<&str>) -> Result<Gathered, DatabaseError> {
    let mut gathered = Gathered::default();
    let names = columns(connection, "session")?;
    if names.is_empty() {
        return Ok(gathered);
    }
    let messages = columns(connection, "message")?;
    let parts = columns(connection, "part")?;
    let has =
        |there: &[String], names: &[&str]| names.iter().all(|name| there.iter().any(|column| column == name));
    let known = has(&names, &["id", "directory"])
        && has(&messages, &["id", "session_id", "data"])
        && has(&parts, &["id", "message_id", "session_id", "data"]);
    if !known {
        return Err(DatabaseError::UnknownTables);
    }
    sessions(connection, &names, only, &mut gathered)?;
    Ok(gathered)
}

fn sessions(
    connection: &Connection,
    names: &[String],
    only: Option<&str>,
    gathered: &mut Gathered,
) -> Result<(), DatabaseError> {
    let there = |name: &str| names.iter().any(|column| column == name);
    let column = |name: &str| if there(name) { name.to_owned() } else { "NULL".to_owned() };
    let text = |name: &str, limit: u32| format!("substr({}, 1, {limit})", column(name));
    let sound: Vec<_> = JSON_COLUMNS
        .iter()
        .filter(|name| there(name))
        .map(|name| {
            format!("({name} IS NULL OR octet_length({name}) > {LONGEST_JSON} OR json_valid({name}))")
        })
        .collect();
    let sound = if sound.is_empty() { "1".to_owned() } else { sound.join(" AND ") };
    let field = |name: &str, path: &str| match there(name) {
        true => format!(
            "CASE WHEN octet_length({name}) <= {LONGEST_JSON} AND json_valid({name}) THEN json_extract({name}, '{path}') END"
        ),
        false => "NULL".to_owned(),
    };
    let headless = match there("permission") {
        // The rule has no place of its own among the others.
        true => {
            "CASE WHEN octet_length(permission) <= 65536 AND json_valid(permission) AND json_type(permission) = 'array' THEN EXISTS (
                   SELECT 1 FROM json_each(permission) rule WHERE rule.type = 'object'
                     AND json_extract(rule.value, '$.permission') = 'question'
                     AND json_extract(rule.value, '$.action') = 'deny') END"
        }
        false => "NULL",
    };
    let sql = format!(
        "SELECT {}, {}, {}, {}, {}, {}, {}, {sound}, {}, {headless}, {}, {}, {}, {}, {} FROM session
         WHERE {} LIMIT {}",
        text("id", 1024),
        text("parent_id", 1024),
        text("directory", 32768),
        text("title", 4096),
        text("version", 256),
        column("time_created"),
        column("time_updated"),
        field("revert", "$.messageID"),
        column("tokens_input"),
        column("tokens_output"),
        column("tokens_cache_read"),
        column("tokens_cache_write"),
        column("tokens_reasoning"),
        if only.is_some() { "id = ?1" } else { "?1 IS NULL" },
        SESSIONS + 1
    );
    let has_totals = there("tokens_input") && there("tokens_output");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query(params![only])?;
    let mut left = SESSIONS;
    while let Some(row) = rows.next()? {
        // Also those that are no sessions: what comes behind the last row asked for is not known.
        if left == 0 {
            gathered.trouble = Some(DatabaseError::TooMuch);
            break;
        }
        left -= 1;
        let id = text_of(row, 0)?.unwrap_or_default();
        if !is_session_id(&id) {
            gathered.skipped += 1;
            continue;
        }
        let tokens = |column| number_of(row, column).map(count);
        let totals = Usage {
            input_tokens: tokens(10)?,
            // The versions that keep totals count apart what was thought.
            output_tokens: tokens(11)?.saturating_add(tokens(14)?),
            cache_read_tokens: tokens(12)?,
            cache_write_tokens: tokens(13)?,
        };
        gathered.sessions.push(Summary::new(Session {
            id,
            parent: text_of(row, 1)?.filter(|parent| is_session_id(parent)),
            directory: text_of(row, 2)?.unwrap_or_default(),
            title: text_of(row, 3)?.unwrap_or_default(),
            version: text_of(row, 4)?.unwrap_or_default(),
            created: number_of(row, 5)?,
            updated: number_of(row, 6)?,
            is_sound: number_of(row, 7)? == Some(1.0),
            end: text_of(row, 8)?,
            is_headless: number_of(row, 9)? == Some(1.0),
            totals: has_totals.then_some(totals),
        }));
    }
    Ok(())
}
