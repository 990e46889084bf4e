//! Folders: opened to their owner, made, and given their permissions.

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;

use session_core::LeftWhy;

use super::durable::{self, Syncer};
use super::hands::Kind;
use super::plan::WORK;
use super::task::{Task, Verdict, why};
use super::walk::{self, Blocked, Open};
use super::work::Work;
use crate::trouble::Outcome;

impl Work<'_> {
    /// Finds the folders that stand at tasks, from the top down, and opens those that are worked in to their owner. What is to
    /// be narrowed is narrowed here already, before anything comes in that is not for all.
    pub(super) fn open_folders(&mut self, tasks: &mut [Task]) {
        for task in tasks.iter_mut().filter(|task| task.verdict.is_none()) {
            let (before, after) = task.folder_modes();
            if before.is_none() && after.is_none() {
                continue;
            }
            let seen = self.walker.folder(task.parent()).and_then(|folder| {
                let seen = walk::look(self.hands, &folder, task.name()).map_err(Blocked::Failed)?;
                Ok((folder, seen))
            });
            let (folder, seen) = match seen {
                Ok((folder, Some(seen))) if seen.kind == Kind::Folder => (folder, seen),
                Ok(_) | Err(Blocked::Missing | Blocked::NoFolder) => continue,
                Err(Blocked::Failed(error)) => {
                    task.leave(why(&error));
                    // It may be one that was left open.
                    if self.goes_on {
                        self.unsettled.get_or_insert_with(|| (task.path.clone(), why(&error)));
                    }
                    continue;
                }
            };
            let work = task.work_mode();
            let ours = self.goes_on && seen.mode == work && !task.was_open;
            if before != Some(seen.mode) && after != Some(seen.mode) && !ours {
                if task.number.is_some() {
                    task.leave(LeftWhy::ChangedMeanwhile);
                }
                continue;
            }
            if walk::is_folded(self.hands, &folder, task.name(), &seen).is_ok_and(|folded| folded) {
                task.leave(LeftWhy::Folded);
                continue;
            }
            task.mode = Some(seen.mode);
            if task.is_worked_in && seen.mode != work {
                self.open(task, &folder, work);
            }
        }
    }

    /// Makes the folders that are not there, from the top down: all of one depth, and then those within them.
    ///
    /// # Errors
    /// What leaves it to be finished later; what is told of single paths is no error.
    pub(super) fn make_folders(&mut self, tasks: &mut [Task], syncer: &mut Syncer<'_>) -> Outcome<()> {
        let is_missing = |task: &Task| {
            let is_open = task.number.is_some() && task.verdict.is_none() && task.mode.is_none();
            is_open && task.folder_modes().1.is_some()
        };
        let missing = (0..tasks.len()).filter(|at| is_missing(&tasks[*at]));
        let mut levels: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in missing {
            levels.entry(tasks[at].path.components().count()).or_default().push(at);
        }
        for level in levels.into_values() {
            let mut is_any_made = false;
            for at in level {
                self.make_missing(&mut tasks[at]);
                is_any_made |= tasks[at].mode.is_some();
            }
            // A disk that lost its name, and not what came into it, would have that under the name of a draft.
            if is_any_made {
                self.sync_folders(syncer)?;
            }
        }
        Ok(())
    }

    fn make_missing(&mut self, task: &mut Task) {
        let Some(after) = task.folder_modes().1 else { return };
        let Some(folder) = self.parent(task) else { return };
        match walk::look(self.hands, &folder, task.name()) {
            Ok(None) if task.before.is_none() || task.cleared => {
                self.make_folder(task, &folder, after | WORK);
            }
            Ok(Some(seen))
                if walk::is_folded(self.hands, &folder, task.name(), &seen).is_ok_and(|folded| folded) =>
            {
                task.leave(LeftWhy::Folded);
            }
            Ok(_) => task.leave(LeftWhy::ChangedMeanwhile),
            Err(error) => task.leave(why(&error)),
        }
    }

    /// Makes a folder under a name of its own first: whatever stands at the path with these permissions is then whole.
    fn make_folder(&mut self, task: &mut Task, folder: &Open, mode: u16) {
        let draft = task.draft(&self.prefix);
        let made = self.hands.make_folder(folder.as_fd(), &draft, mode).and_then(|()| {
            // The process may hide some of them.
            if self.hands.look(folder.as_fd(), &draft)?.mode != mode {
                self.hands.set_folder_mode(folder.as_fd(), &draft, mode)?;
                durable::sync(self.hands, self.hands.enter(folder.as_fd(), &draft)?.as_fd())?;
            }
            self.hands.put(folder.as_fd(), &draft, task.name())
        });
        match made {
            Ok(()) => {
                self.touched.insert(task.parent().to_owned());
                task.mode = Some(mode);
            }
            Err(error) => {
                self.discard_in(folder, task.parent(), draft);
                task.leave(match error.kind() {
                    std::io::ErrorKind::AlreadyExists => LeftWhy::ChangedMeanwhile,
                    _ => why(&error),
                });
            }
        }
    }

    /// Gives the folders their permissions, from the bottom up. One that cannot get those that it is to have gets back those
    /// that it had.
    pub(super) fn settle_folders(&mut self, tasks: &mut [Task]) {
        for task in tasks.iter_mut().rev() {
            let Some(mode) = task.mode else { continue };
            let (before, after) = task.folder_modes();
            // What could not be opened is as it was.
            if after.is_some() && task.verdict.is_some() {
                continue;
            }
            let mut settled = Err(LeftWhy::ChangedMeanwhile);
            if let Some(after) = after {
                settled = self.settle(task, mode, after);
                match &settled {
                    Ok(()) if task.number.is_some() => task.verdict = Some(Verdict::Done),
                    Err(why) if task.number.is_some() => task.leave(why.clone()),
                    _ => {}
                }
            }
            if let (Err(_), Some(before)) = (&settled, before) {
                settled = self.settle(task, mode, before);
            }
            // What is another's by now is as they want it.
            match settled {
                Ok(()) | Err(LeftWhy::ChangedMeanwhile | LeftWhy::InTheWay) => {}
                Err(why) => drop(self.unsettled.get_or_insert_with(|| (task.path.clone(), why))),
            }
        }
    }

    /// Gives a folder with the one permissions the others.
    fn settle(&mut self, task: &Task, mode: u16, rest: u16) -> Result<(), LeftWhy> {
        if mode == rest {
            return Ok(());
        }
        let folder = self.walker.folder(task.parent()).map_err(|blocked| match blocked {
            Blocked::Failed(error) => why(&error),
            Blocked::Missing | Blocked::NoFolder => LeftWhy::InTheWay,
        })?;
        match walk::look(self.hands, &folder, task.name()).map_err(|error| why(&error))? {
            Some(seen) if seen.kind == Kind::Folder && seen.mode == mode => {}
            _ => return Err(LeftWhy::ChangedMeanwhile),
        }
        self.touched.insert(task.path.clone());
        self.set_folder_mode(&folder, task, rest).map_err(|error| why(&error))
    }

    /// Opens a folder to its owner.
    fn open(&mut self, task: &mut Task, folder: &Open, mode: u16) {
        match self.set_folder_mode(folder, task, mode) {
            Ok(()) => {
                self.touched.insert(task.path.clone());
                task.mode = Some(mode);
            }
            // Of a folder that is only worked in, whoever works in it tells.
            Err(error) if task.number.is_some() => task.leave(why(&error)),
            Err(_) => {}
        }
    }
}
