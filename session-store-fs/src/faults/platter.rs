//! Files and folders as the page cache shows them, as the platter holds them, and what lies between.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use rustix::io::Errno;

/// A file or a folder.
pub(super) type Id = usize;

/// What reaches the platter as a whole. Smaller than any real one, so that small files are torn, too.
pub(super) const SECTOR: usize = 256;

/// Where the caller's base lies; it is there from the beginning.
pub(super) const BASE: &str = "/base";

type Entries = BTreeMap<Arc<str>, Id>;

#[derive(Debug, Clone)]
struct Versions<T> {
    cached: Arc<T>,
    durable: Arc<T>,
}

impl<T> Versions<T> {
    fn new(content: T) -> Self {
        let content = Arc::new(content);
        Self { cached: Arc::clone(&content), durable: content }
    }
}

#[derive(Debug, Clone)]
enum Node {
    File(Versions<Vec<u8>>),
    Folder(Versions<Entries>),
}

/// A change that the cache shows and the platter may not hold yet. Each of them can be lost or kept for itself.
#[derive(Debug, Clone)]
enum Change {
    /// A name comes to mean this, or nothing.
    Entry { folder: Id, name: Arc<str>, node: Option<Id> },
    /// A rename within a folder, which is one step.
    Move { folder: Id, from: Arc<str>, to: Arc<str>, node: Id },
    /// The old name goes of what has a new one in another folder, where that one is durable.
    Left { from: (Id, Arc<str>), to: (Id, Arc<str>), node: Id },
    /// A file is as long as this.
    Length { file: Id, length: usize },
    /// A sector has this content, as far as the file reaches.
    Sector { file: Id, offset: usize, bytes: Arc<[u8]> },
}

/// The kinds of changes that disks reorder against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Entry,
    Length,
    Content,
}

/// A whole disk.
#[derive(Debug, Clone)]
pub(super) struct State {
    nodes: Vec<Node>,
    pending: Vec<Change>,
    /// Which open file holds the lock of a file.
    locks: BTreeMap<Id, u64>,
    /// How often the power went.
    boots: u32,
    /// Grows with every change, so that equal states are known.
    version: u64,
}

impl State {
    pub(super) fn new() -> Self {
        let mut root = Entries::new();
        root.insert(BASE[1..].into(), 1);
        let nodes = [root, Entries::new()].map(|entries| Node::Folder(Versions::new(entries)));
        Self { nodes: nodes.into(), pending: Vec::new(), locks: BTreeMap::new(), boots: 0, version: 0 }
    }

    pub(super) const fn version(&self) -> u64 {
        self.version
    }

    pub(super) const fn boots(&self) -> u32 {
        self.boots
    }

