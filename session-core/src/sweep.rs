//! What a sweep removes, and what it came to.

use std::fmt;
use std::time::Duration;

use crate::error::{Chain, CheckpointError, StoreError};
use crate::{AgentRetention, Holder, LeftoverOptions, Live, NativeId, SessionKey, StateSize, Timestamp};

/// What to remove: what belongs to no mailbox that is alive and was not used for a while, what removals and writes that
/// died left, and, where that is asked for, what is idle or too much.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Sweep {
    pub(crate) live: Live,
    pub(crate) grace: Duration,
    pub(crate) dry_run: bool,
    pub(crate) retention: Retention,
    pub(crate) aside: Option<Duration>,
    pub(crate) logs: Option<Duration>,
}

impl Sweep {
    /// How long an orphan is kept by default.
    pub const GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    /// A sweep of everything that belongs to no live mailbox and was not used for [`GRACE`](Self::GRACE).
    pub const fn new(live: Live) -> Self {
        Self {
            live,
            grace: Self::GRACE,
            dry_run: false,
            retention: Retention { idle: None, at_most: None, live_too: false },
            aside: None,
            logs: None,
        }
    }

    /// How long an orphan is kept, from its last use that can be proved: the record's last write, or, without a record,
    /// the last change in the state dir. A last use in the future is no age at all. It covers also a mailbox that is too
    /// new to be in the list of the live ones, so it has to be longer than that list is old.
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets whether nothing is changed, and what would be removed is only told. Whether a key is being run is then not
    /// found out.
    pub const fn dry_run(mut self, yes: bool) -> Self {
        self.dry_run = yes;
        self
    }

    /// What else is removed, by age and by size. Default: nothing.
    pub const fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Removes also what was set aside as unreadable longer ago than this. Default: never.
    pub const fn forget_set_aside_after(mut self, age: Duration) -> Self {
        self.aside = Some(age);
        self
    }

    /// Removes also audit logs of keys that have neither record nor state dir and are not of a live mailbox, when nothing
    /// was written to them for this long. Default: never.
    pub const fn forget_logs_after(mut self, age: Duration) -> Self {
        self.logs = Some(age);
        self
    }

    pub(crate) fn wanted(&self) -> LeftoverOptions {
        let options = LeftoverOptions::new(self.live.clone());
        options.aside(self.aside.is_some()).logs(self.logs.is_some())
    }
}

/// What is removed although it is no orphan, or not one for long enough.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Retention {
    pub(crate) idle: Option<Duration>,
    pub(crate) at_most: Option<u64>,
    pub(crate) live_too: bool,
}

impl Retention {
    /// What was used within this time is never removed to make room: a list of live mailboxes is always a little old.
    pub const FLOOR: Duration = Duration::from_secs(24 * 60 * 60);

    /// Nothing.
    pub const fn new() -> Self {
        Self { idle: None, at_most: None, live_too: false }
    }

    /// What was not used for longer than this.
    pub const fn idle_longer_than(mut self, age: Duration) -> Self {
        self.idle = Some(age);
        self
    }

    /// What makes all state dirs together take more than so many bytes of the disk: the one that was idle longest goes
    /// first, until they do not. What was used within [`FLOOR`](Self::FLOOR) stays.
    pub const fn state_at_most(mut self, bytes: u64) -> Self {
        self.at_most = Some(bytes);
        self
    }

    /// Sets whether that holds for live mailboxes, too. Default: no. A conversation that is removed is gone: the next run of
    /// the mailbox starts anew.
    pub const fn live_too(mut self, yes: bool) -> Self {
        self.live_too = yes;
        self
    }
}

/// Why something is removed by a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SweepReason {
    /// It belongs to no live mailbox.
    Orphaned,
    /// It is idle for longer than is wanted.
    Idle,
    /// It is the one that was idle longest, and all take more than is wanted.
    TooMuch,
    /// A removal or a write that died left it, and nobody uses it.
    Leftover,
    /// It was set aside, or its log was closed, longer ago than is wanted.
    Old,
}

impl SweepReason {
    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Orphaned => "orphaned",
            Self::Idle => "idle",
            Self::TooMuch => "too_much",
            Self::Leftover => "leftover",
            Self::Old => "old",
        }
    }
}

impl fmt::Display for SweepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Orphaned => "it belongs to no live mailbox",
            Self::Idle => "it is idle for longer than is kept",
            Self::TooMuch => "all state dirs take more than is kept, and it was idle longest",
            Self::Leftover => "a removal or a write that died left it",
            Self::Old => "it is older than is kept",
        })
    }
}

/// What came of one removal.
#[derive(Debug)]
#[non_exhaustive]
pub enum SweepOutcome {
    /// It is gone.
    Removed,
    /// It would be removed: nothing was changed.
    WouldBeRemoved,
    /// It is being run, so it was left alone.
    Busy {
        /// Who runs it, where the store can tell.
        by: Option<Holder>,
    },
    /// It changed since it was looked at, so it was left alone.
    Changed,
    /// It could not be removed, or not wholly. The next sweep goes on.
    Failed(StoreError),
    /// Its checkpoints are not known to be gone. Where it has a record, that stays, and the next sweep goes on.
    NotForgotten(CheckpointError),
}

/// One thing that a sweep removed, or meant to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Swept {
    /// The key, where it is known.
    pub key: Option<SessionKey>,
    /// Where it lies, as the store says, for what has no record.
    pub place: Option<String>,
    /// The session that was in force.
    pub session: Option<NativeId>,
    /// Why it is removed.
    pub reason: SweepReason,
    /// Its last use that can be proved.
    pub last_used: Option<Timestamp>,
    /// What its state dir took; `None` where there is none.
    pub size: Option<StateSize>,
    /// What came of it.
    pub outcome: SweepOutcome,
}

