//! What was seen of a folder, so that what did not change since is not read again.

use std::collections::HashMap;

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use crate::handle::Stamp;
use crate::node::{What, is_name};
use crate::object::Hash;
use crate::trouble::Outcome;

/// What was seen of a folder. Each is true by itself, whatever became of those above and below it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Seen<'a> {
    pub(crate) dev: u64,
    /// Of the folder itself. `None`: it has to be listed again.
    pub(crate) stamp: Option<Stamp>,
    /// The rules that told what is ignored in it.
    pub(crate) rules: [u8; 32],
    /// Whether something in it is ignored by rule, so that it matters what is tracked.
    pub(crate) ignoring: bool,
    /// Its list, as it was kept.
    pub(crate) list: Hash,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// In the order of names.
    #[serde(borrow)]
    pub(crate) entries: Vec<SeenEntry<'a>>,
}

/// What was seen under a name.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SeenEntry<'a> {
    #[serde(with = "serde_bytes", borrow)]
    pub(crate) name: &'a [u8],
    pub(crate) kind: SeenKind,
}

/// What that was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SeenKind {
    /// A file or a link that is covered. Without a stamp, it was too young to tell it from a later state by that.
    Kept(Option<Stamp>, What),
    /// A folder that is covered.
    Folder(What),
    /// An ignore rule names it.
    Ignored,
    /// Something else that is not covered, or could not be read.
    Other,
}

impl<'a> Seen<'a> {
    /// What cannot be read was not seen.
    pub(crate) fn decoded(data: &'a [u8]) -> Option<Self> {
        let seen: Self = postcard::from_bytes(data).ok()?;
        let names = || seen.entries.iter().map(|entry| entry.name);
        (names().all(is_name) && names().is_sorted_by(|one, other| one < other)).then_some(seen)
    }

    pub(crate) fn encoded(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("plain values and bytes can be encoded")
    }

    /// What was seen under this name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&SeenEntry<'a>> {
        let at = self.entries.binary_search_by(|entry| entry.name.cmp(name)).ok()?;
        Some(&self.entries[at])
    }
}

/// Rows by the path of their folder within the tree.
pub(crate) type Rows = HashMap<Vec<u8>, Vec<u8>>;

/// What was seen of a folder of a tree, and of all below it, into `rows`.
pub(crate) fn load(db: &Connection, root: &[u8], folder: &[u8], rows: &mut Rows) -> Outcome<()> {
    let mut read = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| -> Outcome<()> {
        let mut select = db.prepare_cached(sql)?;
        let mut found = select.query(parameters)?;
        while let Some(row) = found.next()? {
            rows.insert(row.get(0)?, row.get(1)?);
        }
        Ok(())
    };
    if folder.is_empty() {
        return read("SELECT folder, data FROM seen WHERE root = ?1", &[&root]);
    }
    read("SELECT folder, data FROM seen WHERE root = ?1 AND folder = ?2", &[&root, &folder])?;
    // What is below it lies between `folder/` and `folder0`.
    let (first, end) = ([folder, b"/"].concat(), [folder, b"0"].concat());
    read(
        "SELECT folder, data FROM seen WHERE root = ?1 AND folder > ?2 AND folder < ?3",
        &[&root, &first, &end],
    )
}

/// Writes what was seen of a folder.
pub(crate) fn write(db: &Connection, root: &[u8], folder: &[u8], data: &[u8]) -> Outcome<()> {
    let mut insert =
        db.prepare_cached("INSERT OR REPLACE INTO seen (root, folder, data) VALUES (?1, ?2, ?3)")?;
    insert.execute(params![root, folder, data])?;
    Ok(())
}

/// Forgets what was seen of a folder.
pub(crate) fn remove(db: &Connection, root: &[u8], folder: &[u8]) -> Outcome<()> {
    let mut delete = db.prepare_cached("DELETE FROM seen WHERE root = ?1 AND folder = ?2")?;
    delete.execute(params![root, folder])?;
    Ok(())
}
