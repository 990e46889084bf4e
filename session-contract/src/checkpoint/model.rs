//! Random walks, beside a model of what every checkpoint holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use session_core::error::CheckpointErrorKind;
use session_core::{CheckpointId, Forget, LeftWhy, Restored};

use super::Subject;
use super::edit::Edit;
use super::stage::{Stage, Taken, answer, assert_all_done, key, kind};
use super::step::{MAILBOXES, Pick, Step, walks};
use super::tree::{Thing, Tree, assert_told, everything, marks, sure};
use super::work::Work;
use crate::walks::Walks;

/// A checkpoint that is kept, of which tree and of which key.
struct Kept {
    taken: Taken,
    tree: usize,
    key: usize,
}

/// A walk while it goes on.
struct Walk<'a> {
    at: Stage<'a>,
    /// Two linked work trees of one repository.
    works: [Work; 2],
    kept: Vec<Kept>,
    dropped: Vec<(CheckpointId, usize)>,
    /// Each tree at its latest checkpoint.
    latest: [Option<Tree>; 2],
    outside: PathBuf,
}

/// Whatever is edited, taken and put back in whatever order, the trees are as the model says, byte for byte.
pub(super) fn every_walk_ends_as_the_model_says(subject: &Subject) {
    let runtime = Subject::runtime();
    subject.random_walks().make(&walks(), |steps| {
        runtime.block_on(async { Walk::begin(subject.stage().await).steps(&steps).await });
    });
}

impl Subject {
    fn random_walks(&self) -> Walks<'_> {
        Walks {
            count: self.walks,
            seed: self.seed,
            regressions: self.regressions.as_deref(),
            same: self.same,
            shrinks: 512,
        }
    }
}

impl<'a> Walk<'a> {
    fn begin(at: Stage<'a>) -> Self {
        let (main, outside) = (at.work(), at.ground("outside"));
        let linked = main.linked(at.ground("linked"));
        sure(fs::create_dir(&outside), &outside);
        sure(fs::write(outside.join("file"), "not of the tree"), &outside);
        for work in [&main, &linked] {
            work.write("a", "a");
            work.write("b/a", "in b");
        }
        let (kept, dropped) = (Vec::new(), Vec::new());
        Self { at, works: [main, linked], kept, dropped, latest: [None, None], outside }
    }

    async fn steps(mut self, steps: &[Step]) {
        let repository = everything(&self.works[0].at(".git"));
        for step in steps {
            self = self.step(step).await;
        }
        for key in 0..MAILBOXES.len() {
            self.list(key).await;
        }
        for Kept { taken, tree, key: n } in &self.kept {
            self.at.back(&key(MAILBOXES[*n]), &self.works[*tree], taken).await;
        }
        assert!(everything(&self.works[0].at(".git")) == repository, ".git is not as it was");
    }

    async fn step(mut self, step: &Step) -> Self {
        match step {
            Step::Edit { tree, edits } => self.edit(*tree, edits),
            Step::Take { tree, key, known } => {
                self.take(*tree, *key, *known).await;
            }
            Step::Restore { to, pick, meanwhile } => self.restore(*to, *pick, meanwhile).await,
            Step::Diff(from, to) => self.diff(*from, *to).await,
            Step::Read(of, path) => self.read(*of, *path).await,
            Step::List(key) => self.list(*key).await,
            Step::Forget { key, which } => self.forget(*key, *which).await,
            Step::Reopen => self.at = self.at.reopened().await,
        }
        self
    }

    fn edit(&self, tree: usize, edits: &[Edit]) {
        for edit in edits {
            let backdated = matches!(edit, Edit::Backdated(_));
            if !backdated || self.at.subject.sees_backdated {
                edit.apply(&self.works[tree], &self.outside);
            }
        }
    }

