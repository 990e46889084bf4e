//! Removing what a listing found, if it still is that.

use std::path::{Path, PathBuf};
use std::{fs, io};

use session_core::error::StoreError;
use session_core::{AuditEvent, Disposed, LeaseOutcome, Leftover, LeftoverKind, Tombstone};

use super::{LOG_SUFFIX, Sweeper, is_aside, is_stale, measured, set_aside_at};
use crate::error::At;
use crate::files::Folder;
use crate::tree::{self, Entry};
use crate::{atomic, audit, layout, lock, names, state};

const REMOVE: &str = "remove_leftover";

/// Where a leftover lies, if its name is one that the store gives to what it says it is.
enum Place<'a> {
    State { mailbox: &'a str, agent: &'a str },
    Folder,
    Removal,
    Temporary,
    Aside,
    Log { key: &'a str },
}

impl<'a> Place<'a> {
    fn of(leftover: &'a Leftover) -> Option<Self> {
        let parts: Vec<&str> = leftover.name.split('/').collect();
        Some(match (leftover.kind, parts.as_slice()) {
            (LeftoverKind::State, [layout::STATE, mailbox, agent])
                if names::is_mailbox(mailbox) && names::is_agent(agent) =>
            {
                Self::State { mailbox, agent }
            }
            (LeftoverKind::Folder, [layout::STATE, mailbox]) if names::is_mailbox(mailbox) => Self::Folder,
            (LeftoverKind::Removal, [layout::STATE, name]) if state::is_gone(name) => Self::Removal,
            (LeftoverKind::Temporary, [layout::RECORDS, name] | [name]) if atomic::is_temporary(name) => {
                Self::Temporary
            }
            (LeftoverKind::Aside, [layout::QUARANTINE, name]) if is_aside(name) => Self::Aside,
            (LeftoverKind::Log, [layout::AUDIT, name]) => {
                Self::Log { key: name.strip_suffix(LOG_SUFFIX).filter(|key| names::halves(key).is_some())? }
            }
            _ => return None,
        })
    }
}

