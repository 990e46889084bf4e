//! What a checkpoint belongs to.

use serde::{Deserialize, Serialize};

use crate::{CheckpointId, Preamble, RunId, SessionKey, Spot};

/// What a checkpoint was taken at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Moment {
    /// Before a prompt.
    BeforeRun,
    /// After the run of that prompt, well or badly ended.
    AfterRun,
    /// Before a rewind: what undoes it.
    BeforeRewind,
    /// After that rewind.
    AfterRewind,
    /// When somebody asked for it. With the step of a rewind: after its files, where its conversation could not go back.
    Asked,
}

/// What a checkpoint belongs to, as the orchestration says. The checkpointer keeps it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The key. Only it may see the checkpoint and what it holds.
    pub key: SessionKey,
    /// The run, or the rewind, that it was taken at.
    pub step: RunId,
    /// At what of it.
    pub moment: Moment,
    /// Where the conversation stood; `None`: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<Spot>,
    /// The beginning of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Of a rewind, the checkpoint that it goes back to. Of one that was asked for, the one that it is compared with: it is dropped
    /// at once, and nobody goes by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_to: Option<CheckpointId>,
    /// The text that waited to go before the next prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Preamble>,
}

impl Label {
    /// A label that says no more than it must.
    #[must_use]
    pub const fn new(key: SessionKey, step: RunId, moment: Moment) -> Self {
        Self { key, step, moment, spot: None, prompt: None, back_to: None, waits: None }
    }

    /// Whether it is of a look at the tree, and no state that anybody kept.
    #[must_use]
    pub const fn is_look(&self) -> bool {
        matches!(self.moment, Moment::Asked) && self.back_to.is_some()
    }
}
