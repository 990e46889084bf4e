//! Steps that can each be undone, last one first.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use session_core::{Refusal, Way};

use super::same_bytes;
use crate::find::options;

/// Folders in a session's folder lie no deeper.
const DEPTH: usize = 32;

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    undo: Vec<Undo>,
    /// After so many steps, a test has it fail, or has it killed.
    #[cfg(test)]
    pub(crate) stop: Option<usize>,
}

#[derive(Debug)]
enum Undo {
    RemoveFolder(PathBuf),
    RemoveFile(PathBuf),
    RenameBack { is: PathBuf, was: PathBuf },
    MakeFolder(PathBuf, fs::Permissions),
}

impl Journal {
    fn note(&mut self, undo: Undo) -> io::Result<()> {
        self.undo.push(undo);
        #[cfg(test)]
        if self.stop == Some(self.undo.len()) {
            return Err(io::Error::other("stopped by the test"));
        }
        Ok(())
    }

    pub(crate) fn made_folder(&mut self, path: &Path) -> io::Result<()> {
        self.note(Undo::RemoveFolder(path.to_owned()))
    }

    /// Gives a file or folder another name, never over another one.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        rename(from, to)?;
        self.note(Undo::RenameBack { is: to.to_owned(), was: from.to_owned() })
    }

    /// Moves a file or folder; what is in a folder that is there already is put beside what it holds.
    pub(super) fn move_tree(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        if fs::symlink_metadata(to).is_err() {
            return self.rename(from, to);
        }
        if !from.is_dir() {
            // The same file, as was found before: it stays where it was.
            return Ok(());
        }
        for child in fs::read_dir(from)? {
            let child = child?;
            self.move_tree(&child.path(), &to.join(child.file_name()))?;
        }
        // What is left in it is there twice.
        let permissions = fs::metadata(from)?.permissions();
        match fs::remove_dir(from) {
            Ok(()) => self.note(Undo::MakeFolder(from.to_owned(), permissions)),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn copy_tree(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        if !from.is_dir() {
            return if fs::symlink_metadata(to).is_ok() { Ok(()) } else { self.copy_file(from, to) };
        }
        if !to.is_dir() {
            fs::create_dir(to)?;
            fs::set_permissions(to, fs::metadata(from)?.permissions())?;
            self.made_folder(to)?;
        }
        for child in fs::read_dir(from)? {
            let child = child?;
            self.copy_tree(&child.path(), &to.join(child.file_name()))?;
        }
        Ok(())
    }

    /// Copies a file, which appears whole and with the time of the original, never over another one.
    pub(super) fn copy_file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let folder = to.parent().ok_or_else(|| io::Error::other("a file without a folder"))?;
        let mut copy = tempfile::Builder::new().prefix(".relocate-").tempfile_in(folder)?;
        let mut original = options().open(from)?;
        let metadata = original.metadata()?;
        io::copy(&mut original, copy.as_file_mut())?;
        copy.as_file_mut().flush()?;
        copy.as_file().set_permissions(metadata.permissions())?;
        // The agents list by it, and delete by it.
        copy.as_file().set_modified(metadata.modified()?)?;
        copy.as_file().sync_all()?;
        copy.persist_noclobber(to).map_err(|error| error.error)?;
        self.note(Undo::RemoveFile(to.to_owned()))
    }

    /// Gives a file that was written its name, never over another one.
    pub(crate) fn put(&mut self, file: tempfile::NamedTempFile, to: &Path) -> io::Result<()> {
        file.persist_noclobber(to).map_err(|error| error.error)?;
        self.note(Undo::RemoveFile(to.to_owned()))
    }

    pub(crate) fn undo(&mut self) -> io::Result<()> {
        let mut failed = Ok(());
        while let Some(undo) = self.undo.pop() {
            let undone = match &undo {
                // One that somebody else put something into stays.
                Undo::RemoveFolder(path) => fs::remove_dir(path).or_else(|error| {
                    if error.kind() == io::ErrorKind::DirectoryNotEmpty { Ok(()) } else { Err(error) }
                }),
                Undo::RemoveFile(path) => fs::remove_file(path),
                Undo::RenameBack { is, was } => rename(is, was),
                Undo::MakeFolder(path, permissions) => {
                    fs::create_dir(path).and_then(|()| fs::set_permissions(path, permissions.clone()))
                }
            };
            failed = failed.and(undone);
        }
        failed
    }
}

/// What of a file or folder cannot be put to a place. Nothing is changed.
pub(crate) fn conflict(way: Way, from: &Path, to: &Path) -> io::Result<Option<Refusal>> {
    conflict_within(way, from, to, DEPTH)
}

fn conflict_within(way: Way, from: &Path, to: &Path, depth: usize) -> io::Result<Option<Refusal>> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(io::Error::other("its folders lie too deep"));
    };
    let here = fs::symlink_metadata(from)?;
    if here.is_symlink() {
        return Ok(Some(Refusal::NotPlain));
    }
    let Ok(there) = fs::symlink_metadata(to) else {
        if way == Way::Move {
            // It gets another name as it is.
            return Ok(None);
        }
        return within(from, &here, |child| {
            conflict_within(way, &child.path(), &to.join(child.file_name()), depth)
        });
    };
    let differs = || Ok(Some(Refusal::TargetDiffers { path: to.to_owned() }));
    if here.is_dir() && there.is_dir() {
        return within(from, &here, |child| {
            conflict_within(way, &child.path(), &to.join(child.file_name()), depth)
        });
    }
    if here.is_file() && there.is_file() && here.len() == there.len() && same_bytes(from, to)? {
        return Ok(None);
    }
    differs()
}

fn within(
    folder: &Path,
    metadata: &fs::Metadata,
    mut look: impl FnMut(&fs::DirEntry) -> io::Result<Option<Refusal>>,
) -> io::Result<Option<Refusal>> {
    if !metadata.is_dir() {
        return Ok((!metadata.is_file()).then_some(Refusal::NotPlain));
    }
    for child in fs::read_dir(folder)? {
        if let Some(refusal) = look(&child?)? {
            return Ok(Some(refusal));
        }
    }
    Ok(None)
}

/// In one step, where the file system can: whoever is killed leaves one name.
#[cfg(target_os = "linux")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;

    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => rename_in_two(from, to),
        done => Ok(done?),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    rename_in_two(from, to)
}

/// A link first: unlike a rename, it fails where something is. Of a folder, there is no such link.
fn rename_in_two(from: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(from)?.is_dir() {
        if fs::symlink_metadata(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        return fs::rename(from, to);
    }
    fs::hard_link(from, to)?;
    fs::remove_file(from).inspect_err(|_| {
        // It has its old name still, and is to have no other one.
        let _ = fs::remove_file(to);
    })
}
