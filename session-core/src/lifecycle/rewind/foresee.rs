//! What a rewind would come to.

use std::path::Path;

use crate::error::RewindError;
use crate::{Checkpoint, ConversationPlan, LeftOut, Moment, RewindPreview, RewindRequest, RunId, SessionKey};

use super::super::Lifecycle;
use super::{Course, Wish};

impl Lifecycle {
    /// What [`rewind`](Self::rewind) would come to by now. A checkpoint of the present state is taken for that and dropped again,
    /// and where a branch of the conversation is needed, it is made on trial and removed. Files that an earlier rewind left in
    /// part are finished, which the audit log tells. Nothing else is changed: what a dead runner left goes on until the rewind.
    ///
    /// # Errors
    /// As [`rewind`](Self::rewind), but that a conversation that cannot go back is told in the preview.
    ///
    /// # Cancel safety
    /// A dropped future may leave a checkpoint more, or a session that nothing leads to.
    pub async fn foresee_rewind(&self, request: &RewindRequest) -> Result<RewindPreview, RewindError> {
        self.preview(Wish::of(request)).await
    }

    /// What [`undo`](Self::undo) would come to by now.
    ///
    /// # Errors
    /// As [`foresee_rewind`](Self::foresee_rewind); also when there is nothing to undo.
    ///
    /// # Cancel safety
    /// As [`foresee_rewind`](Self::foresee_rewind).
    pub async fn foresee_undo(&self, key: &SessionKey, cwd: &Path) -> Result<RewindPreview, RewindError> {
        self.preview(Wish::undo(key, cwd)).await
    }

    async fn preview(&self, wish: Wish<'_>) -> Result<RewindPreview, RewindError> {
        let checkpointer = self.checkpoints_of()?;
        let grounds = self.grounds(wish.key, wish.cwd).await?;
        let kept = self.keep(wish.key).await?;
        self.finish_cut_off(checkpointer, grounds.folder_path()).await?;
        let step = RunId::new(self.host.random_id());
        let mut course = self.course(wish, step, (checkpointer, grounds, kept)).await?;
        self.try_branch(&mut course).await;
        let now = self.mark(&course, Moment::Asked, Some(course.target.id)).await?;
        let files = course.files_plan(now.id).await;
        self.unmark(wish.key, Some(now.id)).await;
        let files = files?;
        let apart = course.apart(&files, now.label.spot.as_ref());
        let (not_covered, not_covered_count) = not_covered(&course.target, &now);
        Ok(RewindPreview {
            mode: wish.mode,
            on_conflicts: wish.conflicts,
            files,
            dropped: course.dropped,
            regained: course.regained,
            conversation: course.talk.plan,
            apart,
            not_covered,
            not_covered_count,
            target: course.target,
        })
    }

    /// Whether a branch can be made, nobody knows before it is.
    async fn try_branch(&self, course: &mut Course<'_>) {
        let (ConversationPlan::Branch { .. }, Some((of, keep))) = (&course.talk.plan, &course.talk.of) else {
            return;
        };
        let order = self.branch_order(&course.grounds, of, keep);
        let why = match self.branch(&course.grounds, order).await {
            Ok(branch) => return self.prune(&course.grounds, order, &branch).await,
            Err(RewindError::Unsupported { why }) => why,
            Err(error) => crate::error::Chain(&error).to_string(),
        };
        course.talk.plan = ConversationPlan::Unsupported(why);
    }
}

fn not_covered(target: &Checkpoint, now: &Checkpoint) -> (Vec<LeftOut>, u64) {
    let mut all: Vec<LeftOut> = target.left_out.iter().chain(&now.left_out).cloned().collect();
    all.sort_by_key(|one| one.path.to_string());
    all.dedup_by(|one, other| one.path == other.path);
    let named = u64::try_from(all.len()).unwrap_or(u64::MAX);
    (all, named.max(target.left_out_count).max(now.left_out_count))
}
