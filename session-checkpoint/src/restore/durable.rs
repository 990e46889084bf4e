//! Makes files and folders durable, many at once, while others are still being made: a disk that is asked by several answers
//! them together.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};

use rustix::io::Errno;
use session_core::LeftWhy;

use super::hands::Hands;
use super::task::why;
use super::walk::{self, Blocked};
use super::work::Work;
use crate::trouble::{Outcome, Trouble};

/// So many folders are open at once.
const BATCH: usize = 64;

/// What is to be made durable.
pub(super) type Handle = Arc<dyn AsFd + Send + Sync>;

/// One to be made durable, and whom to tell how that went.
type Job = (Handle, Sender<io::Result<()>>);

/// Makes durable what it is given, and says of each how that went. It ends with the scope of its threads.
pub(super) struct Syncer<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    hands: &'scope dyn Hands,
    threads: usize,
    jobs: Sender<Job>,
    for_threads: Arc<Mutex<Receiver<Job>>>,
    given: Vec<Receiver<io::Result<()>>>,
}

impl fmt::Debug for Syncer<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Syncer").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl<'scope, 'env> Syncer<'scope, 'env> {
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>, hands: &'scope dyn Hands) -> Self {
        let (jobs, for_threads) = channel();
        let for_threads = Arc::new(Mutex::new(for_threads));
        Self { scope, hands, threads: 0, jobs, for_threads, given: Vec::new() }
    }

    /// Begins with one.
    pub(super) fn give(&mut self, handle: Handle) {
        let (told, how) = channel();
        self.given.push(how);
        let at_once = self.hands.at_once();
        if at_once > 1 && self.threads < at_once && self.begin() {
            self.threads += 1;
        }
        // Where there is no thread, it is done here.
        if self.threads == 0 {
            drop(told.send(sync(self.hands, handle.as_fd())));
        } else {
            drop(self.jobs.send((handle, told)));
        }
    }

    fn begin(&self) -> bool {
        let (hands, jobs) = (self.hands, Arc::clone(&self.for_threads));
        let next = move || jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let work = move || {
            while let Ok((handle, told)) = next() {
                drop(told.send(sync(hands, handle.as_fd())));
            }
        };
        Builder::new().spawn_scoped(self.scope, work).is_ok()
    }

    /// How it went, in the order in which they were given.
    pub(super) fn ended(&mut self) -> Vec<io::Result<()>> {
        let lost = |_| Err(io::Error::other("nobody said whether it is durable"));
        self.given.drain(..).map(|how| how.recv().unwrap_or_else(lost)).collect()
    }
}

/// A file system that cannot is taken at its word.
pub(super) fn sync(hands: &dyn Hands, handle: BorrowedFd<'_>) -> io::Result<()> {
    match hands.sync(handle) {
        Err(error) if Errno::from_io_error(&error).is_some_and(is_no_answer) => Ok(()),
        done => done,
    }
}

/// Whether a system says so to a call that it does not know for such a file.
const fn is_no_answer(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

impl Work<'_> {
    /// Makes the entries of the folders durable that were touched.
    pub(super) fn sync_folders(&mut self, syncer: &mut Syncer<'_, '_>) -> Outcome<()> {
        let mut given = Vec::new();
        for path in std::mem::take(&mut self.touched) {
            let folder = loop {
                match self.walker.folder(&path) {
                    Err(Blocked::Failed(error)) if walk::is_short(&error) && !given.is_empty() => {
                        ended(&mut given, syncer)?;
                    }
                    Err(Blocked::Failed(error)) if walk::is_short(&error) && self.make_room() => {}
                    other => break other,
                }
            };
            match folder {
                Ok(folder) => {
                    syncer.give(folder);
                    given.push(path);
                }
                Err(Blocked::Failed(error)) if why(&error) != LeftWhy::Denied => {
                    return Err(Trouble::io(path)(error));
                }
                // One that is gone by now has no entries, and one that cannot be read was not worked in.
                Err(_) => {}
            }
            if given.len() == BATCH {
                ended(&mut given, syncer)?;
            }
        }
        ended(&mut given, syncer)
    }
}

/// Waits for the folders that were given.
fn ended(given: &mut Vec<PathBuf>, syncer: &mut Syncer<'_, '_>) -> Outcome<()> {
    for (path, synced) in given.drain(..).zip(syncer.ended()) {
        synced.map_err(Trouble::io(path))?;
    }
    Ok(())
}
