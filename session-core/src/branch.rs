//! Branches: a new session that holds the beginning of another one, which stays as it is.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{NativeId, SessionQuery, Timestamp};

/// Where a conversation stood at some moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spot {
    /// The session.
    pub native_id: NativeId,
    /// Prompts in it, as an [`Inspection`](crate::Inspection) counts them. Zero: nobody could look.
    pub turns: u64,
    /// The size of its file in bytes, where it is a file that the agent only appends to. With it, what was written behind the
    /// last turn and belongs to no prompt is told from what belongs to the next; without it, the records go by their kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// An order to a catalog to make a branch.
#[derive(Debug, Clone, Copy)]
pub struct BranchOrder<'a> {
    /// The original, and the folder and version that both are found from.
    pub query: SessionQuery<'a>,
    /// How much of it the branch holds: at least one prompt.
    pub keep: &'a Spot,
    /// The state dir that the branch is made in; `None`: the agent's own place.
    pub into: Option<&'a Path>,
    /// A random id, of which the catalog makes one of the agent's form.
    pub seed: uuid::Uuid,
    /// The present time.
    pub now: Timestamp,
}

/// What a new session's id is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed {
    /// A random id.
    pub random: uuid::Uuid,
    /// The present time.
    pub now: Timestamp,
}

impl Seed {
    /// An id of random digits, in groups of 8-4-4-4-12.
    #[must_use]
    pub fn random_id(&self) -> String {
        uuid::Builder::from_random_bytes(self.random.into_bytes()).into_uuid().hyphenated().to_string()
    }

    /// One that begins with the time, so that later ones sort behind it (version 7).
    #[must_use]
    pub fn timed_id(&self) -> String {
        let mut random = [0; 10];
        random.copy_from_slice(&self.random.as_bytes()[6..]);
        let millis = u64::try_from(self.now.as_millis()).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().hyphenated().to_string()
    }
}

/// Whose records a branch gets, and whose they become.
#[derive(Debug, Clone, Copy)]
pub struct Heir<'a> {
    /// The original.
    pub from: &'a NativeId,
    /// The branch.
    pub to: &'a NativeId,
}

/// What becomes of a record in a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    /// It is kept to the byte.
    AsItIs,
    /// This line takes its place.
    Anew(Vec<u8>),
    /// It is left out, as what was granted for the original alone.
    LeftOut,
}

/// How a record stands between two turns: what is written for a prompt before the prompt itself goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seam {
    /// A turn begins with it: what stands between it and the next prompt goes with that, whatever it is.
    Opens,
    /// It goes with the next prompt where only such stand between them.
    Leads,
    /// It goes with what stands around it.
    Within,
    /// It goes with the turn before.
    Closes,
}

/// A branch that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Its id.
    pub id: NativeId,
    /// Where it lies.
    pub path: PathBuf,
    /// Prompts in it.
    pub turns: u64,
    /// The size of its file in bytes, where it has one of its own.
    pub bytes: Option<u64>,
}

/// What an order to make a branch came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Branched {
    /// It was made, and read back. The original was not touched.
    Done(Branch),
    /// It was not made, and nothing was changed.
    Refused(BranchRefusal),
}

/// Why a branch was not made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BranchRefusal {
    /// The original is not there.
    Missing,
    /// A process of the agent works on the original.
    Live {
        /// The process, where it is known.
        pid: Option<u32>,
    },
    /// The original changed between two looks.
    Growing,
    /// The original does not hold the spot any more: it was written anew since, as by a compaction, or it is shorter.
    SpotGone,
    /// The original is packed, is reached through a link, or is no file.
    NotPlain,
    /// Nobody here can, for this reason.
    Unsupported(String),
}

impl std::fmt::Display for BranchRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => f.write_str("its session is not there"),
            Self::Live { pid: Some(pid) } => write!(f, "process {pid} works on its session"),
            Self::Live { pid: None } => f.write_str("a process works on its session"),
            Self::Growing => f.write_str("somebody writes to its session"),
            Self::SpotGone => f.write_str("its session does not hold that point any more"),
            Self::NotPlain => f.write_str("its session is packed, or no plain file"),
            Self::Unsupported(why) => f.write_str(why),
        }
    }
}
