//! Checkpoints of work trees, over one environment.

use std::path::Path;

use session_checkpoint::FsCheckpoints;
use session_process::Environment;

/// Checkpoints below the base of a store, with the usual limits; none is taken of `/` and of the home that the environment of this
/// process names. Nothing is made before the first one is taken.
#[must_use]
pub fn checkpoints(base: impl AsRef<Path>) -> FsCheckpoints {
    let checkpoints = FsCheckpoints::new(base);
    match Environment::inherited().map().get("HOME") {
        Some(home) => checkpoints.home(home),
        None => checkpoints,
    }
}
