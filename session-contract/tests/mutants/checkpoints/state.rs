//! A whole tree in memory: read from the disk, or from a copy of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use session_core::{LeftOut, LeftOutWhy, Node, NodeKind, PathText};
use sha2::Digest as _;

use super::copy::CopyCheckpointer;
use super::flaw::Flaw;

/// What stands at a path.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) kind: NodeKind,
    pub(super) mode: u32,
    pub(super) bytes: u64,
    pub(super) hash: [u8; 32],
    /// Content or target; `None`: it is damaged.
    pub(super) content: Option<Vec<u8>>,
}

pub(super) type State = BTreeMap<PathBuf, Entry>;

impl Entry {
    pub(super) fn new(kind: NodeKind, mode: u32, content: Vec<u8>) -> Self {
        let hash = if kind == NodeKind::Folder { [0; 32] } else { hash(&content) };
        Self { kind, mode, bytes: content.len() as u64, hash, content: Some(content) }
    }

    /// Something that no checkpoint covers.
    const fn other() -> Self {
        Self { kind: NodeKind::File, mode: u32::MAX, bytes: 0, hash: [0; 32], content: None }
    }

    pub(super) fn node(&self) -> Node {
        Node { kind: self.kind, mode: self.mode & 0o777, bytes: self.bytes, content: self.hash }
    }
}

pub(super) fn hash(bytes: &[u8]) -> [u8; 32] {
    sha2::Sha256::digest(bytes).into()
}

/// What an ignore file at the top names by a whole name, and what the index does not hold.
struct Rules {
    names: Vec<String>,
    index: Vec<u8>,
}

impl Rules {
    fn read(root: &Path) -> Self {
        let names = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
        let index = fs::read(root.join(".git/index")).unwrap_or_default();
        Self { names: names.lines().map(|line| line.trim_end_matches('/').to_owned()).collect(), index }
    }

    fn leave_out(&self, path: &Path, flaw: Flaw) -> bool {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let named = |rule: &String| match rule.strip_prefix('*') {
            Some(end) => name.ends_with(end.as_bytes()),
            None => name == rule.as_bytes(),
        };
        let path = path.as_os_str().as_bytes();
        let tracked = self.index.windows(path.len().max(1)).any(|part| part == path);
        self.names.iter().any(named) && (!tracked || flaw == Flaw::IgnoresTracked)
    }
}

