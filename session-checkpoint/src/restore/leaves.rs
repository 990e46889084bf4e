//! Files and links: made under names of their own beside their places, then put.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use session_core::LeftWhy;

use super::durable::{Handle, Syncer};
use super::hands::{Hands, Seen};
use super::look::{self, As};
use super::task::{Task, Verdict, is_leaf, why};
use super::walk::{self, Open};
use super::work::Work;
use crate::node::What;
use crate::object;
use crate::trouble::{Outcome, Trouble};

/// So many are made before they are put: of each up to three handles are open at once.
const BATCH: usize = 32;

/// One that is made.
struct Made {
    /// Which of the tasks.
    at: usize,
    folder: Arc<Open>,
    /// What it replaces; `None`: nothing stood there.
    seen: Option<Seen>,
    form: Form,
}

enum Form {
    /// A file under this name, to be put for the other, where there is one.
    File(OsString, Arc<OwnedFd>, Option<OwnedFd>),
    Link(OsString, Option<OwnedFd>),
    /// A file in its place, whose permissions were set.
    Same(Arc<OwnedFd>),
}

impl Work<'_> {
    /// Puts all files and links.
    ///
    /// # Errors
    /// The database's; what is told of single paths is no error.
    pub(super) fn put_leaves(&mut self, tasks: &mut [Task], syncer: &mut Syncer<'_>) -> Outcome<()> {
        let open: Vec<usize> =
            (0..tasks.len()).filter(|at| tasks[*at].verdict.is_none() && is_leaf(tasks[*at].after)).collect();
        let mut open = open.as_slice();
        while !open.is_empty() {
            let mut made = Vec::with_capacity(BATCH);
            let mut looked = 0;
            for at in open.iter().take(BATCH) {
                let mut one = self.prepare(&mut tasks[*at], *at)?;
                // Without handles, it waits until those that the others hold were let go.
                if !made.is_empty() && tasks[*at].was_short() {
                    break;
                }
                if tasks[*at].is_short && self.make_room() && tasks[*at].was_short() {
                    one = self.prepare(&mut tasks[*at], *at)?;
                }
                looked += 1;
                made.extend(one);
            }
            // Not while others are still made: a file system that commits keeps them waiting.
            made.iter().filter_map(Made::file).for_each(|file| syncer.give(file));
            let mut synced = syncer.ended().into_iter();
            for made in made {
                // A link has nothing but its entry.
                let synced = made.file().and_then(|_| synced.next()).unwrap_or(Ok(()));
                self.finish(made, synced, tasks);
            }
            self.let_go();
            self.walker.close();
            open = &open[looked..];
        }
        Ok(())
    }

    /// Lets what was replaced go, which frees its room on the disk: nobody has to wait for that.
    fn let_go(&mut self) {
        let replaced = std::mem::take(&mut self.replaced);
        // Threads that wait for a slow disk would pile up, and their handles.
        let is_free = self.letting_go.as_ref().is_none_or(JoinHandle::is_finished);
        if is_free && !replaced.is_empty() {
            // Without a thread, it is done here.
            self.letting_go = thread::Builder::new().spawn(move || drop(replaced)).ok();
        }
    }

    /// Makes what is to stand at a path beside it, where something is to be done.
    fn prepare(&mut self, task: &mut Task, at: usize) -> Outcome<Option<Made>> {
        let Some(folder) = self.parent(task) else { return Ok(None) };
        let found = match look::look(self.hands, &folder, task, &mut self.buffer) {
            Ok(found) => found,
            Err(error) => {
                task.fail(&error);
                return Ok(None);
            }
        };
        match (found.is, &found.seen) {
            (As::After, _) => task.verdict = Some(Verdict::Done),
            (As::Folded, _) => task.leave(LeftWhy::Folded),
            // A folder that stands there still was not removed.
            (As::Before, Some(_)) if !is_leaf(task.before) => task.leave(LeftWhy::ChangedMeanwhile),
            (As::Before, _) => {}
            (As::Neither, None) if task.cleared => {}
            (As::Neither, _) => task.leave(LeftWhy::ChangedMeanwhile),
        }
        if task.verdict.is_some() {
            return Ok(None);
        }
        let made = match (task.before, task.after, found.file, found.seen) {
            // Other names of the same file are other paths, whose permissions stay.
            (
                Some(What::File { content: before, .. }),
                Some(What::File { content, mode, .. }),
                Some(file),
                Some(seen),
            ) if before == content && seen.names == 1 => self
                .hands
                .set_mode(file.as_fd(), mode)
                .map(|()| Form::Same(Arc::new(file)))
                .map_err(Trouble::io(&task.path)),
            (_, Some(What::File { mode, bytes, content }), old, _) => {
                let draft = task.draft(&self.prefix);
                match self.hands.make(folder.as_fd(), &draft) {
                    Err(error) => Err(Trouble::io(&task.path)(error)),
                    Ok(file) => {
                        let filled = fill(self.hands, self.db, &file, content, bytes).and_then(|()| {
                            adorn(self.hands, &file, found.seen, mode).map_err(Trouble::io(&task.path))
                        });
                        if filled.as_ref().is_err_and(is_of_path) {
                            self.discard_in(&folder, task.parent(), draft.clone());
                        }
                        filled.map(|()| Form::File(draft, Arc::new(file), old))
                    }
                }
            }
            (_, Some(What::Link { target, .. }), old, _) => {
                let draft = task.draft(&self.prefix);
                object::get(self.db, object::Kind::Piece, target).and_then(|target| {
                    let made = self.hands.make_link(folder.as_fd(), &draft, OsStr::from_bytes(&target));
                    made.map(|()| Form::Link(draft, old)).map_err(Trouble::io(&task.path))
                })
            }
            _ => return Ok(None),
        };
        match made {
            Ok(form) => return Ok(Some(Made { at, folder, seen: found.seen, form })),
            Err(Trouble::Io { source, .. }) => task.fail(&source),
            Err(trouble) if trouble.is_damage() => task.leave(LeftWhy::Damaged),
            Err(trouble) => return Err(trouble),
        }
        Ok(None)
    }

    /// Puts one in its place.
    fn finish(&mut self, made: Made, synced: io::Result<()>, tasks: &mut [Task]) {
        let task = &mut tasks[made.at];
        let (folder, hands) = (&made.folder, self.hands);
        let (draft, old) = match made.form {
            Form::Same(_) => {
                match synced {
                    Ok(()) => task.verdict = Some(Verdict::Done),
                    Err(error) => task.leave(why(&error)),
                }
                return;
            }
            Form::File(draft, _, old) | Form::Link(draft, old) => (draft, old),
        };
        let buffer = &mut self.buffer;
        let put = synced.and_then(|()| match made.seen {
            None => hands.put(folder.as_fd(), &draft, task.name()).map(|()| true),
            Some(seen) if is_still(hands, folder, task, seen, buffer)? => {
                hands.replace(folder.as_fd(), &draft, task.name()).map(|()| true)
            }
            Some(_) => Ok(false),
        });
        match put {
            Ok(true) => {
                self.touched.insert(task.parent().to_owned());
                self.replaced.extend(old);
                task.verdict = Some(Verdict::Done);
                return;
            }
            Ok(false) => task.leave(LeftWhy::ChangedMeanwhile),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                task.leave(LeftWhy::ChangedMeanwhile);
            }
            Err(error) => task.leave(why(&error)),
        }
        self.discard_in(folder, task.parent(), draft);
    }
}

