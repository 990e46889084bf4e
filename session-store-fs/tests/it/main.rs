//! The store in one process. What needs several is in `tests/processes`.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as the tests do")]

mod audit;
mod damage;
mod documents;
mod lease;
mod list;
mod open;
#[cfg(unix)]
mod planted;
mod state;
#[cfg(unix)]
mod sweep;
#[cfg(unix)]
mod usage;

use std::path::PathBuf;

use session_core::error::{StoreError, StoreErrorKind};
use session_core::{Document, Guard, Holder, Revision, Saved, SessionKey, SessionStore as _};
use session_store_fs::FsStore;
use tempfile::TempDir;

/// A store in a folder that goes with it.
struct Fixture {
    dir: TempDir,
    store: FsStore,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = FsStore::open(dir.path()).unwrap();
        Self { dir, store }
    }

    fn path(&self, below_root: &str) -> PathBuf {
        self.store.root().join(below_root)
    }

    async fn put(&self, key: &SessionKey, text: &str) -> Revision {
        done(self.store.save(key, &doc(text), &Guard::Any, None).await)
    }

    /// The document's text, or the kind of error.
    async fn get(&self, key: &SessionKey) -> Result<Option<String>, StoreErrorKind> {
        let stored = self.store.load(key).await.map_err(|error| error.kind())?;
        Ok(stored.map(|stored| String::from_utf8(stored.document.as_bytes().to_vec()).unwrap()))
    }
}

fn key(mailbox: &str) -> SessionKey {
    SessionKey::new(mailbox, "claude").unwrap()
}

fn doc(text: &str) -> Document {
    Document::new(text.as_bytes().to_vec())
}

fn done(saved: Result<Saved, StoreError>) -> Revision {
    match saved.unwrap() {
        Saved::Done(revision) => revision,
        refused => panic!("{refused:?}"),
    }
}

fn holder(pid: u32) -> Holder {
    Holder { host: "host".to_owned(), pid, since: None }
}

/// The error's kind; it names the path and has a cause.
fn kind_at<T: std::fmt::Debug>(result: Result<T, StoreError>, path_part: &str) -> StoreErrorKind {
    let error = result.unwrap_err();
    assert!(error.to_string().contains(path_part), "{error} does not name {path_part}");
    assert!(std::error::Error::source(&error).is_some(), "{error} has no cause");
    error.kind()
}

/// Folders within each other, deeper than there can be open files or than a path can be long, with a file at the end.
#[cfg(unix)]
fn make_deep(folder: &std::path::Path, levels: u32, file: &[u8]) {
    use std::io::Write as _;

    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    let enter = |from: &std::os::fd::OwnedFd| openat(from, "d", OFlags::RDONLY, Mode::empty()).unwrap();
    let mut here = openat(CWD, folder, OFlags::RDONLY, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&here, "d", Mode::RWXU).unwrap();
        here = enter(&here);
    }
    let made = openat(&here, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR | Mode::WUSR).unwrap();
    std::fs::File::from(made).write_all(file).unwrap();
}
