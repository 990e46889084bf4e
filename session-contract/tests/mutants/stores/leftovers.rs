//! The sample's leftovers: state dirs whose keys have no document.

use std::path::Path;

use session_core::error::StoreError;
use session_core::*;

use super::flaw::Flaw;
use super::sample::Sample;

type Result<T> = std::result::Result<T, StoreError>;

fn bytes(path: &Path, through_links: bool) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let of = |path: &Path| {
        let metadata = if through_links { path.metadata() } else { path.symlink_metadata() };
        match metadata {
            Ok(metadata) if metadata.is_dir() => bytes(path, through_links),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        }
    };
    entries.map(|entry| of(&entry.path())).sum()
}

impl Sample {
    fn size(&self, key: &SessionKey) -> Option<StateSize> {
        let path = self.state_path(key);
        let there = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let found =
            || StateSize::new(bytes(&path, self.is(Flaw::MeasuresThroughLinks)), Some(Timestamp::EPOCH));
        there.then(found)
    }

    pub(super) fn measure(&self, key: &SessionKey) -> Result<Option<StateSize>> {
        self.world().reach("state_size")?;
        Ok(self.size(key).filter(|_| !self.is(Flaw::MeasuresNothing)))
    }

    fn name(&self, key: &SessionKey) -> String {
        self.state_path(key).display().to_string()
    }

    fn is_left(&self, key: &SessionKey) -> bool {
        !self.world().documents.contains_key(key)
    }

    pub(super) fn list_leftovers(&self, options: &LeftoverOptions) -> Result<Vec<Leftover>> {
        self.world().reach("leftovers")?;
        let keys = self.world().states.clone();
        let left = keys.iter().filter(|key| self.is_left(key) || self.is(Flaw::ListsStateWithADocument));
        let leftover = |key: &SessionKey| {
            let mut leftover = Leftover::new(LeftoverKind::State, self.name(key));
            (leftover.size, leftover.last_used) = (self.size(key)?, Some(Timestamp::EPOCH));
            leftover.live = options.live.contains(&key.mailbox) && !self.is(Flaw::TakesAllForDead);
            Some(leftover)
        };
        Ok(left.filter_map(leftover).collect())
    }

    pub(super) async fn dispose(&self, leftover: &Leftover, tombstone: &Tombstone) -> Result<Disposed> {
        let keys = self.world().states.clone();
        let Some(key) = keys.into_iter().find(|key| self.name(key) == leftover.name) else {
            if self.is(Flaw::BelievesALeftover) {
                drop(std::fs::remove_dir_all(self.dir.join(&leftover.name)));
            }
            return Ok(Disposed::Changed);
        };
        let _lease = match self.take(&key, &tombstone.holder).await? {
            LeaseOutcome::Busy { by } if !self.is(Flaw::RemovesWhatIsRun) => {
                return Ok(Disposed::Busy { by });
            }
            lease => lease,
        };
        if !self.is_left(&key) && !self.is(Flaw::RemovesWhatChanged) {
            return Ok(Disposed::Changed);
        }
        if self.size(&key).is_none() {
            return Ok(Disposed::NothingThere);
        }
        let said = !self.is(Flaw::RemovesUnsaid);
        if said {
            self.append(&key, &tombstone.before).await?;
        }
        if !self.is(Flaw::KeepsLeftovers) {
            std::fs::remove_dir_all(self.state_path(&key)).unwrap();
        }
        if said {
            self.append(&key, &tombstone.after).await?;
        }
        Ok(Disposed::Removed)
    }
}
