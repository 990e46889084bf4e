//! The port to the machine: time, randomness, who we are, and what a folder is.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::decide::Workdir;
use crate::error::FolderError;
use crate::history::Scope;

/// Who holds a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The machine's name.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// Since when, if known.
    pub since: Option<Timestamp>,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)?;
        if let Some(since) = self.since {
            write!(f, " since {since}")?;
        }
        Ok(())
    }
}

/// A path as text that can be stored: the path itself where it is Unicode, an escaped form where it is not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PathText(String);

impl PathText {
    /// Wraps a path.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self(path.to_str().map_or_else(
            || {
                let bytes = path.as_os_str().as_encoded_bytes();
                std::iter::once("\0".to_owned()).chain(bytes.iter().map(|b| format!("{b:02x}"))).collect()
            },
            str::to_owned,
        ))
    }

    /// The path, where it is Unicode.
    #[must_use]
    pub fn as_path(&self) -> Option<&Path> {
        (!self.0.starts_with('\0')).then(|| Path::new(&self.0))
    }
}

impl std::fmt::Display for PathText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.strip_prefix('\0').unwrap_or(&self.0))
    }
}

/// What makes a folder itself, whatever its path: device, inode and time of birth.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FolderId {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Time of birth in nanoseconds since the epoch; without one, nothing can be said.
    pub born: i64,
}

/// A folder and the repository that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folder {
    /// Its real path, symbolic links resolved.
    pub path: PathText,
    /// What makes it itself, where the file system tells.
    #[serde(default)]
    pub id: Option<FolderId>,
    /// The common directory of the git repository around it, shared by all of its work trees.
    #[serde(default)]
    pub repository: Option<Repository>,
}

/// A git repository, by its common directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// The real path of the common directory.
    pub common_dir: PathText,
    /// What makes that directory itself.
    #[serde(default)]
    pub id: Option<FolderId>,
    /// Its remote `origin`, without scheme, user and `.git`: `github.com/o/r`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Its root commits, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
}

impl Repository {
    fn is(&self, other: &Self) -> bool {
        self.common_dir == other.common_dir || (self.id.is_some() && self.id == other.id)
    }

    /// Whether it is a clone of the same project, by all that is known: one remote, and no other history.
    #[must_use]
    pub fn is_clone_of(&self, other: &Self) -> bool {
        let unlike = |one: &[String], two: &[String]| {
            !one.is_empty() && !two.is_empty() && !one.iter().any(|root| two.contains(root))
        };
        let same_remote = match (&self.remote, &other.remote) {
            (Some(here), Some(there)) => here == there,
            // Without a remote, a common root commit tells as much.
            (None, None) => !self.roots.is_empty() && !other.roots.is_empty(),
            _ => false,
        };
        self.is(other) || (same_remote && !unlike(&self.roots, &other.roots))
    }
}

impl Folder {
    /// How this folder, of the present run, relates to the one where the session began.
    #[must_use]
    pub fn relation_to(&self, began: &Self, began_is_there: bool) -> Workdir {
        if self.path == began.path {
            return Workdir::Same;
        }
        if self.id.is_some() && self.id == began.id {
            return Workdir::Moved;
        }
        let same_repository = match (&self.repository, &began.repository) {
            (Some(here), Some(there)) => here.is(there),
            _ => false,
        };
        match (same_repository, began_is_there) {
            (true, true) => Workdir::SameRepository,
            (true, false) => Workdir::Gone,
            (false, _) => Workdir::OtherProject,
        }
    }

    /// The same, where a folder that is gone counts as moved here if it was a clone of the same project. For proposals:
    /// whether it really moved, nobody can tell.
    #[must_use]
    pub fn kinship_to(&self, began: &Self, began_is_there: bool) -> Workdir {
        let relation = self.relation_to(began, began_is_there);
        let clones = match (&self.repository, &began.repository) {
            (Some(here), Some(there)) => here.is_clone_of(there),
            _ => false,
        };
        match relation {
            Workdir::OtherProject if clones && !began_is_there => Workdir::Moved,
            other => other,
        }
    }
}

/// The machine, as far as the orchestration needs it.
#[async_trait]
pub trait Host: Debug + Send + Sync + 'static {
    /// The present time.
    fn now(&self) -> Timestamp;

    /// Waits.
    async fn sleep(&self, duration: Duration);

    /// A random (version 4) id.
    fn random_id(&self) -> uuid::Uuid;

    /// Who we are.
    fn holder(&self) -> Holder;

    /// What the folder is: real path, identity, repository.
    ///
    /// # Errors
    /// [`FolderError`] when it is missing, no folder, or cannot be entered.
    async fn folder(&self, path: &Path) -> Result<Folder, FolderError>;

    /// The same, with all that tells which project it belongs to, also where that costs more: root commits, work trees. By
    /// default, what [`folder`](Self::folder) tells.
    ///
    /// # Errors
    /// As [`folder`](Self::folder).
    async fn work_tree(&self, path: &Path) -> Result<WorkTree, FolderError> {
        let folder = self.folder(path).await?;
        let trees = folder.path.as_path().map(Path::to_owned).into_iter().collect();
        Ok(WorkTree { folder, trees })
    }
}

/// A folder, and the work trees of its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkTree {
    /// The folder.
    pub folder: Folder,
    /// The work trees of its repository, also those that are gone and still registered; the folder alone where it has none.
    pub trees: Vec<PathBuf>,
}

impl WorkTree {
    /// The sessions of the project, for a list: those of all its work trees.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::AnyBelow(self.trees.clone())
    }
}

/// An owned path and its folder, as a run uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path that the agent is started in.
    pub cwd: PathBuf,
    /// What it is.
    pub folder: Folder,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(path: &str, inode: u64, repository: Option<(&str, u64)>) -> Folder {
        let id = |inode| Some(FolderId { device: 1, inode, born: 7 });
        Folder {
            path: PathText::new(Path::new(path)),
            id: id(inode),
            repository: repository.map(|(path, inode)| Repository {
                common_dir: PathText::new(Path::new(path)),
                id: id(inode),
                remote: None,
                roots: Vec::new(),
            }),
        }
    }

    #[test]
    fn folders_relate_by_path_then_identity_then_repository() {
        let began = folder("/w/a", 1, Some(("/w/a/.git", 9)));
        let relation = |here: &Folder, there| here.relation_to(&began, there);
        assert_eq!(relation(&folder("/w/a", 5, None), true), Workdir::Same);
        assert_eq!(relation(&folder("/w/b", 1, Some(("/w/b/.git", 9))), false), Workdir::Moved);
        assert_eq!(relation(&folder("/w/b", 2, Some(("/w/a/.git", 9))), true), Workdir::SameRepository);
        assert_eq!(relation(&folder("/w/b", 2, Some(("/w/a/.git", 9))), false), Workdir::Gone);
        assert_eq!(relation(&folder("/w/b", 2, Some(("/w/b/.git", 3))), false), Workdir::OtherProject);
        let mut unknown = folder("/w/b", 1, None);
        unknown.id = None;
        let mut began_unknown = began.clone();
        began_unknown.id = None;
        assert_eq!(unknown.relation_to(&began_unknown, false), Workdir::OtherProject);
    }
}
