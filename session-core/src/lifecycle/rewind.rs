//! Going back: look, plan, checkpoint, branch, restore, record, checkpoint, audit.

mod apart;
mod finish;
mod foresee;
mod grounds;
mod talk;
mod trail;
mod waits;

use std::path::{Path, PathBuf};

use crate::decide::files_plan;
use crate::error::{CheckpointErrorKind, RewindError};
use crate::{
    Checkpoint, CheckpointId, Checkpointer, Conflicts, ConversationPlan, FilesPlan, Health, Label, LeftPath,
    LeftWhy, Moment, PathText, Prompted, RestoreOrder, Restored, RewindMode, RewindRequest, RewindTo,
    Rewinding, Rewound, RunId, SessionKey, Warning,
};

use super::Lifecycle;
use super::kept::Kept;
use finish::Finish;
use grounds::Grounds;
use talk::Talk;
pub(super) use talk::{counters_at, holds};
use trail::Trail;
use waits::put_to_wait;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
struct Wish<'a> {
    key: &'a SessionKey,
    cwd: &'a Path,
    aim: Aim,
    mode: RewindMode,
    conflicts: Conflicts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    To(RewindTo),
    BeforeLatestRewind,
}

impl<'a> Wish<'a> {
    fn of(request: &'a RewindRequest) -> Self {
        let RewindRequest { key, cwd, to, mode, conflicts } = request;
        Self { key, cwd, aim: Aim::To(*to), mode: *mode, conflicts: *conflicts }
    }

    const fn undo(key: &'a SessionKey, cwd: &'a Path) -> Self {
        Self { key, cwd, aim: Aim::BeforeLatestRewind, mode: RewindMode::Both, conflicts: Conflicts::Keep }
    }
}

/// Where it goes, seen from the folder of the request.
#[derive(Debug)]
struct Course<'a> {
    wish: Wish<'a>,
    step: RunId,
    checkpointer: &'a dyn Checkpointer,
    grounds: Grounds<'a>,
    kept: Kept,
    trail: Trail,
    target: Checkpoint,
    dropped: Vec<Prompted>,
    regained: Vec<Prompted>,
    talk: Talk,
}

impl Lifecycle {
    /// Takes prompts of a key back: the files that they changed, the conversation, or both. What somebody else changed stays,
    /// unless the request says otherwise. A checkpoint is taken first, which [`undo`](Self::undo) goes back to. The sessions of
    /// before stay as they are and can be rejoined.
    ///
    /// # Errors
    /// [`RewindError`]: it was refused, or failed before anything was touched. What fails later is told in the outcome.
    ///
    /// # Cancel safety
    /// A dropped future leaves what a crash would: files that are put back in part are so wholly after the next run or rewind in
    /// the tree; the conversation then stays as it was, the checkpoint before is there, and the next run, rewind, clear or rejoin of
    /// the key says so by [`Warning::RewindUnended`].
    #[tracing::instrument(skip_all, fields(key = %request.key))]
    pub async fn rewind(&self, request: &RewindRequest) -> Result<Rewound, RewindError> {
        self.go_back(Wish::of(request)).await
    }

    /// Undoes the latest rewind of a key in the work tree around this folder, files and conversation: a rewind to before it. What
    /// prompts did since goes, too. An undo can be undone.
    ///
    /// # Errors
    /// As [`rewind`](Self::rewind); also when there is none.
    ///
    /// # Cancel safety
    /// As [`rewind`](Self::rewind).
    #[tracing::instrument(skip_all, fields(%key))]
    pub async fn undo(&self, key: &SessionKey, cwd: &Path) -> Result<Rewound, RewindError> {
        self.go_back(Wish::undo(key, cwd)).await
    }

