//! What the store asks of a file system. Every system call on its files and folders goes through here, so that tests
//! can put a disk below the store that crashes, fails and lies. (The removal of an agent's tree alone does not.)
//!
//! One method is one system call, or a few that belong together. Paths are absolute.

use std::any::Any;
use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

mod real;

/// The disk of this machine.
pub(crate) fn real() -> Arc<dyn Disk> {
    Arc::new(real::Real::new())
}

/// What a file is opened for. None follows a link in the file's own place, or waits for the other end of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// To be read; it is there.
    Read,
    /// To be read and written; it is made where it is missing, for its owner alone.
    Write,
    /// To be written; it must not be there yet, and is made for its owner alone.
    New,
}

/// A file system.
pub(crate) trait Disk: Debug + Send + Sync + 'static {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a folder. A link in its place is not followed.
    fn open_folder(&self, path: &Path) -> io::Result<Box<dyn DiskFolder>>;
    /// Opens the caller's folder, which may be reached through links.
    fn open_base(&self, path: &Path) -> io::Result<Box<dyn DiskFolder>>;
    /// What stands at a path; of a link, the link itself.
    fn look(&self, path: &Path) -> io::Result<Meta>;
    /// Whether a path leads to a folder.
    fn is_folder(&self, path: &Path) -> bool;
    fn entries(&self, folder: &Path) -> io::Result<Entries>;
    /// Moves whatever is there, over what is at the target, as one step.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// What is another text after each start of the machine, where the system tells: as long as it is the same, nothing that was
    /// written and not synced is lost.
    fn boot(&self) -> Option<&str>;
}

/// The entries of a folder, in no order.
pub(crate) type Entries = Box<dyn Iterator<Item = io::Result<Entry>>>;

/// What a folder tells of an entry; of a link, that it is one.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) kind: Kind,
}

/// An open file. Dropping it closes it.
pub(crate) trait DiskFile: Debug + Any + Send + Sync {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes the content durable, and what is needed to find it again.
    fn sync_data(&self) -> io::Result<()>;
    fn sync_all(&self) -> io::Result<()>;
    fn meta(&self) -> io::Result<Meta>;
    /// Lets nobody but the owner read and write, where the system has modes.
    fn make_private(&self) -> io::Result<()>;
    /// Takes the kernel's lock of this open file; `false` where another has it.
    fn try_lock(&self) -> io::Result<bool>;
    fn unlock(&self) -> io::Result<()>;
}

/// An open folder. What is entered from it cannot be exchanged on the way, where the system can do that.
pub(crate) trait DiskFolder: Debug + Send + Sync {
    /// Makes a folder in it for its owner alone; `false` where something of that name is there.
    fn make(&self, name: &str) -> io::Result<bool>;
    /// Opens a folder in it. A link in its place is not followed.
    fn enter(&self, name: &str) -> io::Result<Box<dyn DiskFolder>>;
    fn meta(&self) -> io::Result<Meta>;
    /// Lets nobody but the owner in.
    fn make_private(&self) -> io::Result<()>;
    /// Makes the entries durable.
    fn sync(&self) -> io::Result<()>;
}

/// What is known of a file, a folder or something else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meta {
    pub(crate) kind: Kind,
    pub(crate) length: u64,
    /// Where the system tells.
    pub(crate) modified: Option<SystemTime>,
    #[cfg(unix)]
    pub(crate) unix: Unix,
}

/// What Unix knows besides.
#[cfg(unix)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unix {
    /// The permissions alone.
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    /// How many names it has.
    pub(crate) links: u64,
    /// Device and inode.
    pub(crate) identity: (u64, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    Other,
}

impl Kind {
    /// In words.
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a directory",
            Self::Link => "a symbolic link",
            Self::Other => "a pipe, a socket or a device",
        }
    }
}
