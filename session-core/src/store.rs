//! The port to a store: a compare-and-swap map of opaque documents, an audit log and a lease per key.

use std::any::Any;
use std::fmt::{self, Debug};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::{
    AuditEntry, AuditEvent, AuditSeq, Disposed, Holder, Leftover, LeftoverOptions, SessionKey, StateSize,
    Tombstone,
};

/// What the store keeps: bytes. The store never parses them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Document(Vec<u8>);

impl Document {
    /// Wraps bytes.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({} bytes)", self.0.len())
    }
}

/// A state of one key. Never used twice for one key, not even after a removal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(String);

impl Revision {
    /// Wraps the store's own text for it.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The store's own text for it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A document and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The bytes.
    pub document: Document,
    /// The state that a guarded write refers to.
    pub revision: Revision,
}

/// Under which condition a write happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// Always.
    Any,
    /// Only when there is nothing.
    Absent,
    /// Only when the key is in this state.
    Revision(Revision),
}

impl Guard {
    /// Whether the condition holds for a key in this state. For stores, so that all judge alike.
    #[must_use]
    pub fn admits(&self, current: Option<&Revision>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => current.is_none(),
            Self::Revision(wanted) => current == Some(wanted),
        }
    }
}

/// The answer to a write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Saved {
    /// Written; the key is in this state now.
    Done(Revision),
    /// Not written: the condition did not hold.
    Refused {
        /// The state that the key is in.
        current: Option<Revision>,
    },
    /// Not written: the writer's lease is over, and the key was granted to another one since.
    Fenced {
        /// The number of the latest grant, as far as the store can tell.
        latest: u64,
    },
}

/// The answer to a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Removed {
    /// Removed.
    Done,
    /// There was nothing.
    NothingThere,
    /// Not removed: the condition did not hold.
    Refused {
        /// The state that the key is in.
        current: Revision,
    },
}

/// How far a store's lease and writes reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreReach {
    /// This process only.
    Process,
    /// All processes of this host.
    Host,
    /// All hosts that use the store.
    Network,
}

/// What a store can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreCapabilities {
    /// How far its promises reach.
    pub reach: StoreReach,
    /// Whether an acknowledged write survives a crash of the machine.
    pub durable: bool,
    /// Whether it has a place for state dirs.
    pub state_dirs: bool,
    /// Whether it says who holds a lease that is busy.
    pub names_holders: bool,
}

impl StoreCapabilities {
    /// A store that forgets everything with the process.
    pub const VOLATILE: Self =
        Self { reach: StoreReach::Process, durable: false, state_dirs: false, names_holders: true };

    /// A store that keeps what it acknowledges.
    #[must_use]
    pub const fn durable(reach: StoreReach) -> Self {
        Self { reach, durable: true, state_dirs: false, names_holders: true }
    }

    /// The same, with a place for state dirs.
    #[must_use]
    pub const fn with_state_dirs(mut self) -> Self {
        self.state_dirs = true;
        self
    }

    /// The same, of a store that cannot say who holds a lease.
    #[must_use]
    pub const fn without_holder_names(mut self) -> Self {
        self.names_holders = false;
        self
    }
}

/// The right to run a key, held until it and all its clones are dropped.
#[derive(Clone)]
pub struct Lease {
    fence: u64,
    guard: Arc<dyn Any + Send + Sync>,
}

impl Lease {
    /// Wraps the store's guard, whose drop releases the lease, and the number of the grant.
    pub fn new(fence: u64, guard: impl Any + Send + Sync) -> Self {
        Self { fence, guard: Arc::new(guard) }
    }

    /// The number of the grant; it grows with every grant of the key.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// What the store wrapped, for that store: `None` for a lease of another kind.
    #[must_use]
    pub fn guard<T: Any>(&self) -> Option<&T> {
        self.guard.downcast_ref()
    }
}

impl Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({})", self.fence)
    }
}

/// The answer to the wish for a lease.
#[derive(Debug)]
#[must_use]
pub enum LeaseOutcome {
    /// It is ours.
    Held(Lease),
    /// Somebody else has it.
    Busy {
        /// Who, where the store [names holders](StoreCapabilities::names_holders) and one can be read.
        by: Option<Holder>,
    },
}

/// Which part of the keys to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// At most so many.
    pub limit: Option<usize>,
    /// Only what comes after this key, in the store's own order.
    pub after: Option<SessionKey>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Whether there is more after them.
    pub more: bool,
}

