//! The CLIs that `cargo xtask real-cli` installed.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::agents::{self, AgentUnderTest};

/// The variable that carries them from xtask, as JSON.
pub(crate) const VARIABLE: &str = "REJOIN_REAL_CLIS";

/// One installed CLI of an exact version.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pinned {
    pub(crate) agent: String,
    pub(crate) version: String,
    pub(crate) program: PathBuf,
    /// The child's `PATH`: old versions are scripts that need Node.
    pub(crate) path: String,
}

impl Pinned {
    /// What there is to know about its agent.
    pub(crate) fn under_test(&self) -> &'static dyn AgentUnderTest {
        agents::named(&self.agent).unwrap_or_else(|| panic!("{} is not registered", self.agent))
    }

    /// Whether the version is at least this one.
    pub(crate) fn at_least(&self, wanted: [u64; 3]) -> bool {
        rejoin::core::Version::parse(&self.version).unwrap().numbers >= wanted
    }
}

/// The built command `rejoin`, whose path comes from xtask, too.
pub(crate) fn command() -> PathBuf {
    std::env::var_os("REJOIN_COMMAND").expect("xtask builds the command").into()
}

pub(crate) fn installed() -> Vec<Pinned> {
    let Ok(json) = std::env::var(VARIABLE) else { return Vec::new() };
    serde_json::from_str(&json).unwrap()
}
