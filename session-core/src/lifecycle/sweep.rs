//! A sweep: look at every key and every leftover, remove what nobody owns or wants, one after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::decide::{Extent, Fate, Owner, SweepFacts, Unused, fate};
use crate::error::{StoreError, StoreErrorKind};
use crate::{
    AgentId, AgentRetention, CloseError, Closing, Falling, Folder, Guard, LeaseOutcome, Leftover,
    LeftoverKind, ListOptions, NativeId, Retention, SessionKey, SessionRecord, StateSize, Sweep,
    SweepOutcome, SweepReason, SweepReport, Swept, Timestamp, codec,
};

use super::Lifecycle;
use super::close::Doomed;

/// Something that may be removed.
#[derive(Debug)]
struct Candidate {
    what: What,
    session: Option<NativeId>,
    last_used: Option<Timestamp>,
    size: Option<StateSize>,
}

#[derive(Debug)]
enum What {
    Key(SessionKey),
    Leftover(Leftover),
}

/// What a key's record says now.
enum Look {
    Readable(Box<SessionRecord>, Guard),
    Unreadable,
    NothingThere,
}

/// A sweep under way.
struct Course<'a> {
    sweep: &'a Sweep,
    report: SweepReport,
    /// What stays, and may go to make room.
    spare: Vec<Candidate>,
    /// What all state dirs take that were not removed.
    total: StateSize,
    /// After what time agents delete sessions, as far as they were asked.
    agents: BTreeMap<AgentId, Option<Duration>>,
}

impl Lifecycle {
    /// Removes what belongs to no live mailbox and was not used for a while, what removals and writes that died left, and
    /// what the sweep's [`Retention`] asks for. Each key goes under its lease and with a word in its audit log, which stays,
    /// as by [`close`](Self::close). What cannot be read, is being run, changes meanwhile or fails is told in the report and
    /// stops nothing else. The report also names sessions that their agents will soon delete by themselves.
    ///
    /// # Errors
    /// [`StoreError`] when the store could not list what it keeps; nothing was changed.
    ///
    /// # Cancel safety
    /// A dropped future leaves what it was at removed in part; the next sweep finishes that.
    #[tracing::instrument(skip_all, fields(dry_run = sweep.dry_run))]
    pub async fn sweep(&self, sweep: &Sweep) -> Result<SweepReport, StoreError> {
        let keys = self.every_key().await?;
        let leftovers = self.store.leftovers(&sweep.wanted()).await?;
        let mut course = Course {
            sweep,
            report: SweepReport::new(self.host.now(), sweep.dry_run),
            spare: Vec::new(),
            total: StateSize::default(),
            agents: BTreeMap::new(),
        };
        for key in keys {
            if let Err(error) = self.sweep_key(&mut course, &key).await {
                tracing::warn!(%key, %error, "a key could not be looked at");
                course.report.unread.push((key, Some(error)));
            }
        }
        for leftover in leftovers {
            self.sweep_leftover(&mut course, leftover).await;
        }
        self.make_room(&mut course).await;
        let report = course.report;
        tracing::info!(
            removed = report.swept.len(),
            failed = report.failures().count(),
            live = report.live,
            young = report.young,
            freed = report.freed(),
            "swept"
        );
        Ok(report)
    }

    /// The keys of all pages.
    pub(super) async fn every_key(&self) -> Result<Vec<SessionKey>, StoreError> {
        let mut keys: Vec<SessionKey> = Vec::new();
        loop {
            let options = ListOptions { after: keys.last().cloned(), ..ListOptions::default() };
            let page = self.store.list(&options).await?;
            let is_last = !page.more || page.items.is_empty();
            keys.extend(page.items);
            if is_last {
                return Ok(keys);
            }
        }
    }

    async fn sweep_key(&self, course: &mut Course<'_>, key: &SessionKey) -> Result<(), StoreError> {
        let record = match self.look(key).await? {
            Look::Readable(record, _) => record,
            Look::Unreadable => {
                course.report.unread.push((key.clone(), None));
                if course.sweep.retention.at_most.is_some() {
                    let size = self.measure(key).await;
                    course.count(&Candidate {
                        what: What::Key(key.clone()),
                        session: None,
                        last_used: None,
                        size,
                    });
                }
                return Ok(());
            }
            Look::NothingThere => return Ok(()),
        };
        let (last_used, live) = (record.last_use(), course.sweep.live.contains(&key.mailbox));
        let fate = course.fate(live, Some(last_used));
        let measured =
            course.sweep.retention.at_most.is_some() || matches!(fate, Fate::Orphaned | Fate::Idle);
        let size = if measured { self.measure(key).await } else { None };
        let binding = record.binding;
        let candidate = Candidate {
            what: What::Key(key.clone()),
            session: binding.as_ref().map(|binding| binding.native_id.clone()),
            last_used: Some(last_used),
            size,
        };
        if let (Some(binding), Fate::Kept | Fate::Spare) = (binding, fate)
            && let Some(after) = self.agent_deletes_after(course, &key.agent, binding.folder()).await
            && let Some(falling) =
                Falling::check(key, (&binding.native_id, binding.used_at), after, course.report.at)
        {
            tracing::warn!(%key, session = %falling.session, at = %falling.falls_at, "the agent deletes a session by its age");
            course.report.falling.push(falling);
        }
        self.settle_fate(course, candidate, (fate, live)).await;
        Ok(())
    }

