//! A tree as data.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::node::{Entry, Folder, What};
use crate::object::{self, Hash, Kind, PIECE};

/// What stands at each path; the top is the empty one.
pub(super) type Model = BTreeMap<PathBuf, Thing>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Thing {
    File(u16, Vec<u8>),
    Link(PathBuf),
    Folder(u16),
    /// A pipe, a socket or a device.
    Special,
}

/// A tree of a top folder and these.
pub(super) fn model(things: &[(&str, Thing)]) -> Model {
    let mut model = Model::from([(PathBuf::new(), Thing::Folder(0o755))]);
    model.extend(things.iter().map(|(path, thing)| (PathBuf::from(path), thing.clone())));
    model
}

pub(super) fn file(mode: u16, content: &str) -> Thing {
    Thing::File(mode, content.as_bytes().to_vec())
}

pub(super) fn link(target: &str) -> Thing {
    Thing::Link(PathBuf::from(target))
}

/// The paths at which two trees differ.
pub(super) fn differing(one: &Model, other: &Model) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        one.keys().chain(other.keys()).filter(|path| one.get(*path) != other.get(*path)).cloned().collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Reads what stands below a folder.
pub(super) fn read(root: &Path) -> Model {
    fn walk(root: &Path, path: &Path, model: &mut Model) {
        let full = root.join(path);
        let meta = fs::symlink_metadata(&full).unwrap();
        let mode = (meta.permissions().mode() & 0o7777) as u16;
        let thing = if meta.is_symlink() {
            Thing::Link(fs::read_link(&full).unwrap())
        } else if meta.is_file() {
            Thing::File(mode, fs::read(&full).unwrap())
        } else if meta.is_dir() {
            for entry in fs::read_dir(&full).unwrap() {
                walk(root, &path.join(entry.unwrap().file_name()), model);
            }
            Thing::Folder(mode)
        } else {
            Thing::Special
        };
        model.insert(path.to_owned(), thing);
    }
    let mut model = Model::new();
    walk(root, Path::new(""), &mut model);
    model
}

/// Makes it so on the disk, whatever was there.
pub(super) fn build(root: &Path, model: &Model) {
    drop(fs::remove_dir_all(root));
    for (path, thing) in model {
        let full = root.join(path);
        match thing {
            Thing::Folder(_) => fs::create_dir(&full).unwrap(),
            Thing::Link(target) => symlink(target, &full).unwrap(),
            Thing::File(_, content) => fs::write(&full, content).unwrap(),
            Thing::Special => rustix::fs::mkfifoat(rustix::fs::CWD, &full, rustix::fs::Mode::RWXU).unwrap(),
        }
    }
    for (path, thing) in model.iter().rev() {
        if let Thing::Folder(mode) | Thing::File(mode, _) = thing {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode((*mode).into())).unwrap();
        }
    }
}

/// Keeps it in the database, and tells the list of its top and the mode of that.
pub(super) fn keep(db: &Connection, model: &Model) -> (Hash, u16) {
    let What::Folder { list, mode, .. } = what(db, model, Path::new("")) else {
        panic!("the top is a folder")
    };
    (list, mode)
}

fn what(db: &Connection, model: &Model, path: &Path) -> What {
    match &model[path] {
        Thing::File(mode, content) if content.len() <= PIECE => {
            What::File { mode: *mode, bytes: content.len() as u64, content: put(db, Kind::Piece, content) }
        }
        Thing::File(mode, content) => {
            let pieces: Vec<u8> =
                content.chunks(PIECE).flat_map(|piece| put(db, Kind::Piece, piece).0).collect();
            What::File { mode: *mode, bytes: content.len() as u64, content: put(db, Kind::Pieces, &pieces) }
        }
        Thing::Link(target) => {
            let target = target.as_os_str().as_bytes();
            What::Link { bytes: target.len() as u64, target: put(db, Kind::Piece, target) }
        }
        Thing::Folder(mode) => {
            let within = model.keys().filter(|below| below.parent() == Some(path));
            let mut folder = Folder::default();
            for below in within {
                let name = below.file_name().map(OsStr::as_bytes).unwrap().to_owned();
                folder.entries.push(Entry { name, what: what(db, model, below) });
            }
            folder.entries.sort_by(|one, other| one.name.cmp(&other.name));
            let ((files, bytes), (list, data)) = (folder.sums(), folder.encoded());
            object::put(db, Kind::Folder, list, &data).unwrap();
            What::Folder { mode: *mode, list, files, bytes }
        }
        Thing::Special => panic!("it is not covered"),
    }
}

fn put(db: &Connection, kind: Kind, data: &[u8]) -> Hash {
    let hash = Hash::of(kind, data);
    object::put(db, kind, hash, data).unwrap();
    hash
}
