//! What a checkpoint does not cover.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::PathText;

/// Something in the tree that a checkpoint does not cover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// It, or the folder that it all lies below, within the tree.
    pub path: PathText,
    /// Why.
    pub why: LeftOutWhy,
}

/// Why something is not covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LeftOutWhy {
    /// An ignore rule of the tree names it, and git does not track it.
    Ignored,
    /// It is a repository's own `.git`.
    GitDir,
    /// It is larger than the limit for one file.
    TooLarge {
        /// Its size in bytes.
        bytes: u64,
    },
    /// It is a socket, a pipe or a device.
    Special,
    /// It lies on another file system.
    OtherFileSystem,
    /// It may not be read.
    Unreadable,
    /// It changed while it was read, time and again.
    Unsteady,
    /// It is the place of a store of ours.
    Ours,
}

impl LeftOutWhy {
    /// The stable word for it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::GitDir => "git_dir",
            Self::TooLarge { .. } => "too_large",
            Self::Special => "special",
            Self::OtherFileSystem => "other_file_system",
            Self::Unreadable => "unreadable",
            Self::Unsteady => "unsteady",
            Self::Ours => "ours",
        }
    }
}

impl fmt::Display for LeftOutWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignored => f.write_str("ignored"),
            Self::GitDir => f.write_str("git's own"),
            Self::TooLarge { bytes } => write!(f, "{bytes} bytes are too many"),
            Self::Special => f.write_str("no file"),
            Self::OtherFileSystem => f.write_str("on another file system"),
            Self::Unreadable => f.write_str("may not be read"),
            Self::Unsteady => f.write_str("was being written"),
            Self::Ours => f.write_str("the store"),
        }
    }
}
