//! What a checkpoint left out, by path.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::database::Kept;

/// The paths that a checkpoint left out. Nothing can be said of what stands at them, or below.
#[derive(Debug)]
pub(crate) struct LeftOuts<'a>(HashSet<&'a [u8]>);

impl<'a> LeftOuts<'a> {
    pub(crate) fn of(kept: &'a Kept) -> Self {
        Self(kept.left_out.iter().map(|(path, _)| path.as_slice()).collect())
    }

    /// Whether this very path was left out.
    pub(crate) fn names(&self, path: &Path) -> bool {
        self.0.contains(path.as_os_str().as_bytes())
    }

    /// Whether it, or a folder above it, was.
    pub(crate) fn hide(&self, path: &Path) -> bool {
        !self.0.is_empty() && path.ancestors().any(|path| self.names(path))
    }
}
