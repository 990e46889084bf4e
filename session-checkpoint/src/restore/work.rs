//! Puts the paths of a restore back, in an order in which none stands in the way of another: folders that are worked in are
//! opened to their owner, files and links that go are removed, then folders that go from the bottom up; new folders are made
//! from the top down, files and links are put, and folders get their permissions from the bottom up.
//!
//! Every step begins with a look at what stands there, so that the same is done again after it was cut off at any point.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rusqlite::Connection;
use rustix::io::Errno;
use session_core::{LeftPath, LeftWhy, Restored};

use super::durable::Syncer;
use super::hands::Hands;
use super::look::{self, As};
use super::task::{Task, Verdict, is_leaf, why};
use super::walk::{self, Blocked, Open, Walker};
use crate::trouble::{Outcome, Trouble};

/// A restore at work.
#[derive(Debug)]
pub(super) struct Work<'a> {
    pub(super) hands: &'a dyn Hands,
    pub(super) db: &'a Connection,
    pub(super) walker: Walker<'a>,
    /// The beginning of the names of what is not yet in its place.
    pub(super) prefix: String,
    /// Whether it was cut off before, so that what stands at a path may be half of our own work.
    pub(super) goes_on: bool,
    /// Folders whose entries changed.
    pub(super) touched: BTreeSet<PathBuf>,
    /// What could not be removed, by folder and name.
    pub(super) litter: Vec<(PathBuf, OsString)>,
    /// Files that were replaced: the last that holds them.
    pub(super) replaced: Vec<OwnedFd>,
    /// The thread that lets such ones go.
    pub(super) letting_go: Option<JoinHandle<()>>,
    /// A folder whose permissions are still those that it was worked in with, and why.
    pub(super) unsettled: Option<(PathBuf, LeftWhy)>,
    pub(super) buffer: Vec<u8>,
}

