//! What differs between two trees that are kept.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::iter::Peekable;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::vec::IntoIter;

use rusqlite::Connection;
use session_core::{Change, Node, NodeKind};

use crate::covered::LeftOuts;
use crate::database::Kept;
use crate::node::{Entry, Folder, What};
use crate::object::Hash;
use crate::tree;
use crate::trouble::{Outcome, Trouble};

/// What differs, in the order of paths: component by component, by the bytes of names. The top folder is the empty path. What is
/// absent from one of the two because it was left out there is not told: nobody knows whether it differs.
pub(crate) fn between(db: &Connection, from: &Kept, to: &Kept) -> Outcome<Vec<Change>> {
    if from.root != to.root {
        return Err(Trouble::AnotherTree);
    }
    let left_out = [LeftOuts::of(from), LeftOuts::of(to)];
    let mut walk = Walk { db, left_out, path: PathBuf::new(), changes: Vec::new() };
    if from.mode != to.mode {
        let (before, after) = (Some(top(from.mode)), Some(top(to.mode)));
        walk.changes.push(Change { path: PathBuf::new(), before, after });
    }
    walk.run(Some(from.tree), Some(to.tree))?;
    Ok(walk.changes)
}

fn top(mode: u16) -> Node {
    Node { kind: NodeKind::Folder, mode: mode.into(), bytes: 0, content: [0; 32] }
}

struct Walk<'a> {
    db: &'a Connection,
    /// Of the one before and the one after.
    left_out: [LeftOuts<'a>; 2],
    path: PathBuf,
    changes: Vec<Change>,
}

/// What is still to be compared of two folders.
struct Pair {
    before: Peekable<IntoIter<Entry>>,
    after: Peekable<IntoIter<Entry>>,
}

impl Walk<'_> {
    /// Compares two trees; `None`: there is no folder. Not by recursion: no stack is as deep as a tree can be.
    fn run(&mut self, before: Option<Hash>, after: Option<Hash>) -> Outcome<()> {
        let mut pairs: Vec<Pair> = self.pair(before, after)?.into_iter().collect();
        while let Some(pair) = pairs.last_mut() {
            let Some((before, after)) = pair.next() else {
                pairs.pop();
                self.path.pop();
                continue;
            };
            let Some(either) = before.as_ref().or(after.as_ref()) else { continue };
            self.path.push(OsStr::from_bytes(&either.name));
            match self.whats(before.map(|entry| entry.what), after.map(|entry| entry.what))? {
                Some(pair) => pairs.push(pair),
                None => drop(self.path.pop()),
            }
        }
        Ok(())
    }

    /// What two folders hold. `None`: the same.
    fn pair(&self, before: Option<Hash>, after: Option<Hash>) -> Outcome<Option<Pair>> {
        if before == after {
            return Ok(None);
        }
        let read = |list: Option<Hash>| {
            let folder = list.map_or_else(|| Ok(Folder::default()), |list| tree::folder(self.db, list));
            folder.map(|folder| folder.entries.into_iter().peekable())
        };
        Ok(Some(Pair { before: read(before)?, after: read(after)? }))
    }

    /// Compares what has one name in the two, and says what is to be compared in it.
    fn whats(&mut self, before: Option<What>, after: Option<What>) -> Outcome<Option<Pair>> {
        if before == after {
            return Ok(None);
        }
        let unknown =
            |what: Option<What>, left_out: &LeftOuts<'_>| what.is_none() && left_out.names(&self.path);
        if unknown(before, &self.left_out[0]) || unknown(after, &self.left_out[1]) {
            return Ok(None);
        }
        let nodes = (before.map(What::node), after.map(What::node));
        if nodes.0 != nodes.1 {
            self.changes.push(Change { path: self.path.clone(), before: nodes.0, after: nodes.1 });
        }
        let list = |what: Option<What>| match what {
            Some(What::Folder { list, .. }) => Some(list),
            _ => None,
        };
        self.pair(list(before), list(after))
    }
}

impl Pair {
    /// What has the next name.
    fn next(&mut self) -> Option<(Option<Entry>, Option<Entry>)> {
        let order = match (self.before.peek(), self.after.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(after)) => before.name.cmp(&after.name),
        };
        Some((self.before.next_if(|_| order.is_le()), self.after.next_if(|_| order.is_ge())))
    }
}
