//! Drops checkpoints, and what no other one needs.

use std::collections::HashSet;

use rusqlite::{Connection, Row, params};
use session_core::{CheckpointId, Dropped, Forget, SessionKey};

use crate::checkpoints::FsCheckpoints;
use crate::database::{self, begin, end};
use crate::node::{Folder, What};
use crate::object::{Hash, PIECE, pieces_in};
use crate::restore;
use crate::seen::Seen;
use crate::trouble::Outcome;

/// An order to drop some, owned.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) key: SessionKey,
    /// `None`: all.
    pub(crate) these: Option<Vec<CheckpointId>>,
}

impl Wish {
    pub(crate) fn new(key: &SessionKey, which: Forget<'_>) -> Self {
        let these = match which {
            Forget::These(these) => Some(these.to_vec()),
            _ => None,
        };
        Self { key: key.clone(), these }
    }
}

pub(crate) fn forget(checkpoints: &FsCheckpoints, wish: &Wish) -> Outcome<Dropped> {
    let mut dropped = Dropped::default();
    let mut done = Ok(());
    for path in checkpoints.databases()? {
        match checkpoints.lend(&path).and_then(|db| forget_in(&db, wish)) {
            Ok((count, bytes)) => {
                dropped.checkpoints += count;
                dropped.bytes += bytes;
            }
            // Who drops all ends the key: what nobody can read must not stand in the way of that for ever.
            Err(trouble) if wish.these.is_none() && trouble.is_corrupt() => {
                tracing::warn!(path = %path.display(), %trouble, "what is in a damaged database stays there");
                dropped.unread += 1;
            }
            // One that is damaged keeps the others from nothing.
            Err(trouble) => done = Err(trouble),
        }
    }
    done.map(|()| dropped)
}

fn forget_in(db: &Connection, wish: &Wish) -> Outcome<(u64, u64)> {
    begin(db)?;
    let work = || {
        let count = drop_rows(db, wish)?;
        let bytes = if count > 0 { sweep(db)? } else { 0 };
        Ok(Some((count, bytes)))
    };
    let done = end(db, work())?.unwrap_or_default();
    if done.0 > 0 {
        shrink(db);
    }
    Ok(done)
}

fn drop_rows(db: &Connection, wish: &Wish) -> Outcome<u64> {
    let (mailbox, agent) = (wish.key.mailbox.as_str(), wish.key.agent.as_str());
    let Some(these) = &wish.these else {
        let sql = "DELETE FROM checkpoint WHERE mailbox = ?1 AND agent = ?2";
        return Ok(db.execute(sql, [mailbox, agent])? as u64);
    };
    let sql = "DELETE FROM checkpoint WHERE id = ?1 AND mailbox = ?2 AND agent = ?3";
    let mut delete = db.prepare_cached(sql)?;
    let mut count = 0;
    for id in these {
        count += delete.execute(params![id.as_bytes().as_slice(), mailbox, agent])? as u64;
    }
    Ok(count)
}

/// Drops all but the latest checkpoints of a key in a tree; what they alone need stays for a later [`sweep`].
pub(crate) fn keep_latest(db: &Connection, key: &SessionKey, root: &[u8], count: u32) -> Outcome<()> {
    let mut delete = db.prepare_cached(
        "DELETE FROM checkpoint WHERE mailbox = ?1 AND agent = ?2 AND root = ?3 AND number NOT IN (
             SELECT number FROM checkpoint WHERE mailbox = ?1 AND agent = ?2 AND root = ?3
             ORDER BY number DESC LIMIT ?4)",
    )?;
    let gone = delete.execute(params![key.mailbox.as_str(), key.agent.as_str(), root, count])?;
    if gone > 0 {
        db.prepare_cached("UPDATE state SET dropped = dropped + ?1")?.execute([gone as i64])?;
    }
    Ok(())
}

/// After so many checkpoints that a take dropped, what they alone needed goes, too.
const HEAP: i64 = 32;