    async fn go_back(&self, wish: Wish<'_>) -> Result<Rewound, RewindError> {
        let checkpointer = self.checkpoints_of()?;
        let grounds = self.grounds(wish.key, wish.cwd).await?;
        let mut kept = self.keep(wish.key).await?;
        let step = RunId::new(self.host.random_id());
        let mut warnings = Vec::new();
        let unended = kept.record.rewinding.clone();
        self.end_what_is_left(&mut kept, step, &mut warnings).await?;
        warnings.extend(self.finish_cut_off(checkpointer, grounds.folder_path()).await?);
        let course = self.course(wish, step, (checkpointer, grounds, kept)).await?;
        if let ConversationPlan::Unsupported(why) = course.talk.plan {
            return Err(RewindError::Unsupported { why });
        }
        let before = self.mark(&course, Moment::BeforeRewind, Some(course.target.id)).await?;
        match self.carry_back(course, &before, unended, warnings).await {
            Ok(rewound) => Ok(rewound),
            Err(error) => {
                // Nothing was touched: there is nothing to undo.
                self.unmark(wish.key, Some(before.id)).await;
                Err(error)
            }
        }
    }

    /// Looks where the request leads to. Nothing is changed.
    async fn course<'a>(
        &'a self,
        wish: Wish<'a>,
        step: RunId,
        (checkpointer, grounds, kept): (&'a dyn Checkpointer, Grounds<'a>, Kept),
    ) -> Result<Course<'a>, RewindError> {
        let root = checkpointer.root_of(grounds.folder_path()).await.map_err(RewindError::Checkpoint)?;
        let root = PathText::new(&root);
        let mut checkpoints = checkpointer.list(wish.key).await.map_err(RewindError::Checkpoint)?;
        // Whoever looks may drop it before we come to it.
        checkpoints.retain(|checkpoint| !checkpoint.label.is_look());
        let trail = Trail { checkpoints, went_back: kept.record.went_back.clone() };
        let target = target_of(&wish, &trail, &root)?.clone();
        if target.root != root {
            let (checkpoint, here) = (target.root.to_string(), root.to_string());
            return Err(RewindError::OtherTree { checkpoint, here });
        }
        if let Health::Damaged(why) = target.health {
            return Err(RewindError::Damaged { checkpoint: target.id, why });
        }
        let (dropped, regained) = trail.turns(target.id);
        let talk = match wish.mode.takes_conversation() {
            true => self.talk(&grounds, &kept, &target.label).await,
            false => Talk::not_asked(),
        };
        Ok(Course { wish, step, checkpointer, grounds, kept, trail, target, dropped, regained, talk })
    }

    /// Takes the checkpoint of the present state.
    async fn mark(
        &self,
        course: &Course<'_>,
        moment: Moment,
        back_to: Option<CheckpointId>,
    ) -> Result<Checkpoint, RewindError> {
        let spot = self.present_spot(&course.grounds, &course.kept.record).await;
        let waits = course.kept.record.preamble.clone().filter(|_| moment == Moment::BeforeRewind);
        let label =
            Label { spot, back_to, waits, ..Label::new(course.wish.key.clone(), course.step, moment) };
        let order = self.take_order(&label, course.grounds.folder_path());
        course.checkpointer.take(&order).await.map_err(RewindError::Checkpoint)
    }

    /// Branch, announce, restore, record, checkpoint, audit. An error: nothing was touched.
    async fn carry_back(
        &self,
        mut course: Course<'_>,
        before: &Checkpoint,
        unended: Option<Rewinding>,
        mut warnings: Vec<Warning>,
    ) -> Result<Rewound, RewindError> {
        let files = course.files_plan(before.id).await?;
        let hidden = course.hidden(before.id).await?;
        let apart = course.apart(&files, before.label.spot.as_ref());
        let (order, made) = match (&course.talk.plan, &course.talk.of) {
            (ConversationPlan::Branch { .. }, Some((of, keep))) => {
                let order = self.branch_order(&course.grounds, of, keep);
                let branch = self.branch(&course.grounds, order).await?;
                (Some(order), Some(branch))
            }
            _ => (None, None),
        };
        let follows = course.talk.changes() && !course.paths(&files).is_empty();
        let announced = match follows {
            true => self.announce(&mut course.kept, (course.step, before.id)).await,
            false => Ok(()),
        };
        let restored = match announced {
            Ok(()) => course.restore(&files, before.id).await,
            Err(error) => Err(error),
        };
        let restored = match restored {
            Ok(restored) => PutBack { hidden, ..restored },
            Err(error) => {
                self.withdraw(&mut course.kept, unended).await;
                if let (Some(order), Some(branch)) = (order, &made) {
                    self.prune(&course.grounds, order, branch).await;
                }
                return Err(error);
            }
        };
        let session_before = course.kept.present().map(|binding| binding.native_id.clone());
        let binding = course.talk.of.as_ref().map(|(of, _)| match &made {
            Some(branch) => self.branch_binding(&course.grounds, of, (branch, course.talk.counters)),
            None => of.clone(),
        });
        let word = if course.wish.aim == Aim::BeforeLatestRewind { "undone" } else { "rewound" };
        let was = course.kept.record.clone();
        course.kept.record.rewinding = None;
        let waits = course.waits();
        if course.talk.changes() {
            course.kept.put_in_force(binding, word, self.host.now());
        } else if course.wish.mode.takes_conversation() {
            course.kept.put_rival_aside(word, self.host.now());
        }
        warnings.extend(put_to_wait(&mut course.kept, waits));
        course.kept.note_rewinds(course.trail.with_end(course.step), self.host.now());
        let recorded = self.write(&mut course.kept).await;
        if recorded.is_saved() {
            warnings.extend(course.kept.begins_anew().filter(|_| course.talk.changes()));
        } else {
            course.kept.record = was;
            // A record that may lead to it is right or wrong with it.
            if let (Some(order), Some(branch), false) = (order, &made, course.kept.in_doubt) {
                self.prune(&course.grounds, order, branch).await;
            }
        }
        let finish = Finish {
            word,
            undo: before.id,
            files,
            apart,
            restored,
            made,
            session_before,
            recorded,
            warnings,
        };
        Ok(self.finish_rewind(course, finish).await)
    }

    /// Notes before the first file that the conversation is to follow: whoever finds that knows that it did not.
    async fn announce(
        &self,
        kept: &mut Kept,
        (step, undo): (RunId, CheckpointId),
    ) -> Result<(), RewindError> {
        let since = self.host.now();
        kept.record.rewinding = Some(Rewinding { step, since, undo, extra: serde_json::Map::new() });
        kept.changed = true;
        self.must_write(kept).await
    }

    /// Takes that back, where nothing was touched after all. Of an earlier one that did not come to its end, nobody has heard yet.
    async fn withdraw(&self, kept: &mut Kept, earlier: Option<Rewinding>) {
        if kept.record.rewinding.is_none() {
            return;
        }
        (kept.record.rewinding, kept.changed) = (earlier, true);
        if !self.write(kept).await.is_saved() {
            tracing::warn!(key = %kept.record.key, "the record may tell of a rewind that was not begun");
        }
    }
}