    /// Takes a checkpoint and keeps it; says where.
    async fn take(&mut self, tree: usize, n: usize, known: bool) -> usize {
        let (work, outside) = (&self.works[tree], everything(&self.outside));
        let now = work.tree();
        let changed = self.latest[tree].as_ref().filter(|_| known).map(|latest| latest.differing(&now));
        let taken = answer(self.at.try_take(work, &key(MAILBOXES[n]), changed.as_deref()).await);
        work.tree().assert_is(&taken.tree, "after a checkpoint");
        assert_eq!((taken.checkpoint.files, taken.checkpoint.bytes), taken.tree.counts());
        assert!(everything(&self.outside) == outside, "a checkpoint wrote outside of the tree");
        self.latest[tree] = Some(taken.tree.clone());
        self.kept.push(Kept { taken, tree, key: n });
        self.kept.len() - 1
    }

    async fn restore(&mut self, to: usize, pick: Pick, meanwhile: &[Edit]) {
        let Some(to) = to.checked_rem(self.kept.len()) else { return };
        let (tree, n) = (self.kept[to].tree, self.kept[to].key);
        let from = self.take(tree, n, false).await;
        self.edit(tree, meanwhile);
        let (to, from, work) = (&self.kept[to].taken, &self.kept[from].taken, &self.works[tree]);
        let paths = picked(&from.tree, &to.tree, pick);
        let (now, before, outside) = (work.tree(), marks(&work.0), everything(&self.outside));
        let restored = self.at.restore(&key(MAILBOXES[n]), work, (to, from), &paths).await;
        let after = work.tree();
        assert!(everything(&self.outside) == outside, "a restore wrote outside of the tree");
        let alone = now == from.tree;
        if alone && !matches!(pick, Pick::Some(_)) {
            assert_all_done(&restored, &paths);
        }
        check(&restored, &paths, [&from.tree, &to.tree, &now, &after]);
        let made = |path: &Path| now.get(path).is_none() && restored.done.iter().any(|d| d.starts_with(path));
        let marks = marks(&work.0);
        for path in after.0.keys().chain(now.0.keys()).filter(|path| !paths.contains(path)) {
            if made(path) {
                assert_eq!(after.get(path), to.tree.get(path), "a folder on the way to what was put back");
                continue;
            }
            assert_eq!(after.get(path), now.get(path), "{path:?} was not asked for");
            assert_eq!(marks.get(path), before.get(path), "{path:?} was not asked for, and written anew");
        }
    }

    async fn diff(&self, from: usize, to: usize) {
        let (Some(from), Some(to)) = (from.checked_rem(self.kept.len()), to.checked_rem(self.kept.len()))
        else {
            return;
        };
        let (from, to) = (&self.kept[from], &self.kept[to]);
        let whose = key(MAILBOXES[from.key]);
        let diff = self.at.engine().diff(&whose, from.taken.id, to.taken.id).await;
        if from.key != to.key {
            assert_eq!(kind(diff), CheckpointErrorKind::NotFound);
        } else if from.tree != to.tree {
            kind(diff);
        } else {
            assert_told(&answer(diff), &from.taken.tree, &to.taken.tree);
        }
    }

    async fn read(&self, of: usize, path: usize) {
        let Some(of) = of.checked_rem(self.kept.len()) else { return };
        let Kept { taken, key: n, .. } = &self.kept[of];
        let all = taken.tree.0.len();
        let Some((path, thing)) = path.checked_rem(all).and_then(|at| taken.tree.0.iter().nth(at)) else {
            return;
        };
        let wanted = match thing {
            Thing::File { bytes, .. } => Some(bytes.as_slice()),
            Thing::Link { target } => Some(target.as_os_str().as_encoded_bytes()),
            Thing::Folder { .. } => None,
        };
        let read = answer(self.at.engine().read(&key(MAILBOXES[*n]), taken.id, path, 1 << 30).await);
        assert_eq!(read.as_deref(), wanted, "{path:?}");
    }

