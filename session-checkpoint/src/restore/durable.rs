//! Makes files and folders durable, many at once: a disk that is asked by several answers them together.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::thread;

use rustix::io::Errno;
use session_core::LeftWhy;

use super::hands::Hands;
use super::task::why;
use super::walk::Blocked;
use super::work::Work;
use crate::trouble::{Outcome, Trouble};

/// So many folders are open at once.
const BATCH: usize = 64;

/// Makes them durable, and says of each how that went. A file system that cannot is taken at its word.
pub(super) fn sync(hands: &dyn Hands, files: &[BorrowedFd<'_>]) -> Vec<io::Result<()>> {
    let one = |file: &BorrowedFd<'_>| match hands.sync(*file) {
        Err(error) if Errno::from_io_error(&error).is_some_and(is_no_answer) => Ok(()),
        done => done,
    };
    let at_once = hands.at_once().min(files.len());
    if at_once < 2 {
        return files.iter().map(one).collect();
    }
    let each = files.len().div_ceil(at_once);
    thread::scope(|scope| {
        let begin = |part| scope.spawn(move || -> Vec<_> { <[_]>::iter(part).map(one).collect() });
        let begun: Vec<_> = files.chunks(each).map(begin).collect();
        let ended = begun.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.flatten().collect()
    })
}

/// Whether a system says so to a call that it does not know for such a file.
const fn is_no_answer(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

impl Work<'_> {
    /// Makes the entries of the folders durable that were touched.
    pub(super) fn sync_folders(&mut self) -> Outcome<()> {
        let touched: Vec<_> = std::mem::take(&mut self.touched).into_iter().collect();
        for batch in touched.chunks(BATCH) {
            let mut open = Vec::new();
            for path in batch {
                match self.walker.folder(path) {
                    Ok(folder) => open.push((path, folder)),
                    Err(Blocked::Failed(error)) if why(&error) != LeftWhy::Denied => {
                        return Err(Trouble::io(path)(error));
                    }
                    // One that is gone by now has no entries, and one that cannot be read was not worked in.
                    Err(_) => {}
                }
            }
            let handles: Vec<_> = open.iter().map(|(_, folder)| folder.as_fd()).collect();
            for ((path, _), synced) in open.iter().zip(sync(self.hands, &handles)) {
                synced.map_err(Trouble::io(path))?;
            }
        }
        Ok(())
    }
}
