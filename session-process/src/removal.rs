//! Removes what an agent made, whatever it is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How often a folder is looked through again that is not empty then.
const PASSES: u32 = 16;

/// Removes a folder with all that is in it, without following a link. However deep it is, it takes one open folder and no
/// deep path: a folder further in is moved up first. Where this breaks off, what is left lies in the folder still.
pub(crate) fn remove_folder(folder: &Path) -> io::Result<()> {
    again(|| {
        let mut within = Vec::new();
        clear(folder, folder, &mut within)?;
        while let Some(inner) = within.pop() {
            again(|| {
                clear(folder, &inner, &mut within)?;
                fs::remove_dir(&inner)
            })?;
        }
        fs::remove_dir(folder)
    })
}

/// Some file systems do not show all of a folder that changes. Where somebody adds to it without end, this ends.
fn again(mut remove: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..PASSES {
        match remove() {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            removed => return removed,
        }
    }
    remove()
}

/// Removes what in `inner` is no folder, and moves what is one up to `top`.
fn clear(top: &Path, inner: &Path, within: &mut Vec<PathBuf>) -> io::Result<()> {
    open_up(inner);
    for entry in fs::read_dir(inner)? {
        let entry = entry?;
        // The type of an entry is that of a link itself.
        if !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
        } else if inner == top {
            within.push(entry.path());
        } else {
            let up = top.join(uuid::Uuid::new_v4().to_string());
            open_up(&entry.path());
            fs::rename(entry.path(), &up)?;
            within.push(up);
        }
    }
    Ok(())
}

/// Lets us into a folder that an agent closed. Where that fails, what comes next says so.
#[cfg(unix)]
fn open_up(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;

    if folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        drop(fs::set_permissions(folder, fs::Permissions::from_mode(0o700)));
    }
}

#[cfg(not(unix))]
const fn open_up(_: &Path) {}

#[cfg(all(test, unix))]
mod tests {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;

    /// Fewer than the levels of the tree below; the other tests here need a handful.
    const OPEN_FILES: u64 = 256;

    #[test]
    fn a_folder_that_is_not_empty_yet_is_looked_through_again_and_not_for_ever() {
        let mut passes = 0;
        let mut emptied_after = |wanted: u32| {
            passes = 0;
            let removed = again(|| {
                passes += 1;
                // Nobody is that patient.
                assert!(passes < 1000);
                if passes > wanted { Ok(()) } else { Err(io::ErrorKind::DirectoryNotEmpty.into()) }
            });
            (removed.map_err(|error| error.kind()), passes)
        };
        assert_eq!(emptied_after(3), (Ok(()), 4));
        assert_eq!(emptied_after(u32::MAX).0, Err(io::ErrorKind::DirectoryNotEmpty));
        let denied = again(|| Err(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(denied.map_err(|error| error.kind()), Err(io::ErrorKind::PermissionDenied));
    }

    #[test]
    fn a_tree_deeper_than_there_can_be_open_folders_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, around) = (dir.path().join("tree"), dir.path().join("around"));
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("innermost"), "x").unwrap();
        for _ in 0..4 * OPEN_FILES {
            fs::create_dir(&around).unwrap();
            fs::rename(&tree, around.join("in")).unwrap();
            fs::rename(&around, &tree).unwrap();
        }
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(OPEN_FILES), ..before }).unwrap();
        let removed = remove_folder(&tree);
        setrlimit(Resource::Nofile, before).unwrap();
        removed.unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
