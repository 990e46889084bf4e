//! Private directories, made without following a link below the caller's base.

use std::path::{Path, PathBuf};
use std::{fs, io};

use session_core::error::{StoreError, StoreErrorKind};

use crate::disk::{Disk, DiskFolder, Kind};
use crate::error::{At, Finding};
use crate::files;
use crate::tree::open_up;

/// Makes these directories below `base`, one within the other, private and ours, and says the path of the
/// last. The `lower` ones are durable then, also where somebody made them who died before they were; the `upper` ones where
/// they were made here. `base` itself is the caller's: it must be there, and may be reached through links.
pub(crate) fn private_dir(
    disk: &dyn Disk,
    operation: &'static str,
    base: &Path,
    upper: &[&str],
    lower: &[&str],
) -> Result<PathBuf, StoreError> {
    let mut path = base.to_owned();
    let mut level = disk.open_base(base).map_err(|error| At::new(operation, base).io(error))?;
    for (index, name) in upper.iter().chain(lower).enumerate() {
        path.push(name);
        level = enter(disk, At::new(operation, &path), &*level, name, index >= upper.len())?;
    }
    Ok(path)
}

fn enter(
    disk: &dyn Disk,
    at: At<'_>,
    level: &dyn DiskFolder,
    name: &str,
    always_sync: bool,
) -> Result<Box<dyn DiskFolder>, StoreError> {
    let made = level.make(name).map_err(|error| at.io(error))?;
    let inner = level.enter(name).map_err(|error| match disk.look(at.path) {
        // Which error a link gives differs from system to system.
        Ok(meta) if meta.kind != Kind::Folder => {
            at.error(StoreErrorKind::Other, Finding::NotADirectory(meta.kind.describe()))
        }
        _ => at.io(error),
    })?;
    #[cfg(unix)]
    {
        let there = inner.meta().map_err(|error| at.io(error))?.unix;
        let us = rustix::process::geteuid().as_raw();
        if there.owner != us {
            let finding = Finding::Owner { owner: there.owner, us };
            return Err(at.error(StoreErrorKind::PermissionDenied, finding));
        }
        if there.mode != 0o700 {
            inner.make_private().map_err(|error| at.io(error))?;
        }
    }
    if made || always_sync {
        files::sync(level).map_err(|error| at.io(error))?;
    }
    Ok(inner)
}

/// What is being removed bears such a name first, so that it is gone at once and whole; no mailbox's begins with a dot.
const GONE: &str = ".gone-";

/// How often a folder is looked through again that somebody else still changes, and how deep a tree may be: no tree has
/// so many levels that nobody adds to.
const PASSES: u32 = 16;
const LEVELS: u32 = 1_000_000;

/// A new name for what is being removed.
pub(crate) fn gone() -> String {
    format!("{GONE}{}", crate::atomic::unique())
}

/// Whether a name is one that such a thing bears.
pub(crate) fn is_gone(name: &str) -> bool {
    name.strip_prefix(GONE).is_some_and(crate::names::is_hash)
}

/// Removes an agent's state dir of a mailbox, and says whether there was one. Where there was none, an earlier removal may have
/// been cut off: then what such ones left is removed.
pub(crate) fn remove(
    operation: &'static str,
    base: &Path,
    above: &[&str],
    names: (&str, &str),
) -> Result<bool, StoreError> {
    let removed = remove_alone(operation, base, above, names)?;
    if !removed {
        finish(&above.iter().fold(base.to_owned(), |path, name| path.join(name)));
    }
    Ok(removed)
}