impl Sweeper<'_> {
    /// Removes what is still as it was listed. Its name is taken for nothing but a name.
    pub(crate) fn remove(&self, leftover: &Leftover, tombstone: &Tombstone) -> Result<Disposed, StoreError> {
        let Some(place) = Place::of(leftover) else { return Ok(Disposed::Changed) };
        let path = self.layout().root().join(&leftover.name);
        let as_listed = |entry: &Entry| leftover.last_used == Some(entry.changed_at);
        let aside_as_listed = |entry: &Entry| leftover.last_used == Some(set_aside_at(entry));
        match place {
            Place::State { mailbox, agent } => {
                self.remove_state(&path, (mailbox, agent), (leftover, tombstone))
            }
            Place::Log { key } => self.remove_log(&path, key, (leftover, tombstone)),
            Place::Folder => {
                let is_one = |entry: &Entry| entry.is_dir && as_listed(entry);
                self.remove_if(&path, is_one, |path| match fs::remove_dir(path) {
                    // Somebody came to live there.
                    Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(Disposed::Changed),
                    removed => removed.map(|()| Disposed::Removed),
                })
            }
            // Whoever removes it as well changes it.
            Place::Removal => self.remove_if(&path, |_| true, |path| self.remove_tree(path.to_owned())),
            Place::Temporary => {
                let is_one = |entry: &Entry| entry.is_file && is_stale(entry) && as_listed(entry);
                self.remove_if(&path, is_one, |path| fs::remove_file(path).map(|()| Disposed::Removed))
            }
            Place::Aside => self.remove_if(&path, aside_as_listed, |path| {
                let gone = self.layout().states().join(state::gone());
                state::move_away(path, || fs::rename(path, &gone))?;
                self.remove_tree(gone)
            }),
        }
    }

    fn remove_tree(&self, tree: PathBuf) -> io::Result<Disposed> {
        state::remove_tree(&self.layout().states(), tree).map(|()| Disposed::Removed)
    }

    /// Removes what lies at a path in the store, where no link leads there, it is ours, and it is as wanted.
    fn remove_if(
        &self,
        path: &Path,
        wanted: impl FnOnce(&Entry) -> bool,
        act: impl FnOnce(&Path) -> io::Result<Disposed>,
    ) -> Result<Disposed, StoreError> {
        let found = self.look(path).and_then(|entry| match entry {
            None => Ok(Disposed::NothingThere),
            Some(entry) if entry.is_ours && wanted(&entry) => act(path),
            Some(_) => Ok(Disposed::Changed),
        });
        match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Disposed::NothingThere),
            found => found.map_err(|error| At::new(REMOVE, path).io(error)),
        }
    }

    /// What lies at a path in the store, if no link leads there.
    fn look(&self, path: &Path) -> io::Result<Option<Entry>> {
        let below = path.parent().and_then(|parent| parent.strip_prefix(self.base).ok());
        let names: Option<Vec<&str>> =
            below.and_then(|below| below.iter().map(|name| name.to_str()).collect());
        let (Some(names), Some(name)) = (names, path.file_name()) else { return Ok(None) };
        match tree::below(self.base, &names)? {
            Some(dir) => dir.look(name),
            None => Ok(None),
        }
    }

    fn remove_state(
        &self,
        path: &Path,
        (mailbox, agent): (&str, &str),
        (leftover, tombstone): (&Leftover, &Tombstone),
    ) -> Result<Disposed, StoreError> {
        let key = format!("{mailbox}@{agent}");
        let at = At::new(REMOVE, path);
        let _lease = match self.lease(&key, tombstone)? {
            LeaseOutcome::Held(lease) => lease,
            LeaseOutcome::Busy { by } => return Ok(Disposed::Busy { by }),
        };
        if self.has_record(&key)? {
            return Ok(Disposed::Changed);
        }
        let above = tree::below(self.base, &[layout::ROOT, layout::STATE, mailbox]);
        let Some(above) = above.map_err(|error| at.io(error))? else { return Ok(Disposed::NothingThere) };
        let entry = above.look(agent.as_ref()).map_err(|error| at.io(error))?;
        let Some(entry) = entry else { return Ok(Disposed::NothingThere) };
        let ours = entry.is_dir && entry.is_ours && above.stat().is_ok_and(|above| above.is_ours);
        let now = measured(&above, agent).filter(|_| ours);
        if now.is_none_or(|now| now.changed_at.is_none() || now.changed_at != leftover.last_used) {
            return Ok(Disposed::Changed);
        }
        self.tell(&key, &tombstone.before)?;
        state::remove_alone(REMOVE, self.base, &[layout::ROOT, layout::STATE], (mailbox, agent))?;
        self.tell(&key, &tombstone.after)?;
        Ok(Disposed::Removed)
    }

    fn remove_log(
        &self,
        path: &Path,
        key: &str,
        (leftover, tombstone): (&Leftover, &Tombstone),
    ) -> Result<Disposed, StoreError> {
        let _lease = match self.lease(key, tombstone)? {
            LeaseOutcome::Held(lease) => lease,
            LeaseOutcome::Busy { by } => return Ok(Disposed::Busy { by }),
        };
        let _lock = lock::for_write(self.disk(), REMOVE, &self.lock_file(key, ".write"))?;
        if self.has_record(key)? || self.has_state(key) {
            return Ok(Disposed::Changed);
        }
        let folder = Folder::open(self.disk(), REMOVE, self.layout().audits())?;
        let as_listed = |entry: &Entry| entry.is_file && leftover.last_used == Some(entry.changed_at);
        self.remove_if(path, as_listed, |path| {
            fs::remove_file(path)?;
            folder.sync().map(|()| Disposed::Removed)
        })
    }

    fn lock_file(&self, key: &str, suffix: &str) -> PathBuf {
        self.layout().root().join(layout::LOCKS).join(format!("{key}{suffix}"))
    }

    fn lease(&self, key: &str, tombstone: &Tombstone) -> Result<LeaseOutcome, StoreError> {
        let written = || self.records.written_fence(REMOVE, key);
        lock::lease(self.disk(), &self.lock_file(key, ".lock"), &tombstone.holder, written)
    }

    /// Whether anything stands in the place of a record, readable or not.
    fn has_record(&self, key: &str) -> Result<bool, StoreError> {
        let records = self.layout().records();
        let path = records.join(format!("{key}{}", layout::RECORD_SUFFIX));
        let at = At::new(REMOVE, &path);
        match tree::look(&path).map_err(|error| at.io(error))? {
            Some(_) => Ok(true),
            None if records.is_dir() => Ok(false),
            // A folder that has gone may have held anything.
            None => Err(at.gone(&records)),
        }
    }

    fn tell(&self, key: &str, event: &AuditEvent) -> Result<(), StoreError> {
        let _lock = lock::for_write(self.disk(), REMOVE, &self.lock_file(key, ".write"))?;
        let audits = self.layout().audits();
        audit::append(self.disk(), &audits.join(format!("{key}{LOG_SUFFIX}")), audits, event).map(drop)
    }
}
