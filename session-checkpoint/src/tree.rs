//! Looks into a tree that is kept.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rusqlite::Connection;

use crate::node::{Folder, What};
use crate::object::{self, Hash, Kind};
use crate::trouble::Outcome;

/// Reads a folder of a tree.
pub(crate) fn folder(db: &Connection, list: Hash) -> Outcome<Folder> {
    Folder::decoded(&object::get(db, Kind::Folder, list)?)
}

/// What stands at a path of the tree with this root; `None`: nothing, or it is no path within a tree.
pub(crate) fn at(db: &Connection, root: Hash, path: &Path) -> Outcome<Option<What>> {
    let mut list = Some(root);
    let mut found = None;
    for component in path.components() {
        let (Component::Normal(name), Some(present)) = (component, list) else { return Ok(None) };
        found = folder(db, present)?.get(name.as_bytes());
        list = match found {
            None => return Ok(None),
            Some(What::Folder { list, .. }) => Some(list),
            Some(What::File { .. } | What::Link { .. }) => None,
        };
    }
    Ok(found)
}
