//! What is being put back, in the database before anything is touched, so that it can be finished.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use session_core::{CheckpointId, RunId, SessionKey};

use crate::database::{self, Kept};
use crate::object::Hash;
use crate::trouble::{Outcome, Trouble};

/// A restore that was begun.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) key: SessionKey,
    pub(super) step: RunId,
    pub(super) to: Side,
    pub(super) from: Side,
    /// In the order of paths, each once.
    paths: Vec<ByteBuf>,
    /// Folders that had the permissions already with which they are worked in: those are somebody else's doing.
    open: Vec<ByteBuf>,
}

/// One of its two states. What it takes of a checkpoint stays in reach when that is dropped.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Side {
    pub(super) id: CheckpointId,
    pub(super) tree: Hash,
    /// The permissions of the top folder.
    pub(super) mode: u16,
}

impl Side {
    pub(super) const fn of(kept: &Kept) -> Self {
        Self { id: kept.checkpoint.id, tree: kept.tree, mode: kept.mode }
    }
}

impl Begun {
    pub(super) fn new(key: &SessionKey, step: RunId, to: Side, from: Side, paths: &[PathBuf]) -> Self {
        let paths = paths.iter().map(|path| ByteBuf::from(path.as_os_str().as_bytes())).collect();
        Self { key: key.clone(), step, to, from, paths, open: Vec::new() }
    }

    pub(super) fn set_open<'a>(&mut self, paths: impl Iterator<Item = &'a Path>) {
        self.open = paths.map(|path| ByteBuf::from(path.as_os_str().as_bytes())).collect();
    }

    pub(super) fn was_open(&self, path: &Path) -> bool {
        self.open.iter().any(|open| open.as_slice() == path.as_os_str().as_bytes())
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(|path| Path::new(OsStr::from_bytes(path)))
    }
}

/// Writes one down, in the transaction that found its checkpoints.
pub(super) fn begin(db: &Connection, root: &Path, begun: &Begun) -> Outcome<i64> {
    let data = postcard::to_allocvec(begun).expect("plain values and bytes can be encoded");
    db.prepare_cached("INSERT INTO restore (root, data) VALUES (?1, ?2)")?
        .execute(params![root.as_os_str().as_bytes(), data])?;
    Ok(db.last_insert_rowid())
}

/// Says that one was ended. Nobody waits for the disk: where a power failure takes this back, it is looked at once more, and
/// nothing is found to do.
pub(super) fn end(db: &Connection, row: i64) -> Outcome<()> {
    database::soon(db, || {
        db.prepare_cached("DELETE FROM restore WHERE id = ?1")?.execute([row])?;
        Ok(())
    })
}

/// Those of a tree that were not ended, oldest first.
pub(super) fn all(db: &Connection, root: &Path) -> Outcome<Vec<(i64, Begun)>> {
    let mut select = db.prepare_cached("SELECT id, data FROM restore WHERE root = ?1 ORDER BY id")?;
    let rows = select.query_map([root.as_os_str().as_bytes()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
    })?;
    let mut all = Vec::new();
    for row in rows {
        let (id, data) = row?;
        all.push((id, decoded(&data)?));
    }
    Ok(all)
}

/// The trees that a restore which was not ended still needs, of all work trees.
pub(super) fn trees(db: &Connection) -> Outcome<Vec<Hash>> {
    let mut select = db.prepare_cached("SELECT data FROM restore")?;
    let rows = select.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
    let mut trees = Vec::new();
    for row in rows {
        let begun = decoded(&row?)?;
        trees.extend([begun.to.tree, begun.from.tree]);
    }
    Ok(trees)
}

fn decoded(data: &[u8]) -> Outcome<Begun> {
    let begun: Begun = postcard::from_bytes(data)
        .map_err(|error| Trouble::Damaged(format!("a restore that was begun cannot be read: {error}")))?;
    if [begun.to.mode, begun.from.mode].iter().any(|mode| mode & !0o777 != 0) {
        return Err(Trouble::Damaged("a restore that was begun sets a mode that none has".to_owned()));
    }
    Ok(begun)
}
