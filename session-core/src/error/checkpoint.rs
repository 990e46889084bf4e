//! Errors of checkpointers.

use std::fmt;
use std::path::{Path, PathBuf};

use super::BoxError;

/// What kind of trouble a checkpointer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CheckpointErrorKind {
    /// Its store cannot be reached, or another process works on the tree.
    Unavailable,
    /// It is not allowed.
    PermissionDenied,
    /// The disk has too little room for it, or would have too little left, or the tree is over a limit.
    NoRoom,
    /// No checkpoint is taken of such a folder: `/`, a home or what homes lie in, or one within the store.
    NotHere,
    /// There is no such checkpoint of this key.
    NotFound,
    /// What it holds cannot be read.
    Corrupt,
    /// It was written by a newer version.
    Newer,
    /// It was begun and could not be ended.
    CutOff,
    /// Anything else.
    Other,
}

/// Something that a checkpointer could not do.
#[derive(Debug)]
pub struct CheckpointError {
    kind: CheckpointErrorKind,
    operation: &'static str,
    path: PathBuf,
    detail: Option<String>,
    source: Option<BoxError>,
}

impl CheckpointError {
    /// An error of this kind in this operation (`take`, `restore`, …) on this path.
    pub fn new(kind: CheckpointErrorKind, operation: &'static str, path: impl Into<PathBuf>) -> Self {
        Self { kind, operation, path: path.into(), detail: None, source: None }
    }

    /// Says more than the kind does: a limit, a number.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What kind of trouble it is.
    #[must_use]
    pub const fn kind(&self) -> CheckpointErrorKind {
        self.kind
    }

    /// What it happened at.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            CheckpointErrorKind::Unavailable => "the checkpoints are unavailable",
            CheckpointErrorKind::PermissionDenied => "it is not accessible; check owner and mode",
            CheckpointErrorKind::NoRoom if self.operation == "take" => "there is no room for a checkpoint",
            CheckpointErrorKind::NoRoom => "the disk has too little room left for it; make some",
            CheckpointErrorKind::NotHere => "no checkpoint is taken of this folder",
            CheckpointErrorKind::NotFound => "there is no such checkpoint",
            CheckpointErrorKind::Corrupt => "the checkpoints hold something unreadable",
            CheckpointErrorKind::Newer => "the checkpoints were written by a newer version; upgrade this one",
            CheckpointErrorKind::CutOff => {
                "it was begun and cut off; the next run or rewind there finishes it"
            }
            CheckpointErrorKind::Other => "the checkpoints failed",
        };
        write!(f, "{kind} ({} {})", self.operation, self.path.display())?;
        match &self.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for CheckpointError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::{CheckpointError, CheckpointErrorKind};

    #[test]
    fn a_checkpoint_has_no_room_where_one_is_taken_alone() {
        for (operation, for_a_checkpoint) in [("take", true), ("forget", false), ("restore", false)] {
            let said = CheckpointError::new(CheckpointErrorKind::NoRoom, operation, "/s").to_string();
            assert_eq!(said.contains("for a checkpoint"), for_a_checkpoint, "{said}");
            assert!(said.contains(" room ") && said.ends_with(&format!(" ({operation} /s)")), "{said}");
        }
    }
}
