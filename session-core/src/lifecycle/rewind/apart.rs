//! What goes apart, where only one of files and conversation goes back.

use crate::{Apart, FilesPlan, Moment, Prompted, RewindMode, Spot};

use super::Course;
use super::trail::Trail;

/// Whether the present conversation holds a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Yes,
    No,
    /// Its run has no end, the conversation is in another session by now, or nobody could look.
    Unknown,
}

impl Course<'_> {
    /// What goes apart, where the conversation stands here now.
    pub(super) fn apart(&self, files: &FilesPlan, now: Option<&Spot>) -> Option<Apart> {
        let told = |prompt: &Prompted| told(&self.trail, prompt, now);
        match self.wish.mode {
            RewindMode::Files => {
                let prompts = self.dropped.iter().filter(|one| told(one) != Told::No).count();
                let lacks = self.regained.iter().filter(|one| told(one) != Told::Yes).count();
                (prompts + lacks > 0).then_some(Apart::ConversationStays { prompts, lacks })
            }
            RewindMode::Conversation => {
                let paths = files.restore.len() + files.conflicts.len();
                (paths > 0).then_some(Apart::FilesStay { paths })
            }
            RewindMode::Both => None,
        }
    }
}

/// By where the conversation stood before and after the run of a prompt.
fn told(trail: &Trail, prompt: &Prompted, now: Option<&Spot>) -> Told {
    // A conversation that was cleared, or never begun, holds nothing.
    let Some(now) = now else { return Told::No };
    let before = trail.get(prompt.checkpoint).and_then(|checkpoint| checkpoint.label.spot.as_ref());
    let end = trail.checkpoints.iter().find(|checkpoint| {
        checkpoint.label.step == prompt.step && checkpoint.label.moment == Moment::AfterRun
    });
    let Some(end) = end else { return Told::Unknown };
    // Zero: nobody could look.
    let is_of = |one: &Spot, other: &Spot| one.native_id == other.native_id && one.turns > 0;
    let is_same = |one: &Spot, other: &Spot| is_of(one, other) && one.turns == other.turns;
    match (before, end.label.spot.as_ref()) {
        // What it ran in held nothing at its end: its prompt is in no session.
        (None, None) => Told::No,
        (Some(before), None) if is_same(before, now) => Told::No,
        (Some(before), Some(after)) if is_same(before, after) => Told::No,
        // One that is shorter by now was written anew, and may tell of it in other words.
        (_, Some(after)) if is_of(after, now) && after.turns <= now.turns => Told::Yes,
        (_, None | Some(_)) => Told::Unknown,
    }
}
