//! The rows of a branch, copied under new ids.

use std::collections::HashMap;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};
use session_core::{NativeId, RecordKind, Seed};

use super::super::ROWS;
use super::super::database::{Ailment, bytes_of, columns, session};
use super::ids::Ids;
use crate::transcript::Message;

/// What is copied, and under which id.
pub(super) struct Copying<'a> {
    pub(super) from: &'a NativeId,
    pub(super) to: &'a NativeId,
    pub(super) turns: u64,
    pub(super) seed: &'a Seed,
}

/// What a copy came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Copied {
    Done,
    /// There is no such session.
    Missing,
    /// It has fewer turns, or more messages than are read.
    SpotGone,
    /// The tables are not the same.
    OtherTables,
}

/// Columns of a session that do not go with a branch: what was taken back, shared and granted, and what was counted of all
/// turns. Those that may not be empty are zero.
const LEFT_OUT: &[&str] = &[
    "parent_id",
    "share_url",
    "revert",
    "time_compacting",
    "time_archived",
    "summary_additions",
    "summary_deletions",
    "summary_files",
    "summary_diffs",
];
const ZEROED: &[&str] =
    &["cost", "tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write"];

/// Copies a session's row, and its messages with their parts, up to before the prompt behind the last turn that is kept.
pub(super) fn copy(
    source: &Connection,
    target: &Connection,
    copying: &Copying<'_>,
) -> Result<Copied, Ailment> {
    let Some(row) = session(source, copying.from)? else { return Ok(Copied::Missing) };
    let Some(messages) = messages(source, copying, &row.end)? else { return Ok(Copied::SpotGone) };
    let count: i64 = source.query_row(
        "SELECT count(*) FROM part WHERE session_id = ?1",
        [copying.from.as_str()],
        |row| row.get(0),
    )?;
    let [Some(sessions), Some(kept), Some(parts)] =
        ["session", "message", "part"].map(|table| Table::of(source, target, table).transpose())
    else {
        return Ok(Copied::OtherTables);
    };
    let (sessions, kept, parts) = (sessions?, kept?, parts?);
    project(source, target, copying.from)?;
    copy_session(source, target, &sessions, copying)?;
    let mut ids = Ids::before_now(copying.seed, messages.len() as u64 + count.unsigned_abs());
    let mut known = HashMap::new();
    for id in &messages {
        let new = ids.next("msg");
        let Some(mut row) = kept.read(source, id)? else { return Ok(Copied::SpotGone) };
        row.set("id", &new);
        row.set("session_id", copying.to.as_str());
        row.point(source, "parentID", &known)?;
        row.write(target)?;
        let mut statement = source.prepare("SELECT id FROM part WHERE message_id = ?1 ORDER BY id")?;
        let of_it: Vec<String> = statement.query_map([id], |row| row.get(0))?.collect::<Result<_, _>>()?;
        known.insert(id.clone(), new.clone());
        for part in of_it {
            let Some(mut row) = parts.read(source, &part)? else { return Ok(Copied::SpotGone) };
            row.set("id", &ids.next("prt"));
            row.set("message_id", &new);
            row.set("session_id", copying.to.as_str());
            // Of a compaction: what of the turns before it is still read.
            row.point(source, "tail_start_id", &known)?;
            row.write(target)?;
        }
    }
    Ok(Copied::Done)
}

/// The ids of the messages that are kept, oldest first. `None`: it does not hold so many turns.
fn messages(
    connection: &Connection,
    copying: &Copying<'_>,
    end: &str,
) -> Result<Option<Vec<String>>, Ailment> {
    let mut statement = connection.prepare(
        "SELECT m.id, m.data, EXISTS (SELECT 1 FROM part p WHERE p.message_id = m.id)
           FROM message m WHERE session_id = ?1 AND id < ?2 ORDER BY id LIMIT ?3",
    )?;
    let mut rows = statement.query(params![copying.from.as_str(), end, ROWS + 1])?;
    let (mut kept, mut turns) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let has_parts: bool = row.get(2)?;
        let kind = Message::read(&bytes_of(row, 1)?).and_then(|message| message.kind());
        if kind == Some(RecordKind::Prompt) && has_parts {
            turns += 1;
            if turns > copying.turns {
                return Ok(Some(kept));
            }
        }
        kept.push(row.get(0)?);
    }
    let is_whole = i64::try_from(kept.len()).is_ok_and(|count| count <= ROWS);
    Ok((turns == copying.turns && is_whole).then_some(kept))
}

/// A table that both databases have, by its columns.
struct Table {
    name: &'static str,
    columns: Vec<String>,
}

impl Table {
    /// `None`: they are not the same.
    fn of(source: &Connection, target: &Connection, name: &'static str) -> Result<Option<Self>, Ailment> {
        let columns = columns(source, name)?;
        let same = columns == self::columns(target, name)?;
        Ok(same.then_some(Self { name, columns }))
    }

