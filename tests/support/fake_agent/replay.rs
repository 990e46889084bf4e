//! Plays a recorded run.

use std::path::Path;
use std::sync::Arc;

use super::Stop;
use super::child;
use super::play::{Player, die_by};
use crate::fixture::{End, FILES, Meta};

/// The signal that asks a process to end.
const TERM: i32 = 15;

/// Writes what the recorded run wrote, and ends as it ended. Where somebody ended it, that is waited for.
pub(super) fn play(player: &mut Player, folder: &Path, ready: Option<&Path>) -> Result<(), Stop> {
    let meta = Meta::read(folder).map_err(Stop::broken)?;
    // Another command than the recorded one prepares it, such as one that makes the session.
    if !meta.args.is_empty() && meta.args.first() != player.call.argv.first() {
        return Ok(());
    }
    let end = meta.end();
    let waits = !meta.ended_by.is_null();
    // Who has a handler for a signal survives it: one that died by it had none.
    let asked_to_end =
        if waits && end != Some(End::Signal(TERM)) { child::watch_term()? } else { Arc::default() };
    player.copy_out(&folder.join(FILES[0]))?;
    let path = folder.join(FILES[1]);
    let errors = std::fs::read_to_string(&path).map_err(|error| Stop::file("cannot read", &path, &error))?;
    player.stderr(&errors)?;
    if let Some(ready) = ready {
        std::fs::write(ready, "").map_err(|error| Stop::file("cannot write", ready, &error))?;
    }
    if waits {
        child::wait_for_term(&asked_to_end)?;
    }
    match end {
        Some(End::Code(code)) => Err(Stop::Exit(code)),
        Some(End::Signal(signal)) => die_by(signal),
        None => Err(Stop::broken(format!("{}: nobody knows how it ended", folder.display()))),
    }
}
