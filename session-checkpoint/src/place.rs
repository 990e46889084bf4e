//! Which tree a folder belongs to, and which repository: read from files, git is not asked.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
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
    /// The repository, where there is one.
    pub(crate) git: Option<Git>,
    /// The beginning of the names of its files in the store, where it is kept under another repository: the one that it had before.
    pub(crate) former: Option<String>,
}

/// Where the repository of a work tree lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Git {
    /// What belongs to this work tree alone.
    pub(crate) dir: PathBuf,
    /// What all work trees of the repository share.
    pub(crate) common: PathBuf,
}

impl Tree {
    /// The work tree around a folder.
    pub(crate) fn around(folder: &Path) -> Outcome<Self> {
        let folder = fs::canonicalize(folder).map_err(Trouble::io(folder))?;
        for root in folder.ancestors() {
            if let Some(git) = git_of(root)? {
                let (root, repository) = (root.to_owned(), git.common.clone());
                return Ok(Self { root, repository, git: Some(git), former: None });
            }
        }
        Ok(Self { root: folder.clone(), repository: folder, git: None, former: None })
    }

    /// The beginning of the names of its files in the store.
    pub(crate) fn name(&self) -> String {
        if let Some(former) = &self.former {
            return former.clone();
        }
        let hash = Sha256::digest(self.repository.as_os_str().as_bytes());
        hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The repository whose work tree has its top here; `None`: it is no top of one.
pub(crate) fn git_of(root: &Path) -> Outcome<Option<Git>> {
    let git = root.join(".git");
    let dir = match fs::symlink_metadata(&git) {
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
    if !dir.join("HEAD").is_file() {
        return Ok(None);
    }
    let common = pointer(&dir.join("commondir"), b"").map_or_else(|| dir.clone(), |target| dir.join(target));
    Ok(fs::canonicalize(common).ok().map(|common| Git { dir, common }))
}

/// The path that a small file of git's names, after a word.
fn pointer(file: &Path, word: &[u8]) -> Option<PathBuf> {
    let text = read(file, 1 << 16)?;
    let path = text.strip_prefix(word)?;
    let path = path.split(|byte| matches!(byte, b'\n' | b'\r')).next()?;
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}

/// What is in a file of git's, where it is one, and no longer than this. A pipe is not waited for.
pub(crate) fn read(path: &Path, longest: u64) -> Option<Vec<u8>> {
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(nonblock).open(path).ok()?;
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= longest)?;
    let mut text = Vec::with_capacity(usize::try_from(meta.len()).ok()?);
    file.take(longest).read_to_end(&mut text).ok()?;
    Some(text)
}
