//! The sample's logs, leases and state dirs.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use session_core::error::{StoreError, StoreErrorKind};
use session_core::*;

use super::flaw::Flaw;
use super::sample::{Sample, World};

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn error(kind: StoreErrorKind, operation: &'static str) -> StoreError {
    StoreError::new(kind, operation, "the sample")
}

/// Lets everybody else do something.
pub(super) async fn pause() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// Ends a lease when it is dropped.
struct Held {
    world: Arc<Mutex<World>>,
    of: (SessionKey, usize),
}

impl Drop for Held {
    fn drop(&mut self) {
        self.world.lock().unwrap().holders.remove(&self.of);
    }
}

impl Sample {
    fn log_of(&self, key: &SessionKey) -> SessionKey {
        let mailbox = key.mailbox.as_str().to_lowercase();
        if self.is(Flaw::FoldsLogs) { SessionKey::new(mailbox, "any").unwrap() } else { key.clone() }
    }

    pub(super) async fn append(&self, key: &SessionKey, event: &AuditEvent) -> Result<AuditSeq> {
        let (key, mut event) = (self.log_of(key), event.clone());
        self.world().reach("append_audit")?;
        if self.is(Flaw::KeepsTheFirstLine) {
            event.detail = event.detail.map(|detail| detail.lines().next().unwrap_or_default().to_owned());
        }
        let numbered = |log: &[AuditEntry]| {
            let last = log.iter().map(|entry| entry.seq.0).max().unwrap_or(0);
            AuditSeq(last + u64::from(!self.is(Flaw::NumbersEntriesAlike)))
        };
        if self.is(Flaw::ReadsTheLogThenWrites) {
            let mut log = self.world().logs.get(&key).cloned().unwrap_or_default();
            pause().await;
            let seq = numbered(&log);
            log.push(AuditEntry { seq, event });
            self.world().logs.insert(key, log);
            return Ok(seq);
        }
        let mut world = self.world();
        let log = world.logs.entry(key).or_default();
        let seq = numbered(log);
        log.push(AuditEntry { seq, event });
        if self.is(Flaw::SortsTheLog) {
            log.sort_by(|a, b| a.event.detail.cmp(&b.event.detail));
        }
        Ok(seq)
    }

    pub(super) fn read_log(&self, key: &SessionKey, after: Option<AuditSeq>) -> Result<Vec<AuditEntry>> {
        let world = self.world();
        world.reach("audit")?;
        let log = world.logs.get(&self.log_of(key)).cloned().unwrap_or_default();
        let wanted = |entry: &AuditEntry| match self.flaw {
            Flaw::ReadsFromTheNumber => Some(entry.seq) >= after,
            _ => Some(entry.seq) > after,
        };
        Ok(log.into_iter().filter(wanted).collect())
    }

    pub(super) async fn take(&self, key: &SessionKey, holder: &Holder) -> Result<LeaseOutcome> {
        self.world().reach("lease")?;
        let of = match self.flaw {
            Flaw::HasOneLeaseForAll => (SessionKey::new("all", "all").unwrap(), 0),
            Flaw::HoldsByHandle => (key.clone(), self.handle),
            _ => (key.clone(), 0),
        };
        let held = self.world().holders.get(&of).cloned();
        if let Some(by) = held.filter(|_| !self.is(Flaw::HasTwoHolders)) {
            match self.flaw {
                Flaw::FencesAfterARefusal => {
                    *self.world().granted.entry(key.clone()).or_default() += 1;
                }
                Flaw::FreesWhatItRefuses => drop(self.world().holders.remove(&of)),
                Flaw::NamesWhoAsks => return Ok(LeaseOutcome::Busy { by: Some(holder.clone()) }),
                Flaw::NamesNobody => return Ok(LeaseOutcome::Busy { by: None }),
                _ => {}
            }
            return Ok(LeaseOutcome::Busy { by: Some(by) });
        }
        if self.is(Flaw::LooksThenTakes) {
            pause().await;
        }
        let fence = {
            let mut world = self.world();
            let taken = world.holders.insert(of.clone(), holder.clone());
            // Taken since it was looked at.
            if let Some(by) =
                taken.filter(|_| !self.is(Flaw::HasTwoHolders) && !self.is(Flaw::LooksThenTakes))
            {
                world.holders.insert(of, by.clone());
                return Ok(LeaseOutcome::Busy { by: Some(by) });
            }
            let fence = world.fences.entry(key.clone()).or_default();
            *fence += u64::from(!self.is(Flaw::NumbersGrantsAlike) || *fence == 0);
            let fence = *fence;
            world.granted.insert(key.clone(), fence);
            fence
        };
        if self.is(Flaw::LeaksADroppedQuestion) {
            pause().await;
        }
        if self.is(Flaw::FreesNothing) {
            return Ok(LeaseOutcome::Held(Lease::new(fence, ())));
        }
        Ok(LeaseOutcome::Held(Lease::new(fence, Held { world: self.world.clone(), of })))
    }

    pub(super) fn state_path(&self, key: &SessionKey) -> PathBuf {
        let state = self.dir.join("state");
        let mailbox = match self.flaw {
            Flaw::SharesStateDirs => key.mailbox.as_str().to_lowercase().replace('/', "-"),
            Flaw::NestsStateDirs => {
                let normal = |part: &Component<'_>| matches!(part, Component::Normal(_));
                let inner: PathBuf = Path::new(key.mailbox.as_str()).components().filter(normal).collect();
                let short = inner.as_os_str().len() < 200 && !inner.as_os_str().is_empty();
                if short && key.agent.as_str() == "claude" {
                    return state.join(inner);
                }
                key.mailbox.as_str().to_owned()
            }
            _ => key.mailbox.as_str().to_owned(),
        };
        let mut hasher = DefaultHasher::new();
        (mailbox, key.agent.as_str()).hash(&mut hasher);
        state.join(format!("{:016x}", hasher.finish()))
    }

    pub(super) fn make_state_dir(&self, key: &SessionKey) -> Result<PathBuf> {
        let path = self.state_path(key);
        self.world().states.insert(key.clone());
        let made = || -> io::Result<()> {
            std::fs::create_dir_all(&path)?;
            let metadata = if self.is(Flaw::FollowsLinks) {
                std::fs::metadata(&path)?
            } else {
                std::fs::symlink_metadata(&path)?
            };
            if !metadata.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            let mode = if self.is(Flaw::LeavesStateOpen) { return Ok(()) } else { 0o700 };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))
        };
        made().map_err(|cause| error(StoreErrorKind::Other, "state_dir").with_source(cause))?;
        Ok(path)
    }
}
