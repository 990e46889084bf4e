//! What a state dir needs before a run: links that make a part of the user's own configuration visible there, and
//! empty folders for what the agent makes anew.

use std::io;
use std::path::{Component, Path};

use session_core::Link;
use session_core::error::{AgentError, AgentErrorKind};
use session_core::{AgentId, StateLayout};

use crate::removal::remove_folder;

/// Empties the scratch folders, takes away links of earlier runs that are no longer wanted, and makes those that are
/// missing or lead elsewhere. What stands in the place of a link and is none is left alone. Nothing is touched outside of
/// the state dir: what is in it was written by the agent and by all that it ran, and a folder may have become a link. Waits
/// for the disk.
pub(crate) fn prepare(
    agent: &AgentId,
    state_dir: Option<&Path>,
    layout: &StateLayout,
) -> Result<(), AgentError> {
    let failed = |path: &Path| {
        let (agent, path) = (agent.clone(), path.display().to_string());
        move |error| AgentError::new(AgentErrorKind::State, agent, path).with_source(error)
    };
    let links = layout.links.iter().map(|link| &link.at);
    for path in layout.scratch.iter().chain(&layout.hidden).chain(links) {
        stays_inside(path, state_dir).map_err(failed(path))?;
    }
    for folder in &layout.scratch {
        empty(folder).map_err(failed(folder))?;
    }
    for path in &layout.hidden {
        unlink(path).map_err(failed(path))?;
    }
    for link in &layout.links {
        make(link).map_err(failed(&link.at))?;
    }
    Ok(())
}

/// Whether the folder that this path is in is one of the state dir, as far as it is there.
fn stays_inside(path: &Path, state_dir: Option<&Path>) -> io::Result<()> {
    let Some(state_dir) = state_dir else { return Ok(()) };
    let own = path.strip_prefix(state_dir).is_ok_and(|rest| {
        rest.components().count() > 0 && rest.components().all(|part| matches!(part, Component::Normal(_)))
    });
    // A state dir that is not there yet holds no link.
    if own && !state_dir.try_exists()? {
        return Ok(());
    }
    for folder in path.ancestors().skip(1).filter(|_| own) {
        match folder.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A link to nothing may lead anywhere once something is there.
                if folder.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
                    break;
                }
            }
            Err(error) => return Err(error),
            Ok(real) if real.starts_with(state_dir.canonicalize()?) => return Ok(()),
            Ok(_) => break,
        }
    }
    Err(io::Error::other("it leads out of the state dir"))
}

/// Takes away what lies there, without following a link, and makes an empty folder of it.
fn empty(folder: &Path) -> io::Result<()> {
    let gone = match folder.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => remove_folder(folder),
        Ok(_) => std::fs::remove_file(folder),
        Err(error) => Err(error),
    };
    match gone {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => create(folder),
    }
}

/// Takes a link away, and nothing else.
fn unlink(path: &Path) -> io::Result<()> {
    let gone = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => std::fs::remove_file(path),
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    match gone {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(())
        }
        gone => gone,
    }
}

fn make(link: &Link) -> io::Result<()> {
    match std::fs::read_link(&link.at) {
        Ok(target) if target == link.target => return Ok(()),
        // The user has another home now, or the agent put it there.
        Ok(_) => unlink(&link.at)?,
        Err(_) if link.at.symlink_metadata().is_ok() => return Ok(()),
        Err(_) => {}
    }
    if !link.target.try_exists()? {
        return Ok(());
    }
    if let Some(folder) = link.at.parent() {
        create(folder)?;
    }
    match symlink(&link.target, &link.at) {
        // Another runner was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(unix)]
fn create(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

#[cfg(unix)]
fn symlink(target: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

#[cfg(windows)]
fn symlink(target: &Path, at: &Path) -> io::Result<()> {
    if target.is_dir() {
        std::os::windows::fs::symlink_dir(target, at)
    } else {
        std::os::windows::fs::symlink_file(target, at)
    }
}
