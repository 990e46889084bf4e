//! Compares what stands at a path with the two states.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use super::hands::{Hands, Kind, Seen};
use super::task::Task;
use super::walk::{self, Open};
use crate::node::What;
use crate::object::{self, Hash, PIECE};

/// How something is, seen from the two states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum As {
    /// As it is to be.
    After,
    /// As it was.
    Before,
    /// Another's name, on a file system that folds letter case.
    Folded,
    Neither,
}

/// What was found at a path.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) is: As,
    /// `None`: nothing stands there.
    pub(super) seen: Option<Seen>,
    /// The file, where it was read.
    pub(super) file: Option<OwnedFd>,
}

/// Looks at a task's path, and reads what stands there where that tells more. Folders are told by their permissions alone.
pub(super) fn look(hands: &dyn Hands, folder: &Open, task: &Task, buffer: &mut Vec<u8>) -> io::Result<Found> {
    let seen = walk::look(hands, folder, task.name())?;
    let Some(seen) = seen else { return Ok(Found { is: nothing(task), seen: None, file: None }) };
    let mut file = None;
    let mut is = match seen.kind {
        Kind::Other => As::Neither,
        Kind::Folder => task_is(task, |what| matches!(what, What::Folder { mode, .. } if mode == seen.mode)),
        Kind::Link => {
            let target = hands.target(folder.as_fd(), task.name())?;
            let hash = Hash::of(object::Kind::Piece, &target);
            task_is(task, |what| matches!(what, What::Link { target, .. } if target == hash))
        }
        Kind::File => {
            let like = |what| matches!(what, What::File { mode, bytes, .. } if mode == seen.mode && bytes == seen.bytes);
            match task_is(task, like) {
                As::Neither => As::Neither,
                _ => match read(hands, folder, task, &seen, buffer)? {
                    None => As::Neither,
                    Some((hash, handle)) => {
                        file = Some(handle);
                        task_is(task, |what| {
                            like(what) && matches!(what, What::File { content, .. } if content == hash)
                        })
                    }
                },
            }
        }
    };
    if walk::is_folded(hands, folder, task.name(), &seen)? {
        is = As::Folded;
    }
    Ok(Found { is, seen: Some(seen), file })
}

/// How nothing is.
pub(super) const fn nothing(task: &Task) -> As {
    match (task.before, task.after) {
        (_, None) => As::After,
        (None, _) => As::Before,
        _ => As::Neither,
    }
}

fn task_is(task: &Task, is: impl Fn(What) -> bool) -> As {
    if task.after.is_some_and(&is) {
        As::After
    } else if task.before.is_some_and(is) {
        As::Before
    } else {
        As::Neither
    }
}

/// The hash of a file's content; `None`: it is another by now, or changes while it is read.
fn read(
    hands: &dyn Hands,
    folder: &Open,
    task: &Task,
    seen: &Seen,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<(Hash, OwnedFd)>> {
    let file = hands.open(folder.as_fd(), task.name())?;
    if hands.look_at(file.as_fd())? != *seen {
        return Ok(None);
    }
    let mut left = seen.bytes;
    let mut hashes = Vec::new();
    loop {
        let wanted = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        buffer.resize(wanted, 0);
        let mut filled = 0;
        while filled < wanted {
            match hands.read(file.as_fd(), &mut buffer[filled..])? {
                0 => return Ok(None),
                count => filled += count,
            }
        }
        left -= wanted as u64;
        let hash = Hash::of(object::Kind::Piece, buffer);
        if seen.bytes <= PIECE as u64 {
            hashes = hash.0.to_vec();
        } else {
            hashes.extend_from_slice(&hash.0);
        }
        if left == 0 {
            break;
        }
    }
    let hash = match <[u8; 32]>::try_from(hashes.as_slice()) {
        Ok(one) => Hash(one),
        Err(_) => Hash::of(object::Kind::Pieces, &hashes),
    };
    Ok((hands.look_at(file.as_fd())? == *seen).then_some((hash, file)))
}
