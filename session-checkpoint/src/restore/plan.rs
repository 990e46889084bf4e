//! What stands at each path in the two states, and which folders are worked in.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rusqlite::Connection;
use session_core::LeftWhy;

use super::hands::{Hands, Kind};
use super::journal::{Begun, Side};
use super::task::{Task, Verdict};
use super::walk::{self, Walker};
use crate::node::{Folder, What};
use crate::tree;
use crate::trouble::Outcome;

/// What the owner of a folder needs to work in it.
pub(super) const WORK: u16 = 0o700;

/// The tasks of a restore, in the order of paths: its own paths, and the folders around them whose permissions would be in the
/// way.
pub(super) fn tasks(db: &Connection, begun: &Begun) -> Outcome<Vec<Task>> {
    let (mut from, mut to) = (Cursor::new(db, begun.from), Cursor::new(db, begun.to));
    let mut tasks: Vec<Task> = Vec::new();
    for (number, path) in begun.paths().enumerate() {
        let mut task = Task::new(path, Some(number));
        if !is_within(path) {
            task.verdict = Some(Verdict::Left(LeftWhy::Failed("it is no path within a tree".to_owned())));
        }
        match (from.at(path), to.at(path)) {
            (Ok(before), Ok(after)) => (task.before, task.after) = (before, after),
            (Err(trouble), _) | (_, Err(trouble)) if trouble.is_damage() => {
                task.verdict = Some(Verdict::Left(LeftWhy::Damaged));
            }
            (Err(trouble), _) | (_, Err(trouble)) => return Err(trouble),
        }
        tasks.push(task);
    }
    let mut around: Vec<&Path> =
        begun.paths().filter(|path| is_within(path)).flat_map(|path| path.ancestors().skip(1)).collect();
    around.sort_unstable();
    around.dedup();
    let mut closed = Vec::new();
    for path in around {
        if let Ok(at) = tasks.binary_search_by(|task| task.path.as_path().cmp(path)) {
            tasks[at].is_worked_in = true;
            continue;
        }
        match from.at(path) {
            Ok(Some(what @ What::Folder { mode, .. })) if mode & WORK != WORK => {
                let mut task = Task::new(path, None);
                (task.before, task.after, task.is_worked_in) = (Some(what), Some(what), true);
                closed.push(task);
            }
            Err(trouble) if !trouble.is_damage() => return Err(trouble),
            _ => {}
        }
    }
    tasks.append(&mut closed);
    tasks.sort_by(|one, other| one.path.cmp(&other.path));
    for task in &mut tasks {
        task.was_open = begun.was_open(&task.path);
    }
    Ok(tasks)
}

/// Finds the folders that somebody else opened in the way that a restore would. To be called before it begins.
pub(super) fn look_for_open(hands: &dyn Hands, walker: &mut Walker<'_>, tasks: &mut [Task]) {
    for task in tasks {
        let (work, (before, after)) = (task.work_mode(), task.folder_modes());
        let gets_it = if before.is_some() { task.is_worked_in } else { after.is_some() };
        if !gets_it || before == Some(work) || after == Some(work) {
            continue;
        }
        // Where it cannot be looked at, a folder above it is closed: then it is of no matter.
        let Ok(folder) = walker.folder(task.parent()) else { continue };
        let seen = walk::look(hands, &folder, task.name()).ok().flatten();
        task.was_open = seen.is_some_and(|seen| seen.kind == Kind::Folder && seen.mode == work);
    }
}

/// Whether a path names something in a tree; the empty one is the top.
pub(super) fn is_within(path: &Path) -> bool {
    path.components().all(|component| matches!(component, Component::Normal(_)))
}

/// Finds one path after the other, quickest in their order.
struct Cursor<'a> {
    db: &'a Connection,
    side: Side,
    /// The top folder, and those down to the latest path's; `None`: there is no such folder.
    lists: Vec<(Vec<u8>, Option<Folder>)>,
}

impl<'a> Cursor<'a> {
    const fn new(db: &'a Connection, side: Side) -> Self {
        Self { db, side, lists: Vec::new() }
    }

    fn at(&mut self, path: &Path) -> Outcome<Option<What>> {
        let (list, mode) = (self.side.tree, self.side.mode);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(path.as_os_str().is_empty().then_some(What::Folder {
                mode,
                list,
                files: 0,
                bytes: 0,
            }));
        };
        if self.lists.is_empty() {
            self.lists.push((Vec::new(), Some(tree::folder(self.db, list)?)));
        }
        let names = parent.components().map(Component::as_os_str).map(OsStr::as_bytes);
        let same = names.clone().zip(&self.lists[1..]).take_while(|(name, list)| *name == list.0).count();
        self.lists.truncate(same + 1);
        for name in names.skip(same) {
            let above = self.lists.last().and_then(|(_, folder)| folder.as_ref());
            let folder = match above.and_then(|folder| folder.get(name)) {
                Some(What::Folder { list, .. }) => Some(tree::folder(self.db, list)?),
                _ => None,
            };
            self.lists.push((name.to_owned(), folder));
        }
        let folder = self.lists.last().and_then(|(_, folder)| folder.as_ref());
        Ok(folder.and_then(|folder| folder.get(name.as_bytes())))
    }
}
