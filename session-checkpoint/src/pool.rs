//! Databases that are open, kept for the next one who asks.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use crate::database;
use crate::trouble::Outcome;

/// So many of one file wait at most.
const SPARE: usize = 2;
/// Of so many files.
const FILES: usize = 16;

/// Open databases that nobody uses at the moment.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    spare: Mutex<HashMap<PathBuf, Vec<Open>>>,
}

#[derive(Debug)]
struct Open {
    db: Connection,
    /// Which file it is, should another take its place.
    file: Option<(u64, u64)>,
}

/// A database that is lent. It goes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Lent {
    pool: Arc<Pool>,
    path: PathBuf,
    open: Option<Open>,
}

impl Pool {
    /// Lends the database at a path; it is made where there is none.
    pub(crate) fn lend(self: &Arc<Self>, path: &Path) -> Outcome<Lent> {
        let lent = |open| Lent { pool: Arc::clone(self), path: path.to_owned(), open: Some(open) };
        let present = file(path);
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(open) = spare.get_mut(path).and_then(Vec::pop) {
            if open.file == present && present.is_some() {
                return Ok(lent(open));
            }
        }
        drop(spare);
        let db = database::open(path)?;
        Ok(lent(Open { db, file: file(path) }))
    }
}

fn file(path: &Path) -> Option<(u64, u64)> {
    let meta = path.symlink_metadata().ok()?;
    Some((meta.dev(), meta.ino()))
}

impl Drop for Lent {
    fn drop(&mut self) {
        // One in the middle of something is closed, which takes that back.
        let Some(open) = self.open.take().filter(|open| open.db.is_autocommit()) else { return };
        let mut spare = self.pool.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < FILES || spare.contains_key(&self.path) {
            let spare = spare.entry(std::mem::take(&mut self.path)).or_default();
            if spare.len() < SPARE {
                spare.push(open);
            }
        }
    }
}

impl Deref for Lent {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.open.as_ref().expect("it is taken by dropping alone").db
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.open.as_mut().expect("it is taken by dropping alone").db
    }
}