    fn list(&self) -> String {
        let quoted = self.columns.iter().map(|column| format!("\"{}\"", column.replace('"', "\"\"")));
        quoted.collect::<Vec<_>>().join(", ")
    }

    fn read(&self, connection: &Connection, id: &str) -> Result<Option<Row<'_>>, Ailment> {
        let sql = format!("SELECT {} FROM {} WHERE id = ?1", self.list(), self.name);
        let mut statement = connection.prepare(&sql)?;
        let values = statement
            .query_row([id], |row| (0..self.columns.len()).map(|at| row.get(at)).collect())
            .optional()?;
        Ok(values.map(|values| Row { table: self, values }))
    }
}

/// A row that is copied.
struct Row<'a> {
    table: &'a Table,
    values: Vec<Value>,
}

impl Row<'_> {
    fn at(&mut self, column: &str) -> Option<&mut Value> {
        let at = self.table.columns.iter().position(|name| name == column)?;
        self.values.get_mut(at)
    }

    fn set(&mut self, column: &str, value: &str) {
        if let Some(there) = self.at(column) {
            *there = Value::Text(value.to_owned());
        }
    }

    /// Has a field of its JSON, if it names a message, name the copy of that.
    fn point(
        &mut self,
        connection: &Connection,
        field: &str,
        known: &HashMap<String, String>,
    ) -> Result<(), Ailment> {
        let Some(data) = self.at("data") else { return Ok(()) };
        let path = format!("$.{field}");
        let sql = "SELECT CASE WHEN json_valid(?1) THEN json_extract(?1, ?2) END";
        let named: Value = connection.prepare(sql)?.query_row(params![*data, path], |row| row.get(0))?;
        let Value::Text(named) = named else { return Ok(()) };
        if let Some(new) = known.get(&named) {
            let sql = "SELECT json_set(?1, ?2, ?3)";
            *data = connection.prepare(sql)?.query_row(params![*data, path, new], |row| row.get(0))?;
        }
        Ok(())
    }

    fn write(&self, connection: &Connection) -> Result<(), Ailment> {
        let marks = vec!["?"; self.values.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}) VALUES ({marks})", self.table.name, self.table.list());
        connection.prepare(&sql)?.execute(params_from_iter(&self.values))?;
        Ok(())
    }
}

fn copy_session(
    source: &Connection,
    target: &Connection,
    sessions: &Table,
    copying: &Copying<'_>,
) -> Result<(), Ailment> {
    let Some(mut row) = sessions.read(source, copying.from.as_str())? else { return Ok(()) };
    row.set("id", copying.to.as_str());
    let now = Value::Integer(copying.seed.now.as_millis());
    for (columns, value) in
        [(LEFT_OUT, Value::Null), (ZEROED, Value::Integer(0)), (&["time_created", "time_updated"], now)]
    {
        for column in columns {
            if let Some(there) = row.at(column) {
                *there = value.clone();
            }
        }
    }
    if let Some(permission) = row.at("permission") {
        let denied = match permission {
            Value::Text(rules) => super::denied(rules.as_bytes()).map(|rules| rules.to_string()),
            _ => None,
        };
        *permission = denied.map_or(Value::Null, Value::Text);
    }
    row.write(target)
}

/// The project that the session is one of, where the target does not know it.
fn project(source: &Connection, target: &Connection, session: &NativeId) -> Result<(), Ailment> {
    let sql = "SELECT project_id FROM session WHERE id = ?1";
    let id: Option<String> = source.query_row(sql, [session.as_str()], |row| row.get(0))?;
    let (Some(id), Some(table)) = (id, Table::of(source, target, "project")?) else { return Ok(()) };
    if table.columns.is_empty() || table.read(target, &id)?.is_some() {
        return Ok(());
    }
    match table.read(source, &id)? {
        Some(row) => row.write(target),
        None => Ok(()),
    }
}

/// Takes all other sessions out of a copy of a database, and what was granted in it.
pub(super) fn keep_alone(connection: &Connection, session: &NativeId) -> Result<(), Ailment> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'";
    let tables: Vec<String> =
        connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let delete = |table: &str, column: &str| {
        let table = table.replace('"', "\"\"");
        let sql = format!("DELETE FROM \"{table}\" WHERE {column} IS NOT ?1");
        connection.execute(&sql, [session.as_str()]).map(drop)
    };
    for table in &tables {
        let columns = columns(connection, table)?;
        for column in ["session_id", "aggregate_id"] {
            if columns.iter().any(|name| name == column) {
                delete(table, column)?;
            }
        }
    }
    delete("session", "id")?;
    if tables.iter().any(|table| table == "permission") {
        connection.execute("DELETE FROM permission", [])?;
    }
    Ok(())
}

/// Removes a session's rows.
pub(super) fn remove(connection: &Connection, session: &NativeId) -> Result<(), Ailment> {
    for (table, column) in [("part", "session_id"), ("message", "session_id"), ("session", "id")] {
        connection.execute(&format!("DELETE FROM {table} WHERE {column} = ?1"), [session.as_str()])?;
    }
    Ok(())
}