impl Work<'_> {
    /// Does it all. An error leaves it to be finished later.
    pub(super) fn run(mut self, mut tasks: Vec<Task>) -> Outcome<Restored> {
        let syncer = &mut Syncer::new(self.hands);
        self.open_folders(&mut tasks);
        if self.goes_on {
            self.remove_drafts(&tasks);
        }
        let goes = |task: &&mut Task| match task.before {
            Some(_) => is_leaf(task.before) && !is_leaf(task.after),
            None => task.after.is_none(),
        };
        for task in tasks.iter_mut().filter(goes) {
            self.remove(task);
            if task.is_short && self.make_room() && task.was_short() {
                self.remove(task);
            }
        }
        for task in tasks.iter_mut().rev() {
            if task.folder_modes().0.is_some() && task.folder_modes().1.is_none() {
                self.remove_folder(task);
            }
        }
        self.walker.close();
        self.make_folders(&mut tasks, syncer)?;
        self.put_leaves(&mut tasks, syncer)?;
        self.walker.close();
        self.settle_folders(&mut tasks);
        self.end(&tasks, syncer)?;
        Ok(told(tasks))
    }

    /// The folder of a task; `None`: it cannot be reached, and the task was told why if anything is to be put there.
    pub(super) fn parent(&mut self, task: &mut Task) -> Option<std::sync::Arc<Open>> {
        match self.walker.folder(task.parent()) {
            Ok(folder) => return Some(folder),
            Err(Blocked::Failed(error)) => task.fail(&error),
            // Where there is no folder, nothing is in it.
            Err(_) if task.after.is_none() => task.verdict = Some(Verdict::Done),
            Err(Blocked::Missing) if task.before.is_some() => task.leave(LeftWhy::ChangedMeanwhile),
            Err(Blocked::Missing | Blocked::NoFolder) => task.leave(LeftWhy::InTheWay),
        }
        None
    }

    /// Removes a file or a link, for nothing or for a folder.
    fn remove(&mut self, task: &mut Task) {
        if task.verdict.is_some() || task.mode.is_some() {
            return;
        }
        match self.walker.folder(task.parent()) {
            // It may come yet; whoever makes the folder looks.
            Err(Blocked::Missing | Blocked::NoFolder) if task.after.is_some() => {
                task.cleared = self.goes_on;
                return;
            }
            _ => {}
        }
        let Some(folder) = self.parent(task) else { return };
        let found = match look::look(self.hands, &folder, task, &mut self.buffer) {
            Ok(found) => found,
            Err(error) => return task.fail(&error),
        };
        match (found.is, found.seen) {
            (As::After, _) => task.verdict = Some(Verdict::Done),
            (As::Before, Some(seen)) => {
                let removed = match walk::look(self.hands, &folder, task.name()) {
                    Ok(now) if now == Some(seen) => self.hands.remove(folder.as_fd(), task.name()),
                    Ok(_) => return task.leave(LeftWhy::ChangedMeanwhile),
                    Err(error) => Err(error),
                };
                match removed {
                    Ok(()) => {
                        self.touched.insert(task.parent().to_owned());
                        task.cleared = true;
                        if task.after.is_none() {
                            task.verdict = Some(Verdict::Done);
                        }
                    }
                    Err(error) => task.leave(why(&error)),
                }
            }
            (_, None) if self.goes_on => task.cleared = true,
            (As::Folded, _) => task.leave(LeftWhy::Folded),
            _ => task.leave(LeftWhy::ChangedMeanwhile),
        }
    }

    /// Lets handles go, where there were none left. Says whether there were any to let go.
    pub(super) fn make_room(&mut self) -> bool {
        let letting_go = self.letting_go.take().map(JoinHandle::join);
        self.walker.thin() | letting_go.is_some()
    }

    /// Sets the permissions of a folder.
    pub(super) fn set_folder_mode(&mut self, folder: &Open, task: &Task, mode: u16) -> io::Result<()> {
        match self.hands.set_folder_mode(folder.as_fd(), task.name(), mode) {
            Err(error) if walk::is_short(&error) && self.make_room() => {
                self.hands.set_folder_mode(folder.as_fd(), task.name(), mode)
            }
            set => set,
        }
    }

    /// Removes a folder, for nothing or for a file or a link.
    fn remove_folder(&mut self, task: &mut Task) {
        if task.verdict.is_some() {
            return;
        }
        if task.mode.is_none() && task.after.is_some() {
            // What puts the other looks at what stands there.
            task.cleared = self.goes_on;
            return;
        }
        let Some(folder) = self.parent(task) else { return };
        if task.mode.is_none() {
            return match walk::look(self.hands, &folder, task.name()) {
                Ok(None) => task.verdict = Some(Verdict::Done),
                Ok(Some(_)) => task.leave(LeftWhy::ChangedMeanwhile),
                Err(error) => task.leave(why(&error)),
            };
        }
        match self.hands.remove_folder(folder.as_fd(), task.name()) {
            Ok(()) => {
                self.touched.insert(task.parent().to_owned());
                (task.cleared, task.mode) = (true, None);
                if task.after.is_none() {
                    task.verdict = Some(Verdict::Done);
                }
            }
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOTEMPTY | Errno::EXIST) => task.leave(LeftWhy::NotEmpty),
                Some(Errno::NOENT | Errno::NOTDIR) => task.leave(LeftWhy::ChangedMeanwhile),
                _ => task.leave(why(&error)),
            },
        }
    }

    /// Removes what an earlier try left under names of its own.
    fn remove_drafts(&mut self, tasks: &[Task]) {
        for task in tasks.iter().filter(|task| task.number.is_some()) {
            if task.after.is_some() || task.verdict.is_some() {
                self.touched.insert(task.parent().to_owned());
                self.discard(task.parent(), task.draft(&self.prefix));
            }
        }
    }

    /// Removes a file, a link or an empty folder that is not in its place.
    pub(super) fn discard(&mut self, parent: &Path, name: OsString) {
        match self.walker.folder(parent) {
            Ok(folder) => self.discard_in(&folder, parent, name),
            Err(Blocked::Missing | Blocked::NoFolder) => {}
            Err(Blocked::Failed(error)) => self.not_discarded(&error, parent, name),
        }
    }

    /// The same in a folder that is open: another may stand at its path by now.
    pub(super) fn discard_in(&mut self, folder: &Open, parent: &Path, name: OsString) {
        let removed = match self.hands.remove(folder.as_fd(), &name) {
            // What a system says to the removal of a folder as a file.
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::ISDIR | Errno::PERM)) => {
                self.hands.remove_folder(folder.as_fd(), &name)
            }
            other => other,
        };
        if let Err(error) = removed {
            self.not_discarded(&error, parent, name);
        }
    }

    fn not_discarded(&mut self, error: &io::Error, parent: &Path, name: OsString) {
        let is_gone = error.kind() == io::ErrorKind::NotFound;
        // In another's folder, asking for ever would not help.
        let is_of_others = self.goes_on && why(error) == LeftWhy::Denied;
        if !is_gone && !is_of_others {
            self.litter.push((parent.to_owned(), name));
        }
    }

    /// Makes the entries of folders durable.
    fn end(&mut self, tasks: &[Task], syncer: &mut Syncer<'_>) -> Outcome<()> {
        for (parent, name) in std::mem::take(&mut self.litter) {
            self.discard(&parent, name);
        }
        if let Some((parent, name)) = self.litter.first() {
            let error = io::Error::other("it could not be removed");
            return Err(Trouble::io(parent.join(name))(error));
        }
        match self.unsettled.take() {
            // It is another's by now; asking for ever would not help.
            None => {}
            Some((_, LeftWhy::Denied)) if self.goes_on => {}
            Some((path, why)) => {
                let error = io::Error::other(format!("its permissions could not be set: {why}"));
                return Err(Trouble::io(path)(error));
            }
        }
        if self.goes_on {
            self.touched.extend(tasks.iter().map(|task| task.parent().to_owned()));
        }
        self.sync_folders(syncer)
    }
}

fn told(tasks: Vec<Task>) -> Restored {
    let mut restored = Restored::default();
    for task in tasks {
        match task.verdict {
            Some(Verdict::Done) if task.number.is_some() => restored.done.push(task.path),
            Some(Verdict::Left(why)) => restored.left.push(LeftPath { path: task.path, why }),
            Some(Verdict::Done) => {}
            None if task.number.is_some() => {
                restored.left.push(LeftPath { path: task.path, why: LeftWhy::ChangedMeanwhile });
            }
            None => {}
        }
    }
    restored
}
