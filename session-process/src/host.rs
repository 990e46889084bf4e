//! The machine, as the orchestration sees it.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use session_core::error::FolderError;
use session_core::{Folder, FolderId, Holder, Host, PathText, Timestamp, WorkTree};

use crate::{repository, work_tree};

/// The machine that this process runs on.
///
/// Needs a tokio runtime with its time driver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemHost;

impl SystemHost {
    /// The machine that this process runs on.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

#[async_trait]
impl Host for SystemHost {
    fn now(&self) -> Timestamp {
        let now = SystemTime::now();
        let millis = match now.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |millis| -millis),
        };
        Timestamp::from_millis(millis)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn random_id(&self) -> uuid::Uuid {
        uuid::Uuid::new_v4()
    }

    fn holder(&self) -> Holder {
        Holder { host: host_name(), pid: std::process::id(), since: Some(self.now()) }
    }

    /// # Cancel safety
    /// Only reads; dropping the future loses nothing.
    async fn folder(&self, path: &Path) -> Result<Folder, FolderError> {
        let owned = path.to_owned();
        // A folder may lie on a network that hangs: not on the runtime's own threads.
        let look = tokio::task::spawn_blocking(move || folder(&owned)).await;
        look.unwrap_or_else(|panicked| {
            Err(FolderError::Unusable { path: path.to_owned(), source: panicked.into() })
        })
    }

    /// Starts `git` for the root commits, in an environment of its own and for some seconds at the most.
    ///
    /// # Cancel safety
    /// Only reads; a dropped future ends the git.
    async fn work_tree(&self, path: &Path) -> Result<WorkTree, FolderError> {
        let mut folder = self.folder(path).await?;
        let own = folder.path.as_path().unwrap_or(path).to_owned();
        let mut trees = vec![own];
        if let Some(repository) = &mut folder.repository
            && let Some(common_dir) = repository.common_dir.as_path().map(Path::to_owned)
        {
            let of = common_dir.clone();
            trees
                .extend(tokio::task::spawn_blocking(move || work_tree::trees(&of)).await.unwrap_or_default());
            trees.sort();
            trees.dedup();
            repository.roots = work_tree::roots(&common_dir, &trees).await;
        }
        Ok(WorkTree { folder, trees })
    }
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    "localhost".to_owned()
}

fn folder(path: &Path) -> Result<Folder, FolderError> {
    let unusable = |source: io::Error| FolderError::Unusable { path: path.to_owned(), source: source.into() };
    let real = fs::canonicalize(path).map_err(|error| match error.kind() {
        // A path below a file does not exist either.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            FolderError::Missing { path: path.to_owned() }
        }
        _ => unusable(error),
    })?;
    let metadata = fs::metadata(&real).map_err(unusable)?;
    if !metadata.is_dir() {
        return Err(FolderError::NotAFolder { path: path.to_owned() });
    }
    // Looking at an entry needs the permission to enter, listing the one to read.
    fs::metadata(real.join(".")).map_err(unusable)?;
    fs::read_dir(&real).map_err(unusable)?;
    let repository = repository::around(&real);
    Ok(Folder { path: PathText::new(&real), id: folder_id(&metadata), repository })
}

/// What makes a directory itself. `None` without a time of birth: an inode number alone is used again.
pub(crate) fn folder_id(metadata: &Metadata) -> Option<FolderId> {
    let born = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let born = i64::try_from(born.as_nanos()).ok()?;
    let (device, inode) = numbers(metadata)?;
    Some(FolderId { device, inode, born })
}

#[cfg(unix)]
fn numbers(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn numbers(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// A directory's real path and what makes it itself; `None` when it is no directory that can be looked at.
pub(crate) fn directory(path: &Path) -> Option<(PathBuf, Option<FolderId>)> {
    let real = fs::canonicalize(path).ok()?;
    let metadata = fs::metadata(&real).ok().filter(Metadata::is_dir)?;
    Some((real, folder_id(&metadata)))
}
