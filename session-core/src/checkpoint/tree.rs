//! What stands at a path of a tree, and how that changed.

use std::path::PathBuf;

use serde::Serialize;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A file.
    File,
    /// A symbolic link.
    Link,
    /// A folder.
    Folder,
}

/// What stands at a path of a checkpoint. Two that are equal are the same in all that is covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its permissions: `0o777` and below. Of a link, zero.
    pub mode: u32,
    /// The size of its content in bytes; of a folder, zero.
    pub bytes: u64,
    /// What tells its content, or its target, from any other; of a folder, zeros.
    #[serde(skip)]
    pub content: [u8; 32],
}

/// A path at which something differs between two states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path within the tree.
    pub path: PathBuf,
    /// What stood there; `None`: nothing.
    pub before: Option<Node>,
    /// What stands there; `None`: nothing.
    pub after: Option<Node>,
}

impl Change {
    /// Whether only permissions differ.
    #[must_use]
    pub fn is_mode_only(&self) -> bool {
        self.before.zip(self.after).is_some_and(|(before, after)| {
            before.kind == after.kind && before.content == after.content && before.mode != after.mode
        })
    }

    /// The same, seen the other way round.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { path: self.path, before: self.after, after: self.before }
    }
}