/// Drops what nothing needs, where enough has gathered.
pub(crate) fn tidy(db: &Connection) -> Outcome<()> {
    let dropped: i64 = db.prepare_cached("SELECT dropped FROM state")?.query_row([], |row| row.get(0))?;
    if dropped < HEAP {
        return Ok(());
    }
    begin(db)?;
    end(db, sweep(db).map(Some))?;
    shrink(db);
    Ok(())
}

/// Drops the objects that no checkpoint needs and no restore that is under way, and says how many bytes they had. To be called in
/// a transaction. A take that is under way sees by the age that it has to begin again.
pub(crate) fn sweep(db: &Connection) -> Outcome<u64> {
    let live = live(db)?;
    let mut dead = Vec::new();
    gather(db, "SELECT id, hash FROM object", |row| {
        let (id, hash): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        if !<[u8; 32]>::try_from(hash).is_ok_and(|hash| live.contains(&Hash(hash))) {
            dead.push(id);
        }
        Ok(())
    })?;
    let mut bytes = 0;
    let mut size = db.prepare_cached("SELECT length(data) FROM object WHERE id = ?1")?;
    let mut delete = db.prepare_cached("DELETE FROM object WHERE id = ?1")?;
    for id in &dead {
        bytes += size.query_row([id], |row| row.get::<_, i64>(0))?.cast_unsigned();
        delete.execute([id])?;
    }
    let mut stale: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    gather(db, "SELECT root, folder, data FROM seen", |row| {
        let data: Vec<u8> = row.get(2)?;
        if !Seen::decoded(&data).is_some_and(|seen| live.contains(&seen.list)) {
            stale.push((row.get(0)?, row.get(1)?));
        }
        Ok(())
    })?;
    for (root, folder) in &stale {
        crate::seen::remove(db, root, folder)?;
    }
    database::grow_older(db)?;
    db.execute("UPDATE state SET dropped = 0", [])?;
    Ok(bytes)
}

fn gather(db: &Connection, sql: &str, mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<()>) -> Outcome<()> {
    let mut select = db.prepare(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        take(row)?;
    }
    Ok(())
}

/// What is needed.
fn live(db: &Connection) -> Outcome<HashSet<Hash>> {
    let mut todo = restore::trees_in_use(db)?;
    gather(db, "SELECT DISTINCT tree FROM checkpoint", |row| {
        let tree: Vec<u8> = row.get(0)?;
        todo.extend(<[u8; 32]>::try_from(tree).ok().map(Hash));
        Ok(())
    })?;
    let mut live = HashSet::new();
    let mut select = db.prepare_cached("SELECT data FROM object WHERE hash = ?1")?;
    let mut read = |hash: Hash| -> Outcome<Option<Vec<u8>>> {
        let found = select.query_row([hash.0.as_slice()], |row| row.get(0));
        Ok(rusqlite::OptionalExtension::optional(found)?)
    };
    while let Some(list) = todo.pop() {
        if !live.insert(list) {
            continue;
        }
        // What is below a damaged folder cannot be told, and is lost with it.
        let Some(folder) = read(list)?.and_then(|data| Folder::decoded(&data).ok()) else { continue };
        for entry in folder.entries {
            match entry.what {
                What::Folder { list, .. } => todo.push(list),
                What::Link { target, .. } => drop(live.insert(target)),
                What::File { bytes, content, .. } => {
                    if live.insert(content)
                        && bytes > PIECE as u64
                        && let Some(list) = read(content)?
                    {
                        live.extend(pieces_in(&list).unwrap_or_default());
                    }
                }
            }
        }
    }
    Ok(live)
}

/// Gives the pages that are free back to the file system. What was dropped is dropped, also where that fails.
fn shrink(db: &Connection) {
    let vacuum = || -> Outcome<()> {
        let mut vacuum = db.prepare("PRAGMA incremental_vacuum")?;
        let mut steps = vacuum.query([])?;
        while steps.next()?.is_some() {}
        Ok(())
    };
    if let Err(trouble) = vacuum() {
        tracing::warn!(%trouble, "free pages of a database of checkpoints stay in its file");
    }
}