    async fn sweep_leftover(&self, course: &mut Course<'_>, leftover: Leftover) {
        let past = |limit: Option<Duration>| course.unused(limit, leftover.last_used) == Unused::Past;
        let fate = match leftover.kind {
            LeftoverKind::State | LeftoverKind::Folder => course.fate(leftover.live, leftover.last_used),
            LeftoverKind::Removal | LeftoverKind::Temporary => Fate::Orphaned,
            LeftoverKind::Aside if past(course.sweep.aside) => Fate::Orphaned,
            LeftoverKind::Log if !leftover.live && past(course.sweep.logs) => Fate::Orphaned,
            LeftoverKind::Aside | LeftoverKind::Log => return,
            LeftoverKind::Unreadable | LeftoverKind::Foreign => {
                course.report.left_alone.push(leftover.name);
                return;
            }
        };
        let live = leftover.live;
        let candidate = Candidate {
            session: None,
            last_used: leftover.last_used,
            size: (leftover.kind != LeftoverKind::Folder).then_some(leftover.size),
            what: What::Leftover(leftover),
        };
        self.settle_fate(course, candidate, (fate, live)).await;
    }

    async fn settle_fate(&self, course: &mut Course<'_>, candidate: Candidate, (fate, live): (Fate, bool)) {
        course.count(&candidate);
        match fate {
            Fate::Orphaned => {
                self.dispose(course, candidate.orphaned()).await;
            }
            Fate::Idle => {
                self.dispose(course, (candidate, SweepReason::Idle)).await;
            }
            Fate::Kept | Fate::Spare if candidate.is_state() => {
                let counter = if live { &mut course.report.live } else { &mut course.report.young };
                *counter += 1;
                if fate == Fate::Spare {
                    course.spare.push(candidate);
                }
            }
            Fate::Kept | Fate::Spare => {}
        }
    }

    /// Removes what was idle longest until the rest fits.
    async fn make_room(&self, course: &mut Course<'_>) {
        let Some(limit) = course.sweep.retention.at_most else { return };
        let mut spare = std::mem::take(&mut course.spare);
        spare.retain(|candidate| {
            let old = course.unused(Some(Retention::FLOOR), candidate.last_used) == Unused::Past;
            old && candidate.size.is_some_and(|size| size.bytes > 0)
        });
        spare.sort_by_key(|candidate| candidate.last_used);
        for candidate in spare {
            if course.total.bytes <= limit {
                break;
            }
            let live = match &candidate.what {
                What::Key(key) => course.sweep.live.contains(&key.mailbox),
                What::Leftover(leftover) => leftover.live,
            };
            if self.dispose(course, (candidate, SweepReason::TooMuch)).await {
                let counter = if live { &mut course.report.live } else { &mut course.report.young };
                *counter -= 1;
            }
        }
    }

    /// Removes, or says that it would, notes what came of it, and says whether it is, or would be, gone.
    async fn dispose(&self, course: &mut Course<'_>, (candidate, reason): (Candidate, SweepReason)) -> bool {
        let outcome = match &candidate.what {
            _ if course.sweep.dry_run => SweepOutcome::WouldBeRemoved,
            What::Key(key) => self.close_unused(key, candidate.last_used, closing(reason)).await,
            What::Leftover(leftover) => self.remove_leftover(leftover, closing(reason)).await,
        };
        let gone = matches!(outcome, SweepOutcome::Removed | SweepOutcome::WouldBeRemoved);
        if gone {
            course.uncount(&candidate);
            if let What::Key(key) = &candidate.what {
                course.report.falling.retain(|falling| falling.key != *key);
            }
        }
        let (key, place) = match candidate.what {
            What::Key(key) => (Some(key), None),
            What::Leftover(leftover) => (leftover.key, Some(leftover.name)),
        };
        let Candidate { session, last_used, size, .. } = candidate;
        let swept = Swept { key, place, session, reason, last_used, size, outcome };
        tracing::debug!(%swept, "swept");
        course.report.swept.push(swept);
        gone
    }

    /// Closes a key under its lease, if it was not used since it was looked at.
    async fn close_unused(
        &self,
        key: &SessionKey,
        last_used: Option<Timestamp>,
        closing: Closing,
    ) -> SweepOutcome {
        let lease = match self.store.lease(key, &self.host.holder()).await {
            Ok(LeaseOutcome::Held(lease)) => lease,
            Ok(LeaseOutcome::Busy { by }) => return SweepOutcome::Busy { by },
            Err(error) => return SweepOutcome::Failed(error),
        };
        let (record, guard) = match self.look(key).await {
            Ok(Look::Readable(record, guard)) if Some(record.last_use()) == last_used => {
                (Some(*record), Some(guard))
            }
            Ok(_) => return SweepOutcome::Changed,
            Err(error) => return SweepOutcome::Failed(error),
        };
        match self.end(Doomed { key, lease: &lease, record, guard }, closing).await {
            Ok(_) => SweepOutcome::Removed,
            Err(CloseError::Store { source, .. }) => SweepOutcome::Failed(source),
            Err(CloseError::Checkpoints { source, .. }) => SweepOutcome::NotForgotten(source),
            Err(CloseError::Busy { .. } | CloseError::Newer { .. }) => SweepOutcome::Changed,
        }
    }

