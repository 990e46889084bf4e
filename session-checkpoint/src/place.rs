//! Which tree a folder belongs to, and which repository: read from files, git is not asked.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::trouble::{Outcome, Trouble};

/// A work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Its top, a real path.
    pub(crate) root: PathBuf,
    /// What its checkpoints are kept under: the common directory of its repository, or its own path.
    pub(crate) repository: PathBuf,
}

impl Tree {
    /// The work tree around a folder.
    pub(crate) fn around(folder: &Path) -> Outcome<Self> {
        let folder = fs::canonicalize(folder).map_err(Trouble::io(folder))?;
        for root in folder.ancestors() {
            if let Some(repository) = repository_of(root)? {
                return Ok(Self { root: root.to_owned(), repository });
            }
        }
        Ok(Self { root: folder.clone(), repository: folder })
    }

    /// The beginning of the names of its files in the store.
    pub(crate) fn name(&self) -> String {
        let hash = Sha256::digest(self.repository.as_os_str().as_bytes());
        hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The common directory of the repository whose work tree has its top here; `None`: it is no top of one.
fn repository_of(root: &Path) -> Outcome<Option<PathBuf>> {
    let git = root.join(".git");
    let git_dir = match fs::symlink_metadata(&git) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(Trouble::io(git)(error)),
        Ok(meta) if meta.is_file() => match pointer(&git, b"gitdir: ") {
            Some(target) => root.join(target),
            None => return Ok(None),
        },
        Ok(_) => git,
    };
    // A folder of this name alone makes no repository.
    if !git_dir.join("HEAD").is_file() {
        return Ok(None);
    }
    let common = pointer(&git_dir.join("commondir"), b"")
        .map_or_else(|| git_dir.clone(), |target| git_dir.join(target));
    Ok(fs::canonicalize(common).ok())
}

/// The path that a small file of git's names, after a word.
fn pointer(file: &Path, word: &[u8]) -> Option<PathBuf> {
    let text = fs::read(file).ok().filter(|text| text.len() < 1 << 16)?;
    let path = text.strip_prefix(word)?;
    let path = path.split(|byte| matches!(byte, b'\n' | b'\r')).next()?;
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}
