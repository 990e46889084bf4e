//! A store on the disk, as much of one as another process needs that is killed, and what can be wrong with it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use session_core::error::{StoreError, StoreErrorKind};
use session_core::*;

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// The lease is a file that is there, and is removed by who made it.
    LeavesItsLease,
    /// Documents are written when the store is closed.
    WritesAtTheEnd,
}

/// One key's worth: the cases about processes have no more.
#[derive(Debug)]
pub(super) struct Disk {
    fault: Fault,
    dir: PathBuf,
    unwritten: Mutex<Option<Vec<u8>>>,
}

/// Removes the file that is a lease.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

impl Disk {
    pub(super) fn new(dir: &Path, fault: Fault) -> Self {
        Self { fault, dir: dir.to_owned(), unwritten: Mutex::default() }
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.dir.join(name)).unwrap_or_default()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(bytes) = self.unwritten.lock().unwrap().take() {
            fs::write(self.dir.join("document"), bytes).unwrap();
        }
    }
}

fn beyond<T>(operation: &'static str) -> Result<T> {
    Err(StoreError::new(StoreErrorKind::Unsupported, operation, "a store of one document"))
}

#[async_trait]
impl SessionStore for Disk {
    fn capabilities(&self) -> StoreCapabilities {
        StoreCapabilities::durable(StoreReach::Host)
    }

    async fn load(&self, _: &SessionKey) -> Result<Option<Stored>> {
        let unwritten = self.unwritten.lock().unwrap().clone();
        let bytes = unwritten.unwrap_or_else(|| self.read("document"));
        Ok(Some(Stored { document: Document::new(bytes), revision: Revision::new("1") }))
    }

    async fn save(&self, _: &SessionKey, document: &Document, _: &Guard, _: Option<&Lease>) -> Result<Saved> {
        if self.fault == Fault::WritesAtTheEnd {
            *self.unwritten.lock().unwrap() = Some(document.as_bytes().to_vec());
        } else {
            fs::write(self.dir.join("document"), document.as_bytes()).unwrap();
        }
        Ok(Saved::Done(Revision::new("1")))
    }

    async fn remove(&self, _: &SessionKey, _: &Guard) -> Result<Removed> {
        beyond("remove")
    }

    async fn set_aside(&self, _: &SessionKey, _: &Guard) -> Result<Option<String>> {
        beyond("set_aside")
    }

    async fn list(&self, _: &ListOptions) -> Result<Page<SessionKey>> {
        beyond("list")
    }

    async fn append_audit(&self, _: &SessionKey, event: &AuditEvent) -> Result<AuditSeq> {
        let entry = AuditEntry { seq: AuditSeq(1), event: event.clone() };
        fs::write(self.dir.join("log"), serde_json::to_vec(&entry).unwrap()).unwrap();
        Ok(entry.seq)
    }

    async fn audit(&self, _: &SessionKey, _: Option<AuditSeq>) -> Result<Vec<AuditEntry>> {
        Ok(serde_json::from_slice(&self.read("log")).into_iter().collect())
    }

    async fn lease(&self, _: &SessionKey, holder: &Holder) -> Result<LeaseOutcome> {
        let path = self.dir.join("lease");
        let busy = || LeaseOutcome::Busy { by: serde_json::from_slice(&self.read("lease")).ok() };
        let content = serde_json::to_vec(holder).unwrap();
        if self.fault == Fault::LeavesItsLease {
            let Ok(mut file) = File::create_new(&path) else { return Ok(busy()) };
            file.write_all(&content).unwrap();
            return Ok(LeaseOutcome::Held(Lease::new(1, Made(path))));
        }
        let file = File::options().create(true).append(true).open(&path).unwrap();
        if file.try_lock().is_err() {
            return Ok(busy());
        }
        fs::write(&path, content).unwrap();
        Ok(LeaseOutcome::Held(Lease::new(1, file)))
    }

    async fn state_dir(&self, _: &SessionKey) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    async fn remove_state(&self, _: &SessionKey, _: &Lease) -> Result<bool> {
        Ok(false)
    }

    async fn state_size(&self, _: &SessionKey) -> Result<Option<StateSize>> {
        Ok(None)
    }

    async fn leftovers(&self, _: &LeftoverOptions) -> Result<Vec<Leftover>> {
        Ok(Vec::new())
    }

    async fn remove_leftover(&self, _: &Leftover, _: &Tombstone) -> Result<Disposed> {
        Ok(Disposed::NothingThere)
    }
}
