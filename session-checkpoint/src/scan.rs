//! Looks at folders of a tree, each once and on two threads, without reading what is in files.

use std::borrow::Cow;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use session_core::LeftOutWhy;

use crate::checkpoints::CheckpointLimits;
use crate::found::{Found, Harvest, Item, Missed, Scanned, State};
use crate::handle::{self, Look, Sort};
use crate::limits;
use crate::rules::{Judgement, Rules};
use crate::seen::{Rows, Seen, SeenKind};
use crate::tracked::Tracked;
use crate::trouble::{Outcome, Trouble};

/// What a scan goes by.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    pub(crate) root: PathBuf,
    pub(crate) top: OwnedFd,
    /// Device of the tree.
    pub(crate) dev: u64,
    /// Device and inode of the place of our store.
    pub(crate) ours: Option<(u64, u64)>,
    pub(crate) limits: CheckpointLimits,
    /// What is covered whatever a rule says.
    pub(crate) covered: Option<Arc<Tracked>>,
    files: AtomicU64,
    work: Mutex<Work<'a>>,
    ready: Condvar,
}

/// What is to be done, and what came of it.
#[derive(Debug, Default)]
struct Work<'a> {
    todo: Vec<Job>,
    busy: usize,
    found: Vec<Option<Found<'a>>>,
    left_out: Vec<(Vec<u8>, LeftOutWhy)>,
    trouble: Option<Trouble>,
}

/// A folder to look at.
#[derive(Debug)]
struct Job {
    number: u32,
    path: Vec<u8>,
    /// `None`: it is to be opened from the top.
    parent: Option<(Arc<OwnedFd>, usize)>,
    rules: Arc<Rules>,
    depth: usize,
}

/// So deep, a folder is opened from the handle of the one above it; deeper, from the top, so that handles do not run out.
const HANDLES: usize = 64;
/// Below so many folders to look at, a second thread does not pay.
const THREADS: usize = 2;

impl<'a> Scan<'a> {
    pub(crate) fn new(root: PathBuf, ours: Option<(u64, u64)>, limits: CheckpointLimits) -> Outcome<Self> {
        let top = handle::top(&root).map_err(Trouble::io(&root))?;
        let dev = handle::look_at(&top).map_err(Trouble::io(&root))?.dev;
        let (files, work, ready) = (AtomicU64::new(0), Mutex::default(), Condvar::new());
        Ok(Self { root, top, dev, ours, limits, covered: None, files, work, ready })
    }

    fn work(&self) -> MutexGuard<'_, Work<'a>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The paths of the folders that were ordered.
    pub(crate) fn ordered(&self) -> Vec<Vec<u8>> {
        self.work().todo.iter().map(|job| job.path.clone()).collect()
    }

    /// Puts a folder on the list of those to look at.
    pub(crate) fn order(&self, path: Vec<u8>, rules: Arc<Rules>) -> u32 {
        let mut work = self.work();
        let number = number(work.found.len());
        work.found.push(None);
        work.todo.push(Job { number, path, parent: None, rules, depth: HANDLES });
        number
    }

    /// Puts a folder among those that were looked at.
    pub(crate) fn add(&self, folder: Scanned<'a>) -> u32 {
        let mut work = self.work();
        work.found.push(Some(Found::Folder(folder)));
        number(work.found.len() - 1)
    }

    /// Puts an item into a folder that was [added](Self::add).
    pub(crate) fn fill(&self, folder: u32, items: Vec<Item<'a>>, handle: Option<OwnedFd>) {
        if let Some(Some(Found::Folder(folder))) = self.work().found.get_mut(folder as usize) {
            (folder.items, folder.handle) = (items, handle);
        }
    }

    pub(crate) fn leave_out(&self, path: Vec<u8>, why: LeftOutWhy) {
        self.work().left_out.push((path, why));
    }

