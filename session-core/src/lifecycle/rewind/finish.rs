//! The end of a rewind: the checkpoint after it, the audit event, the result.

use std::path::PathBuf;

use crate::{
    Apart, AuditEvent, Branch, Change, CheckpointId, Conflicts, ConversationDone, ConversationPlan,
    FilesDone, FilesPlan, Moment, NativeId, Recorded, RewindOutcome, Rewound, Unfinished, Warning,
};

use super::super::Lifecycle;
use super::{Course, PutBack};

/// What was done.
#[derive(Debug)]
pub(super) struct Finish {
    pub(super) word: &'static str,
    pub(super) undo: CheckpointId,
    pub(super) files: FilesPlan,
    pub(super) apart: Option<Apart>,
    pub(super) restored: PutBack,
    pub(super) made: Option<Branch>,
    pub(super) session_before: Option<NativeId>,
    pub(super) recorded: Recorded,
    pub(super) warnings: Vec<Warning>,
}

impl Lifecycle {
    pub(super) async fn finish_rewind(&self, course: Course<'_>, finish: Finish) -> Rewound {
        let Finish { word, undo, files, apart, restored, made, session_before, recorded, mut warnings } =
            finish;
        let saved = recorded.is_saved();
        let session_after = course.kept.present().map(|binding| binding.native_id.clone());
        if !matches!(recorded, Recorded::LostLease) {
            // Where the conversation was to go back and did not, no prompt is taken back: the files alone are at their end.
            let is_end = saved || !course.talk.changes();
            let moment = if is_end { Moment::AfterRewind } else { Moment::Asked };
            let after = self.mark(&course, moment, None).await;
            warnings.extend(after.err().map(|error| {
                tracing::warn!(key = %course.wish.key, %error, "a rewind has no checkpoint at its end");
                Warning::NotCheckpointed(crate::error::Chain(&error).to_string())
            }));
        }
        let (files, left) = course.files_done(files, restored);
        let mut left = left;
        let conversation = course.conversation_done(made, saved);
        if matches!(conversation, ConversationDone::NotRecorded(_)) {
            left.push(Unfinished::Conversation);
        }
        let mut event = AuditEvent::new(self.host.now(), course.step, word);
        (event.before, event.after) = (session_before.clone(), session_after.clone());
        event.agent_version = course.grounds.version.as_ref().map(|version| version.text.clone());
        let (mode, to) = (course.wish.mode.code(), course.target.id);
        let (done, stayed) = (files.restored.len(), files.left.len() + files.conflicts.len());
        event.detail = Some(format!(
            "{mode} to checkpoint {to}; {done} paths put back, {stayed} not; prompts taken back: {}; checkpoint {undo} undoes it",
            course.dropped.len()
        ));
        let audit_seq = match self.append(course.wish.key, &event).await {
            Ok(seq) => Some(seq),
            Err(warning) => {
                warnings.push(warning);
                None
            }
        };
        tracing::info!(key = %course.wish.key, word, %to, done, stayed, "went back");
        Rewound {
            outcome: RewindOutcome::of(left),
            target: course.target,
            files,
            conversation,
            dropped: course.dropped,
            regained: course.regained,
            apart,
            undo,
            session_before,
            session_after,
            recorded,
            audit_seq,
            step: course.step,
            warnings,
        }
    }
}

impl Course<'_> {
    fn files_done(&self, plan: FilesPlan, put_back: PutBack) -> (FilesDone, Vec<Unfinished>) {
        if !self.wish.mode.takes_files() {
            return (FilesDone::default(), Vec::new());
        }
        let paths = |changes: Vec<Change>| -> Vec<PathBuf> {
            changes.into_iter().map(|change| change.path).collect()
        };
        let PutBack { mut restored, hidden, cut_off } = put_back;
        restored.left.extend(hidden);
        restored.left.sort_by(|one, other| one.path.cmp(&other.path));
        let conflicts = match self.wish.conflicts {
            Conflicts::Keep => paths(plan.conflicts),
            Conflicts::Overwrite => Vec::new(),
        };
        let mut left = Vec::new();
        if !conflicts.is_empty() {
            left.push(Unfinished::Conflicts(conflicts.clone()));
        }
        if !restored.left.is_empty() {
            left.push(Unfinished::Paths(restored.left.clone()));
        }
        left.extend(cut_off.map(Unfinished::CutOff));
        let done = FilesDone {
            restored: restored.done,
            left: restored.left,
            conflicts,
            left_alone: paths(plan.left_alone),
            unended: plan.unended,
        };
        (done, left)
    }

    fn conversation_done(&self, made: Option<Branch>, saved: bool) -> ConversationDone {
        match &self.talk.plan {
            ConversationPlan::NotAsked | ConversationPlan::Unchanged | ConversationPlan::Unsupported(_) => {
                ConversationDone::Stays
            }
            plan if !saved => ConversationDone::NotRecorded(plan.clone()),
            ConversationPlan::Fresh => ConversationDone::Fresh,
            ConversationPlan::Rebind { session } => ConversationDone::Rebound { session: session.clone() },
            ConversationPlan::Branch { of, keep } => match made {
                Some(branch) => {
                    ConversationDone::Branched { session: branch.id, of: of.clone(), kept: branch.turns }
                }
                None => ConversationDone::Branched { session: of.clone(), of: of.clone(), kept: *keep },
            },
        }
    }
}
