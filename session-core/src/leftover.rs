//! What a store keeps beside its documents, as a sweep sees it, and the mailboxes that are alive.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::{AuditEvent, Holder, InvalidName, MailboxId, SessionKey, Timestamp};

/// The mailboxes that are alive. What belongs to one of them is no orphan, whatever its age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live(Mailboxes);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Mailboxes {
    All,
    Of(BTreeSet<MailboxId>),
}

impl Live {
    /// These mailboxes, and no other. At least one: where a list came out empty by mistake, everything would be an
    /// orphan; say [`Live::none`] where that is meant.
    ///
    /// # Errors
    /// [`InvalidLive`]: the list is empty, or holds what is no mailbox.
    ///
    /// ```
    /// use session_core::Live;
    ///
    /// assert!(Live::of(["issue-42", "issue-43"]).is_ok());
    /// let from_a_tracker_that_failed: Vec<String> = Vec::new();
    /// assert!(Live::of(from_a_tracker_that_failed).is_err());
    /// ```
    pub fn of<I>(mailboxes: I) -> Result<Self, InvalidLive>
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let mailboxes: Result<BTreeSet<_>, _> = mailboxes.into_iter().map(MailboxId::new).collect();
        let mailboxes = mailboxes.map_err(InvalidLive::Name)?;
        if mailboxes.is_empty() { Err(InvalidLive::Empty) } else { Ok(Self(Mailboxes::Of(mailboxes))) }
    }

    /// No mailbox at all: everything that is old enough is an orphan.
    #[must_use]
    pub const fn none() -> Self {
        Self(Mailboxes::Of(BTreeSet::new()))
    }

    /// Every mailbox: nothing is an orphan. For a runtime that cannot tell, and wants leftovers or
    /// [what is idle](crate::Retention::live_too) to be removed.
    #[must_use]
    pub const fn all() -> Self {
        Self(Mailboxes::All)
    }

    /// Whether the mailbox is alive.
    #[must_use]
    pub fn contains(&self, mailbox: &MailboxId) -> bool {
        match &self.0 {
            Mailboxes::All => true,
            Mailboxes::Of(mailboxes) => mailboxes.contains(mailbox),
        }
    }

    /// The mailboxes; `None` means all.
    #[must_use]
    pub fn mailboxes(&self) -> Option<impl Iterator<Item = &MailboxId>> {
        match &self.0 {
            Mailboxes::All => None,
            Mailboxes::Of(mailboxes) => Some(mailboxes.iter()),
        }
    }
}

/// A list of live mailboxes that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidLive {
    /// It is empty.
    #[error(
        "no mailbox is said to be alive, so that everything would be swept; say `Live::none()` if it is meant"
    )]
    Empty,
    /// It holds what is no mailbox.
    #[error("one that is said to be alive is no mailbox")]
    Name(#[source] InvalidName),
}

/// How much a directory takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StateSize {
    /// Bytes of the disk that it really takes: the holes of a sparse file take none, and a file with several names is
    /// shared out among them.
    pub bytes: u64,
    /// Whether there is more that could not be looked at: folders that are closed to us, or more of them than are looked
    /// at. The bytes are then the least that it takes.
    pub partial: bool,
    /// When something in it was last changed, as far as files say: an agent can set that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
}

impl StateSize {
    /// So many bytes, all of them looked at.
    #[must_use]
    pub const fn new(bytes: u64, changed_at: Option<Timestamp>) -> Self {
        Self { bytes, partial: false, changed_at }
    }

    /// The same, as the least that it takes.
    #[must_use]
    pub const fn at_least(mut self) -> Self {
        self.partial = true;
        self
    }
}

/// What a leftover is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LeftoverKind {
    /// A state dir of a key that has no document: made before the first one was written, or left by a removal that died.
    State,
    /// An empty folder that a state dir was in, or was to be in.
    Folder,
    /// What a removal that died had moved out of the way. Nobody uses it, whatever its age.
    Removal,
    /// A file that a write that died left. Nobody uses it; younger ones, which somebody may still write, are not listed.
    Temporary,
    /// What was set aside as unreadable.
    Aside,
    /// The audit log of a key that has neither a document nor a state dir.
    Log,
    /// A document that cannot be read, or a folder that is closed to us. It is only told of, and so is all that belongs to it.
    Unreadable,
    /// Something that is not the store's. It is only told of.
    Foreign,
}

impl LeftoverKind {
    /// Whether it can be removed at all.
    #[must_use]
    pub const fn is_removable(self) -> bool {
        !matches!(self, Self::Unreadable | Self::Foreign)
    }
}

/// Something that a store keeps and that no document leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Leftover {
    /// What it is.
    pub kind: LeftoverKind,
    /// The store's own name of it, which says where it lies.
    pub name: String,
    /// The key that it is of, where its name tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<SessionKey>,
    /// Whether it is of a mailbox that is alive, or may be.
    pub live: bool,
    /// When it was last changed, where that can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Timestamp>,
    /// How much it takes; nothing of what is only told of.
    pub size: StateSize,
}

impl Leftover {
    /// Something of no key that is alive, without size and age.
    pub fn new(kind: LeftoverKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), key: None, live: false, last_used: None, size: StateSize::default() }
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Which leftovers to list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftoverOptions {
    /// The mailboxes that are alive.
    pub live: Live,
    /// Whether to list [what was set aside](LeftoverKind::Aside).
    pub aside: bool,
    /// Whether to list [logs](LeftoverKind::Log).
    pub logs: bool,
}

impl LeftoverOptions {
    /// All that is always listed: neither what was set aside nor logs.
    #[must_use]
    pub const fn new(live: Live) -> Self {
        Self { live, aside: false, logs: false }
    }

    /// Sets whether to list what was set aside.
    #[must_use]
    pub const fn aside(mut self, yes: bool) -> Self {
        self.aside = yes;
        self
    }

    /// Sets whether to list logs of keys that have nothing else.
    #[must_use]
    pub const fn logs(mut self, yes: bool) -> Self {
        self.logs = yes;
        self
    }
}

/// What the audit log of a key says of the removal of its state dir, and who removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// Who takes the key's lease for it.
    pub holder: Holder,
    /// Written before anything is removed.
    pub before: AuditEvent,
    /// Written when it is gone.
    pub after: AuditEvent,
}

/// The answer to the wish to remove a leftover.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Disposed {
    /// It is gone.
    Removed,
    /// It was gone already.
    NothingThere,
    /// Not removed: the key is being run.
    Busy {
        /// Who runs it, where one can be read.
        by: Option<Holder>,
    },
    /// Not removed: it is not any more what was listed, or nothing that the store removes.
    Changed,
}