    /// Looks at all that was ordered, and at what is below it; `rows` is what was seen of that.
    pub(crate) fn run(self, rows: &'a Rows) -> Outcome<Harvest<'a>> {
        if !self.work().todo.is_empty() {
            std::thread::scope(|scope| {
                for _ in 1..THREADS {
                    scope.spawn(|| self.labour(rows));
                }
                self.labour(rows);
            });
        }
        let work = self.work.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(trouble) = work.trouble {
            return Err(trouble);
        }
        let found = work.found.into_iter().map(|found| found.unwrap_or(Found::Gone)).collect();
        Ok(Harvest { found, left_out: work.left_out })
    }

    fn labour(&self, rows: &'a Rows) {
        let mut work = self.work();
        loop {
            if work.trouble.is_some() {
                break;
            }
            let Some(job) = work.todo.pop() else {
                if work.busy == 0 {
                    break;
                }
                work = self.ready.wait(work).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            work.busy += 1;
            drop(work);
            let mut out = Vec::new();
            let looked = self.folder(&job, rows, &mut out);
            work = self.work();
            let (found, children) = match looked {
                Ok(looked) => looked,
                Err(Missed::Gone) => (Found::Gone, Vec::new()),
                Err(Missed::Out(why)) => {
                    out.push((job.path.clone(), why));
                    (Found::Out, Vec::new())
                }
                Err(Missed::Failed(error)) => {
                    work.trouble = Some(Trouble::io(self.root.join(handle::path(&job.path)))(error));
                    (Found::Out, Vec::new())
                }
            };
            work.left_out.append(&mut out);
            self.settle(&mut work, job.number, found, children);
            work.busy -= 1;
            self.ready.notify_all();
        }
        self.ready.notify_all();
    }

    /// Gives the folders in a folder their numbers.
    fn settle(&self, work: &mut Work<'a>, at: u32, mut found: Found<'a>, children: Vec<Job>) {
        if let Found::Folder(folder) = &mut found {
            let first = number(work.found.len());
            for item in &mut folder.items {
                if let State::Child(number, _) = &mut item.state {
                    *number += first;
                }
            }
            for mut job in children {
                job.number += first;
                work.found.push(None);
                work.todo.push(job);
            }
            let files =
                folder.items.iter().filter(|item| matches!(item.state, State::Kept(..) | State::Read(..)));
            let count = files.count() as u64;
            if self.files.fetch_add(count, Ordering::Relaxed) + count > self.limits.files {
                work.trouble = Some(limits::too_many(&self.limits));
            }
        }
        work.found[at as usize] = Some(found);
    }

    /// Looks at a folder.
    fn folder(
        &self,
        job: &Job,
        rows: &'a Rows,
        out: &mut Vec<(Vec<u8>, LeftOutWhy)>,
    ) -> Result<(Found<'a>, Vec<Job>), Missed> {
        let handle = match &job.parent {
            Some((parent, at)) => handle::folder(parent, &job.path[*at..]),
            None => handle::below(&self.top, &job.path),
        };
        let handle = Arc::new(handle?);
        let look = handle::look_at(&*handle)?;
        if let Some(why) = self.foreign(&look) {
            return Err(Missed::Out(why));
        }
        let row = rows.get(&job.path).and_then(|row| Seen::decoded(row));
        let row = row.filter(|row| row.dev == look.dev);
        let listed = row.as_ref().filter(|row| row.stamp == Some(look.stamp));
        let names: Vec<Cow<'a, [u8]>> = match listed {
            Some(row) => row.entries.iter().map(|entry| Cow::Borrowed(entry.name)).collect(),
            None => {
                let names = handle::names(&*handle)?;
                names.into_iter().map(Cow::Owned).collect()
            }
        };
        let has = |name: &[u8]| names.binary_search_by(|other| other.as_ref().cmp(name)).is_ok();
        let rules = job.rules.within(&self.root, &job.path, &handle, has);
        // Where a rule leaves something out, what is tracked counts, too, and that may have changed.
        let judged = row.as_ref().is_some_and(|row| row.rules == rules.digest() && !row.ignoring);
        let mut same = listed.is_some();
        let mut ignoring = false;
        let mut items = Vec::with_capacity(names.len());
        let mut children = Vec::new();
        for (at, name) in names.into_iter().enumerate() {
            let before = match listed {
                Some(row) => Some(row.entries[at].kind),
                None => row.as_ref().and_then(|row| row.get(&name)).map(|entry| entry.kind),
            };
            let mut state = match self.entry(&handle, &name, before) {
                Ok(state) => state,
                Err(Missed::Gone) => {
                    same = false;
                    continue;
                }
                Err(failed @ Missed::Failed(_)) => return Err(failed),
                Err(Missed::Out(why)) => {
                    out.push((handle::join(&job.path, &name), why));
                    State::Other
                }
            };
            // What was covered by these rules is not matched again.
            let known = judged && before.is_some_and(|before| before != SeenKind::Other);
            let mut judgement = Judgement::Covered;
            if !known && !matches!(state, State::Other) {
                judgement = self.judge(&rules, &job.path, &name, matches!(state, State::Child(..)));
            }
            ignoring |= judgement != Judgement::Covered;
            if judgement == Judgement::Out {
                out.push((handle::join(&job.path, &name), LeftOutWhy::Ignored));
                state = State::Ignored;
            }
            if let State::Child(place, _) = &mut state {
                *place = number(children.len());
                let path = handle::join(&job.path, &name);
                let start = path.len() - name.len();
                let parent = (job.depth < HANDLES).then(|| (Arc::clone(&handle), start));
                let rules = rules.for_child(judgement);
                children.push(Job { number: *place, path, parent, rules, depth: job.depth + 1 });
            }
            same &= match state {
                State::Kept(..) | State::Child(_, Some(_)) => true,
                State::Ignored => before == Some(SeenKind::Ignored),
                State::Other => before == Some(SeenKind::Other),
                _ => false,
            };
            items.push(Item { name, state });
        }
        let digest = rules.digest();
        same &= listed.is_some_and(|row| row.rules == digest && row.ignoring == ignoring);
        let same = listed.filter(|_| same).map(|row| (row.list, row.files, row.bytes));
        let path = job.path.clone();
        let scanned = Scanned { path, look, rules: digest, ignoring, items, same, row: true, handle: None };
        Ok((Found::Folder(scanned), children))
    }

    /// What rules say of something in a folder.
    pub(crate) fn judge(&self, rules: &Rules, folder: &[u8], name: &[u8], is_folder: bool) -> Judgement {
        match (rules.judge(folder, name, is_folder), &self.covered) {
            (Judgement::Out, Some(covered)) if covered.has(&handle::join(folder, name), is_folder) => {
                Judgement::Tracked
            }
            (judgement, _) => judgement,
        }
    }

    /// What stands under a name.
    pub(crate) fn entry(
        &self,
        folder: &OwnedFd,
        name: &[u8],
        before: Option<SeenKind>,
    ) -> Result<State, Missed> {
        if name == b".git" {
            return Err(Missed::Out(LeftOutWhy::GitDir));
        }
        let look = handle::look(folder.as_fd(), name)?;
        if let Some(why) = self.foreign(&look)
            // A layered file system tells files of other layers by other devices; those are of the tree all the same.
            && (look.sort == Sort::Folder || handle::is_mounted(folder, name) != Some(false))
        {
            return Err(Missed::Out(why));
        }
        match (look.sort, before) {
            (Sort::Special, _) => Err(Missed::Out(LeftOutWhy::Special)),
            (Sort::Folder, Some(SeenKind::Folder(what))) => Ok(State::Child(0, Some(what))),
            (Sort::Folder, _) => Ok(State::Child(0, None)),
            (Sort::File, _) if look.stamp.size > self.limits.file_bytes => {
                Err(Missed::Out(LeftOutWhy::TooLarge { bytes: look.stamp.size }))
            }
            (Sort::File | Sort::Link, Some(SeenKind::Kept(Some(stamp), what))) if stamp == look.stamp => {
                Ok(State::Kept(stamp, what))
            }
            (Sort::File | Sort::Link, _) => Ok(State::Read(look.stamp, look.sort)),
        }
    }

    /// Why something is not of this tree.
    pub(crate) fn foreign(&self, look: &Look) -> Option<LeftOutWhy> {
        if look.dev != self.dev {
            return Some(LeftOutWhy::OtherFileSystem);
        }
        (Some((look.dev, look.ino)) == self.ours).then_some(LeftOutWhy::Ours)
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a tree has fewer folders than a file system has inodes")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use session_core::LeftOutWhy;

    use super::{CheckpointLimits, Missed, Scan, State};

    #[test]
    fn a_file_of_another_layer_is_of_the_tree_and_a_folder_of_another_device_is_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("f"), "f").unwrap();
        fs::create_dir(folder.path().join("d")).unwrap();
        let limits = CheckpointLimits::default();
        let mut scan = Scan::new(folder.path().to_owned(), None, limits).unwrap();
        // Where layers are of two file systems, no file has the device of its folder.
        scan.dev += 1;
        let entry = |name: &[u8]| scan.entry(&scan.top, name, None);
        assert!(matches!(entry(b"f"), Ok(State::Read(..))));
        assert!(matches!(entry(b"d"), Err(Missed::Out(LeftOutWhy::OtherFileSystem))));
    }
}
