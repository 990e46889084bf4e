//! Reaches the folders of a tree from its top, one after the other, through no link.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::hands::{Hands, Seen};
use super::plan;

/// An open folder.
#[derive(Debug)]
pub(super) struct Open {
    handle: OwnedFd,
    /// Whether it is known to tell names by letter case.
    is_exact: AtomicBool,
}

impl AsFd for Open {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Why a folder was not reached.
#[derive(Debug)]
pub(super) enum Blocked {
    /// It, or one above it, is not there.
    Missing,
    /// It, or one above it, is no folder.
    NoFolder,
    Failed(io::Error),
}

/// The folders down to the one that was asked for last.
#[derive(Debug)]
pub(super) struct Walker<'a> {
    hands: &'a dyn Hands,
    top: Arc<Open>,
    /// `None`: its handle was let go, as there were none left.
    open: Vec<(OsString, Option<Arc<Open>>)>,
}

impl<'a> Walker<'a> {
    pub(super) fn new(hands: &'a dyn Hands, root: &Path) -> io::Result<Self> {
        Ok(Self { hands, top: opened(hands.open_root(root)?), open: Vec::new() })
    }

    /// Lets all folders but the top go: what was opened may have been replaced.
    pub(super) fn close(&mut self) {
        self.open.clear();
    }

    pub(super) fn folder(&mut self, path: &Path) -> Result<Arc<Open>, Blocked> {
        // Such a path would lead out of the tree.
        if !plan::is_within(path) {
            return Err(Blocked::NoFolder);
        }
        let same = path.iter().zip(&self.open).take_while(|(name, open)| *name == open.0).count();
        self.open.truncate(same);
        let known = self.open.iter().rposition(|(_, open)| open.is_some());
        let mut last = known.and_then(|at| self.open[at].1.clone()).unwrap_or_else(|| Arc::clone(&self.top));
        for (at, name) in path.iter().enumerate().skip(known.map_or(0, |at| at + 1)) {
            let handle = match self.hands.enter(last.as_fd(), name) {
                Err(error) if is_short(&error) && self.thin() => self.hands.enter(last.as_fd(), name),
                entered => entered,
            };
            let handle = handle.map_err(|error| match Errno::from_io_error(&error) {
                Some(Errno::NOENT) => Blocked::Missing,
                Some(Errno::NOTDIR | Errno::LOOP) => Blocked::NoFolder,
                _ => Blocked::Failed(error),
            })?;
            last = opened(handle);
            self.open.truncate(at);
            self.open.push((name.to_owned(), Some(Arc::clone(&last))));
        }
        Ok(last)
    }

    /// Lets all handles go that can be had again, but for the last one. Says whether there were any.
    pub(super) fn thin(&mut self) -> bool {
        let last = self.open.iter().rposition(|(_, open)| open.is_some()).unwrap_or(0);
        self.open[..last].iter_mut().filter_map(|(_, open)| open.take()).count() > 0
    }
}

/// Whether there are no handles left to open something with.
pub(super) fn is_short(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

fn opened(handle: OwnedFd) -> Arc<Open> {
    Arc::new(Open { handle, is_exact: AtomicBool::new(false) })
}

/// What stands at a name; `None`: nothing.
pub(super) fn look(hands: &dyn Hands, folder: &Open, name: &OsStr) -> io::Result<Option<Seen>> {
    match hands.look(folder.as_fd(), name) {
        Ok(seen) => Ok(Some(seen)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether what stands at a name has another spelling, as on a file system that folds letter case.
pub(super) fn is_folded(hands: &dyn Hands, folder: &Open, name: &OsStr, seen: &Seen) -> io::Result<bool> {
    if folder.is_exact.load(Ordering::Relaxed) {
        return Ok(false);
    }
    let flip = |byte: &u8| {
        if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
    };
    let flipped = OsString::from_vec(name.as_bytes().iter().map(flip).collect());
    if flipped == name {
        return Ok(false);
    }
    match look(hands, folder, &flipped)? {
        Some(other) if other.identity == seen.identity => {}
        _ => {
            folder.is_exact.store(true, Ordering::Relaxed);
            return Ok(false);
        }
    }
    Ok(!hands.names(folder.as_fd())?.iter().any(|present| present == name.as_bytes()))
}
