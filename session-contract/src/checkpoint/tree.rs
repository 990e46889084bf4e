//! A tree as it lies on the disk, read by this suite alone: what a checkpoint has to come to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use session_core::{Change, Node, NodeKind};

/// What stands at a path.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Thing {
    File { bytes: Vec<u8>, mode: u32 },
    Link { target: PathBuf },
    Folder { mode: u32 },
}

impl fmt::Debug for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { bytes, mode } => {
                let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
                write!(f, "a file of {} bytes, {mode:o}: {begin:?}", bytes.len())
            }
            Self::Link { target } => write!(f, "a link to {target:?}"),
            Self::Folder { mode } => write!(f, "a folder, {mode:o}"),
        }
    }
}

impl Thing {
    /// What a checkpointer has to say of it, but for what tells its content.
    fn told(&self) -> (NodeKind, u32, u64) {
        match self {
            Self::File { bytes, mode } => (NodeKind::File, *mode, bytes.len() as u64),
            Self::Link { target } => (NodeKind::Link, 0, target.as_os_str().len() as u64),
            Self::Folder { mode } => (NodeKind::Folder, *mode, 0),
        }
    }

    fn content(&self) -> &[u8] {
        match self {
            Self::File { bytes, .. } => bytes,
            Self::Link { target } => target.as_os_str().as_bytes(),
            Self::Folder { .. } => &[],
        }
    }
}

/// All that a checkpoint covers: `.git` and what is neither file, link nor folder are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tree(pub(super) BTreeMap<PathBuf, Thing>);

/// What makes a file itself: where it lies on the disk, and when it was written.
pub(super) type Marks = BTreeMap<PathBuf, (u64, i64, i64)>;

impl Tree {
    pub(super) fn read(root: &Path) -> Self {
        let mut tree = Self::default();
        walk(root, Path::new(""), &mut |path, metadata| {
            let mode = metadata.permissions().mode() & 0o777;
            let full = root.join(path);
            let thing = if metadata.is_dir() {
                Thing::Folder { mode }
            } else if metadata.is_symlink() {
                Thing::Link { target: sure(fs::read_link(&full), &full) }
            } else if metadata.is_file() {
                match fs::read(&full) {
                    Ok(bytes) => Thing::File { bytes, mode },
                    // What nobody may read is not covered.
                    Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return,
                    Err(error) => panic!("{}: {error}", full.display()),
                }
            } else {
                return;
            };
            tree.0.insert(path.to_owned(), thing);
        });
        tree
    }

    pub(super) fn get(&self, path: &Path) -> Option<&Thing> {
        self.0.get(path)
    }

    /// The paths at which two trees differ, in their order.
    pub(super) fn differing(&self, other: &Self) -> Vec<PathBuf> {
        let all: BTreeSet<&PathBuf> = self.0.keys().chain(other.0.keys()).collect();
        all.into_iter().filter(|path| self.get(path) != other.get(path)).cloned().collect()
    }

    /// Without some paths.
    pub(super) fn without(&self, leave: impl Fn(&Path) -> bool) -> Self {
        Self(self.0.iter().filter(|(path, _)| !leave(path)).map(|(p, t)| (p.clone(), t.clone())).collect())
    }

    /// Files and links, and the bytes of the files.
    pub(super) fn counts(&self) -> (u64, u64) {
        let files = self.0.values().filter(|thing| !matches!(thing, Thing::Folder { .. })).count() as u64;
        let bytes = self.0.values().map(|thing| match thing {
            Thing::File { bytes, .. } => bytes.len() as u64,
            _ => 0,
        });
        (files, bytes.sum())
    }

    #[track_caller]
    pub(super) fn assert_is(&self, wanted: &Self, when: &str) {
        let wrong: Vec<_> = self.differing(wanted);
        let told: String = wrong.iter().take(6).fold(String::new(), |told, path| {
            format!("{told}\n  {path:?}: {:?} in place of {:?}", self.get(path), wanted.get(path))
        });
        assert!(wrong.is_empty(), "{when}, {} paths are not as they have to be:{told}", wrong.len());
    }
}

/// Where files and links lie on the disk, and when they were written; of folders, where they lie alone.
pub(super) fn marks(root: &Path) -> Marks {
    let mut marks = Marks::new();
    walk(root, Path::new(""), &mut |path, metadata| {
        let time = if metadata.is_dir() { (0, 0) } else { (metadata.mtime(), metadata.mtime_nsec()) };
        marks.insert(path.to_owned(), (metadata.ino(), time.0, time.1));
    });
    marks
}

/// Everything below a folder, byte for byte, whatever it is: for what nobody may touch.
pub(super) fn everything(root: &Path) -> BTreeMap<PathBuf, (u32, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in sure(fs::read_dir(&folder), &folder) {
            let path = sure(entry, &folder).path();
            let metadata = sure(fs::symlink_metadata(&path), &path);
            let bytes = if metadata.is_file() { sure(fs::read(&path), &path) } else { Vec::new() };
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (metadata.mode(), metadata.mtime_nsec(), bytes));
        }
    }
    found
}

fn walk(root: &Path, below: &Path, each: &mut impl FnMut(&Path, &fs::Metadata)) {
    let folder = root.join(below);
    for entry in sure(fs::read_dir(&folder), &folder) {
        let entry = sure(entry, &folder);
        if entry.file_name() == ".git" {
            continue;
        }
        let path = below.join(entry.file_name());
        let metadata = sure(fs::symlink_metadata(entry.path()), &path);
        each(&path, &metadata);
        if metadata.is_dir() {
            walk(root, &path, each);
        }
    }
}

/// That a checkpointer tells of two trees what differs between them, no less, no more, and in the order of paths.
#[track_caller]
pub(super) fn assert_told(changes: &[Change], before: &Tree, after: &Tree) {
    let told: Vec<&PathBuf> = changes.iter().map(|change| &change.path).collect();
    let wanted = before.differing(after);
    assert!(told.iter().copied().eq(wanted.iter()), "the diff names {told:?} in place of {wanted:?}");
    for change in changes {
        let (old, new) = (before.get(&change.path), after.get(&change.path));
        let seen = |node: Option<Node>| node.map(|node| (node.kind, node.mode, node.bytes));
        assert_eq!(seen(change.before), old.map(Thing::told), "before, {:?}", change.path);
        assert_eq!(seen(change.after), new.map(Thing::told), "after, {:?}", change.path);
        if let (Some(a), Some(b), Some(old), Some(new)) = (change.before, change.after, old, new) {
            let same = a.kind == b.kind && a.content == b.content;
            let alike = old.told().0 == new.told().0 && old.content() == new.content();
            assert_eq!(same, alike, "whether the content differs, {:?}", change.path);
        }
    }
}

/// What has to work for a case to go on.
#[track_caller]
pub(super) fn sure<T, E: fmt::Display>(result: Result<T, E>, at: &Path) -> T {
    result.unwrap_or_else(|error| panic!("{}: {error}", at.display()))
}