    /// How much a key's state dir takes. What cannot be measured may still be removed.
    async fn measure(&self, key: &SessionKey) -> Option<StateSize> {
        self.store.state_size(key).await.unwrap_or_else(|error| {
            tracing::warn!(%key, %error, "a state dir could not be measured");
            Some(StateSize::default().at_least())
        })
    }

    async fn look(&self, key: &SessionKey) -> Result<Look, StoreError> {
        let stored = match self.store.load(key).await {
            Ok(None) => return Ok(Look::NothingThere),
            Ok(Some(stored)) => stored,
            Err(error) if matches!(error.kind(), StoreErrorKind::Corrupt | StoreErrorKind::Newer) => {
                return Ok(Look::Unreadable);
            }
            Err(error) => return Err(error),
        };
        Ok(match codec::decode(&stored.document, key) {
            codec::Decoded::Record(record) => Look::Readable(record, Guard::Revision(stored.revision)),
            codec::Decoded::Newer(_) | codec::Decoded::Corrupt(_) => Look::Unreadable,
        })
    }

    /// After what time an agent deletes sessions that nobody uses. An agent that cannot be asked is one that does not. It is
    /// asked as for a run in the folder of the first session that is its, so that nothing is started which was planted there.
    async fn agent_deletes_after(
        &self,
        course: &mut Course<'_>,
        agent: &AgentId,
        began_in: &Folder,
    ) -> Option<Duration> {
        if let Some(known) = course.agents.get(agent) {
            return *known;
        }
        let installation = match (self.agents.get(agent), began_in.path.as_path()) {
            (Some(registered), Some(folder)) => registered.adapter().detect_in(folder).await.ok(),
            (_, None) | (None, _) => None,
        };
        let retention = installation.map_or(AgentRetention::NONE, |found| found.capabilities.retention);
        let after = retention.with_state_dirs(self.state_dirs);
        course.agents.insert(agent.clone(), after);
        after
    }
}

impl Course<'_> {
    /// What becomes of something.
    fn fate(&self, live: bool, last_used: Option<Timestamp>) -> Fate {
        let retention = self.sweep.retention;
        fate(SweepFacts {
            owner: if live { Owner::Live } else { Owner::Nobody },
            grace: self.unused(Some(self.sweep.grace), last_used),
            idle: self.unused(retention.idle, last_used),
            extent: if retention.live_too { Extent::LiveToo } else { Extent::Orphans },
        })
    }

    /// A use that lies in the future is none that is long ago.
    fn unused(&self, limit: Option<Duration>, last_used: Option<Timestamp>) -> Unused {
        match (limit, last_used) {
            (None, _) => Unused::Unlimited,
            (Some(limit), Some(at)) if at < self.report.at && self.report.at.since(at) > limit => {
                Unused::Past
            }
            (Some(_), _) => Unused::Within,
        }
    }

    fn count(&mut self, candidate: &Candidate) {
        if self.sweep.retention.at_most.is_none() || !candidate.is_state() {
            return;
        }
        let size = candidate.size.unwrap_or_default();
        self.total.bytes += size.bytes;
        self.total.partial |= size.partial;
        let before = self.report.state_before.get_or_insert_with(StateSize::default);
        before.bytes += size.bytes;
        before.partial |= size.partial;
    }

    fn uncount(&mut self, candidate: &Candidate) {
        if candidate.is_state() {
            let bytes = candidate.size.unwrap_or_default().bytes;
            self.total.bytes = self.total.bytes.saturating_sub(bytes);
        }
    }
}

impl Candidate {
    /// Whether it is the state dir of a key.
    fn is_state(&self) -> bool {
        match &self.what {
            What::Key(_) => true,
            What::Leftover(leftover) => leftover.kind == LeftoverKind::State,
        }
    }

    /// With the reason for which it goes where nobody owns it.
    fn orphaned(self) -> (Self, SweepReason) {
        let reason = match &self.what {
            What::Key(_) => SweepReason::Orphaned,
            What::Leftover(leftover) => match leftover.kind {
                LeftoverKind::State => SweepReason::Orphaned,
                LeftoverKind::Aside | LeftoverKind::Log => SweepReason::Old,
                _ => SweepReason::Leftover,
            },
        };
        (self, reason)
    }
}

/// What the tombstone says.
const fn closing(reason: SweepReason) -> Closing {
    match reason {
        SweepReason::Idle | SweepReason::TooMuch => Closing::Expired,
        SweepReason::Orphaned | SweepReason::Leftover | SweepReason::Old => Closing::Orphaned,
    }
}
