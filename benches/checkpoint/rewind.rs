//! What going back costs, beside copying what is put back and beside git.

use std::path::{Path, PathBuf};

use rejoin::core::{CheckpointId, Checkpointer as _, RestoreOrder, RunId};

use crate::figures::Pairs;
use crate::forest::git;
use crate::{CHANGED, Site, timed, uuid};

impl Site {
    fn restore(&self, from: CheckpointId, to: CheckpointId, paths: &[PathBuf]) {
        let order = RestoreOrder {
            key: &self.key(),
            step: RunId::new(uuid(self.taken)),
            folder: &self.forest.root,
            to,
            from,
            paths,
        };
        let restored = self.runtime.block_on(self.checkpoints.restore(&order)).unwrap();
        assert_eq!((restored.done.len(), restored.left.len()), (paths.len(), 0));
    }

    /// Takes a checkpoint of what is there now, and puts back what differs from another.
    fn rewind(&mut self, to: CheckpointId) {
        let now = self.take(None).id;
        let changes = self.runtime.block_on(self.checkpoints.diff(&self.key(), now, to)).unwrap();
        let paths: Vec<PathBuf> = changes.into_iter().map(|change| change.path).collect();
        assert_eq!(paths.len(), CHANGED);
        self.restore(now, to, &paths);
    }
}

/// Puts back 10 files that are known; bare: copies them.
pub(crate) fn known(count: u32, site: &mut Site, copies: &Path) -> Pairs {
    let mut pairs = Pairs::default();
    let mut to = site.take(None).id;
    for n in 0..=count {
        let changed = site.forest.touch(CHANGED, 700_000 + u64::from(n));
        let now = site.take(Some(&changed)).id;
        let copy = || site.forest.copy(&changed, copies);
        let (bare, ours) = if n % 2 == 0 {
            let bare = timed(copy);
            (bare, timed(|| site.restore(now, to, &changed)))
        } else {
            let ours = timed(|| site.restore(now, to, &changed));
            (timed(copy), ours)
        };
        if n > 0 {
            pairs.push(bare, ours);
        }
        to = site.take(Some(&changed)).id;
    }
    pairs
}

/// Finds and puts back 10 changed files; bare: lets git do so.
pub(crate) fn unknown(count: u32, site: &mut Site) -> Pairs {
    let root = site.forest.root.clone();
    let reset = || git(&root, &["read-tree", "-u", "--reset", "HEAD"], &[]);
    let mut pairs = Pairs::default();
    reset();
    let to = site.take(None).id;
    for n in 0..=count {
        site.forest.touch(CHANGED, 800_000 + u64::from(n) * 2);
        let bare = timed(reset);
        site.take(None);
        site.forest.touch(CHANGED, 800_001 + u64::from(n) * 2);
        let ours = timed(|| site.rewind(to));
        if n > 0 {
            pairs.push(bare, ours);
        }
    }
    pairs
}
