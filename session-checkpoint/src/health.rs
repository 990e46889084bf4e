//! Whether checkpoints are whole.

use std::collections::HashSet;

use rusqlite::Connection;
use session_core::Health;

use crate::database::{self, Kept, begin, end};
use crate::node::{Folder, What};
use crate::object::{self, Hash, Kind, PIECE};
use crate::tree;
use crate::trouble::{Outcome, Trouble};

/// A look at a checkpoint's top alone.
pub(crate) fn glance(db: &Connection, kept: &Kept) -> Outcome<Health> {
    judge(db, tree::folder(db, kept.tree).map(drop), || vec![(Kind::Folder, kept.tree)])
}

/// Reads all of a checkpoint.
pub(crate) fn check(db: &Connection, kept: &Kept) -> Outcome<Health> {
    let mut check = Check { db, good: HashSet::new(), bad: Vec::new() };
    check.folder(kept.tree)?;
    let Check { bad, .. } = check;
    let lost = bad.len();
    let found = match lost {
        0 => Ok(()),
        _ => Err(Trouble::Damaged(format!("{lost} of its parts are missing or not what they were"))),
    };
    judge(db, found, || bad)
}

fn judge(db: &Connection, found: Outcome<()>, bad: impl FnOnce() -> Vec<(Kind, Hash)>) -> Outcome<Health> {
    match found {
        Ok(()) => Ok(Health::Whole),
        Err(Trouble::Damaged(reason)) => {
            heal(db, &bad())?;
            Ok(Health::Damaged(reason))
        }
        Err(trouble) => Err(trouble),
    }
}

/// Drops objects that are not what they were, and what was seen: so the next checkpoint reads all again, and puts them again where
/// the tree still has them.
pub(crate) fn heal(db: &Connection, bad: &[(Kind, Hash)]) -> Outcome<()> {
    begin(db)?;
    let work = || {
        for (kind, hash) in bad {
            // It may be whole again by now.
            if object::get(db, *kind, *hash).is_err() {
                db.execute("DELETE FROM object WHERE hash = ?1", [hash.0.as_slice()])?;
            }
        }
        db.execute("DELETE FROM seen", [])?;
        database::grow_older(db)?;
        Ok(Some(()))
    };
    end(db, work()).map(drop)
}

struct Check<'a> {
    db: &'a Connection,
    good: HashSet<Hash>,
    bad: Vec<(Kind, Hash)>,
}

impl Check<'_> {
    fn get(&mut self, kind: Kind, hash: Hash) -> Outcome<Option<Vec<u8>>> {
        match object::get(self.db, kind, hash) {
            Ok(data) => Ok(Some(data)),
            Err(Trouble::Damaged(_)) => {
                self.bad.push((kind, hash));
                Ok(None)
            }
            Err(trouble) => Err(trouble),
        }
    }

    fn folder(&mut self, top: Hash) -> Outcome<()> {
        let mut todo = vec![top];
        while let Some(list) = todo.pop() {
            if !self.good.insert(list) {
                continue;
            }
            let Some(data) = self.get(Kind::Folder, list)? else { continue };
            for entry in Folder::decoded(&data)?.entries {
                match entry.what {
                    What::Folder { list, .. } => todo.push(list),
                    What::Link { target, .. } => self.content(target, 0)?,
                    What::File { bytes, content, .. } => self.content(content, bytes)?,
                }
            }
        }
        Ok(())
    }

    fn content(&mut self, hash: Hash, bytes: u64) -> Outcome<()> {
        if !self.good.insert(hash) {
            return Ok(());
        }
        if bytes <= PIECE as u64 {
            self.get(Kind::Piece, hash)?;
        } else if let Some(list) = self.get(Kind::Pieces, hash)? {
            for piece in object::pieces_in(&list)? {
                if self.good.insert(piece) {
                    self.get(Kind::Piece, piece)?;
                }
            }
        }
        Ok(())
    }
}
