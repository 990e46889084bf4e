//! What is done with records, as blocking calls.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use session_core::error::{StoreError, StoreErrorKind};
use session_core::{Document, Guard, Lease, ListOptions, Page, Removed, Saved, SessionKey};

use crate::atomic;
use crate::disk::{Disk, DiskFile, Entry, Kind, Meta};
use crate::error::{At, Finding};
use crate::files::{self, Folder, Unopened};
use crate::layout::{self, Layout};
use crate::lock;
use crate::record::{self, Record, Unreadable};

/// How often the leftovers of dead writers are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60 * 60);

/// The records of one store.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) layout: Layout,
    swept: Mutex<Option<Instant>>,
}

impl Records {
    pub(crate) const fn new(disk: Arc<dyn Disk>, layout: Layout) -> Self {
        Self { disk, layout, swept: Mutex::new(None) }
    }

    /// Reads a record. Needs no lock: a record is replaced as a whole.
    pub(crate) fn read(
        &self,
        operation: &'static str,
        key: &SessionKey,
    ) -> Result<Option<Record>, StoreError> {
        let path = self.layout.record(key);
        let at = At::new(operation, &path);
        let (file, meta) = match files::open_to_read(&*self.disk, &path) {
            Ok(opened) => opened,
            // Nothing in a folder that is there; a folder that has gone may have held anything.
            Err(Unopened::Absent) if self.disk.is_folder(&self.layout.records()) => return Ok(None),
            Err(unopened) => return Err(unopened.at(at, StoreErrorKind::Corrupt)),
        };
        let mut bytes = read_start(&*file, &meta).map_err(|error| at.io(error))?;
        let (header, length) = record::header(&bytes).map_err(|error| unreadable(at, error))?;
        // What is no record is not read to its end, however long it is.
        let promised = header.check_length(meta.length.saturating_sub(length as u64));
        promised.map_err(|error| unreadable(at, error))?;
        let (from, rest) = (bytes.len() as u64, meta.length.saturating_sub(bytes.len() as u64));
        files::read_on(&*file, &mut bytes, from, rest).map_err(|error| at.io(error))?;
        bytes.drain(..length);
        header.with(bytes, key).map(Some).map_err(|error| unreadable(at, error))
    }

    pub(crate) fn save(
        &self,
        key: &SessionKey,
        document: &Document,
        guard: &Guard,
        lease: Option<&Lease>,
    ) -> Result<Saved, StoreError> {
        let _lock = lock::for_write(&*self.disk, "save", &self.layout.write_lock(key))?;
        // Unreadable content is not written over: its bytes are to be set aside, and a newer version's kept.
        let current = self.read("save", key)?;
        let written = current.as_ref().map_or(0, |record| record.fence);
        if let Some(lease) = lease
            && let Some(latest) =
                lock::later_grant(&*self.disk, "save", &self.layout.lease_lock(key), lease, written)?
        {
            return Ok(Saved::Fenced { latest });
        }
        let current = current.map(|record| record.revision);
        if !guard.admits(current.as_ref()) {
            return Ok(Saved::Refused { current });
        }
        let revision = record::next_revision(current.as_ref(), &atomic::unique());
        let folder = Folder::open(&*self.disk, "save", self.layout.records())?;
        self.sweep_sometimes();
        let path = self.layout.record(key);
        let fence = lease.map_or(written, Lease::fence);
        let content = record::encode(key, &revision, fence, document.as_bytes());
        atomic::replace(&*self.disk, &folder, &path, &content)
            .map_err(|error| At::new("save", &path).io(error))?;
        Ok(Saved::Done(revision))
    }

    /// Nothing, where the lease is the last grant of the key.
    pub(crate) fn still_held(
        &self,
        operation: &'static str,
        key: &SessionKey,
        lease: &Lease,
    ) -> Result<(), StoreError> {
        let path = self.layout.lease_lock(key);
        let written = self.written_fence(operation, &layout::key_segment(key))?;
        match lock::later_grant(&*self.disk, operation, &path, lease, written)? {
            None => Ok(()),
            Some(_) => Err(At::new(operation, &path).error(StoreErrorKind::Unavailable, Finding::LeaseOver)),
        }
    }

    /// The number of the grant that wrote the record of this name; zero where there is none, or its first line is no header.
    pub(crate) fn written_fence(&self, operation: &'static str, name: &str) -> Result<u64, StoreError> {
        let path = self.layout.records().join(format!("{name}{}", layout::RECORD_SUFFIX));
        let failed = |error| At::new(operation, &path).io(error);
        let (file, meta) = match files::open_to_read(&*self.disk, &path) {
            Ok(opened) => opened,
            Err(Unopened::Absent | Unopened::NotAFile(_)) => return Ok(0),
            Err(Unopened::Failed(error)) => return Err(failed(error)),
        };
        let start = read_start(&*file, &meta).map_err(failed)?;
        let header =
            record::header(&start).ok().filter(|(header, _)| layout::key_segment(&header.key) == name);
        Ok(header.map_or(0, |(header, _)| header.fence))
    }

    pub(crate) fn remove(&self, key: &SessionKey, guard: &Guard) -> Result<Removed, StoreError> {
        let _lock = lock::for_write(&*self.disk, "remove", &self.layout.write_lock(key))?;
        let path = self.layout.record(key);
        let at = At::new("remove", &path);
        let Some(Record { revision: current, .. }) = self.read("remove", key)? else {
            // Who removed it may have died before that was durable, or was told of a failure and asks again.
            let folder = Folder::open(&*self.disk, "remove", self.layout.records())?;
            folder.sync().map_err(|error| at.io(error))?;
            return Ok(Removed::NothingThere);
        };
        if !guard.admits(Some(&current)) {
            return Ok(Removed::Refused { current });
        }
        let folder = Folder::open(&*self.disk, "remove", self.layout.records())?;
        let removed = self.disk.remove_file(&path).and_then(|()| folder.sync());
        removed.map_err(|error| at.io(error))?;
        Ok(Removed::Done)
    }

