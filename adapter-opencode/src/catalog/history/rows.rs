//! The sessions of a database, in a few statements however many there are. What the agent wrote there may be of any type.

use std::collections::HashMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use session_core::Usage;

use super::super::database::{Ailment, columns};
use super::copies;
use super::reading::DatabaseError;
use super::record::{Message, Part};
use super::summary::{Session, Summary, Typed, Words};
use crate::transcript::is_session_id;

/// How many sessions and messages of one database are read for a list.
const SESSIONS: i64 = 100_000;
const MESSAGES: i64 = 1_000_000;

/// The longest message and part that are read for a list, in bytes. What changed in a turn is noted in its message.
const LONGEST: i64 = 8 << 20;

/// The longest record of a finished step, in bytes.
const LONGEST_STEP: i64 = 64 << 10;

/// The sessions of a database.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) sessions: Vec<Summary>,
    /// Rows of sessions whose ids are none.
    pub(super) skipped: u64,
    /// What kept it from being read whole.
    pub(super) trouble: Option<DatabaseError>,
}

/// Reads the sessions, or the one that is asked for and what it has in common with others.
pub(super) fn gather(connection: &Connection, only: Option<&str>) -> Result<Gathered, DatabaseError> {
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
    sessions(connection, &names, &mut gathered)?;
    if only.is_some_and(|only| gathered.sessions.iter().all(|session| session.own.id != only)) {
        gathered.sessions.clear();
        return Ok(gathered);
    }
    // What is known of a session without its messages is worth to be told.
    if let Err(ailment) = fill(connection, &mut gathered, only, has(&messages, &["time_created"])) {
        gathered.trouble = Some(ailment.into());
        gathered.sessions.iter_mut().for_each(|session| session.is_partial = true);
    }
    if let Some(only) = only {
        gathered.sessions.retain(|session| session.own.id == only);
    }
    Ok(gathered)
}

fn sessions(connection: &Connection, names: &[String], gathered: &mut Gathered) -> Result<(), DatabaseError> {
    let there = |name: &str| names.iter().any(|column| column == name);
    let column = |name: &str| if there(name) { name.to_owned() } else { "NULL".to_owned() };
    let text = |name: &str, limit: u32| format!("substr({}, 1, {limit})", column(name));
    let sound: Vec<_> = super::super::database::JSON_COLUMNS
        .iter()
        .filter(|name| there(name))
        .map(|name| format!("({name} IS NULL OR json_valid({name}))"))
        .collect();
    let sound = if sound.is_empty() { "1".to_owned() } else { sound.join(" AND ") };
    let field = |name: &str, path: &str| match there(name) {
        true => format!("CASE WHEN json_valid({name}) THEN json_extract({name}, '{path}') END"),
        false => "NULL".to_owned(),
    };
    let headless = match there("permission") {
        // The rule has no place of its own among the others.
        true => {
            "CASE WHEN json_valid(permission) AND json_type(permission) = 'array' THEN EXISTS (
                   SELECT 1 FROM json_each(permission) rule WHERE rule.type = 'object'
                     AND json_extract(rule.value, '$.permission') = 'question'
                     AND json_extract(rule.value, '$.action') = 'deny') END"
        }
        false => "NULL",
    };
    let sql = format!(
        "SELECT {}, {}, {}, {}, {}, {}, {}, {sound}, {}, {headless}, {}, {}, {}, {}, {} FROM session LIMIT {}",
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
        SESSIONS + 1
    );
    let has_totals = there("tokens_input") && there("tokens_output");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if gathered.sessions.len() as u64 >= SESSIONS.unsigned_abs() {
            gathered.trouble = Some(DatabaseError::TooMuch);
            break;
        }
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