    async fn list(&self, n: usize) {
        let listed = self.at.list(&key(MAILBOXES[n])).await;
        let kept = self.kept.iter().filter(|kept| kept.key == n);
        let wanted: Vec<_> = kept.map(|kept| kept.taken.checkpoint.clone()).collect();
        assert_eq!(listed, wanted, "of {}", MAILBOXES[n]);
        for (id, n) in &self.dropped {
            let read = self.at.engine().read(&key(MAILBOXES[*n]), *id, Path::new("a"), 1).await;
            assert_eq!(kind(read), CheckpointErrorKind::NotFound, "it was dropped");
        }
    }

    /// Drops all of a key, or every one whose bit is set.
    async fn forget(&mut self, n: usize, which: Option<u8>) {
        let own = self.kept.iter().filter(|kept| kept.key == n).enumerate();
        let meant = own.filter(|(at, _)| which.is_none_or(|bits| bits >> (at % 8) & 1 == 1));
        let ids: Vec<_> = meant.map(|(_, kept)| kept.taken.id).collect();
        let forget = if which.is_none() { Forget::All } else { Forget::These(&ids) };
        let dropped = answer(self.at.engine().forget(&key(MAILBOXES[n]), forget).await);
        assert_eq!(dropped.checkpoints, ids.len() as u64);
        self.kept.retain(|kept| !ids.contains(&kept.taken.id));
        self.dropped.extend(ids.into_iter().map(|id| (id, n)));
    }
}

/// The paths that a restore is asked for.
fn picked(from: &Tree, to: &Tree, pick: Pick) -> Vec<PathBuf> {
    let all = from.differing(to);
    let (Pick::Whole(bits) | Pick::Some(bits)) = pick else { return all };
    let chosen = all.iter().enumerate().filter(|(at, _)| bits >> (at % 32) & 1 == 1);
    let mut chosen: BTreeSet<PathBuf> = chosen.map(|(_, path)| path.clone()).collect();
    if matches!(pick, Pick::Whole(_)) {
        for path in chosen.clone() {
            let comes = to.get(&path).is_some();
            let stays = matches!(to.get(&path), Some(Thing::Folder { .. }));
            let needed = all
                .iter()
                .filter(|other| comes && path.starts_with(other) || !stays && other.starts_with(&path));
            chosen.extend(needed.cloned());
        }
    }
    chosen.into_iter().collect()
}

/// That every path is told once, is what it is told to be, and that what somebody changed meanwhile is as it was.
fn check(restored: &Restored, paths: &[PathBuf], [from, to, now, after]: [&Tree; 4]) {
    let done = restored.done.iter().map(|path| (path, None));
    let left = restored.left.iter().map(|left| (&left.path, Some(&left.why)));
    let told: BTreeMap<&PathBuf, Option<&LeftWhy>> = done.chain(left).collect();
    assert_eq!(told.len(), restored.done.len() + restored.left.len(), "a path is told twice");
    assert!(told.keys().copied().eq(paths), "told of {:?} in place of {paths:?}", told.keys());
    for (path, why) in told {
        let folder = |above: &Path| !matches!(now.get(above), Some(Thing::File { .. } | Thing::Link { .. }));
        let way = path.ancestors().skip(1).all(folder);
        match why {
            None => {
                assert_eq!(after.get(path), to.get(path), "{path:?} is told as done");
                let ours = now.get(path) == from.get(path) || now.get(path) == to.get(path);
                assert!(ours, "{path:?} was changed meanwhile, and is put back: {:?}", now.get(path));
            }
            Some(why) => {
                assert_eq!(after.get(path), now.get(path), "{path:?} is told as left: {why}");
                assert!(now.get(path) != to.get(path) || !way, "{path:?} was right, and is left: {why}");
                if now.get(path) != from.get(path) && now.get(path) != to.get(path) {
                    use LeftWhy::{ChangedMeanwhile, InTheWay, NotEmpty};
                    assert!(matches!(why, ChangedMeanwhile | InTheWay | NotEmpty), "{path:?}: {why}");
                }
            }
        }
    }
}
