//! What a former checkpoint covers, and ignore rules would leave out by now; and what one covers that another one leaves out.
//!
//! The end of a step covers what its beginning covers, and what stands before a rewind what its target covers: so a prompt hides
//! nothing of what it does by writing an ignore rule.

use std::path::PathBuf;

use rusqlite::Connection;
use session_core::{Label, LeftOutWhy, Moment};

use crate::covered::LeftOuts;
use crate::database::{self, Kept};
use crate::handle::{self, join};
use crate::node::{Folder, What};
use crate::object::Hash;
use crate::tracked::Tracked;
use crate::tree;
use crate::trouble::{Outcome, Trouble};

/// What of this is covered by the checkpoint that one with this label is compared with. `None`: nothing, or there is no such one
/// that can be read.
pub(crate) fn covered(
    db: &Connection,
    label: &Label,
    root: &[u8],
    left_out: &[(Vec<u8>, LeftOutWhy)],
) -> Outcome<Option<Tracked>> {
    match look(db, label, root, left_out) {
        Err(trouble) if trouble.is_damage() => Ok(None),
        looked => looked,
    }
}

fn look(
    db: &Connection,
    label: &Label,
    root: &[u8],
    left_out: &[(Vec<u8>, LeftOutWhy)],
) -> Outcome<Option<Tracked>> {
    let mut ignored = left_out.iter().filter(|(_, why)| *why == LeftOutWhy::Ignored).peekable();
    if ignored.peek().is_none() {
        return Ok(None);
    }
    let other = match (label.moment, label.back_to) {
        // One that was asked for may end the files of a rewind.
        (Moment::AfterRun | Moment::AfterRewind, _) | (Moment::Asked, None) => {
            database::beginning(db, &label.key, label.step)?
        }
        (_, Some(target)) => database::kept(db, &label.key, target)?,
        _ => None,
    };
    let Some(other) = other.filter(|other| other.root == root) else { return Ok(None) };
    let mut names = Vec::new();
    let mut cursor = Cursor::new(db, other.tree);
    for (path, _) in ignored {
        if let Some(what) = cursor.at(path)? {
            add(db, path.clone(), what, &mut names)?;
        }
    }
    Ok((!names.is_empty()).then(|| Tracked::of(names)))
}

/// The paths at which something stands in one checkpoint and that the other leaves out, in the order of paths. Where the folder of such a
/// path cannot be read, nobody knows: it counts, unless it was left out there already.
pub(crate) fn between(db: &Connection, of: &Kept, by: &Kept) -> Outcome<Vec<PathBuf>> {
    if of.root != by.root {
        return Err(Trouble::AnotherTree);
    }
    let left_out = LeftOuts::of(of);
    let mut cursor = Cursor::new(db, of.tree);
    let mut paths = Vec::new();
    for (path, _) in &by.left_out {
        let path_in = handle::path(path);
        if left_out.hide(path_in) {
            continue;
        }
        let stands = match cursor.at(path) {
            Err(trouble) if trouble.is_damage() => true,
            looked => looked?.is_some(),
        };
        if stands {
            paths.push(path_in.to_owned());
        }
    }
    paths.sort();
    Ok(paths)
}

/// Finds one path after the other in a tree, quickest where those of one folder come together.
struct Cursor<'a> {
    db: &'a Connection,
    tree: Hash,
    /// The latest folder.
    latest: Option<(Vec<u8>, Folder)>,
}

impl<'a> Cursor<'a> {
    const fn new(db: &'a Connection, tree: Hash) -> Self {
        Self { db, tree, latest: None }
    }

    fn at(&mut self, path: &[u8]) -> Outcome<Option<What>> {
        let (parent, name) = split(path);
        if let Some((_, folder)) = self.latest.as_ref().filter(|(latest, _)| latest == parent) {
            return Ok(folder.get(name));
        }
        let list = match parent {
            b"" => Some(self.tree),
            parent => match tree::at(self.db, self.tree, handle::path(parent))? {
                Some(What::Folder { list, .. }) => Some(list),
                _ => None,
            },
        };
        let folder = list.map(|list| tree::folder(self.db, list)).transpose()?.unwrap_or_default();
        let what = folder.get(name);
        self.latest = Some((parent.to_owned(), folder));
        Ok(what)
    }
}

/// A path's folder, and its name in that.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// Something and all that is in it.
fn add(db: &Connection, path: Vec<u8>, what: What, names: &mut Vec<Vec<u8>>) -> Outcome<()> {
    let mut todo = vec![(path, what)];
    while let Some((path, what)) = todo.pop() {
        if let What::Folder { list, .. } = what {
            let entries = tree::folder(db, list)?.entries.into_iter();
            todo.extend(entries.map(|entry| (join(&path, &entry.name), entry.what)));
        }
        names.push(path);
    }
    Ok(())
}
