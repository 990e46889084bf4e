//! What the disk holds of a tree when the power goes: what was synced, and of the rest whatever it likes.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::faulty::Faulty;
use super::model::{Model, Thing};
use crate::restore::durable::SyncFn;
use crate::restore::hands::{Hands, Real, Seen};

/// A file, a link or a folder.
type Id = usize;

#[derive(Debug, Clone)]
enum Node {
    File(u16, Vec<u8>),
    Link(PathBuf),
    Folder(u16, BTreeMap<OsString, Id>),
    Special,
}

/// What is not durable yet. Each can be lost or kept for itself; those that are kept come in their order.
#[derive(Debug, Clone)]
enum Change {
    /// A name comes to mean this, or nothing.
    Entry {
        folder: Id,
        name: OsString,
        node: Option<Id>,
    },
    /// A rename within a folder, which is one step.
    Move {
        folder: Id,
        from: OsString,
        to: OsString,
        node: Id,
    },
    Mode {
        node: Id,
        mode: u16,
    },
    /// A file is as long as this; what is not written is zero.
    Length {
        file: Id,
        length: usize,
    },
    Bytes {
        file: Id,
        offset: usize,
        bytes: Vec<u8>,
    },
}

impl Change {
    /// The file or folder whose sync makes it durable.
    const fn of(&self) -> Id {
        match *self {
            Self::Entry { folder: id, .. }
            | Self::Move { folder: id, .. }
            | Self::Mode { node: id, .. }
            | Self::Length { file: id, .. }
            | Self::Bytes { file: id, .. } => id,
        }
    }
}

/// A tree as it is on the disk.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// The first one is the top.
    nodes: Vec<Node>,
    /// By device and inode, which come to mean another one when they are used again.
    known: HashMap<(i128, i128), Id>,
    written: HashMap<Id, usize>,
    pending: Vec<Change>,
}

impl State {
    /// All of it durable.
    fn of(root: &Path, model: &Model) -> Self {
        let mut state = Self::default();
        let mut ids: HashMap<&Path, Id> = HashMap::new();
        for (path, thing) in model {
            let node = match thing {
                Thing::File(mode, content) => Node::File(*mode, content.clone()),
                Thing::Link(target) => Node::Link(target.clone()),
                Thing::Folder(mode) => Node::Folder(*mode, BTreeMap::new()),
                Thing::Special => Node::Special,
            };
            let id = state.add(identity(&root.join(path)), node);
            if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
                state.set(ids[parent], name, Some(id));
            }
            ids.insert(path, id);
        }
        state
    }

    fn add(&mut self, identity: (i128, i128), node: Node) -> Id {
        self.nodes.push(node);
        self.known.insert(identity, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn set(&mut self, folder: Id, name: &OsStr, node: Option<Id>) {
        let Node::Folder(_, entries) = &mut self.nodes[folder] else { panic!("{folder} is no folder") };
        match node {
            Some(node) => entries.insert(name.to_owned(), node),
            None => entries.remove(name),
        };
    }

    fn harden(&mut self, change: Change) {
        match change {
            Change::Entry { folder, name, node } => self.set(folder, &name, node),
            Change::Move { folder, from, to, node } => {
                self.set(folder, &from, None);
                self.set(folder, &to, Some(node));
            }
            Change::Mode { node, mode } => match &mut self.nodes[node] {
                Node::File(present, _) | Node::Folder(present, _) => *present = mode,
                Node::Link(_) | Node::Special => {}
            },
            Change::Length { file, length } => self.content(file).resize(length, 0),
            Change::Bytes { file, offset, bytes } => {
                let content = self.content(file);
                let reaches = content.len().saturating_sub(offset).min(bytes.len());
                content[offset..][..reaches].copy_from_slice(&bytes[..reaches]);
            }
        }
    }

    fn content(&mut self, file: Id) -> &mut Vec<u8> {
        let Node::File(_, content) = &mut self.nodes[file] else { panic!("{file} is no file") };
        content
    }

    fn sync(&mut self, id: Id) {
        let (synced, pending) = std::mem::take(&mut self.pending).into_iter().partition(|one| one.of() == id);
        self.pending = pending;
        let synced: Vec<Change> = synced;
        synced.into_iter().for_each(|change| self.harden(change));
    }

    fn is_folder(&self, id: Id) -> bool {
        matches!(self.nodes[id], Node::Folder(..))
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether a change is of entries, and not of a file or folder itself.
    pub(super) fn is_entry(&self, change: usize) -> bool {
        matches!(self.pending[change], Change::Entry { .. } | Change::Move { .. })
    }

    /// What is there after the power went: what is durable, and these of the other changes.
    pub(super) fn after(&self, keep: impl Fn(usize) -> bool) -> Model {
        let mut left = self.clone();
        for (at, change) in self.pending.iter().enumerate() {
            if keep(at) {
                left.harden(change.clone());
            }
        }
        let mut model = Model::new();
        left.show(0, PathBuf::new(), &mut model);
        model
    }

    fn show(&self, id: Id, path: PathBuf, model: &mut Model) {
        let thing = match &self.nodes[id] {
            Node::File(mode, content) => Thing::File(*mode, content.clone()),
            Node::Link(target) => Thing::Link(target.clone()),
            Node::Special => Thing::Special,
            Node::Folder(mode, entries) => {
                entries.iter().for_each(|(name, id)| self.show(*id, path.join(name), model));
                Thing::Folder(*mode)
            }
        };
        model.insert(path, thing);
    }
}

fn identity(path: &Path) -> (i128, i128) {
    use std::os::unix::fs::MetadataExt as _;
    let meta = path.symlink_metadata().unwrap();
    (meta.dev().into(), meta.ino().into())
}

/// Of what a disk says that it is durable, and it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    None,
    Files,
    Folders,
}

/// Hands that remember what is not durable yet.
#[derive(Debug)]
pub(super) struct Platter<'a> {
    hands: &'a Faulty,
    lie: Lie,
    state: Mutex<State>,
}

