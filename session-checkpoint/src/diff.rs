//! What differs between two trees that are kept.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

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
    walk.lists(Some(from.tree), Some(to.tree))?;
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

impl Walk<'_> {
    /// Compares what two folders hold; `None`: there is no folder.
    fn lists(&mut self, before: Option<Hash>, after: Option<Hash>) -> Outcome<()> {
        if before == after {
            return Ok(());
        }
        let read = |list: Option<Hash>| {
            list.map_or_else(|| Ok(Folder::default()), |list| tree::folder(self.db, list))
        };
        let (before, after) = (read(before)?.entries, read(after)?.entries);
        let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(before), Some(after)) => before.name.cmp(&after.name),
            };
            let before = before.next_if(|_| order.is_le());
            let after = after.next_if(|_| order.is_ge());
            self.entries(before, after)?;
        }
    }

    /// Compares what has one name in the two.
    fn entries(&mut self, before: Option<&Entry>, after: Option<&Entry>) -> Outcome<()> {
        let Some(either) = before.or(after) else { return Ok(()) };
        let (before, after) = (before.map(|entry| entry.what), after.map(|entry| entry.what));
        if before == after {
            return Ok(());
        }
        self.path.push(OsStr::from_bytes(&either.name));
        let done = self.whats(before, after);
        self.path.pop();
        done
    }

    fn whats(&mut self, before: Option<What>, after: Option<What>) -> Outcome<()> {
        let unknown =
            |what: Option<What>, left_out: &LeftOuts<'_>| what.is_none() && left_out.names(&self.path);
        if unknown(before, &self.left_out[0]) || unknown(after, &self.left_out[1]) {
            return Ok(());
        }
        let nodes = (before.map(What::node), after.map(What::node));
        if nodes.0 != nodes.1 {
            self.changes.push(Change { path: self.path.clone(), before: nodes.0, after: nodes.1 });
        }
        let list = |what: Option<What>| match what {
            Some(What::Folder { list, .. }) => Some(list),
            _ => None,
        };
        self.lists(list(before), list(after))
    }
}
