//! A machine without a clock: time moves when somebody waits, folders are what the walk says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use session_core::error::FolderError;
use session_core::{Folder, FolderId, Holder, Host, PathText, Repository, Timestamp, async_trait};

/// The folders of the walk: two work trees of one repository, another repository, and a folder without one.
pub(crate) const FOLDERS: usize = 4;

#[derive(Debug)]
pub(crate) struct StillHost {
    millis: AtomicU64,
    ids: AtomicU64,
    folders: Mutex<BTreeMap<PathBuf, Folder>>,
}

impl StillHost {
    pub(crate) fn new() -> Self {
        let host = Self { millis: AtomicU64::new(0), ids: AtomicU64::new(0), folders: Mutex::default() };
        (0..FOLDERS).for_each(|number| host.put_back(number));
        host
    }

    /// The folders as they are now.
    pub(crate) fn snapshot(&self) -> Vec<Folder> {
        self.folders().values().cloned().collect()
    }

    /// Puts a folder where it was at first.
    pub(crate) fn put_back(&self, number: usize) {
        self.place(number, &format!("/w/{}", ["main", "tree", "other", "plain"][number]));
    }

    /// Puts a folder there, under this path, whatever its path was before.
    pub(crate) fn place(&self, number: usize, path: &str) {
        let id = |inode| Some(FolderId { device: 1, inode, born: 1 });
        let repository = match number {
            0 | 1 => Some("/w/main/.git"),
            2 => Some("/w/other/.git"),
            _ => None,
        };
        let repository = repository.map(|path| Repository {
            common_dir: PathText::new(Path::new(path)),
            id: None,
            remote: None,
            roots: Vec::new(),
        });
        let folder = Folder { path: PathText::new(Path::new(path)), id: id(number as u64 + 1), repository };
        let mut folders = self.folders();
        folders.retain(|_, other| other.id != folder.id);
        folders.insert(path.into(), folder);
    }

    /// Takes a folder away.
    pub(crate) fn remove(&self, number: usize) {
        self.folders().retain(|_, folder| folder.id.as_ref().is_none_or(|id| id.inode != number as u64 + 1));
    }

    /// The folder of this number, where it is there.
    pub(crate) fn numbered(&self, number: usize) -> Option<Folder> {
        self.folders()
            .values()
            .find(|folder| folder.id.as_ref().is_some_and(|id| id.inode == number as u64 + 1))
            .cloned()
    }

    /// The folder at this path.
    ///
    /// # Panics
    /// Where there is none: an agent is started in folders that are there.
    pub(crate) fn at(&self, path: &Path) -> Folder {
        self.folders().get(path).cloned().unwrap_or_else(|| panic!("{} is not there", path.display()))
    }

    pub(crate) fn wait(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 2);
        self.millis.fetch_add(millis, Ordering::SeqCst);
    }

    /// The ids that were handed out since there were so many, and how many there are now.
    pub(crate) fn issued(&self, since: u64) -> (Vec<String>, u64) {
        let now = self.ids.load(Ordering::SeqCst);
        ((since..now).map(|number| uuid_of(number).to_string()).collect(), now)
    }

    fn folders(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Folder>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn uuid_of(number: u64) -> uuid::Uuid {
    uuid::Builder::from_random_bytes(u128::from(number).to_be_bytes()).into_uuid()
}

#[async_trait]
impl Host for StillHost {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::SeqCst).cast_signed())
    }

    async fn sleep(&self, duration: Duration) {
        self.wait(duration);
    }

    fn random_id(&self) -> uuid::Uuid {
        uuid_of(self.ids.fetch_add(1, Ordering::SeqCst))
    }

    fn holder(&self) -> Holder {
        Holder { host: "still".to_owned(), pid: 1, since: None }
    }

    async fn folder(&self, path: &Path) -> Result<Folder, FolderError> {
        self.folders().get(path).cloned().ok_or_else(|| FolderError::Missing { path: path.to_owned() })
    }
}
