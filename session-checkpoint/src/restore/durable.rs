//! Makes files and folders durable, many at once: a disk that is asked by several answers them together.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use session_core::LeftWhy;
use tokio::runtime;

use super::hands::Hands;
use super::task::why;
use super::walk::{self, Blocked};
use super::work::Work;
use crate::trouble::{Outcome, Trouble};

/// So many folders are open at once.
const BATCH: usize = 64;
/// So many threads help at most. They wait, and take nothing from the processor.
const HELPERS: usize = 15;

/// What is to be made durable.
pub(super) type Handle = Arc<dyn AsFd + Send + Sync>;

/// How something is made durable.
pub(super) type SyncFn = fn(BorrowedFd<'_>) -> io::Result<()>;

/// One to be made durable, and whom to tell how that went.
type Job = (Handle, Sender<io::Result<()>>);

/// Makes durable what it is given, and says of each how that went.
#[derive(Debug)]
pub(super) struct Syncer<'a> {
    hands: &'a dyn Hands,
    /// Where threads come from that help; they are kept warm there.
    helpers: Option<(runtime::Handle, SyncFn)>,
    queue: Arc<Queue>,
    given: Vec<Receiver<io::Result<()>>>,
}

#[derive(Default)]
struct Queue(Mutex<VecDeque<Job>>);

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl Queue {
    fn next(&self) -> Option<Job> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn put(&self, job: Job) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(job);
    }
}

impl<'a> Syncer<'a> {
    pub(super) fn new(hands: &'a dyn Hands) -> Self {
        let helpers = runtime::Handle::try_current().ok().zip(hands.sync_elsewhere());
        Self { hands, helpers, queue: Arc::default(), given: Vec::new() }
    }

    /// Takes one more, and begins with it where there is somebody to help.
    pub(super) fn give(&mut self, handle: Handle) {
        let (told, how) = channel();
        self.queue.put((handle, told));
        self.given.push(how);
        if let Some((threads, sync)) = self.helpers.as_ref().filter(|_| self.given.len() <= HELPERS) {
            let (queue, sync) = (Arc::clone(&self.queue), *sync);
            drop(threads.spawn_blocking(move || {
                while let Some((handle, told)) = queue.next() {
                    let synced = settled(sync(handle.as_fd()));
                    // Who is told may need the room that it takes among those that are open.
                    drop(handle);
                    drop(told.send(synced));
                }
            }));
        }
    }

    /// How it went, in the order in which they were given. What nobody began with is done here: who helps may come late, or never.
    pub(super) fn ended(&mut self) -> Vec<io::Result<()>> {
        while let Some((handle, told)) = self.queue.next() {
            drop(told.send(sync(self.hands, handle.as_fd())));
        }
        let lost = |_| Err(io::Error::other("nobody said whether it is durable"));
        self.given.drain(..).map(|how| how.recv().unwrap_or_else(lost)).collect()
    }
}

/// Makes one durable.
pub(super) fn sync(hands: &dyn Hands, handle: BorrowedFd<'_>) -> io::Result<()> {
    settled(hands.sync(handle))
}

/// A file system that cannot is taken at its word.
fn settled(synced: io::Result<()>) -> io::Result<()> {
    match synced {
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
    pub(super) fn sync_folders(&mut self, syncer: &mut Syncer<'_>) -> Outcome<()> {
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
fn ended(given: &mut Vec<PathBuf>, syncer: &mut Syncer<'_>) -> Outcome<()> {
    for (path, synced) in given.drain(..).zip(syncer.ended()) {
        synced.map_err(Trouble::io(path))?;
    }
    Ok(())
}