/// A session that its agent will delete, or has deleted, because nobody used it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Falling {
    /// The key that it is bound to.
    pub key: SessionKey,
    /// The session.
    pub session: NativeId,
    /// When a run last continued it.
    pub last_used: Timestamp,
    /// From when on the agent deletes it, in any of its runs. A run of the key before that keeps it.
    pub falls_at: Timestamp,
    /// After what time without use the agent deletes sessions.
    pub after: Duration,
}

impl Falling {
    /// Whether the session is so near to its end, or past it, that somebody has to be told: within a quarter of the time,
    /// or seven days, whichever is less.
    pub(crate) fn check(
        key: &SessionKey,
        (session, last_used): (&NativeId, Timestamp),
        after: Duration,
        now: Timestamp,
    ) -> Option<Self> {
        let warning = (after / 4).min(Duration::from_secs(7 * 24 * 60 * 60));
        (now.since(last_used) >= after.saturating_sub(warning)).then(|| Self {
            key: key.clone(),
            session: session.clone(),
            last_used,
            falls_at: last_used.plus(after),
            after,
        })
    }
}

impl AgentRetention {
    /// The time that holds, with a state dir for each key or without.
    pub(crate) const fn with_state_dirs(self, yes: bool) -> Option<Duration> {
        if yes { self.in_state_dir } else { self.in_own_place }
    }
}

/// What a sweep came to. `Display` says it line by line.
#[derive(Debug)]
#[non_exhaustive]
#[must_use]
pub struct SweepReport {
    /// The time that ages were measured from.
    pub at: Timestamp,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// What was removed, or was to be.
    pub swept: Vec<Swept>,
    /// How many keys and state dirs stay because their mailboxes are alive.
    pub live: u64,
    /// How many stay because they were used too lately, or in the future.
    pub young: u64,
    /// Keys whose records could not be read, or not asked for, and why: they and their state dirs stay.
    pub unread: Vec<(SessionKey, Option<StoreError>)>,
    /// What else could not be read, and what is not the store's: it stays.
    pub left_alone: Vec<String>,
    /// What all state dirs took before, where that was [asked for](Retention::state_at_most).
    pub state_before: Option<StateSize>,
    /// Sessions that their agents will delete soon, or have deleted already.
    pub falling: Vec<Falling>,
}

impl SweepReport {
    pub(crate) const fn new(at: Timestamp, dry_run: bool) -> Self {
        Self {
            at,
            dry_run,
            swept: Vec::new(),
            live: 0,
            young: 0,
            unread: Vec::new(),
            left_alone: Vec::new(),
            state_before: None,
            falling: Vec::new(),
        }
    }

    /// The bytes that were freed, or would be: the least that they are.
    #[must_use]
    pub fn freed(&self) -> u64 {
        let gone =
            |swept: &&Swept| matches!(swept.outcome, SweepOutcome::Removed | SweepOutcome::WouldBeRemoved);
        self.swept.iter().filter(gone).filter_map(|swept| swept.size).map(|size| size.bytes).sum()
    }

    /// What could not be removed because something failed.
    pub fn failures(&self) -> impl Iterator<Item = &Swept> {
        self.swept
            .iter()
            .filter(|swept| matches!(swept.outcome, SweepOutcome::Failed(_) | SweepOutcome::NotForgotten(_)))
    }
}

impl fmt::Display for SweepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for swept in &self.swept {
            writeln!(f, "{swept}")?;
        }
        for falling in &self.falling {
            writeln!(f, "{falling}")?;
        }
        for (key, error) in &self.unread {
            let why = error
                .as_ref()
                .map_or_else(|| "its record cannot be read".to_owned(), |e| Chain(e).to_string());
            writeln!(f, "kept {key}: {why}")?;
        }
        for name in &self.left_alone {
            writeln!(f, "left alone {name}")?;
        }
        write!(f, "{} live and {} young ones stay; ", self.live, self.young)?;
        let word = if self.dry_run { "would be freed" } else { "were freed" };
        write!(f, "{} bytes {word}", self.freed())
    }
}

impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match &self.outcome {
            SweepOutcome::Removed => "removed",
            SweepOutcome::WouldBeRemoved => "would remove",
            SweepOutcome::Busy { .. } | SweepOutcome::Changed => "kept",
            SweepOutcome::Failed(_) | SweepOutcome::NotForgotten(_) => "could not remove",
        };
        write!(f, "{word} ")?;
        match (&self.key, &self.place) {
            (Some(key), Some(place)) => write!(f, "{key} ({place})")?,
            (Some(key), None) => write!(f, "{key}")?,
            (None, place) => f.write_str(place.as_deref().unwrap_or("something"))?,
        }
        if let Some(at) = self.last_used {
            write!(f, ", last used {at}")?;
        }
        if let Some(size) = self.size {
            write!(f, ", {}{} bytes", if size.partial { "at least " } else { "" }, size.bytes)?;
        }
        write!(f, ": {}", self.reason)?;
        match &self.outcome {
            SweepOutcome::Removed | SweepOutcome::WouldBeRemoved => Ok(()),
            SweepOutcome::Busy { by: None } => write!(f, "; it is being run"),
            SweepOutcome::Busy { by: Some(by) } => write!(f, "; it is being run by {by}"),
            SweepOutcome::Changed => write!(f, "; it changed meanwhile"),
            SweepOutcome::Failed(error) => write!(f, "; {}", Chain(error)),
            SweepOutcome::NotForgotten(error) => write!(f, "; {}", Chain(error)),
        }
    }
}

impl fmt::Display for Falling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, session, falls_at, .. } = self;
        write!(f, "{} deletes the session {session} of {key} from {falls_at} on; run it before", key.agent)
    }
}
