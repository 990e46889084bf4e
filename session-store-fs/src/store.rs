//! [`FsStore`]: the port, one blocking task an operation.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use session_core::error::{StoreError, StoreErrorKind};
use session_core::{
    AuditEntry, AuditEvent, AuditSeq, Disposed, Document, Guard, Holder, Lease, LeaseOutcome, Leftover,
    LeftoverOptions, ListOptions, Page, Removed, Saved, SessionKey, SessionStore, StateSize,
    StoreCapabilities, StoreReach, Stored, Tombstone, async_trait,
};

use crate::disk::{self, Disk};
use crate::error::{At, Finding};
use crate::files::{self, Folder, Unopened};
use crate::layout::{self, Layout};
use crate::record::STORE_FORMAT;
use crate::records::Records;
use crate::sweep::Sweeper;
use crate::{atomic, audit, lock, state};

/// A store in a folder of the local file system. Clones share it; so does every other store that was opened
/// on the same base, in this process or another.
#[derive(Clone)]
pub struct FsStore(Arc<Inner>);

struct Inner {
    base: PathBuf,
    records: Records,
}

#[derive(Deserialize)]
struct Version {
    store: u64,
}

/// How often a state dir is made anew whose upper folder went meanwhile.
const TRIES: u32 = 8;

impl Inner {
    fn sweeper(&self) -> Sweeper<'_> {
        Sweeper { base: &self.base, records: &self.records }
    }
}

impl FsStore {
    /// Opens the store in `{base}/.agent-sessions`, and makes that folder where it is missing. `base` itself
    /// must exist, so that a path mistyped or a disk not mounted is not taken for an empty store. A relative
    /// `base` is taken from the present working directory, once.
    ///
    /// Blocks for a few system calls; the first time, until the new folder is durable.
    ///
    /// # Errors
    /// [`StoreError`], of kind `Unavailable` when `base` is missing; `PermissionDenied` when the store is not
    /// accessible or belongs to another user; `Newer` when a newer version made it; `Corrupt` when its
    /// `version.json` cannot be read; `Other` when something that is not a folder, such as a symbolic link,
    /// stands in the place of a folder.
    pub fn open(base: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_on(disk::real(), base.as_ref())
    }

    pub(crate) fn open_on(disk: Arc<dyn Disk>, base: &Path) -> Result<Self, StoreError> {
        let base = std::path::absolute(base).map_err(|error| At::new("open", base).io(error))?;
        let layout = Layout::new(&base);
        state::private_dir(&*disk, "open", &base, &[layout::ROOT], &[])?;
        let known = check_version(&*disk, &layout)?;
        for folder in [layout::RECORDS, layout::AUDIT, layout::LOCKS, layout::STATE, layout::QUARANTINE] {
            state::private_dir(&*disk, "open", &base, &[layout::ROOT, folder], &[])?;
        }
        if !known {
            write_version(&*disk, &base, &layout)?;
        }
        Ok(Self(Arc::new(Inner { base, records: Records::new(disk, layout) })))
    }

    /// The folder of the store: `{base}/.agent-sessions`.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.0.records.layout.root()
    }

    /// Runs a blocking operation to its end, also when nobody waits for it any more.
    async fn hop<T: Send + 'static>(
        &self,
        operation: &'static str,
        act: impl FnOnce(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.0);
        // Without a tokio runtime there is no thread to go to: the caller's own has to do.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return act(&inner) };
        match runtime.spawn_blocking(move || act(&inner)).await {
            Ok(answer) => answer,
            Err(error) if error.is_cancelled() => {
                Err(At::new(operation, self.root()).error(StoreErrorKind::Unavailable, Finding::NotRun))
            }
            Err(error) => Err(At::new(operation, self.root()).error(StoreErrorKind::Other, error)),
        }
    }
}

/// Whether the store knows its format: this one. A store that does not is new.
fn check_version(disk: &dyn Disk, layout: &Layout) -> Result<bool, StoreError> {
    let path = layout.version_file();
    let at = At::new("open", &path);
    let text = match files::open_to_read(disk, &path) {
        Ok((file, _)) => files::read(&*file, 0, 4096).map_err(|error| at.io(error))?,
        Err(Unopened::Absent) => return Ok(false),
        Err(unopened) => return Err(unopened.at(at, StoreErrorKind::Corrupt)),
    };
    match serde_json::from_slice::<Version>(&text) {
        Ok(Version { store: STORE_FORMAT }) => Ok(true),
        Ok(Version { store }) => {
            let newer = store > STORE_FORMAT;
            let kind = if newer { StoreErrorKind::Newer } else { StoreErrorKind::Corrupt };
            Err(at.error(kind, Finding::Format(store)))
        }
        Err(error) => Err(at.error(StoreErrorKind::Corrupt, error)),
    }
}

/// Writes the format down, last of all: where it is, the folders are durable, whoever made them and died meanwhile.
fn write_version(disk: &dyn Disk, base: &Path, layout: &Layout) -> Result<(), StoreError> {
    let above = disk.open_base(base).and_then(|folder| files::sync(&*folder));
    above.map_err(|error| At::new("open", base).io(error))?;
    let folder = Folder::open(disk, "open", layout.root().to_owned())?;
    let write = |path: &Path, content: &[u8]| {
        atomic::replace(disk, &folder, path, content).map_err(|error| At::new("open", path).io(error))
    };
    // A base may be a work tree; nothing of the store belongs into its history.
    write(&layout.ignore_file(), b"*\n")?;
    write(&layout.version_file(), format!("{{\"store\":{STORE_FORMAT}}}\n").as_bytes())
}

impl fmt::Debug for FsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FsStore").field(&self.root()).finish()
    }
}