impl Course<'_> {
    /// What becomes of the files, where the present state is that of a checkpoint.
    async fn files_plan(&self, now: CheckpointId) -> Result<FilesPlan, RewindError> {
        let key = self.wish.key;
        let diff =
            async |from, to| self.checkpointer.diff(key, from, to).await.map_err(RewindError::Checkpoint);
        let differs = diff(self.target.id, now).await?;
        if differs.is_empty() {
            return Ok(FilesPlan::default());
        }
        let (stretches, unended) = self.trail.since(self.target.id);
        let (mut steps, mut gaps) = (Vec::new(), Vec::new());
        for stretch in stretches {
            let changed = diff(stretch.from, stretch.to.unwrap_or(now)).await?;
            let of = if stretch.is_step { &mut steps } else { &mut gaps };
            of.extend(changed);
        }
        let plan = files_plan(differs, &steps, &gaps, self.wish.conflicts);
        Ok(FilesPlan { unended, ..plan })
    }

    /// The paths that go back.
    fn paths(&self, files: &FilesPlan) -> Vec<PathBuf> {
        let all = files.restore.iter().chain(match self.wish.conflicts {
            Conflicts::Keep => &[],
            Conflicts::Overwrite => files.conflicts.as_slice(),
        });
        let all = all.filter(|_| self.wish.mode.takes_files());
        let mut paths: Vec<_> = all.map(|change| change.path.clone()).collect();
        paths.sort();
        paths
    }

    /// Puts the files back. What was cut off is finished at once, where that can be; else the reason is told.
    async fn restore(&self, files: &FilesPlan, from: CheckpointId) -> Result<PutBack, RewindError> {
        let paths = self.paths(files);
        if paths.is_empty() {
            return Ok(PutBack::default());
        }
        let folder = self.grounds.folder_path();
        let (key, step, to) = (self.wish.key, self.step, self.target.id);
        let order = RestoreOrder { key, step, folder, to, from, paths: &paths };
        let error = match self.checkpointer.restore(&order).await {
            Ok(restored) => return Ok(PutBack { restored, ..PutBack::default() }),
            Err(error) if error.kind() == CheckpointErrorKind::CutOff => error,
            Err(error) => return Err(RewindError::Checkpoint(error)),
        };
        tracing::error!(%key, %error, "a rewind was cut off");
        let cut_off = Some(crate::error::Chain(&error).to_string());
        Ok(match self.checkpointer.recover(folder).await {
            Ok(all) => match all.into_iter().find(|recovered| recovered.step == step) {
                Some(recovered) => PutBack { restored: recovered.restored, ..PutBack::default() },
                None => PutBack { cut_off, ..PutBack::default() },
            },
            Err(_) => PutBack { cut_off, ..PutBack::default() },
        })
    }

    /// What of the target stays as it is, as what stands at its path now is not covered. No difference tells of it.
    async fn hidden(&self, before: CheckpointId) -> Result<Vec<LeftPath>, RewindError> {
        if !self.wish.mode.takes_files() {
            return Ok(Vec::new());
        }
        let hidden = self.checkpointer.hidden(self.wish.key, self.target.id, before).await;
        let left = |path| LeftPath { path, why: LeftWhy::NotCovered };
        Ok(hidden.map_err(RewindError::Checkpoint)?.into_iter().map(left).collect())
    }
}

