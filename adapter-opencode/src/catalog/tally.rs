//! What a look at a session counts.

use std::path::{Path, PathBuf};

use session_core::{Inspection, Presence};

/// What the records of a session add up to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) user_turns: u64,
    pub(super) answers: u64,
    pub(super) bytes: u64,
    /// Records that the agent cannot read, and needs.
    pub(super) broken: u64,
    /// Records that the agent leaves out in silence.
    pub(super) holes: u64,
    pub(super) began_in: Option<PathBuf>,
}

impl Tally {
    pub(super) fn sum_up(self, path: &Path) -> Inspection {
        let presence = if self.broken > 0 {
            Presence::Damaged
        } else if self.user_turns + self.answers > 0 {
            Presence::Present
        } else {
            Presence::Empty
        };
        Inspection {
            presence,
            path: Some(path.to_owned()),
            user_turns: self.user_turns,
            answers: self.answers,
            bytes: self.bytes,
            began_in: self.began_in,
            skipped_lines: if self.broken > 0 { 0 } else { self.holes },
            ..Inspection::MISSING
        }
    }
}
