//! Hands that count what they do, and stop or fail at a chosen call.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::io::Errno;

use crate::restore::durable::SyncFn;
use crate::restore::hands::{Hands, Real, Seen};

/// What happens at a call, counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Never,
    /// The process ends before it; in a write, half way through.
    Ends(usize),
    /// It does nothing, and fails.
    Fails(usize, Errno),
    /// From it on, what takes room does half of its work at first and then fails.
    Fills(usize),
}

#[derive(Debug)]
pub(super) struct Faulty {
    fault: Fault,
    /// Whether it is a file system that folds letter case.
    folds: bool,
    pub(super) calls: Mutex<Vec<String>>,
    /// What somebody else does right before a call.
    meanwhile: Option<(usize, Meanwhile)>,
    root: PathBuf,
}

type Meanwhile = fn(&Path);

/// What a process that ends leaves on the stack.
struct Ended;

impl Faulty {
    pub(super) fn new(fault: Fault) -> Self {
        Self { fault, folds: false, calls: Mutex::new(Vec::new()), meanwhile: None, root: PathBuf::new() }
    }

    /// Somebody else does this to the tree right before the call with this number.
    pub(super) fn beside(root: &Path, at: usize, meanwhile: Meanwhile) -> Self {
        Self { meanwhile: Some((at, meanwhile)), root: root.to_owned(), ..Self::new(Fault::Never) }
    }

    pub(super) fn folding() -> Self {
        Self { folds: true, ..Self::new(Fault::Never) }
    }

    /// The spelling of a name that stands there.
    fn spelt(&self, folder: BorrowedFd<'_>, name: &OsStr) -> OsString {
        let names = if self.folds { Real.names(folder).unwrap() } else { Vec::new() };
        let same = names.into_iter().find(|present| present.eq_ignore_ascii_case(name.as_bytes()));
        same.map_or_else(|| name.to_owned(), OsString::from_vec)
    }

    pub(super) fn count(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    /// Does something as a process that may end; `None`: it ended.
    pub(super) fn run<T>(&self, act: impl FnOnce(&Self) -> T) -> Option<T> {
        match panic::catch_unwind(AssertUnwindSafe(|| act(self))) {
            Ok(done) => Some(done),
            Err(other) if other.is::<Ended>() => None,
            Err(other) => panic::resume_unwind(other),
        }
    }

    fn call<T>(&self, name: String, act: impl FnOnce(bool) -> io::Result<T>) -> io::Result<T> {
        let takes_room = ["make", "write"].iter().any(|word| name.starts_with(word));
        let is_write = name.starts_with("write");
        let number = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(name);
            calls.len() - 1
        };
        if let Some((at, act)) = self.meanwhile
            && at == number
        {
            act(&self.root);
        }
        match self.fault {
            Fault::Ends(at) if at == number => {
                if is_write {
                    drop(act(true));
                }
                panic::resume_unwind(Box::new(Ended))
            }
            Fault::Ends(at) => {
                assert!(number < at, "a process that has ended does nothing");
                act(false)
            }
            Fault::Fails(at, errno) if at == number => Err(errno.into()),
            Fault::Fills(at) if at == number && is_write => act(true),
            Fault::Fills(at) if number >= at && takes_room => Err(Errno::NOSPC.into()),
            _ => act(false),
        }
    }
}

fn named(word: &str, name: &OsStr) -> String {
    format!("{word} {}", name.display())
}

impl Hands for Faulty {
    fn sync_elsewhere(&self) -> Option<SyncFn> {
        None
    }

    fn open_root(&self, path: &Path) -> io::Result<OwnedFd> {
        self.call(format!("open_root {}", path.display()), |_| Real.open_root(path))
    }

    fn enter(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        self.call(named("enter", name), |_| Real.enter(folder, &self.spelt(folder, name)))
    }

    fn look(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Seen> {
        self.call(named("look", name), |_| Real.look(folder, &self.spelt(folder, name)))
    }

    fn names(&self, folder: BorrowedFd<'_>) -> io::Result<Vec<Vec<u8>>> {
        self.call("names".to_owned(), |_| Real.names(folder))
    }

    fn target(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Vec<u8>> {
        self.call(named("target", name), |_| Real.target(folder, &self.spelt(folder, name)))
    }

    fn open(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        self.call(named("open", name), |_| Real.open(folder, &self.spelt(folder, name)))
    }

    fn look_at(&self, file: BorrowedFd<'_>) -> io::Result<Seen> {
        self.call("look_at".to_owned(), |_| Real.look_at(file))
    }

    fn read(&self, file: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        self.call("read".to_owned(), |_| Real.read(file, buffer))
    }

    fn make(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        self.call(named("make", name), |_| Real.make(folder, name))
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        let half = |half| if half { &bytes[..bytes.len() / 2] } else { bytes };
        self.call("write".to_owned(), |is_half| Real.write(file, half(is_half)))
    }

    fn give(&self, file: BorrowedFd<'_>, owner: Option<u32>, group: u32) -> io::Result<()> {
        self.call("give".to_owned(), |_| Real.give(file, owner, group))
    }

    fn set_mode(&self, file: BorrowedFd<'_>, mode: u16) -> io::Result<()> {
        self.call(format!("set_mode {mode:o}"), |_| Real.set_mode(file, mode))
    }

    fn sync(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        // The disk below the tests does not lose anything.
        let _ = file;
        self.call("sync".to_owned(), |_| Ok(()))
    }

    fn make_folder(&self, folder: BorrowedFd<'_>, name: &OsStr, mode: u16) -> io::Result<()> {
        self.call(named("make_folder", name), |_| Real.make_folder(folder, name, mode))
    }

    fn make_link(&self, folder: BorrowedFd<'_>, name: &OsStr, target: &OsStr) -> io::Result<()> {
        self.call(named("make_link", name), |_| Real.make_link(folder, name, target))
    }

    fn set_folder_mode(&self, folder: BorrowedFd<'_>, name: &OsStr, mode: u16) -> io::Result<()> {
        let call = format!("set_folder_mode {} {mode:o}", name.display());
        self.call(call, |_| Real.set_folder_mode(folder, &self.spelt(folder, name), mode))
    }

    fn replace(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.call(named("replace", to), |_| Real.replace(folder, from, &self.spelt(folder, to)))
    }

    fn put(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.call(named("put", to), |_| Real.put(folder, from, &self.spelt(folder, to)))
    }

    fn remove(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        self.call(named("remove", name), |_| Real.remove(folder, &self.spelt(folder, name)))
    }

    fn remove_folder(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        self.call(named("remove_folder", name), |_| Real.remove_folder(folder, &self.spelt(folder, name)))
    }
}