fn fill(
    connection: &Connection,
    gathered: &mut Gathered,
    only: Option<&str>,
    has_times: bool,
) -> Result<(), Ailment> {
    let sessions = &mut gathered.sessions;
    let index: HashMap<String, usize> =
        sessions.iter().enumerate().map(|(n, session)| (session.own.id.clone(), n)).collect();
    let sql = format!(
        "SELECT session_id, id, CASE WHEN octet_length(data) <= {LONGEST} THEN data END FROM message
         WHERE {} LIMIT {}",
        if only.is_some() { "session_id = ?1" } else { "?1 IS NULL" },
        MESSAGES + 1
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query(params![only])?;
    let (mut users, mut read) = (HashMap::new(), 0_i64);
    while let Some(row) = rows.next()? {
        read += 1;
        if read > MESSAGES {
            return Err(Ailment::Endless);
        }
        let Some(&session) = text_of(row, 0)?.and_then(|id| index.get(&id)) else { continue };
        let Some(id) = text_of(row, 1)? else { continue };
        if sessions[session].add_message(&id, bytes_of(row, 2)?) {
            users.insert(id, session);
        }
    }
    drop(rows);
    prompts(connection, sessions, &users)?;
    if let Some(only) = only.filter(|_| has_times) {
        others(connection, sessions, &index, only)?;
    }
    let candidates = copies::candidates(sessions);
    words(connection, sessions, &candidates)?;
    copies::mark(sessions, &candidates);
    steps(connection, sessions, only)
}

/// Tells which of these messages somebody typed, and their words.
fn prompts(
    connection: &Connection,
    sessions: &mut [Summary],
    users: &HashMap<String, usize>,
) -> Result<(), Ailment> {
    let mut typed: HashMap<String, Typed> = HashMap::new();
    let all = users.keys().cloned().collect();
    parts(connection, "message_id", all, LONGEST, "", &mut |message, id, data| {
        let part = data.and_then(Part::read);
        typed.entry(message.to_owned()).or_default().add(id, part.as_ref());
    })?;
    for (id, typed) in typed {
        if let (Some(&session), Some(words)) = (users.get(&id), typed.done()) {
            sessions[session].add_prompt(&id, words);
        }
    }
    Ok(())
}

/// Adds the replies of other sessions that were made at the same times.
fn others(
    connection: &Connection,
    sessions: &mut [Summary],
    index: &HashMap<String, usize>,
    only: &str,
) -> Result<(), Ailment> {
    let Some(&own) = index.get(only) else { return Ok(()) };
    let keyed = sessions[own].replies.iter().filter(|reply| reply.key.is_some());
    let times: Vec<f64> = keyed.filter_map(|reply| reply.created).collect();
    let mut statement = connection.prepare(&format!(
        "SELECT session_id, id, CASE WHEN octet_length(data) <= {LONGEST} THEN data END FROM message
         WHERE session_id <> ?1 AND time_created IN (SELECT value FROM json_each(?2)) LIMIT {MESSAGES}"
    ))?;
    let mut rows = statement.query(params![only, json(&times)])?;
    while let Some(row) = rows.next()? {
        let Some(&session) = text_of(row, 0)?.and_then(|id| index.get(&id)) else { continue };
        let (Some(id), data) = (text_of(row, 1)?, bytes_of(row, 2)?) else { continue };
        if data.and_then(Message::read).is_some_and(|message| message.key().is_some()) {
            sessions[session].add_message(&id, data);
        }
    }
    Ok(())
}

/// Reads the words of these replies.
fn words(
    connection: &Connection,
    sessions: &mut [Summary],
    places: &[(usize, usize)],
) -> Result<(), Ailment> {
    let ids: HashMap<String, (usize, usize)> = places
        .iter()
        .map(|&(session, reply)| (sessions[session].replies[reply].id.clone(), (session, reply)))
        .collect();
    let mut words: HashMap<String, Words> = HashMap::new();
    let all = ids.keys().cloned().collect();
    parts(connection, "message_id", all, LONGEST, "ORDER BY p.message_id, p.id", &mut |message, _, data| {
        if let Some(part) = data.and_then(Part::read) {
            words.entry(message.to_owned()).or_default().add(&part);
        }
    })?;
    for (id, (session, reply)) in &ids {
        sessions[*session].replies[*reply].text = Some(words.entry(id.clone()).or_default().done());
    }
    Ok(())
}

/// Reads the finished steps of the sessions that need them for their tokens; of one that is asked for, in any case.
fn steps(connection: &Connection, sessions: &mut [Summary], only: Option<&str>) -> Result<(), Ailment> {
    let wanted = |session: &Summary| match only {
        Some(only) => session.own.id == only,
        None => session.needs_steps(),
    };
    let mut ids = Vec::new();
    let mut places: HashMap<String, (usize, usize)> = HashMap::new();
    for (n, session) in sessions.iter().enumerate().filter(|(_, session)| wanted(session)) {
        ids.push(session.own.id.clone());
        places.extend(session.replies.iter().enumerate().map(|(m, reply)| (reply.id.clone(), (n, m))));
    }
    let finished = "AND instr(p.data, 'step-finish') > 0";
    parts(connection, "session_id", ids, LONGEST_STEP, finished, &mut |message, _, data| {
        if let (Some(&(session, reply)), Some(part)) = (places.get(message), data.and_then(Part::read)) {
            sessions[session].add_step(reply, &part);
        }
    })
}

/// Hands on the parts that have one of these values in that column: message, id, and the data where it is not too long.
fn parts(
    connection: &Connection,
    column: &str,
    values: Vec<String>,
    longest: i64,
    more: &str,
    each: &mut dyn FnMut(&str, &str, Option<&[u8]>),
) -> Result<(), Ailment> {
    if values.is_empty() {
        return Ok(());
    }
    let (filter, order) = match more.strip_prefix("AND ") {
        Some(filter) => (format!("octet_length(p.data) <= {longest} AND {filter}"), ""),
        None => ("1".to_owned(), more),
    };
    let mut statement = connection.prepare(&format!(
        "SELECT p.message_id, p.id, CASE WHEN octet_length(p.data) <= {longest} THEN p.data END
         FROM json_each(?1) wanted CROSS JOIN part p ON p.{column} = wanted.value WHERE {filter} {order}"
    ))?;
    let mut rows = statement.query(params![json(&values)])?;
    while let Some(row) = rows.next()? {
        if let (Some(message), Some(id)) = (text_of(row, 0)?, text_of(row, 1)?) {
            each(&message, &id, bytes_of(row, 2)?);
        }
    }
    Ok(())
}

fn json<T: serde::Serialize>(values: &[T]) -> String {
    serde_json::to_string(values).unwrap_or_default()
}

/// The text of a column. `None`: it is of another type.
pub(super) fn text_of(row: &Row<'_>, column: usize) -> Result<Option<String>, rusqlite::Error> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    })
}

/// The bytes of a column. `None`: it has none.
pub(super) fn bytes_of<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a [u8]>, rusqlite::Error> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    })
}

#[expect(clippy::cast_precision_loss, reason = "times and counts are far below what is lost")]
fn number_of(row: &Row<'_>, column: usize) -> Result<Option<f64>, rusqlite::Error> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Real(number) => Some(number),
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
fn count(number: Option<f64>) -> u64 {
    number.unwrap_or(0.0) as u64
}
