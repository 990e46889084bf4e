//! The simulated disk as a [`Disk`]: it counts calls, keeps the state before each, and lets calls fail.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustix::io::Errno;

use super::handles::{File, Folder};
use super::platter::{Id, State};
use crate::disk::{Access, Disk, DiskFile, DiskFolder, Entries, Entry, Kind, Meta, Unix};

/// A disk that does not do what it says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Lying {
    #[default]
    No,
    /// Syncing a file does nothing.
    NoFileSync,
    /// Syncing a folder does nothing.
    NoFolderSync,
    /// A rename over a file writes into that file.
    Overwrites,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It fails, and does nothing.
    Fails(Errno),
    /// It and all after it fail.
    FailsFromHereOn(Errno),
    /// A read or a write does half of its work, and says so.
    Short,
    /// A write does half of its work, and all writes after it have no space.
    FillsUp,
    /// A sync of a file fails, and what was not durable by then never becomes so.
    Loses,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Read,
    Write,
    SyncFile,
    Remove,
    Other,
}

/// How a call goes that is not refused outright.
pub(super) enum Course {
    Whole,
    Half,
    Lost,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) state: State,
    pub(super) lying: Lying,
    opened: u64,
    calls: u64,
    points: Option<Points>,
    fault: Option<(u64, Fault)>,
    hit: Option<Call>,
}

/// The crash points of an operation.
#[derive(Debug, Default)]
pub(super) struct Points {
    /// Before each call, and half way through each write.
    pub(super) number: u64,
    /// The states there; those that follow one another differ.
    pub(super) states: Vec<State>,
    last: Option<u64>,
}

