//! What the ignore rules of a tree leave out.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// The rules that hold in a folder.
#[derive(Debug)]
pub(crate) struct Rules;

/// What rules say of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// It is not covered.
    pub(crate) out: bool,
    /// A rule names it, so that it depends on what is tracked.
    pub(crate) by_rule: bool,
}

impl Rules {
    pub(crate) fn none() -> Arc<Self> {
        Arc::new(Self)
    }

    pub(crate) fn within(self: &Arc<Self>, _root: &Path, _path: &[u8], _handle: &OwnedFd) -> Arc<Self> {
        Arc::clone(self)
    }

    pub(crate) fn for_child(self: &Arc<Self>, _path: &[u8]) -> Arc<Self> {
        Arc::clone(self)
    }

    pub(crate) fn digest(&self, _ignoring: bool) -> [u8; 32] {
        [0; 32]
    }

    pub(crate) fn judge(&self, _folder: &[u8], _name: &[u8], _is_folder: bool) -> Judgement {
        Judgement { out: false, by_rule: false }
    }
}