#[async_trait]
impl SessionStore for FsStore {
    fn capabilities(&self) -> StoreCapabilities {
        StoreCapabilities::durable(StoreReach::Host).with_state_dirs()
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<Stored>, StoreError> {
        let key = key.clone();
        self.hop("load", move |inner| {
            Ok(inner
                .records
                .read("load", &key)?
                .map(|record| Stored { document: Document::new(record.document), revision: record.revision }))
        })
        .await
    }

    async fn save(
        &self,
        key: &SessionKey,
        document: &Document,
        guard: &Guard,
        lease: Option<&Lease>,
    ) -> Result<Saved, StoreError> {
        let (key, document, guard, lease) = (key.clone(), document.clone(), guard.clone(), lease.cloned());
        // The clone goes when it is done, also where nobody waits for it any more: the next holder finds what stays.
        self.hop("save", move |inner| inner.records.save(&key, &document, &guard, lease.as_ref())).await
    }

    async fn remove(&self, key: &SessionKey, guard: &Guard) -> Result<Removed, StoreError> {
        let (key, guard) = (key.clone(), guard.clone());
        self.hop("remove", move |inner| inner.records.remove(&key, &guard)).await
    }

    async fn set_aside(&self, key: &SessionKey, guard: &Guard) -> Result<Option<String>, StoreError> {
        let (key, guard) = (key.clone(), guard.clone());
        self.hop("set_aside", move |inner| inner.records.set_aside(&key, &guard)).await
    }

    async fn list(&self, options: &ListOptions) -> Result<Page<SessionKey>, StoreError> {
        let options = options.clone();
        self.hop("list", move |inner| inner.records.list(&options)).await
    }

    async fn append_audit(&self, key: &SessionKey, event: &AuditEvent) -> Result<AuditSeq, StoreError> {
        let (key, event) = (key.clone(), event.clone());
        self.hop("append_audit", move |inner| {
            let Records { disk, layout, .. } = &inner.records;
            let _lock = lock::for_write(&**disk, "append_audit", &layout.write_lock(&key))?;
            audit::append(&**disk, &layout.audit(&key), layout.audits(), &event)
        })
        .await
    }

    async fn audit(&self, key: &SessionKey, after: Option<AuditSeq>) -> Result<Vec<AuditEntry>, StoreError> {
        let key = key.clone();
        self.hop("audit", move |inner| {
            let Records { disk, layout, .. } = &inner.records;
            audit::read(&**disk, &layout.audit(&key), &layout.audits(), after)
        })
        .await
    }

    async fn lease(&self, key: &SessionKey, holder: &Holder) -> Result<LeaseOutcome, StoreError> {
        let (key, holder) = (key.clone(), holder.clone());
        self.hop("lease", move |inner| {
            let Records { disk, layout, .. } = &inner.records;
            lock::lease(&**disk, &layout.lease_lock(&key), &holder, || {
                inner.records.written_fence("lease", &layout::key_segment(&key))
            })
        })
        .await
    }

    async fn was_leased(&self, key: &SessionKey) -> Result<bool, StoreError> {
        let key = key.clone();
        self.hop("was_leased", move |inner| {
            let Records { disk, layout, .. } = &inner.records;
            // Whatever stands there is for who takes the lease.
            Ok(!matches!(files::open_to_read(&**disk, &layout.lease_lock(&key)), Err(Unopened::Absent)))
        })
        .await
    }

    async fn state_dir(&self, key: &SessionKey) -> Result<Option<PathBuf>, StoreError> {
        let key = key.clone();
        self.hop("state_dir", move |inner| {
            let (mailbox, agent) = (layout::mailbox_segment(&key), layout::agent_segment(&key));
            // The upper folders were made by `open`. Where they have gone, the disk may have gone with them.
            let disk = &*inner.records.disk;
            drop(Folder::open(disk, "state_dir", inner.records.layout.states())?);
            let (upper, lower) = ([layout::ROOT, layout::STATE], [&*mailbox, &agent]);
            let mut tries = 0;
            loop {
                // The mailbox's folder goes when another agent's state dir was the last one in it.
                tries += 1;
                match state::private_dir(disk, "state_dir", &inner.base, &upper, &lower) {
                    Err(error) if error.kind() == StoreErrorKind::Unavailable && tries < TRIES => {}
                    made => break made.map(Some),
                }
            }
        })
        .await
    }

    async fn remove_state(&self, key: &SessionKey, lease: &Lease) -> Result<bool, StoreError> {
        let (key, lease) = (key.clone(), lease.clone());
        self.hop("remove_state", move |inner| {
            // The lease stays until it is done, also where nobody waits for it any more.
            inner.records.still_held("remove_state", &key, &lease)?;
            let (mailbox, agent) = (layout::mailbox_segment(&key), layout::agent_segment(&key));
            let above = [layout::ROOT, layout::STATE];
            state::remove("remove_state", &inner.base, &above, (&mailbox, &agent))
        })
        .await
    }

    async fn state_size(&self, key: &SessionKey) -> Result<Option<StateSize>, StoreError> {
        let key = key.clone();
        self.hop("state_size", move |inner| inner.sweeper().size(&key)).await
    }

    async fn leftovers(&self, options: &LeftoverOptions) -> Result<Vec<Leftover>, StoreError> {
        let options = options.clone();
        self.hop("leftovers", move |inner| inner.sweeper().list(&options)).await
    }

    async fn remove_leftover(
        &self,
        leftover: &Leftover,
        tombstone: &Tombstone,
    ) -> Result<Disposed, StoreError> {
        let (leftover, tombstone) = (leftover.clone(), tombstone.clone());
        self.hop("remove_leftover", move |inner| inner.sweeper().remove(&leftover, &tombstone)).await
    }
}
