//! The git repository around a folder, found without a git process.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use session_core::{PathText, Repository};

use crate::host::directory;
use crate::work_tree;

/// No path in one of git's small files is longer.
const POINTER_LIMIT: u64 = 16 * 1024;

/// The repository that the folder belongs to, by its common directory. What cannot be read, or makes no
/// sense, is no repository.
pub(crate) fn around(real: &Path) -> Option<Repository> {
    let git_dir = git_dir(real)?;
    let common = match pointer(&git_dir.join("commondir"), b"") {
        // Of a linked work tree; relative to the folder that the file lies in.
        Some(path) => git_dir.join(path),
        // Of a main work tree or a submodule.
        None => git_dir,
    };
    let (common_dir, id) = directory(&common)?;
    let remote = work_tree::remote(&common_dir);
    Some(Repository { common_dir: PathText::new(&common_dir), id, remote, roots: Vec::new() })
}

/// The common directory of the repository that this folder is a linked work tree of, where the repository says so, too:
/// what stands in a work tree may have been written by an agent, and could name any folder.
pub(crate) fn of_linked_work_tree(real: &Path) -> Option<PathBuf> {
    let own = real.join(".git");
    let git_dir = real.join(pointer(&own, b"gitdir: ")?).canonicalize().ok()?;
    let back = git_dir.join(pointer(&git_dir.join("gitdir"), b"")?).canonicalize().ok()?;
    let trees = git_dir.parent().filter(|trees| trees.file_name().is_some_and(|name| name == "worktrees"))?;
    let common = trees.parent().filter(|common| common.join("HEAD").is_file())?;
    let is_one = ["objects", "refs"].iter().all(|part| common.join(part).is_dir());
    (back == own && is_one).then(|| common.to_owned())
}

fn git_dir(real: &Path) -> Option<PathBuf> {
    for folder in real.ancestors() {
        let git = folder.join(".git");
        let Ok(metadata) = fs::metadata(&git) else { continue };
        if metadata.is_file() {
            // Git looks no further up than such a file, even where it points nowhere.
            return pointer(&git, b"gitdir: ").map(|path| folder.join(path));
        }
        // A directory of this name that is no repository does not hide the one around it.
        if metadata.is_dir() && git.join("HEAD").symlink_metadata().is_ok() {
            return Some(git);
        }
    }
    None
}

/// The path in a small file, after a prefix.
pub(crate) fn pointer(file: &Path, prefix: &[u8]) -> Option<PathBuf> {
    // Opening what is no file could block.
    fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(POINTER_LIMIT).read_to_end(&mut bytes).ok()?;
    let path = bytes.strip_prefix(prefix)?;
    let path = path.strip_suffix(b"\n").unwrap_or(path);
    let path = path.strip_suffix(b"\r").unwrap_or(path);
    if path.is_empty() || path.contains(&0) || path.contains(&b'\n') {
        return None;
    }
    path_of(path)
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "the other platform can fail")]
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Some(std::ffi::OsStr::from_bytes(bytes).into())
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    std::str::from_utf8(bytes).ok().map(PathBuf::from)
}