impl Made {
    /// The file that is to be made durable.
    fn file(&self) -> Option<Handle> {
        match &self.form {
            Form::File(_, file, _) | Form::Same(file) => Some(Arc::clone(file) as Handle),
            Form::Link(..) => None,
        }
    }
}

/// Whether what was seen stands there unchanged.
fn is_still(
    hands: &dyn Hands,
    folder: &Open,
    task: &Task,
    seen: Seen,
    buffer: &mut Vec<u8>,
) -> io::Result<bool> {
    match walk::look(hands, folder, task.name())? {
        Some(now) if now == seen => Ok(true),
        // Another name of it was just put back. Its content tells whether that was all.
        Some(now) if seen.lost_a_name(&now) => {
            Ok(matches!(look::look(hands, folder, task, buffer)?.is, As::Before))
        }
        _ => Ok(false),
    }
}

/// Whether it is about one path, and others can go on.
fn is_of_path(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Io { .. }) || trouble.is_damage()
}

/// Writes a file's content.
fn fill(
    hands: &dyn Hands,
    db: &Connection,
    file: &OwnedFd,
    content: object::Hash,
    bytes: u64,
) -> Outcome<()> {
    let mut written = 0;
    object::content(db, content, bytes, |mut piece| {
        written += piece.len() as u64;
        if written > bytes {
            return Err(another_length());
        }
        while !piece.is_empty() {
            let count = hands.write(file.as_fd(), piece).map_err(Trouble::io(""))?;
            piece = &piece[count..];
        }
        Ok(())
    })?;
    if written == bytes { Ok(()) } else { Err(another_length()) }
}

fn another_length() -> Trouble {
    Trouble::Damaged("a file has another length".to_owned())
}

/// Gives a file the owner of the one that it replaces, where that is allowed, and then its permissions.
fn adorn(hands: &dyn Hands, file: &OwnedFd, seen: Option<Seen>, mode: u16) -> io::Result<()> {
    if let Some(Seen { owner: (owner, group), .. }) = seen {
        let now = hands.look_at(file.as_fd())?.owner;
        if now != (owner, group) && hands.give(file.as_fd(), Some(owner), group).is_err() {
            // A group that one is a member of may be given alone; with neither, it is as if it were new.
            drop(hands.give(file.as_fd(), None, group));
        }
    }
    hands.set_mode(file.as_fd(), mode)
}