/// What putting files back came to.
#[derive(Debug, Default)]
struct PutBack {
    restored: Restored,
    /// What stood at the target, and stays as what stands there now is not covered.
    hidden: Vec<LeftPath>,
    /// It was cut off, and could not be finished.
    cut_off: Option<String>,
}

fn target_of<'a>(wish: &Wish<'_>, trail: &'a Trail, root: &PathText) -> Result<&'a Checkpoint, RewindError> {
    let key = || wish.key.clone();
    match wish.aim {
        Aim::To(RewindTo::Checkpoint(id)) => {
            let target =
                trail.get(id).ok_or_else(|| RewindError::NoSuchCheckpoint { key: key(), checkpoint: id })?;
            match target.label.moment {
                Moment::BeforeRun | Moment::BeforeRewind | Moment::Asked => Ok(target),
                Moment::AfterRun | Moment::AfterRewind => Err(RewindError::NotATarget { checkpoint: id }),
            }
        }
        Aim::To(RewindTo::Turns(asked)) => {
            let (there, target) = trail.before_turns(asked);
            target.ok_or(RewindError::NotSoMany { asked, there })
        }
        Aim::BeforeLatestRewind => {
            trail.before_latest_rewind(root).ok_or_else(|| RewindError::NothingToUndo { key: key() })
        }
    }
}
