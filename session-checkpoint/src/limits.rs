//! Where checkpoints are taken, and up to where.

use std::fs;
use std::path::{Path, PathBuf};

use crate::checkpoints::{CheckpointLimits, FsCheckpoints};
use crate::place::Tree;
use crate::trouble::{Outcome, Trouble};

/// Whether checkpoints are taken of a tree: not of `/`, of a home or what homes lie in, or within the store.
pub(crate) fn allow(checkpoints: &FsCheckpoints, tree: &Tree) -> Outcome<()> {
    let root = &tree.root;
    if root.parent().is_none() {
        return Err(Trouble::NotHere(
            "it is the root of the file system; name the folder of a project".to_owned(),
        ));
    }
    let named = checkpoints.homes.iter().filter_map(|home| fs::canonicalize(home).ok());
    for home in named.chain(checkpoints.user_home().map(Path::to_owned)) {
        if home.starts_with(root) {
            let home = home.display();
            return Err(Trouble::NotHere(format!(
                "it is the home {home}, or what that lies in; make the project's own folder a repository"
            )));
        }
    }
    let store = checkpoints.folder.parent().and_then(|store| fs::canonicalize(store).ok());
    if store.is_some_and(|store| root.starts_with(store)) {
        return Err(Trouble::NotHere("it lies within the store; name a folder outside of it".to_owned()));
    }
    Ok(())
}

/// The home of this user as the system's list of users has it.
pub(crate) fn user_home() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).ok().flatten()?;
    fs::canonicalize(user.dir).ok()
}

/// Checks what a tree has against the limits.
pub(crate) fn measure(limits: &CheckpointLimits, files: u64, bytes: u64) -> Outcome<()> {
    if files > limits.files {
        return Err(too_many(limits));
    }
    if bytes > limits.tree_bytes {
        let limit = limits.tree_bytes;
        return Err(Trouble::NoRoom(format!(
            "the files of the tree have {bytes} bytes, more than {limit}; ignore some of them by a .gitignore, lower the \
             limit for one file, or raise the one for the tree"
        )));
    }
    Ok(())
}

pub(crate) fn too_many(limits: &CheckpointLimits) -> Trouble {
    let limit = limits.files;
    Trouble::NoRoom(format!(
        "the tree has more than {limit} files; ignore some of them by a .gitignore, or raise the limit"
    ))
}

/// Checks that so many new bytes leave enough free where the store is.
pub(crate) fn room(limits: &CheckpointLimits, store: &Path, new: u64) -> Outcome<()> {
    let space = rustix::fs::statvfs(store).map_err(|error| Trouble::io(store)(error.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let wanted = limits.free_bytes;
    if free.saturating_sub(new) < wanted {
        return Err(Trouble::NoRoom(format!(
            "it takes {new} bytes, and of the {free} that are free {wanted} are to stay so; drop checkpoints, make room, or \
             lower the limit"
        )));
    }
    Ok(())
}