/// Reads trees.
pub(super) struct Scan<'a> {
    of: &'a CopyCheckpointer,
    root: &'a Path,
    rules: Option<Rules>,
    pub(super) state: State,
    pub(super) left_out: Vec<LeftOut>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(of: &'a CopyCheckpointer, root: &'a Path) -> Self {
        let rules = of.ignores.then(|| Rules::read(root));
        Self { of, root, rules, state: State::new(), left_out: Vec::new() }
    }

    fn leave(&mut self, path: &Path, why: LeftOutWhy) {
        let hidden = match why {
            LeftOutWhy::Special => self.of.is(Flaw::HidesSpecialFiles),
            LeftOutWhy::TooLarge { .. } => self.of.is(Flaw::HidesLargeFiles),
            LeftOutWhy::Ignored => self.of.is(Flaw::HidesIgnored),
            LeftOutWhy::Unreadable => self.of.is(Flaw::HidesClosedFiles),
            _ => false,
        };
        if !hidden {
            self.left_out.push(LeftOut { path: PathText::new(path), why });
        }
    }

    pub(super) fn walk(&mut self, below: &Path) -> std::io::Result<()> {
        let mut names: Vec<_> = fs::read_dir(self.root.join(below))?
            .map(|entry| entry.map(|e| e.file_name()))
            .collect::<Result<_, _>>()?;
        names.sort();
        let before = self.state.len();
        for name in names {
            self.one(&below.join(name))?;
        }
        if self.of.is(Flaw::DropsEmptyFolders) && self.state.len() == before {
            self.state.remove(below);
        }
        Ok(())
    }

    fn one(&mut self, path: &Path) -> std::io::Result<()> {
        let full = self.root.join(path);
        let follows = self.of.is(Flaw::FollowsLinks) && full.is_file();
        let metadata = if follows { fs::metadata(&full)? } else { fs::symlink_metadata(&full)? };
        let bits = if self.of.is(Flaw::SetsSetuid) { 0o7777 } else { 0o777 };
        let mode = metadata.permissions().mode() & bits;
        let mode = match self.of.flaw {
            Flaw::ForgetsModes => {
                if metadata.is_dir() {
                    0o755
                } else {
                    0o644
                }
            }
            Flaw::KeepsTheRunBitAlone => {
                if metadata.is_dir() || mode & 0o100 != 0 {
                    0o755
                } else {
                    0o644
                }
            }
            _ => mode,
        };
        if self.rules.as_ref().is_some_and(|rules| rules.leave_out(path, self.of.flaw)) {
            self.leave(path, LeftOutWhy::Ignored);
        } else if full.file_name().is_some_and(|name| name == ".git")
            && !(self.of.is(Flaw::CoversGit) && path.components().count() > 1)
        {
            self.leave(path, LeftOutWhy::GitDir);
        } else if metadata.is_dir() {
            if self.of.is(Flaw::SkipsNested) && full.join(".git").exists() {
                return Ok(());
            }
            self.state.insert(path.to_owned(), Entry::new(NodeKind::Folder, mode, Vec::new()));
            self.walk(path)?;
        } else if metadata.is_symlink() {
            let target = fs::read_link(&full)?.into_os_string().as_bytes().to_vec();
            self.state.insert(path.to_owned(), Entry::new(NodeKind::Link, 0, target));
        } else if !metadata.is_file() {
            self.leave(path, LeftOutWhy::Special);
        } else if metadata.len() > self.of.limit {
            self.leave(path, LeftOutWhy::TooLarge { bytes: metadata.len() });
        } else if self.of.is(Flaw::HidesClosedFiles) && mode == 0 {
            self.leave(path, LeftOutWhy::Unreadable);
        } else {
            match self.content(&full, &metadata) {
                Ok(content) => {
                    let content = Entry::new(NodeKind::File, mode, content);
                    self.state.insert(path.to_owned(), content);
                }
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    self.leave(path, LeftOutWhy::Unreadable);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn content(&self, full: &Path, metadata: &fs::Metadata) -> std::io::Result<Vec<u8>> {
        if !self.of.is(Flaw::GoesByTime) {
            return fs::read(full);
        }
        let mark = (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
        let mut seen = self.of.seen.lock().unwrap();
        match seen.get(full) {
            Some((known, content)) if *known == mark => Ok(content.clone()),
            _ => {
                let content = fs::read(full)?;
                seen.insert(full.to_owned(), (mark, content.clone()));
                Ok(content)
            }
        }
    }
}

/// What stands at a path now, or that something is in its way.
pub(super) fn look(root: &Path, path: &Path, limit: u64, through: bool) -> Result<Option<Entry>, ()> {
    let mut above = root.to_owned();
    for part in path.parent().unwrap_or(Path::new("")) {
        above.push(part);
        match fs::symlink_metadata(&above) {
            Ok(metadata) if metadata.is_dir() || through && above.is_dir() => {}
            Ok(_) => return Err(()),
            Err(_) => return Ok(None),
        }
    }
    let full = root.join(path);
    let Ok(metadata) = fs::symlink_metadata(&full) else { return Ok(None) };
    let mode = metadata.permissions().mode() & 0o777;
    Ok(Some(if metadata.is_dir() {
        Entry::new(NodeKind::Folder, mode, Vec::new())
    } else if metadata.is_symlink() {
        let target = fs::read_link(&full).unwrap_or_default().into_os_string();
        Entry::new(NodeKind::Link, 0, target.as_bytes().to_vec())
    } else if metadata.is_file() && metadata.len() <= limit {
        fs::read(&full).map_or(Entry::other(), |content| Entry::new(NodeKind::File, mode, content))
    } else {
        Entry::other()
    }))
}
