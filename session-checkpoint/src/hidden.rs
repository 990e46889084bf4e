//! What a former checkpoint covers, and ignore rules would leave out by now.
//!
//! The end of a step covers what its beginning covers, and what stands before a rewind what its target covers: so a prompt hides
//! nothing of what it does by writing an ignore rule.

use rusqlite::Connection;
use session_core::{Label, LeftOutWhy, Moment};

use crate::database;
use crate::handle::{self, join};
use crate::node::{Folder, What};
use crate::tracked::Tracked;
use crate::tree;
use crate::trouble::Outcome;

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
        (Moment::AfterRun | Moment::AfterRewind, _) => database::beginning(db, &label.key, label.step)?,
        (_, Some(target)) => database::kept(db, &label.key, target)?,
        _ => None,
    };
    let Some(other) = other.filter(|other| other.root == root) else { return Ok(None) };
    let mut names = Vec::new();
    // What is left out of one folder comes together.
    let mut latest: (&[u8], Folder) = (b"", tree::folder(db, other.tree)?);
    for (path, _) in ignored {
        let (parent, name) = split(path);
        if parent != latest.0 {
            let list = match tree::at(db, other.tree, handle::path(parent))? {
                Some(What::Folder { list, .. }) => tree::folder(db, list)?,
                _ => Folder::default(),
            };
            latest = (parent, list);
        }
        if let Some(what) = latest.1.get(name) {
            add(db, path.clone(), what, &mut names)?;
        }
    }
    Ok((!names.is_empty()).then(|| Tracked::of(names)))
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
