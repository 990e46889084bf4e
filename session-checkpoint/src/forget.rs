//! Drops checkpoints, and what no other one needs.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{Connection, Row, params};
use session_core::{CheckpointId, Dropped, Forget, SessionKey};

use crate::checkpoints::FsCheckpoints;
use crate::database::{self, begin, end};
use crate::node::{Folder, What};
use crate::object::{Hash, PIECE, pieces_in};
use crate::seen::Seen;
use crate::trouble::Outcome;
use crate::{reserve, restore};

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
        match forget_at(checkpoints, &path, wish) {
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

fn forget_at(checkpoints: &FsCheckpoints, path: &Path, wish: &Wish) -> Outcome<(u64, u64)> {
    match checkpoints.lend(path).and_then(|db| forget_in(&db, wish)) {
        // What makes room needs some itself: less of it by parts, and that is set aside.
        Err(trouble) if trouble.is_no_room() => {
            let released = reserve::release(&checkpoints.folder);
            tracing::warn!(path = %path.display(), released, "the disk is full; checkpoints are dropped by parts");
            let done = checkpoints.lend(path).and_then(|db| by_parts(&db, wish));
            reserve::keep(&checkpoints.folder);
            done
        }
        done => done,
    }
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
        return Ok(done);
    }
    // There may be no take any more that does it.
    match tidy(db) {
        Err(trouble) if !trouble.is_no_room() => {
            tracing::warn!(%trouble, "what dropped checkpoints alone needed stays");
            Ok(done)
        }
        tidied => Ok((0, tidied?)),
    }
}

/// So many objects go at a time, to begin with.
const PART: usize = 256;
/// So many pages are given back at a time.
const PAGES: u32 = 128;

/// The same in small transactions. Once the checkpoints are dropped, they are: what of their content cannot go yet, whoever
/// comes next to take or to drop some drops, too.
fn by_parts(db: &Connection, wish: &Wish) -> Outcome<(u64, u64)> {
    begin(db)?;
    let rows = || {
        let count = drop_rows(db, wish)?;
        let later = if count > 0 { HEAP } else { 0 };
        db.execute("UPDATE state SET dropped = dropped + ?1", [later])?;
        Ok(Some((count, is_due(db)?)))
    };
    let (count, is_due) = end(db, rows())?.unwrap_or_default();
    let (mut bytes, mut part, mut all) = (0, PART, !is_due);
    while !all {
        let swept = begin(db).and_then(|()| end(db, sweep_part(db, part).map(Some)));
        match swept.map(Option::unwrap_or_default) {
            Ok((gone, was_all)) => {
                (bytes, all) = (bytes + gone, was_all);
                shrink_by_parts(db);
                // There is more room now.
                part = part.saturating_mul(2);
            }
            // Not for so many.
            Err(trouble) if trouble.is_no_room() && part > PART => part = PART,
            Err(trouble) => {
                tracing::warn!(%trouble, "what dropped checkpoints alone needed stays for now");
                break;
            }
        }
    }
    // The log of what was changed has its room until it is cut off.
    if let Err(error) = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        tracing::warn!(%error, "the log of a database of checkpoints keeps its room for now");
    }
    Ok((count, bytes))
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

/// Whether enough has gathered that nothing needs.
fn is_due(db: &Connection) -> Outcome<bool> {
    let dropped: i64 = db.prepare_cached("SELECT dropped FROM state")?.query_row([], |row| row.get(0))?;
    Ok(dropped >= HEAP)
}

/// Drops what nothing needs, where enough has gathered, and says how many bytes that had.
pub(crate) fn tidy(db: &Connection) -> Outcome<u64> {
    if !is_due(db)? {
        return Ok(0);
    }
    begin(db)?;
    let bytes = end(db, sweep(db).map(Some))?;
    shrink(db);
    Ok(bytes.unwrap_or_default())
}

/// Drops the objects that no checkpoint needs and no restore that is under way, and says how many bytes they had. To be called in
/// a transaction. A take that is under way sees by the age that it has to begin again.
pub(crate) fn sweep(db: &Connection) -> Outcome<u64> {
    Ok(sweep_part(db, usize::MAX)?.0)
}

/// The same, of at most so many; says, too, whether that was all.
fn sweep_part(db: &Connection, most: usize) -> Outcome<(u64, bool)> {
    let live = live(db)?;
    // What was seen goes first: it must not speak of what is gone.
    let mut stale: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    gather(db, "SELECT root, folder, data FROM seen", |row| {
        let data: Vec<u8> = row.get(2)?;
        if !Seen::decoded(&data).is_some_and(|seen| live.contains(&seen.list)) {
            stale.push((row.get(0)?, row.get(1)?));
        }
        Ok(())
    })?;
    for (root, folder) in stale.iter().take(most) {
        crate::seen::remove(db, root, folder)?;
    }
    let left = most.saturating_sub(stale.len());
    let mut dead = Vec::new();
    gather(db, "SELECT id, hash FROM object", |row| {
        let (id, hash): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        if !<[u8; 32]>::try_from(hash).is_ok_and(|hash| live.contains(&Hash(hash))) {
            dead.push(id);
        }
        Ok(())
    })?;
    // The latest first: what holds others was put after them, and does not stay without them.
    dead.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
    let mut bytes = 0;
    let mut size = db.prepare_cached("SELECT length(data) FROM object WHERE id = ?1")?;
    let mut delete = db.prepare_cached("DELETE FROM object WHERE id = ?1")?;
    for id in dead.iter().take(left) {
        bytes += size.query_row([id], |row| row.get::<_, i64>(0))?.cast_unsigned();
        delete.execute([id])?;
    }
    database::grow_older(db)?;
    let all = stale.len() <= most && dead.len() <= left;
    if all {
        db.execute("UPDATE state SET dropped = 0", [])?;
    }
    Ok((bytes, all))
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
    if let Err(trouble) = vacuum(db, "PRAGMA incremental_vacuum") {
        tracing::warn!(%trouble, "free pages of a database of checkpoints stay in its file");
    }
}

fn vacuum(db: &Connection, sql: &str) -> Outcome<()> {
    let mut vacuum = db.prepare(sql)?;
    let mut steps = vacuum.query([])?;
    while steps.next()?.is_some() {}
    Ok(())
}

/// The same in small transactions, each of which gives its room in the log back.
fn shrink_by_parts(db: &Connection) {
    let part = || -> Outcome<i64> {
        vacuum(db, &format!("PRAGMA incremental_vacuum({PAGES})"))?;
        db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        Ok(db.pragma_query_value(None, "freelist_count", |row| row.get(0))?)
    };
    let mut free = i64::MAX;
    loop {
        match part() {
            Ok(left) if left > 0 && left < free => free = left,
            Ok(_) => return,
            Err(trouble) => {
                tracing::warn!(%trouble, "free pages of a database of checkpoints stay in its file");
                return;
            }
        }
    }
}
