//! The sessions of a database, in a few statements however many there are. What the agent wrote there may be of any type.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, params};
use session_core::Usage;

use super::super::database::{Ailment, columns};
use super::columns::{bytes_of, text_of};
use super::copies;
use super::error::DatabaseError;
use super::heads::{Gathered, head};
use super::record::{Message, Part};
use super::summary::{Summary, Typed, Words};

/// How many messages of one database are read for a list.
const MESSAGES: i64 = 1_000_000;

/// The longest message and part that are read for a list, in bytes. What changed in a turn is noted in its message.
const LONGEST: i64 = 8 << 20;

/// The longest record of a finished step, in bytes.
const LONGEST_STEP: i64 = 64 << 10;

/// Reads the sessions, or the one that is asked for and what it has in common with others.
pub(super) fn gather(connection: &Connection, only: Option<&str>) -> Result<Gathered, DatabaseError> {
    let mut gathered = head(connection, None)?;
    if gathered.sessions.is_empty() {
        return Ok(gathered);
    }
    let has_times = columns(connection, "message")?.iter().any(|name| name == "time_created");
    if only.is_some_and(|only| gathered.sessions.iter().all(|session| session.own.id != only)) {
        gathered.sessions.clear();
        return Ok(gathered);
    }
    // What is known of a session without its messages is worth to be told.
    if let Err(ailment) = fill(connection, &mut gathered, only, has_times) {
        gathered.trouble = Some(ailment.into());
        gathered.sessions.iter_mut().for_each(|session| session.is_partial = true);
    }
    if let Some(only) = only {
        gathered.sessions.retain(|session| session.own.id == only);
    }
    Ok(gathered)
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
    let all: Vec<_> = users.keys().cloned().collect();
    parts(connection, "message_id", &all, LONGEST, "", &mut |message, id, data| {
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
    let all: Vec<_> = ids.keys().cloned().collect();
    parts(
        connection,
        "message_id",
        &all,
        LONGEST,
        "ORDER BY p.message_id, p.id",
        &mut |message, _, data| {
            if let Some(part) = data.and_then(Part::read) {
                words.entry(message.to_owned()).or_default().add(&part);
            }
        },
    )?;
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
    parts(connection, "session_id", &ids, LONGEST_STEP, finished, &mut |message, _, data| {
        if let (Some(&(session, reply)), Some(part)) = (places.get(message), data.and_then(Part::read)) {
            sessions[session].add_step(reply, &part);
        }
    })
}

/// The tokens of the sessions that this one began, and of those that they began.
pub(super) fn usage_of_helpers(connection: &Connection, id: &str) -> Result<Usage, DatabaseError> {
    let mut gathered = head(connection, None)?;
    let helpers = helpers_of(&gathered.sessions, id);
    let mut place = 0;
    gathered.sessions.retain(|_| {
        place += 1;
        helpers.contains(&(place - 1))
    });
    let mut sum = Usage::default();
    for helper in gathered.sessions {
        let own = gather(connection, Some(&helper.own.id))?;
        own.sessions.iter().for_each(|session| sum += session.usage());
    }
    Ok(sum)
}

/// The places of the sessions that this one began, and of those that they began.
pub(super) fn helpers_of(sessions: &[Summary], id: &str) -> HashSet<usize> {
    let mut children: HashMap<&str, Vec<usize>> = HashMap::new();
    for (n, session) in sessions.iter().enumerate() {
        if let Some(parent) = &session.own.parent {
            children.entry(parent).or_default().push(n);
        }
    }
    let (mut found, mut open) = (HashSet::new(), vec![id]);
    while let Some(id) = open.pop() {
        for &child in children.get(id).into_iter().flatten() {
            if found.insert(child) {
                open.push(&sessions[child].own.id);
            }
        }
    }
    // A circle may lead back.
    found.retain(|place| sessions[*place].own.id != id);
    found
}

/// What is done with a part: its message, its id, its data.
type EachPart<'a> = &'a mut dyn FnMut(&str, &str, Option<&[u8]>);

/// Hands on the parts that have one of these values in that column: message, id, and the data where it is not too long.
fn parts(
    connection: &Connection,
    column: &str,
    values: &[String],
    longest: i64,
    more: &str,
    each: EachPart<'_>,
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
    let mut rows = statement.query(params![json(values)])?;
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