/// Removes an agent's state dir of a mailbox, and says whether there was one. The folders `above` it, from `base` on, are
/// entered as in [`private_dir`], but not made; what is removed may be anything, and no link in it is followed.
pub(crate) fn remove_alone(
    operation: &'static str,
    base: &Path,
    above: &[&str],
    (mailbox, agent): (&str, &str),
) -> Result<bool, StoreError> {
    let mut states = base.to_owned();
    let mut level = imp::Level::base(At::new(operation, base))?;
    for name in above {
        states.push(name);
        // Where they have gone, the disk may have gone with them.
        let inner = level.look(At::new(operation, &states), name)?;
        level = inner.ok_or_else(|| At::new(operation, &states).gone(&states))?;
    }
    let parent = states.join(mailbox);
    let path = parent.join(agent);
    let mut own = None;
    if let Some(inner) = level.look(At::new(operation, &parent), mailbox)? {
        let name = gone();
        let gone = states.join(&name);
        let moved = move_away(&path, || inner.rename(agent, &level, &name, &path, &gone));
        own = moved.map_err(|error| At::new(operation, &path).io(error))?.then_some(gone);
        // Only where it is empty: another agent of the mailbox keeps it.
        drop(fs::remove_dir(&parent));
    }
    if let Some(gone) = &own {
        remove_tree(&states, gone.clone()).map_err(|error| At::new(operation, gone).io(error))?;
    }
    Ok(own.is_some())
}

/// Removes what somebody who died had moved out of the way. What cannot be removed is in nobody's way.
fn finish(states: &Path) {
    for entry in fs::read_dir(states).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_gone)
            && let Err(error) = remove_tree(states, entry.path())
        {
            tracing::warn!(path = %entry.path().display(), %error, "what was closed could not be removed");
        }
    }
}

/// Removes a tree without following a link. However deep it is, it takes one open folder and no deep path: a folder in it
/// is moved up beside it first. Where somebody adds to it without end, this ends.
pub(crate) fn remove_tree(states: &Path, tree: PathBuf) -> io::Result<()> {
    level_by_level(tree, |tree, trees| remove_level(states, tree, trees))
}

fn level_by_level(
    tree: PathBuf,
    mut remove: impl FnMut(&Tree, &mut Vec<Tree>) -> io::Result<()>,
) -> io::Result<()> {
    let mut trees = vec![Tree { path: tree, passes: 0, level: 0 }];
    while let Some(mut tree) = trees.pop() {
        if tree.passes > PASSES || tree.level > LEVELS {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, Finding::StillWritten));
        }
        match gone_or(remove(&tree, &mut trees)) {
            // Some file systems do not show all of a folder that changes.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                tree.passes += 1;
                trees.push(tree);
            }
            removed => removed?,
        }
    }
    Ok(())
}

/// Somebody else may be at it, too.
fn gone_or(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// What is still to be removed.
struct Tree {
    path: PathBuf,
    passes: u32,
    level: u32,
}

fn remove_level(states: &Path, tree: &Tree, trees: &mut Vec<Tree>) -> io::Result<()> {
    let Tree { path, level, .. } = tree;
    if !path.symlink_metadata()?.is_dir() {
        return fs::remove_file(path);
    }
    open_up(path);
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // The type of an entry is that of a link itself.
        if entry.file_type()?.is_dir() {
            let up = states.join(gone());
            gone_or(move_away(&entry.path(), || fs::rename(entry.path(), &up)))?;
            trees.push(Tree { path: up, passes: 0, level: level + 1 });
        } else {
            gone_or(fs::remove_file(entry.path()))?;
        }
    }
    fs::remove_dir(path)
}

/// Moves a folder, and lets us into it first where that is needed: to move a closed one takes the right to write in it. One
/// that need not be opened is not, so that what cannot be moved, such as what is mounted there, keeps its mode.
pub(crate) fn move_away<T>(folder: &Path, rename: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match rename() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(folder);
            rename()
        }
        moved => moved,
    }
}

#[cfg(unix)]
mod imp {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;

    use super::{At, Finding, StoreError, StoreErrorKind};

    /// An open directory. What is entered from it cannot be exchanged on the way.
    pub(super) struct Level(OwnedFd);