    /// Moves whatever stands in the place of a record: a file, a link itself, a directory.
    pub(crate) fn set_aside(&self, key: &SessionKey, guard: &Guard) -> Result<Option<String>, StoreError> {
        let _lock = lock::for_write(&*self.disk, "set_aside", &self.layout.write_lock(key))?;
        match self.read("set_aside", key) {
            Ok(None) => return Ok(None),
            // What can be read here may still be unreadable to the caller.
            Ok(Some(record)) if guard.admits(Some(&record.revision)) => {}
            Err(error) if error.kind() == StoreErrorKind::Corrupt && *guard == Guard::Any => {}
            Ok(Some(_)) => return Ok(None),
            Err(error) if error.kind() == StoreErrorKind::Corrupt => return Ok(None),
            // A newer version can read it, or the next try can.
            Err(error) => return Err(error),
        }
        let path = self.layout.record(key);
        let records = Folder::open(&*self.disk, "set_aside", self.layout.records())?;
        let quarantine = Folder::open(&*self.disk, "set_aside", self.layout.quarantine())?;
        let aside = self.layout.quarantined(key, &atomic::unique());
        let moved =
            self.disk.rename(&path, &aside).and_then(|()| quarantine.sync()).and_then(|()| records.sync());
        moved.map_err(|error| At::new("set_aside", &path).io(error))?;
        tracing::warn!(%key, place = %aside.display(), "a record was set aside");
        Ok(Some(aside.display().to_string()))
    }

    /// Lists keys in the order of their names. Only where a name does not tell its key, the record is opened.
    pub(crate) fn list(&self, options: &ListOptions) -> Result<Page<SessionKey>, StoreError> {
        let after = options.after.as_ref().map(layout::key_segment);
        let mut names = self.names(after.as_deref())?;
        names.sort_unstable();
        let mut items = Vec::new();
        for name in names {
            let key = match layout::key_of(&name) {
                Some(key) => key,
                None => {
                    let path = self.layout.records().join(format!("{name}{}", layout::RECORD_SUFFIX));
                    match listed(&*self.disk, &path)?.filter(|key| layout::key_segment(key) == name) {
                        Some(key) => key,
                        None => continue,
                    }
                }
            };
            if options.limit.is_some_and(|limit| items.len() >= limit) {
                return Ok(Page { items, more: true });
            }
            items.push(key);
        }
        Ok(Page { items, more: false })
    }

    /// The names of the files that look like records, after a name.
    fn names(&self, after: Option<&str>) -> Result<Vec<String>, StoreError> {
        let folder = self.layout.records();
        let at = At::new("list", &folder);
        let mut names = Vec::new();
        for entry in self.disk.entries(&folder).map_err(|error| at.io(error))? {
            let Entry { name, kind } = entry.map_err(|error| at.io(error))?;
            let Some(name) = name.to_str().and_then(|name| name.strip_suffix(layout::RECORD_SUFFIX)) else {
                continue;
            };
            if after.is_some_and(|after| name <= after) {
                continue;
            }
            if kind == Kind::File {
                names.push(name.to_owned());
            } else {
                tracing::warn!(folder = %folder.display(), name, "what is no file is not listed");
            }
        }
        Ok(names)
    }

    fn sweep_sometimes(&self) {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.is_none_or(|last| last.elapsed() > SWEEP_EVERY) {
            *swept = Some(Instant::now());
            drop(swept);
            for folder in [self.layout.root(), &self.layout.records()] {
                atomic::sweep(&*self.disk, folder);
            }
        }
    }
}

/// The key in a record's header. What cannot be read is passed over, with a warning; a store that cannot be
/// asked is an error, so that no key is taken for gone.
fn listed(disk: &dyn Disk, path: &Path) -> Result<Option<SessionKey>, StoreError> {
    let at = At::new("list", path);
    let read = || {
        let (file, meta) = match files::open_to_read(disk, path) {
            Ok(opened) => opened,
            // Removed since the folder was read.
            Err(Unopened::Absent) => return Ok(None),
            Err(unopened) => return Err(unopened.at(at, StoreErrorKind::Corrupt)),
        };
        let start = read_start(&*file, &meta).map_err(|error| at.io(error))?;
        let (header, _) = record::header(&start).map_err(|error| unreadable(at, error))?;
        Ok(Some(header.key))
    };
    match read() {
        Err(error)
            if matches!(
                error.kind(),
                StoreErrorKind::Corrupt | StoreErrorKind::Newer | StoreErrorKind::PermissionDenied
            ) =>
        {
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            tracing::warn!(path = %path.display(), cause, "an unreadable record is not listed");
            Ok(None)
        }
        answer => answer,
    }
}

fn read_start(file: &dyn DiskFile, meta: &Meta) -> io::Result<Vec<u8>> {
    files::read(file, 0, meta.length.min(record::MAX_HEADER as u64))
}

fn unreadable(at: At<'_>, error: Unreadable) -> StoreError {
    let kind = match error {
        Unreadable::Newer(_) => StoreErrorKind::Newer,
        Unreadable::Header(_) | Unreadable::OtherKey(_) | Unreadable::Length { .. } | Unreadable::Hash => {
            StoreErrorKind::Corrupt
        }
    };
    at.error(kind, error)
}