impl<'a> Platter<'a> {
    /// Of a tree that stands there, whole and durable.
    pub(super) fn new(hands: &'a Faulty, root: &Path, model: &Model) -> Self {
        Self { hands, lie: Lie::None, state: Mutex::new(State::of(root, model)) }
    }

    pub(super) fn lying(self, lie: Lie) -> Self {
        Self { lie, ..self }
    }

    pub(super) fn into_state(self) -> State {
        self.state.into_inner().unwrap()
    }

    fn id(&self, handle: BorrowedFd<'_>) -> Id {
        self.state.lock().unwrap().known[&Real.look_at(handle).unwrap().identity]
    }

    fn push(&self, change: Change) {
        self.state.lock().unwrap().pending.push(change);
    }

    fn named(&self, folder: BorrowedFd<'_>, name: &OsStr) -> Id {
        self.state.lock().unwrap().known[&Real.look(folder, name).unwrap().identity]
    }

    /// What was just made under a name.
    fn made(&self, folder: BorrowedFd<'_>, name: &OsStr, node: Node) {
        let identity = Real.look(folder, name).unwrap().identity;
        let node = self.state.lock().unwrap().add(identity, node);
        self.push(Change::Entry { folder: self.id(folder), name: name.to_owned(), node: Some(node) });
    }

    fn moved(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) {
        let (from, to, node) = (from.to_owned(), to.to_owned(), self.named(folder, to));
        self.push(Change::Move { folder: self.id(folder), from, to, node });
    }

    fn removed(&self, folder: BorrowedFd<'_>, name: &OsStr) {
        self.push(Change::Entry { folder: self.id(folder), name: name.to_owned(), node: None });
    }
}

impl Hands for Platter<'_> {
    fn sync_elsewhere(&self) -> Option<SyncFn> {
        self.hands.sync_elsewhere()
    }

    fn open_root(&self, path: &Path) -> io::Result<OwnedFd> {
        self.hands.open_root(path)
    }

    fn enter(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        self.hands.enter(folder, name)
    }

    fn look(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Seen> {
        self.hands.look(folder, name)
    }

    fn names(&self, folder: BorrowedFd<'_>) -> io::Result<Vec<Vec<u8>>> {
        self.hands.names(folder)
    }

    fn target(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Vec<u8>> {
        self.hands.target(folder, name)
    }

    fn open(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        self.hands.open(folder, name)
    }

    fn look_at(&self, file: BorrowedFd<'_>) -> io::Result<Seen> {
        self.hands.look_at(file)
    }

    fn read(&self, file: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        self.hands.read(file, buffer)
    }

    fn make(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        let file = self.hands.make(folder, name)?;
        self.made(folder, name, Node::File(Real.look_at(file.as_fd())?.mode, Vec::new()));
        Ok(file)
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        let count = self.hands.write(file, bytes)?;
        let file = self.id(file);
        let mut state = self.state.lock().unwrap();
        let written = state.written.entry(file).or_default();
        let offset = *written;
        *written += count;
        state.pending.push(Change::Length { file, length: offset + count });
        state.pending.push(Change::Bytes { file, offset, bytes: bytes[..count].to_vec() });
        Ok(count)
    }

    fn give(&self, file: BorrowedFd<'_>, owner: Option<u32>, group: u32) -> io::Result<()> {
        self.hands.give(file, owner, group)
    }

    fn set_mode(&self, file: BorrowedFd<'_>, mode: u16) -> io::Result<()> {
        self.hands.set_mode(file, mode)?;
        self.push(Change::Mode { node: self.id(file), mode });
        Ok(())
    }

    fn sync(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        self.hands.sync(file)?;
        let id = self.id(file);
        let mut state = self.state.lock().unwrap();
        let lie = if state.is_folder(id) { Lie::Folders } else { Lie::Files };
        if lie != self.lie {
            state.sync(id);
        }
        Ok(())
    }

    fn make_folder(&self, folder: BorrowedFd<'_>, name: &OsStr, mode: u16) -> io::Result<()> {
        self.hands.make_folder(folder, name, mode)?;
        self.made(folder, name, Node::Folder(Real.look(folder, name)?.mode, BTreeMap::new()));
        Ok(())
    }

    fn make_link(&self, folder: BorrowedFd<'_>, name: &OsStr, target: &OsStr) -> io::Result<()> {
        self.hands.make_link(folder, name, target)?;
        self.made(folder, name, Node::Link(OsStr::from_bytes(target.as_bytes()).into()));
        Ok(())
    }

    fn set_folder_mode(&self, folder: BorrowedFd<'_>, name: &OsStr, mode: u16) -> io::Result<()> {
        self.hands.set_folder_mode(folder, name, mode)?;
        self.push(Change::Mode { node: self.named(folder, name), mode });
        Ok(())
    }

    fn replace(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.hands.replace(folder, from, to)?;
        self.moved(folder, from, to);
        Ok(())
    }

    fn put(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.hands.put(folder, from, to)?;
        self.moved(folder, from, to);
        Ok(())
    }

    fn remove(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        self.hands.remove(folder, name)?;
        self.removed(folder, name);
        Ok(())
    }

    fn remove_folder(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        self.hands.remove_folder(folder, name)?;
        self.removed(folder, name);
        Ok(())
    }
}