    /// How many changes the platter may not hold yet.
    pub(super) const fn pending(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn class(&self, change: usize) -> Class {
        match self.pending[change] {
            Change::Entry { .. } | Change::Move { .. } | Change::Left { .. } => Class::Entry,
            Change::Length { .. } => Class::Length,
            Change::Sector { .. } => Class::Content,
        }
    }

    /// The disk after the power went: what is durable, and those of the pending changes.
    pub(super) fn crashed(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mut next = self.clone();
        for (index, change) in self.pending.iter().enumerate() {
            if keep(index) {
                next.harden(change);
            }
        }
        next.pending.clear();
        next.locks.clear();
        next.boots += 1;
        for node in &mut next.nodes {
            match node {
                Node::File(versions) => versions.cached = Arc::clone(&versions.durable),
                Node::Folder(versions) => versions.cached = Arc::clone(&versions.durable),
            }
        }
        next
    }

    /// The disk after its only process was killed: the cache stays, and nothing becomes durable by that.
    pub(super) fn killed(&self) -> Self {
        let mut next = self.clone();
        next.locks.clear();
        next
    }

    pub(super) fn file(&self, id: Id) -> io::Result<&[u8]> {
        match &self.nodes[id] {
            Node::File(versions) => Ok(&versions.cached),
            Node::Folder(_) => Err(Errno::ISDIR.into()),
        }
    }

    pub(super) fn entries(&self, id: Id) -> io::Result<&Entries> {
        match &self.nodes[id] {
            Node::Folder(versions) => Ok(&versions.cached),
            Node::File(_) => Err(Errno::NOTDIR.into()),
        }
    }

    pub(super) fn resolve(&self, path: &Path) -> io::Result<Id> {
        let mut id = 0;
        for part in path.components() {
            if let Component::Normal(name) = part {
                let name = name.to_str().ok_or(Errno::ILSEQ)?;
                id = *self.entries(id)?.get(name).ok_or(Errno::NOENT)?;
            }
        }
        Ok(id)
    }

    /// The folder of a path, and the name in it.
    pub(super) fn place(&self, path: &Path) -> io::Result<(Id, Arc<str>)> {
        let folder = self.resolve(path.parent().ok_or(Errno::INVAL)?)?;
        let name = path.file_name().and_then(|name| name.to_str()).ok_or(Errno::INVAL)?;
        self.entries(folder)?;
        Ok((folder, name.into()))
    }

    pub(super) fn create(&mut self, folder: Id, name: Arc<str>, is_folder: bool) -> Id {
        let id = self.nodes.len();
        self.nodes.push(if is_folder {
            Node::Folder(Versions::new(Entries::new()))
        } else {
            Node::File(Versions::new(Vec::new()))
        });
        self.enter(folder, &name, Some(id));
        self.push(Change::Entry { folder, name, node: Some(id) });
        id
    }

    pub(super) fn unlink(&mut self, folder: Id, name: Arc<str>) -> io::Result<()> {
        let id = *self.entries(folder)?.get(&name).ok_or(Errno::NOENT)?;
        self.file(id)?;
        self.enter(folder, &name, None);
        self.push(Change::Entry { folder, name, node: None });
        Ok(())
    }

    pub(super) fn rename(&mut self, from: (Id, Arc<str>), to: (Id, Arc<str>)) -> io::Result<()> {
        let node = *self.entries(from.0)?.get(&from.1).ok_or(Errno::NOENT)?;
        self.enter(from.0, &from.1, None);
        self.enter(to.0, &to.1, Some(node));
        if from.0 == to.0 {
            self.push(Change::Move { folder: from.0, from: from.1, to: to.1, node });
        } else {
            self.push(Change::Entry { folder: to.0, name: Arc::clone(&to.1), node: Some(node) });
            self.push(Change::Left { from, to, node });
        }
        Ok(())
    }

    fn enter(&mut self, folder: Id, name: &Arc<str>, node: Option<Id>) {
        let Node::Folder(versions) = &mut self.nodes[folder] else { panic!("{folder} is a file") };
        set(Arc::make_mut(&mut versions.cached), name, node);
    }

    fn push(&mut self, change: Change) {
        self.pending.push(change);
        self.version += 1;
    }

    pub(super) fn write(&mut self, file: Id, offset: usize, bytes: &[u8]) {
        let Node::File(versions) = &mut self.nodes[file] else { panic!("{file} is a folder") };
        let content = Arc::make_mut(&mut versions.cached);
        let (old, end) = (content.len(), offset + bytes.len());
        content.resize(old.max(end), 0);
        content[offset..end].copy_from_slice(bytes);
        let content = Arc::clone(&versions.cached);
        // What is written back is a whole sector of the cache; the length may grow with each of them.
        for start in (offset.min(old) / SECTOR * SECTOR..end).step_by(SECTOR) {
            let stop = (start + SECTOR).min(content.len());
            if stop > old {
                self.push(Change::Length { file, length: stop });
            }
            self.push(Change::Sector { file, offset: start, bytes: content[start..stop].into() });
        }
    }

    pub(super) fn set_len(&mut self, file: Id, length: usize) {
        let Node::File(versions) = &mut self.nodes[file] else { panic!("{file} is a folder") };
        Arc::make_mut(&mut versions.cached).resize(length, 0);
        self.push(Change::Length { file, length });
    }

    /// Makes what a file holds durable.
    pub(super) fn sync_file(&mut self, id: Id) {
        self.sync(|change| match change {
            Change::Length { file, .. } | Change::Sector { file, .. } => *file == id,
            Change::Entry { .. } | Change::Move { .. } | Change::Left { .. } => false,
        });
    }

    /// The kernel could not write a file back, says so once, and takes its pages for clean from then on.
    pub(super) fn lose_file(&mut self, id: Id) {
        self.version += 1;
        self.pending.retain(|change| match change {
            Change::Length { file, .. } | Change::Sector { file, .. } => *file != id,
            Change::Entry { .. } | Change::Move { .. } | Change::Left { .. } => true,
        });
    }

    /// Makes the entries of a folder durable, and before those of another that what left it went to.
    pub(super) fn sync_folder(&mut self, id: Id) {
        let mut folders = vec![id];
        self.sync(|change| match change {
            Change::Entry { folder, .. } | Change::Move { folder, .. } => folders.contains(folder),
            Change::Left { from, to, .. } => {
                let touched = folders.contains(&from.0);
                if touched {
                    folders.push(to.0);
                }
                touched
            }
            Change::Length { .. } | Change::Sector { .. } => false,
        });
    }

    /// Asks from the latest change to the earliest, and hardens from the earliest on.
    fn sync(&mut self, mut take: impl FnMut(&Change) -> bool) {
        let mut taken: Vec<bool> = self.pending.iter().rev().map(&mut take).collect();
        taken.reverse();
        if !taken.contains(&true) {
            return;
        }
        self.version += 1;
        let mut rest = Vec::new();
        for (change, taken) in std::mem::take(&mut self.pending).into_iter().zip(taken) {
            if taken { self.harden(&change) } else { rest.push(change) }
        }
        self.pending = rest;
    }

    fn harden(&mut self, change: &Change) {
        match change {
            Change::Entry { folder, name, node } => set(self.platter_entries(*folder), name, *node),
            Change::Move { folder, from, to, node } => {
                let entries = self.platter_entries(*folder);
                // A name that means something else on the platter is not this rename's to remove.
                if entries.get(from) == Some(node) {
                    set(entries, from, None);
                }
                set(entries, to, Some(*node));
            }
            Change::Left { from, to, node } => {
                let arrived = self.platter_entries(to.0).get(&to.1) == Some(node);
                let entries = self.platter_entries(from.0);
                if arrived && entries.get(&from.1) == Some(node) {
                    set(entries, &from.1, None);
                }
            }
            Change::Length { file, length } => self.platter_file(*file).resize(*length, 0),
            Change::Sector { file, offset, bytes } => {
                let content = self.platter_file(*file);
                let stop = content.len().min(offset + bytes.len());
                if *offset < stop {
                    content[*offset..stop].copy_from_slice(&bytes[..stop - offset]);
                }
            }
        }
    }

    fn platter_entries(&mut self, id: Id) -> &mut Entries {
        let Node::Folder(versions) = &mut self.nodes[id] else { panic!("{id} is a file") };
        Arc::make_mut(&mut versions.durable)
    }

    fn platter_file(&mut self, id: Id) -> &mut Vec<u8> {
        let Node::File(versions) = &mut self.nodes[id] else { panic!("{id} is a folder") };
        Arc::make_mut(&mut versions.durable)
    }

    pub(super) fn lock(&mut self, file: Id, by: u64) -> bool {
        *self.locks.entry(file).or_insert(by) == by
    }

    pub(super) fn unlock(&mut self, file: Id, by: u64) {
        if self.locks.get(&file) == Some(&by) {
            self.locks.remove(&file);
        }
    }

    /// The greatest number of an open file that holds a lock.
    pub(super) fn last_locker(&self) -> u64 {
        self.locks.values().max().copied().unwrap_or_default()
    }

    pub(super) fn locks(&self) -> usize {
        self.locks.len()
    }
}

fn set(entries: &mut Entries, name: &Arc<str>, node: Option<Id>) {
    match node {
        Some(node) => entries.insert(Arc::clone(name), node),
        None => entries.remove(name),
    };
}
