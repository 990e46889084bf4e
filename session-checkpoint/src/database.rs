//! The database of a repository's checkpoints.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};
use session_core::{
    Checkpoint, CheckpointId, Health, Label, LeftOut, LeftOutWhy, PathText, RunId, SessionKey, Timestamp,
};

use crate::handle;
use crate::object::Hash;
use crate::trouble::{Outcome, Trouble};

/// The form of the tables.
const FORMAT: i64 = 1;
/// How long a write of another process is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two tries of what SQLite does not wait for.
const PAUSE: Duration = Duration::from_millis(1);

/// A commit is on the disk when it returns.
const DURABLE: &str = "FULL";
/// A commit comes to the disk with the next one that is waited for, or soon.
const SOON: &str = "NORMAL";

const TABLES: &str = "
CREATE TABLE object (
    id   INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    kind INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE TABLE checkpoint (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    id       BLOB NOT NULL UNIQUE,
    mailbox  TEXT NOT NULL,
    agent    TEXT NOT NULL,
    root     BLOB NOT NULL,
    tree     BLOB NOT NULL,
    mode     INTEGER NOT NULL,
    label    TEXT NOT NULL,
    at       INTEGER NOT NULL,
    files    INTEGER NOT NULL,
    bytes    INTEGER NOT NULL,
    left_out BLOB NOT NULL,
    rules    BLOB NOT NULL
);
CREATE INDEX checkpoint_of_key ON checkpoint (mailbox, agent);
CREATE INDEX checkpoint_of_root ON checkpoint (root);
CREATE TABLE seen (
    root   BLOB NOT NULL,
    folder BLOB NOT NULL,
    data   BLOB NOT NULL,
    PRIMARY KEY (root, folder)
) WITHOUT ROWID;
CREATE TABLE state (
    -- Grows whenever objects are dropped.
    age     INTEGER NOT NULL,
    -- Checkpoints that were dropped since then.
    dropped INTEGER NOT NULL
);
INSERT INTO state (age, dropped) VALUES (0, 0);
CREATE TABLE latest (
    root   BLOB PRIMARY KEY,
    number INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE restore (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    root   BLOB NOT NULL,
    data   BLOB NOT NULL
);
";

/// Opens, or makes, the database at a path. Its folder is made private.
pub(crate) fn open(path: &Path) -> Outcome<Connection> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(Trouble::io(folder))?;
    }
    // SQLite gives its other files the mode of this one.
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .map_err(Trouble::io(path))?;
    let mut db = Connection::open(path)?;
    db.busy_timeout(PATIENCE)?;
    // Counts in a new database alone: pages of what was dropped can be given back.
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    write_ahead(&db)?;
    db.pragma_update(None, "synchronous", DURABLE)?;
    // In KiB, where it is negative: what finds objects stays in memory.
    db.pragma_update(None, "cache_size", -16_384)?;
    db.set_prepared_statement_cache_capacity(64);
    if db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? == FORMAT {
        return Ok(db);
    }
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match transaction.pragma_query_value(None, "user_version", |row| row.get(0))? {
        0 => {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
        }
        FORMAT => {}
        newer => return Err(Trouble::Newer(newer)),
    }
    transaction.commit()?;
    Ok(db)
}

/// Has it write what changed into a log first. Of two that ask a new database for that at once, SQLite tells one to come again, and
/// lets none wait.
fn write_ahead(db: &Connection) -> Outcome<()> {
    let begun = Instant::now();
    loop {
        match db.pragma_update(None, "journal_mode", "WAL") {
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && begun.elapsed() < PATIENCE =>
            {
                thread::sleep(PAUSE);
            }
            done => return Ok(done?),
        }
    }
}

/// How often objects were dropped. A take that saw an object there counts on it only while this stays as it is.
pub(crate) fn age(db: &Connection) -> Outcome<i64> {
    Ok(db.prepare_cached("SELECT age FROM state")?.query_row([], |row| row.get(0))?)
}

/// Says that objects were dropped.
pub(crate) fn grow_older(db: &Connection) -> Outcome<()> {
    db.execute("UPDATE state SET age = age + 1", [])?;
    Ok(())
}

/// Begins a transaction that writes, unless there is one.
pub(crate) fn begin(db: &Connection) -> Outcome<()> {
    if db.is_autocommit() {
        db.execute_batch("BEGIN IMMEDIATE")?;
    }
    Ok(())
}

