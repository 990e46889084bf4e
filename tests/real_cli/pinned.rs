//! The CLIs that `cargo xtask real-cli` installed.

use std::path::PathBuf;

use serde::Deserialize;

/// The variable that carries them from xtask, as JSON.
pub(crate) const VARIABLE: &str = "REJOIN_REAL_CLIS";

/// One installed CLI of an exact version.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Pinned {
    pub(crate) agent: String,
    pub(crate) version: String,
    pub(crate) program: PathBuf,
    /// The child's `PATH`: old versions are scripts that need Node.
    pub(crate) path: String,
}

impl Pinned {
    /// Whether the version is at least this one.
    pub(crate) fn at_least(&self, wanted: [u64; 3]) -> bool {
        rejoin::core::Version::parse(&self.version).unwrap().numbers >= wanted
    }
}

pub(crate) fn installed() -> Vec<Pinned> {
    let Ok(json) = std::env::var(VARIABLE) else { return Vec::new() };
    serde_json::from_str(&json).unwrap()
}
