//! A folder as it is kept: what it holds, in the order of names.

use serde::{Deserialize, Serialize};
use session_core::{Node, NodeKind};

use crate::object::{Hash, Kind};
use crate::trouble::{Outcome, Trouble};

/// What a folder holds, in the order of the bytes of names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Folder {
    pub(crate) entries: Vec<Entry>,
}

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(with = "serde_bytes")]
    pub(crate) name: Vec<u8>,
    pub(crate) what: What,
}

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    /// A file: permissions (`0o777` and below), size, and content: one piece, or a list of pieces where it is longer.
    File { mode: u16, bytes: u64, content: Hash },
    /// A link: the length of its target, and the target as a piece.
    Link { bytes: u64, target: Hash },
    /// A folder: permissions, the hash of its own list, and the files and links, and bytes of files, that are below it in all.
    Folder { mode: u16, list: Hash, files: u64, bytes: u64 },
}

impl What {
    /// The same, as the port tells it.
    pub(crate) fn node(self) -> Node {
        match self {
            Self::File { mode, bytes, content } => {
                Node { kind: NodeKind::File, mode: mode.into(), bytes, content: content.0 }
            }
            Self::Link { bytes, target } => Node { kind: NodeKind::Link, mode: 0, bytes, content: target.0 },
            Self::Folder { mode, .. } => {
                Node { kind: NodeKind::Folder, mode: mode.into(), bytes: 0, content: [0; 32] }
            }
        }
    }

    /// Permissions; of a link none.
    const fn mode(self) -> u16 {
        match self {
            Self::File { mode, .. } | Self::Folder { mode, .. } => mode,
            Self::Link { .. } => 0,
        }
    }

    /// Files and links, and bytes of files, in it.
    pub(crate) const fn sums(self) -> (u64, u64) {
        match self {
            Self::File { bytes, .. } => (1, bytes),
            Self::Link { .. } => (1, 0),
            Self::Folder { files, bytes, .. } => (files, bytes),
        }
    }
}

impl Folder {
    /// As it is kept, and its hash.
    pub(crate) fn encoded(&self) -> (Hash, Vec<u8>) {
        let data = postcard::to_allocvec(self).expect("plain values and bytes can be encoded");
        (Hash::of(Kind::Folder, &data), data)
    }

    pub(crate) fn decoded(data: &[u8]) -> Outcome<Self> {
        let folder: Self = postcard::from_bytes(data)
            .map_err(|error| Trouble::Damaged(format!("a folder cannot be read: {error}")))?;
        let is_good = |entry: &Entry| is_name(&entry.name) && entry.what.mode() & !0o777 == 0;
        if folder.entries.iter().all(is_good)
            && folder.entries.is_sorted_by(|one, other| one.name < other.name)
        {
            return Ok(folder);
        }
        Err(Trouble::Damaged("a folder holds what none can hold".to_owned()))
    }

    /// What has this name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<What> {
        let at = self.entries.binary_search_by(|entry| entry.name.as_slice().cmp(name)).ok()?;
        Some(self.entries[at].what)
    }

    /// Files and links, and bytes of files, below it.
    pub(crate) fn sums(&self) -> (u64, u64) {
        self.entries
            .iter()
            .map(|entry| entry.what.sums())
            .fold((0, 0), |sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)))
    }
}

/// Whether something in a folder can have this name.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}