impl Points {
    /// The end of a history.
    pub(super) fn of(state: State) -> Self {
        Self { number: 1, states: vec![state], last: None }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Simulated {
    inner: Arc<Mutex<Inner>>,
    owner: u32,
    boot: String,
}

impl Simulated {
    pub(super) fn new(state: State, lying: Lying) -> Self {
        let opened = state.last_locker();
        let boot = format!("start {}", state.boots());
        let inner = Inner { state, lying, opened, calls: 0, points: None, fault: None, hit: None };
        Self { inner: Arc::new(Mutex::new(inner)), owner: rustix::process::geteuid().as_raw(), boot }
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lie(&self, lying: Lying) {
        self.inner().lying = lying;
    }

    pub(super) fn state(&self) -> State {
        self.inner().state.clone()
    }

    /// Keeps the crash points of what is done here.
    pub(super) fn record<T>(&self, act: impl FnOnce() -> T) -> (T, Points) {
        self.inner().points = Some(Points::default());
        let answer = act();
        (answer, self.inner().points.take().unwrap_or_default())
    }

    /// Lets one call of what is done here go wrong, counted from zero; and says whether that call came and could.
    pub(super) fn with_fault<T>(&self, at: u64, fault: Fault, act: impl FnOnce() -> T) -> (T, Hit) {
        let from = {
            let mut inner = self.inner();
            (inner.fault, inner.hit) = (Some((inner.calls + at, fault)), None);
            inner.calls
        };
        let answer = act();
        let mut inner = self.inner();
        inner.fault = None;
        let hit = match inner.hit.take() {
            None if inner.calls - from <= at => Hit::Behind,
            None => Hit::Unable,
            Some(Call::Remove) => Hit::Removal,
            Some(_) => Hit::Done,
        };
        (answer, hit)
    }

    pub(super) fn call<T>(
        &self,
        call: Call,
        act: impl FnOnce(&mut Inner, Course) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut inner = self.inner();
        inner.note();
        let number = inner.calls;
        inner.calls += 1;
        let course = match inner.fault {
            Some((at, fault)) if number >= at => inner.course(call, number == at, fault)?,
            _ => Course::Whole,
        };
        act(&mut inner, course)
    }

    pub(super) fn meta(&self, state: &State, id: Id) -> Meta {
        let (kind, mode, length) = match state.file(id) {
            Ok(content) => (Kind::File, 0o600, content.len() as u64),
            Err(_) => (Kind::Folder, 0o700, 0),
        };
        // Whatever was left behind was left long ago.
        let modified = Some(SystemTime::UNIX_EPOCH);
        Meta {
            kind,
            length,
            modified,
            unix: Unix { mode, owner: self.owner, links: 1, identity: (0, id as u64) },
        }
    }

    pub(super) fn folder(&self, state: &State, id: Id) -> io::Result<Box<dyn DiskFolder>> {
        state.entries(id)?;
        Ok(Box::new(Folder { disk: self.clone(), id }))
    }
}

/// What became of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hit {
    /// There were fewer calls.
    Behind,
    /// The call was one that this cannot happen to.
    Unable,
    Done,
    /// The call was the removal of a file.
    Removal,
}

impl Inner {
    /// A crash point.
    fn note(&mut self) {
        let Some(points) = &mut self.points else { return };
        points.number += 1;
        if points.last.replace(self.state.version()) != Some(self.state.version()) {
            points.states.push(self.state.clone());
        }
    }

    /// A crash point in the midst of a write, which has written this much.
    pub(super) fn note_half(&mut self, file: Id, offset: usize, bytes: &[u8]) {
        if self.points.is_none() {
            return;
        }
        let before = self.state.clone();
        self.state.write(file, offset, bytes);
        self.note();
        self.state = before;
        // What comes next differs from this, too.
        self.points.iter_mut().for_each(|points| points.last = None);
    }

    fn course(&mut self, call: Call, first: bool, fault: Fault) -> io::Result<Course> {
        let course = match fault {
            Fault::Fails(Errno::INTR) if !matches!(call, Call::Read | Call::Write) => {
                return Ok(Course::Whole);
            }
            Fault::Fails(errno) if first => Err(errno),
            Fault::FailsFromHereOn(errno) => Err(errno),
            Fault::Short if first && matches!(call, Call::Read | Call::Write) => Ok(Course::Half),
            Fault::FillsUp if first && call == Call::Write => Ok(Course::Half),
            Fault::FillsUp if self.hit.is_some() && call == Call::Write => Err(Errno::NOSPC),
            Fault::Loses if first && call == Call::SyncFile => Ok(Course::Lost),
            _ => return Ok(Course::Whole),
        };
        self.hit.get_or_insert(call);
        Ok(course?)
    }
}

impl Disk for Simulated {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        self.call(Call::Other, |inner, _| {
            let state = &mut inner.state;
            let (folder, name) = state.place(path)?;
            let id = match (state.entries(folder)?.get(&name), access) {
                (Some(_), Access::New) => return Err(Errno::EXIST.into()),
                (None, Access::Read) => return Err(Errno::NOENT.into()),
                (Some(id), _) => *id,
                (None, _) => state.create(folder, name, false),
            };
            state.file(id)?;
            inner.opened += 1;
            Ok(Box::new(File { disk: self.clone(), id, handle: inner.opened }) as Box<dyn DiskFile>)
        })
    }

    fn open_folder(&self, path: &Path) -> io::Result<Box<dyn DiskFolder>> {
        self.call(Call::Other, |inner, _| self.folder(&inner.state, inner.state.resolve(path)?))
    }

    fn open_base(&self, path: &Path) -> io::Result<Box<dyn DiskFolder>> {
        self.open_folder(path)
    }

    fn look(&self, path: &Path) -> io::Result<Meta> {
        self.call(Call::Other, |inner, _| Ok(self.meta(&inner.state, inner.state.resolve(path)?)))
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.look(path).is_ok_and(|meta| meta.kind == Kind::Folder)
    }

    fn entries(&self, folder: &Path) -> io::Result<Entries> {
        self.call(Call::Other, |inner, _| {
            let entries = inner.state.entries(inner.state.resolve(folder)?)?.iter().map(|(name, id)| {
                let kind = self.meta(&inner.state, *id).kind;
                Ok(Entry { name: OsString::from(&**name), kind })
            });
            Ok(Box::new(entries.collect::<Vec<_>>().into_iter()) as Entries)
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Call::Other, |inner, _| {
            let state = &mut inner.state;
            let (from, to) = (state.place(from)?, state.place(to)?);
            let target = state.entries(to.0)?.get(&to.1).copied();
            match target {
                Some(target) if inner.lying == Lying::Overwrites => {
                    let content = state.file(state.entries(from.0)?[&from.1])?.to_vec();
                    state.set_len(target, content.len());
                    state.write(target, 0, &content);
                    state.unlink(from.0, from.1)
                }
                _ => state.rename(from, to),
            }
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.call(Call::Remove, |inner, _| {
            let (folder, name) = inner.state.place(path)?;
            inner.state.unlink(folder, name)
        })
    }

    fn boot(&self) -> Option<&str> {
        Some(&self.boot)
    }
}
