//! The checkpoints of a key as a trail of steps. Pure.

use std::collections::HashMap;

use crate::{Checkpoint, CheckpointId, Moment, Prompted, RunId, SessionRecord};

/// All checkpoints of a key, oldest first.
#[derive(Debug)]
pub(super) struct Trail {
    pub(super) checkpoints: Vec<Checkpoint>,
    /// The rewinds that came to their end by the record, whether or not they have a checkpoint there.
    pub(super) went_back: Vec<RunId>,
}

/// What lies between two checkpoints of one tree that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: CheckpointId,
    /// `None`: now.
    pub(super) to: Option<CheckpointId>,
    /// Whether a step made it; else it is a gap.
    pub(super) is_step: bool,
}

/// The prompts that were not taken back, at each checkpoint and now.
#[derive(Debug, Default)]
struct Live {
    at: HashMap<CheckpointId, Vec<usize>>,
    now: Vec<usize>,
}

impl Trail {
    pub(super) fn get(&self, id: CheckpointId) -> Option<&Checkpoint> {
        self.checkpoints.iter().find(|checkpoint| checkpoint.id == id)
    }

    /// The prompts, by the places of their checkpoints. To go back takes those after the target off; to go back to before
    /// that gives them back. A rewind without a checkpoint at its end, and of which the record does not know, either, may have
    /// been cut off before it took anything: who asks again means the same prompts. Where a target was dropped since, nobody
    /// knows which prompts stood before it that are still listed: none of them is counted.
    fn live(&self) -> Live {
        let mut live = Live::default();
        for (at, checkpoint) in self.checkpoints.iter().enumerate() {
            live.at.insert(checkpoint.id, live.now.clone());
            match checkpoint.label.moment {
                Moment::BeforeRun => live.now.push(at),
                Moment::BeforeRewind if !self.has_end(at) => {}
                Moment::BeforeRewind => {
                    let target = checkpoint.label.back_to.and_then(|target| live.at.get(&target));
                    live.now = target.cloned().unwrap_or_default();
                }
                Moment::AfterRun | Moment::AfterRewind | Moment::Asked => {}
            }
        }
        live
    }

    fn has_end(&self, at: usize) -> bool {
        let step = self.checkpoints[at].label.step;
        self.went_back.contains(&step) || self.checkpoints[at..].iter().any(|later| later.is_end_of(step))
    }

    /// What the record is to know when one more comes to its end: those of which no checkpoint tells it, the latest so many.
    pub(super) fn with_end(&self, step: RunId) -> Vec<RunId> {
        let is_told = |step: &RunId| self.checkpoints.iter().any(|checkpoint| checkpoint.is_end_of(*step));
        let mut steps: Vec<_> = self.went_back.iter().copied().filter(|step| !is_told(step)).collect();
        steps.push(step);
        let excess = steps.len().saturating_sub(SessionRecord::PAST_LIMIT);
        steps.drain(..excess);
        steps
    }

    /// How many prompts can be taken back, and the checkpoint before the last so many.
    pub(super) fn before_turns(&self, turns: u32) -> (usize, Option<&Checkpoint>) {
        let live = self.live().now;
        let back = usize::try_from(turns).unwrap_or(usize::MAX);
        let at = live.len().checked_sub(back).filter(|_| back > 0);
        (live.len(), at.and_then(|at| live.get(at)).map(|at| &self.checkpoints[*at]))
    }

    /// The prompts that going back takes back, and those that it gives back.
    pub(super) fn turns(&self, target: CheckpointId) -> (Vec<Prompted>, Vec<Prompted>) {
        let live = self.live();
        let then = live.at.get(&target).cloned().unwrap_or_default();
        let of = |these: &[usize], without: &[usize]| {
            let these = these.iter().filter(|at| !without.contains(at));
            these.map(|at| prompted(&self.checkpoints[*at])).collect()
        };
        (of(&live.now, &then), of(&then, &live.now))
    }

    /// All that were taken before one.
    pub(super) fn before(&self, target: CheckpointId) -> &[Checkpoint] {
        let at = self.checkpoints.iter().position(|checkpoint| checkpoint.id == target);
        self.checkpoints.get(..at.unwrap_or_default()).unwrap_or_default()
    }

    /// The checkpoint before the latest rewind of a tree.
    pub(super) fn before_latest_rewind(&self, root: &crate::PathText) -> Option<&Checkpoint> {
        let is_one = |checkpoint: &&Checkpoint| {
            checkpoint.label.moment == Moment::BeforeRewind && checkpoint.root == *root
        };
        self.checkpoints.iter().rev().find(is_one)
    }

    /// What lies between a checkpoint of a tree and now, and the steps that have no end.
    pub(super) fn since(&self, target: CheckpointId) -> (Vec<Stretch>, Vec<RunId>) {
        let begin = self.checkpoints.iter().position(|checkpoint| checkpoint.id == target);
        let begin = begin.unwrap_or(self.checkpoints.len());
        let Some(first) = self.checkpoints.get(begin) else { return (Vec::new(), Vec::new()) };
        let of_tree = |checkpoint: &&Checkpoint| checkpoint.root == first.root;
        let points: Vec<_> = self.checkpoints[begin..].iter().filter(of_tree).collect();
        let (mut stretches, mut unended) = (Vec::new(), Vec::new());
        let mut under_way: Option<RunId> = None;
        for (at, point) in points.iter().enumerate() {
            let step = point.label.step;
            match point.label.moment {
                Moment::BeforeRun | Moment::BeforeRewind => under_way = Some(step),
                Moment::AfterRun | Moment::AfterRewind | Moment::Asked if under_way == Some(step) => {
                    under_way = None;
                }
                Moment::AfterRun | Moment::AfterRewind | Moment::Asked => {}
            }
            stretches.push(Stretch {
                from: point.id,
                to: points.get(at + 1).map(|next| next.id),
                is_step: under_way.is_some(),
            });
            if let Some(step) = under_way
                && !points[at + 1..].iter().any(|later| later.label.step == step)
            {
                unended.push(step);
                // It ends at the next one that is known.
                under_way = None;
            }
        }
        (stretches, unended)
    }
}

impl Checkpoint {
    fn is_end_of(&self, step: RunId) -> bool {
        self.label.step == step && matches!(self.label.moment, Moment::AfterRun | Moment::AfterRewind)
    }
}

fn prompted(checkpoint: &Checkpoint) -> Prompted {
    Prompted {
        step: checkpoint.label.step,
        checkpoint: checkpoint.id,
        at: checkpoint.at,
        prompt: checkpoint.label.prompt.clone(),
    }
}