/// Ends it, well, or badly: on an error, and where nothing was done.
pub(crate) fn end<T>(db: &Connection, done: Outcome<Option<T>>) -> Outcome<Option<T>> {
    let good = matches!(done, Ok(Some(_)));
    // SQLite ends it by itself on some errors.
    if !db.is_autocommit() {
        let ended = db.execute_batch(if good { "COMMIT" } else { "ROLLBACK" });
        if let (true, Err(error)) = (good, ended) {
            drop(db.execute_batch("ROLLBACK"));
            return Err(error.into());
        }
    }
    done
}

/// Writes what need not be on the disk at once: a power failure may take it back as a whole, and nothing that came before it.
pub(crate) fn soon<T>(db: &Connection, write: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    db.pragma_update(None, "synchronous", SOON)?;
    let written = write();
    db.pragma_update(None, "synchronous", DURABLE)?;
    written
}

/// Whether a database can be read from end to end.
pub(crate) fn is_whole(path: &Path) -> bool {
    let check =
        || Connection::open(path)?.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    check().is_ok_and(|verdict| verdict == "ok")
}

/// A checkpoint as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) checkpoint: Checkpoint,
    /// The top of its tree, as bytes.
    pub(crate) root: Vec<u8>,
    /// The list of the tree's top folder.
    pub(crate) tree: Hash,
    /// The permissions of the top folder.
    pub(crate) mode: u16,
    /// All that is left out, as bytes of paths, in their order.
    pub(crate) left_out: Vec<(Vec<u8>, LeftOutWhy)>,
    /// By which rules.
    pub(crate) rules: [u8; 32],
}

const COLUMNS: &str = "id, mailbox, agent, root, tree, mode, label, at, files, bytes, left_out, rules";

/// Writes a checkpoint's row. To be called in the transaction that put its tree.
pub(crate) fn keep(db: &Connection, kept: &Kept) -> Outcome<()> {
    let Kept { checkpoint, root, tree, mode, left_out, rules } = kept;
    let label = serde_json::to_string(&checkpoint.label).expect("plain values can be encoded");
    let left_out = postcard::to_allocvec(left_out).expect("plain values and bytes can be encoded");
    let sql = format!(
        "INSERT INTO checkpoint ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
    );
    db.prepare_cached(&sql)?.execute(params![
        checkpoint.id.as_bytes().as_slice(),
        checkpoint.label.key.mailbox.as_str(),
        checkpoint.label.key.agent.as_str(),
        root,
        tree.0.as_slice(),
        mode,
        label,
        checkpoint.at.as_millis(),
        checkpoint.files.cast_signed(),
        checkpoint.bytes.cast_signed(),
        left_out,
        rules.as_slice(),
    ])?;
    let sql = "INSERT OR REPLACE INTO latest (root, number) VALUES (?1, ?2)";
    db.prepare_cached(sql)?.execute(params![root, db.last_insert_rowid()])?;
    Ok(())
}

/// The checkpoint of a key with this id.
pub(crate) fn kept(db: &Connection, key: &SessionKey, id: CheckpointId) -> Outcome<Option<Kept>> {
    let sql = format!("SELECT {COLUMNS} FROM checkpoint WHERE id = ?1 AND mailbox = ?2 AND agent = ?3");
    let mut select = db.prepare_cached(&sql)?;
    let id = id.as_bytes().as_slice();
    let row = select
        .query_row(params![id, key.mailbox.as_str(), key.agent.as_str()], |row| Ok(read(row)))
        .optional()?;
    row.transpose()
}

/// The first checkpoint of a step of a key.
pub(crate) fn beginning(db: &Connection, key: &SessionKey, step: RunId) -> Outcome<Option<Kept>> {
    // The label is text; what is found in it is looked at once more.
    let sql = format!(
        "SELECT {COLUMNS} FROM checkpoint WHERE mailbox = ?1 AND agent = ?2 AND instr(label, ?3) > 0 ORDER BY number"
    );
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query(params![key.mailbox.as_str(), key.agent.as_str(), step.to_string()])?;
    while let Some(row) = rows.next()? {
        let kept = read(row)?;
        if kept.checkpoint.label.step == step {
            return Ok(Some(kept));
        }
    }
    Ok(None)
}