    const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    impl Level {
        pub(super) fn base(at: At<'_>) -> Result<Self, StoreError> {
            rustix::fs::open(at.path, DIRECTORY, Mode::empty()).map(Self).map_err(|error| at.io(error.into()))
        }

        /// A directory that is there.
        pub(super) fn look(&self, at: At<'_>, name: &str) -> Result<Option<Self>, StoreError> {
            match rustix::fs::openat(&self.0, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(inner) => Ok(Some(Self(inner))),
                Err(Errno::NOENT) => Ok(None),
                Err(error) => Err(not_entered(at, error)),
            }
        }

        /// Moves an entry, whatever it is, and makes that durable; `false` where there is none.
        pub(super) fn rename(
            &self,
            name: &str,
            to: &Self,
            new: &str,
            _: &Path,
            _: &Path,
        ) -> io::Result<bool> {
            match rustix::fs::renameat(&self.0, name, &to.0, new) {
                Ok(()) => {}
                Err(Errno::NOENT) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            for folder in [&to.0, &self.0] {
                match rustix::fs::fsync(folder) {
                    Ok(()) | Err(Errno::INVAL) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(true)
        }
    }

    fn not_entered(at: At<'_>, error: Errno) -> StoreError {
        match error {
            // Which of them a link gives differs from system to system.
            Errno::LOOP | Errno::NOTDIR | Errno::MLINK => {
                let there = crate::disk::real().look(at.path);
                let what = there.map_or("something else", |meta| meta.kind.describe());
                at.error(StoreErrorKind::Other, Finding::NotADirectory(what))
            }
            error => at.io(error.into()),
        }
    }
}

#[cfg(not(unix))]
mod imp {
    use std::path::Path;
    use std::{fs, io};

    use super::{At, Finding, Kind, StoreError, StoreErrorKind};
    use crate::disk::Meta;

    /// Only that there is a directory can be said here; its access list is inherited from the base.
    pub(super) struct Level;

    impl Level {
        pub(super) fn base(at: At<'_>) -> Result<Self, StoreError> {
            fs::metadata(at.path).map(|_| Self).map_err(|error| at.io(error))
        }

        pub(super) fn rename(&self, _: &str, _: &Self, _: &str, from: &Path, to: &Path) -> io::Result<bool> {
            match fs::rename(from, to) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            }
        }

        pub(super) fn look(&self, at: At<'_>, _: &str) -> Result<Option<Self>, StoreError> {
            match crate::disk::real().look(at.path) {
                Ok(Meta { kind: Kind::Folder, .. }) => Ok(Some(Self)),
                Ok(meta) => {
                    Err(at.error(StoreErrorKind::Other, Finding::NotADirectory(meta.kind.describe())))
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(at.io(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn still_written(removed: io::Result<()>) -> bool {
        removed.is_err_and(|error| error.get_ref().is_some_and(|cause| cause.is::<Finding>()))
    }

    #[test]
    fn a_folder_that_somebody_fills_and_fills_again_is_given_up() {
        let mut passes = 0;
        let removed = level_by_level(PathBuf::new(), |_, _| {
            passes += 1;
            // Nobody is that patient.
            assert!(passes < 1000);
            Err(io::ErrorKind::DirectoryNotEmpty.into())
        });
        assert!(still_written(removed) && passes > 1, "{passes} passes");
    }

    #[test]
    fn a_tree_that_somebody_makes_deeper_and_deeper_is_given_up() {
        let removed = level_by_level(PathBuf::new(), |tree, trees| {
            assert!(tree.level < 10 * LEVELS);
            trees.push(Tree { path: PathBuf::new(), passes: 0, level: tree.level + 1 });
            Ok(())
        });
        assert!(still_written(removed));
    }

    #[test]
    fn what_goes_meanwhile_is_gone() {
        assert!(level_by_level(PathBuf::new(), |_, _| Err(io::ErrorKind::NotFound.into())).is_ok());
        let denied = level_by_level(PathBuf::new(), |_, _| Err(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(denied.map_err(|error| error.kind()), Err(io::ErrorKind::PermissionDenied));
    }
}