/// A store of bindings.
///
/// # Contract
/// 1. Keys are isolated: no two keys share anything, whatever characters they hold.
/// 2. A document comes back byte for byte.
/// 3. `load` answers `None` only when there is nothing; unreadable content is an error of kind `Corrupt`,
///    and a store that cannot be asked is one of kind `Unavailable`.
/// 4. Of several writers with one guard, exactly one is `Done`. Over content that is unreadable, or newer than
///    the store, `save` and `remove` are errors whatever the guard; `set_aside` refuses what is newer.
/// 5. A revision is never used twice.
/// 6. After `Saved::Done` of a durable store, a crash does not take the document away; a crash before it
///    leaves the old or the new document, whole.
/// 7. At most one lease of a key is held within the store's reach; it ends with its holder, however that ends.
///    Its number grows with every grant. A `save` of a holder is `Fenced` once there is a later grant, so that who lost
///    a lease writes nothing over its successor. (A write that was under way at the grant may come first; the guard tells the
///    successor.)
/// 8. The audit log of a key keeps its order, and numbers grow.
/// 9. A state dir that was removed is gone, and no other key's is touched.
/// 10. A leftover is what no document leads to, and is removed only while that is so, nobody runs its key, and it is as it
///     was listed. What the store cannot prove to be its own is none.
///
/// # Cancel safety
/// Dropping a future of any method leaves the old or the new state, never a part of one.
#[async_trait]
pub trait SessionStore: Debug + Send + Sync + 'static {
    /// What this store can do.
    fn capabilities(&self) -> StoreCapabilities;

    /// Reads the document of a key.
    ///
    /// # Errors
    /// [`StoreError`] when the question could not be answered.
    async fn load(&self, key: &SessionKey) -> Result<Option<Stored>, StoreError>;

    /// Writes the document of a key, if the guard holds and the lease, where one is given, is the latest grant of the key.
    /// Without a lease, the guard alone decides. A store that goes on after the future was dropped keeps a clone of the
    /// lease until it is done, so that the next holder finds the document as it stays.
    ///
    /// # Errors
    /// [`StoreError`] when it is not known to be written.
    async fn save(
        &self,
        key: &SessionKey,
        document: &Document,
        guard: &Guard,
        lease: Option<&Lease>,
    ) -> Result<Saved, StoreError>;

    /// Removes the document of a key, if the guard holds. Audit and state dir stay.
    ///
    /// # Errors
    /// [`StoreError`] when it is not known to be removed.
    async fn remove(&self, key: &SessionKey, guard: &Guard) -> Result<Removed, StoreError>;

    /// Moves a document that its reader could not read out of the way, if the guard holds, never to be read back,
    /// and says where it lies. Content that the store itself cannot read has no revision; only [`Guard::Any`] moves
    /// it. `None`: there was nothing, or the guard did not hold.
    ///
    /// # Errors
    /// [`StoreError`] when it still stands.
    async fn set_aside(&self, key: &SessionKey, guard: &Guard) -> Result<Option<String>, StoreError>;

    /// Lists keys that have a document, each once.
    ///
    /// # Errors
    /// [`StoreError`] when the list could not be made.
    async fn list(&self, options: &ListOptions) -> Result<Page<SessionKey>, StoreError>;

    /// Adds an event to the key's audit log and says its number.
    ///
    /// # Errors
    /// [`StoreError`] when it is not known to be added.
    async fn append_audit(&self, key: &SessionKey, event: &AuditEvent) -> Result<AuditSeq, StoreError>;

    /// Reads the key's audit log, oldest first, after the given number.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be read.
    async fn audit(&self, key: &SessionKey, after: Option<AuditSeq>) -> Result<Vec<AuditEntry>, StoreError>;

    /// Takes the right to run the key, without waiting.
    ///
    /// # Errors
    /// [`StoreError`] when it is not known who holds it.
    async fn lease(&self, key: &SessionKey, holder: &Holder) -> Result<LeaseOutcome, StoreError>;

    /// Whether somebody may hold the lease of a key, or may ever have held it; `false` is sure. Looking leaves nothing. A store
    /// that can only tell by taking the lease says `true`.
    ///
    /// # Errors
    /// [`StoreError`] when nobody can tell.
    async fn was_leased(&self, _key: &SessionKey) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// The directory for the agent's session files of this key, made private and ready. `None`: this store
    /// has no place for them, and the agent uses its own.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be made ready, or is not a private directory.
    async fn state_dir(&self, key: &SessionKey) -> Result<Option<PathBuf>, StoreError>;

    /// Removes the state dir of a key with all that is in it, and says whether there was one. A link is removed, never
    /// followed. `false`, too, where the store has no place for state dirs. The lease is the caller's; a store that goes on
    /// after the future was dropped keeps a clone of it until it is done, so that no run begins in what is being removed.
    ///
    /// # Errors
    /// [`StoreError`] when it is not known to be gone: a part of it may be. Removing it again goes on.
    async fn remove_state(&self, key: &SessionKey, lease: &Lease) -> Result<bool, StoreError>;

    /// How much the key's state dir takes, without following a link out of it. `None`: there is none. What changes
    /// meanwhile is counted as it is found.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be looked at, or is no directory of ours.
    async fn state_size(&self, key: &SessionKey) -> Result<Option<StateSize>, StoreError>;

    /// Lists what the store keeps and no document leads to, and changes nothing. A store without state dirs has nothing
    /// to list.
    ///
    /// # Errors
    /// [`StoreError`] when the list could not be made.
    async fn leftovers(&self, options: &LeftoverOptions) -> Result<Vec<Leftover>, StoreError>;

    /// Removes a leftover as it was listed, under its key's lease where it has one. The audit log of a key whose state dir
    /// is removed is told before and after. No link is followed. Whatever the leftover says of itself is checked: of what
    /// has a document by now, has changed, or is not the store's own, nothing is touched.
    ///
    /// # Errors
    /// [`StoreError`] when it is not known to be gone: a part of it may be. It is listed again then, as what is left.
    async fn remove_leftover(
        &self,
        leftover: &Leftover,
        tombstone: &Tombstone,
    ) -> Result<Disposed, StoreError>;
}
