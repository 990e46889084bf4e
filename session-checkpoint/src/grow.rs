//! Makes the lists of folders from what was found, bottom up.

use std::borrow::Cow;

use rusqlite::Connection;

use crate::found::{Found, Harvest, Item, Scanned, State};
use crate::handle::Moment;
use crate::node::{Entry, Folder, What};
use crate::object::{self, Hash, Kind};
use crate::seen::{self, Seen, SeenEntry, SeenKind};
use crate::trouble::Outcome;

/// Puts the lists of all folders, and what was seen of them before this moment. Says what the top is; `None`: it is not there.
pub(crate) fn grow(
    db: &Connection,
    root: &[u8],
    harvest: &Harvest<'_>,
    began: Moment,
) -> Outcome<Option<What>> {
    let mut grown: Vec<Option<What>> = vec![None; harvest.found.len()];
    // Each lies behind the one that it is in.
    for (number, found) in harvest.found.iter().enumerate().rev() {
        let Found::Folder(folder) = found else { continue };
        let mode = folder.look.stamp.mode();
        let unchanged = folder.items.iter().all(|item| match item.state {
            State::Child(child, before) => grown[child as usize] == before,
            _ => true,
        });
        if let (Some((list, files, bytes)), true) = (folder.same, unchanged) {
            grown[number] = Some(What::Folder { mode, list, files, bytes });
            continue;
        }
        let (list, files, bytes) = put(db, folder, &grown)?;
        grown[number] = Some(What::Folder { mode, list, files, bytes });
        if folder.row {
            let row = row(folder, &grown, (list, files, bytes), began);
            seen::write(db, root, &folder.path, &row.encoded())?;
        }
    }
    Ok(grown.first().copied().flatten())
}

/// What an item is, where it is covered.
fn what(item: &Item<'_>, grown: &[Option<What>]) -> Option<What> {
    match item.state {
        State::Kept(_, what) | State::Carried(what) => Some(what),
        State::Child(child, _) => grown[child as usize],
        State::Read(..) | State::Ignored | State::Other | State::Gone => None,
    }
}

fn put(db: &Connection, folder: &Scanned<'_>, grown: &[Option<What>]) -> Outcome<(Hash, u64, u64)> {
    let entries = folder
        .items
        .iter()
        .filter_map(|item| Some(Entry { name: item.name.to_vec(), what: what(item, grown)? }));
    let list = Folder { entries: entries.collect() };
    let (files, bytes) = list.sums();
    let (hash, data) = list.encoded();
    object::put(db, Kind::Folder, hash, &data)?;
    Ok((hash, files, bytes))
}

fn row<'s>(
    folder: &'s Scanned<'_>,
    grown: &[Option<What>],
    (list, files, bytes): (Hash, u64, u64),
    began: Moment,
) -> Seen<'s> {
    let entries = folder.items.iter().filter_map(|item| {
        let kind = match item.state {
            State::Kept(stamp, what) => SeenKind::Kept(stamp.is_before(began).then_some(stamp), what),
            State::Child(child, _) => grown[child as usize].map_or(SeenKind::Other, SeenKind::Folder),
            State::Ignored => SeenKind::Ignored,
            State::Read(..) | State::Carried(_) | State::Other => SeenKind::Other,
            State::Gone => return None,
        };
        let name: &Cow<'_, [u8]> = &item.name;
        Some(SeenEntry { name, kind })
    });
    let stamp = folder.look.stamp;
    Seen {
        dev: folder.look.dev,
        stamp: stamp.is_before(began).then_some(stamp),
        rules: folder.rules,
        ignoring: folder.ignoring,
        list,
        files,
        bytes,
        entries: entries.collect(),
    }
}
