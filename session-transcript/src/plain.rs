//! Folders that hold no folders to look into, as long as they are as they were: a search by name need not read them again.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::stamp::{Stamp, now};

/// More than the projects of anybody.
const MOST: usize = 10_000;

/// What is known of folders. Whatever is put into a folder changes its stamp.
#[derive(Debug, Default)]
pub(crate) struct Plain(Mutex<HashMap<PathBuf, Stamp>>);

/// A folder's stamp before it was read.
#[derive(Debug)]
pub(crate) struct Stamped {
    stamp: Stamp,
    taken: i64,
}

impl Stamped {
    /// `None`: it cannot be looked at.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let taken = now();
        Some(Self { stamp: Stamp::of(&fs::metadata(folder).ok()?), taken })
    }
}

impl Plain {
    /// Keeps that the folder was read, and had none to look into.
    pub(crate) fn learn(&self, folder: &Path, before: &Stamped) {
        // One that was written just now may be written again without another stamp.
        if before.stamp.is_fresh(before.taken) {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(folder.to_owned(), before.stamp);
    }

    /// Whether it still has none.
    pub(crate) fn knows(&self, folder: &Path) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(folder).copied();
        known.is_some_and(|known| fs::metadata(folder).is_ok_and(|now| Stamp::of(&now) == known))
    }
}
