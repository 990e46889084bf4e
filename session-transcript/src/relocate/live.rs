//! Whether a process of the agent has a session open, as far as the agent notes it.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use session_core::{LiveSession, NativeId, TranscriptFormat};

use crate::find::options;

/// More notes than processes that run.
const NOTES: usize = 10_000;
/// No note is longer.
const NOTE_LIMIT: u64 = 64 * 1024;

/// The process that has the session open. A note whose process is gone, or is another one by now, counts for nothing.
pub(crate) fn owner(format: &dyn TranscriptFormat, state_dir: Option<&Path>, id: &NativeId) -> Option<u32> {
    let notes = fs::read_dir(format.live_folder(state_dir)?).ok()?;
    let of_it = notes.take(NOTES).flatten().filter_map(|note| {
        let path = note.path();
        fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let mut bytes = Vec::new();
        options().open(&path).ok()?.take(NOTE_LIMIT).read_to_end(&mut bytes).ok()?;
        format.live(&bytes).filter(|live| live.id == *id)
    });
    of_it.filter(is_alive).map(|live| live.pid).next()
}

/// A number is given again: the time of the start tells one process from another.
#[cfg(target_os = "linux")]
fn is_alive(live: &LiveSession) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", live.pid)) else { return false };
    // The name, in brackets, may hold anything; the start is the 20th field behind it.
    let started = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19));
    live.started.as_deref().is_none_or(|noted| started.is_none_or(|started| started == noted))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn is_alive(live: &LiveSession) -> bool {
    let pid = i32::try_from(live.pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Nobody can tell: better not to touch it.
#[cfg(not(unix))]
const fn is_alive(_: &LiveSession) -> bool {
    true
}