/// All checkpoints of a key, oldest first. Of one that cannot be read, its id.
pub(crate) fn all_of(
    db: &Connection,
    key: &SessionKey,
) -> Outcome<Vec<Result<Kept, (CheckpointId, Trouble)>>> {
    let sql = format!("SELECT {COLUMNS} FROM checkpoint WHERE mailbox = ?1 AND agent = ?2 ORDER BY number");
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query(params![key.mailbox.as_str(), key.agent.as_str()])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row).map_err(|trouble| {
            let id = row.get::<_, Vec<u8>>(0).ok().and_then(|id| id.try_into().ok());
            (CheckpointId::from_bytes(id.unwrap_or_default()), trouble)
        }));
    }
    Ok(all)
}

fn read(row: &Row<'_>) -> Outcome<Kept> {
    read_row(row).map_err(|trouble| match trouble {
        Trouble::Database(error) => {
            Trouble::Damaged(format!("a column of a checkpoint cannot be read: {error}"))
        }
        other => other,
    })
}

fn read_row(row: &Row<'_>) -> Outcome<Kept> {
    let damaged = |what: &str| Trouble::Damaged(format!("the {what} of a checkpoint cannot be read"));
    let id: Vec<u8> = row.get(0)?;
    let id: [u8; 16] = id.try_into().map_err(|_| damaged("id"))?;
    let root: Vec<u8> = row.get(3)?;
    let tree: Vec<u8> = row.get(4)?;
    let tree = Hash(tree.try_into().map_err(|_| damaged("tree"))?);
    let label: String = row.get(6)?;
    let label: Label = serde_json::from_str(&label).map_err(|_| damaged("label"))?;
    let left_out: Vec<u8> = row.get(10)?;
    let left_out: Vec<(Vec<u8>, LeftOutWhy)> =
        postcard::from_bytes(&left_out).map_err(|_| damaged("list of what is left out"))?;
    let rules: Vec<u8> = row.get(11)?;
    let rules = rules.try_into().map_err(|_| damaged("rules"))?;
    let path = PathText::new(handle::path(&root));
    let mut checkpoint =
        Checkpoint::new(CheckpointId::from_bytes(id), label, Timestamp::from_millis(row.get(7)?), path);
    checkpoint.files = row.get::<_, i64>(8)?.cast_unsigned();
    checkpoint.bytes = row.get::<_, i64>(9)?.cast_unsigned();
    show_left_out(&mut checkpoint, &left_out);
    checkpoint.health = Health::Whole;
    let mode = row.get(5)?;
    if mode & !0o777 != 0 {
        return Err(damaged("mode"));
    }
    Ok(Kept { checkpoint, root, tree, mode, left_out, rules })
}

/// Names the first of what is left out.
pub(crate) fn show_left_out(checkpoint: &mut Checkpoint, left_out: &[(Vec<u8>, LeftOutWhy)]) {
    checkpoint.left_out_count = left_out.len() as u64;
    let shown = left_out.iter().take(Checkpoint::LEFT_OUT_SHOWN);
    let shown = shown.map(|(path, why)| LeftOut { path: PathText::new(handle::path(path)), why: *why });
    checkpoint.left_out = shown.collect();
}

/// Whether a checkpoint of a tree was ever taken here.
pub(crate) fn knows(db: &Connection, root: &[u8]) -> Outcome<bool> {
    let mut select = db.prepare_cached("SELECT EXISTS (SELECT 1 FROM latest WHERE root = ?1)")?;
    Ok(select.query_row([root], |row| row.get(0))?)
}

/// The checkpoint of a tree that was taken last, of whichever key. `None`: there is none, or that one was dropped since: an
/// older one is none to build on where only what changed since is known.
pub(crate) fn latest(db: &Connection, root: &[u8]) -> Outcome<Option<Kept>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM checkpoint WHERE number = (SELECT number FROM latest WHERE root = ?1)"
    );
    db.prepare_cached(&sql)?.query_row([root], |row| Ok(read(row))).optional()?.transpose()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    use rusqlite::Connection;

    /// Whoever takes the first checkpoint of a tree looks into all databases, also into one that another process just makes.
    #[test]
    fn one_that_another_just_makes_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.db");
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let (told, how) = channel();
        let waits = std::thread::spawn(move || {
            let db = Connection::open(&path).unwrap();
            db.busy_timeout(super::PATIENCE).unwrap();
            told.send(super::write_ahead(&db).map_err(|trouble| format!("{trouble:?}")))
        });
        let early = how.recv_timeout(Duration::from_millis(200));
        assert!(matches!(early, Err(RecvTimeoutError::Timeout)), "{early:?}");
        other.execute_batch("ROLLBACK").unwrap();
        how.recv().unwrap().unwrap();
        waits.join().unwrap().unwrap();
    }
}
