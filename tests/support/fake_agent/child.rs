//! Child processes which a script leaves behind.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Stop;
use super::script::Child;

/// The first argument of a process that is such a child.
pub(super) const CHILD_FLAG: &str = "--fake-agent-child";

/// How long the agent waits for its child, and for files that others make.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the child and returns when it has made its preparations.
pub(super) fn leave(mut child: Child) -> Result<(), Stop> {
    let wanted = child.pid_file.clone();
    let ready = wanted.as_ref().map_or_else(
        || std::env::temp_dir().join(format!("fake-agent-child-{}", uuid::Uuid::new_v4())),
        PathBuf::from,
    );
    // A file of an earlier child would look like the answer of this one.
    let _ = std::fs::remove_file(&ready);
    child.pid_file = Some(ready.to_string_lossy().into_owned());
    let program = std::env::current_exe()
        .map_err(|error| Stop::broken(format!("cannot find my own program: {error}")))?;
    let output = || if child.hold_stdout { Stdio::inherit() } else { Stdio::null() };
    Command::new(program)
        .arg(CHILD_FLAG)
        .arg(serde_json::to_string(&child).expect("numbers and strings always serialize"))
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output())
        .spawn()
        .map_err(|error| Stop::broken(format!("cannot start a child: {error}")))?;
    wait_for_file(&ready)?;
    if wanted.is_none() {
        let _ = std::fs::remove_file(&ready);
    }
    Ok(())
}

/// Is the child.
pub(super) fn live(settings: Option<OsString>) -> Result<(), Stop> {
    let settings = settings.unwrap_or_default();
    let child: Child = serde_json::from_str(&settings.to_string_lossy())
        .map_err(|error| Stop::broken(format!("{CHILD_FLAG} needs its settings: {error}")))?;
    if child.own_session {
        own_session()?;
    }
    if child.ignore_term {
        ignore_term()?;
    }
    if let Some(path) = child.pid_file.map(PathBuf::from) {
        write_at_once(&path, &std::process::id().to_string())
            .map_err(|error| Stop::file("cannot write", &path, &error))?;
    }
    std::thread::sleep(Duration::from_secs(child.seconds));
    Ok(())
}

/// Nobody may see the file without its number.
fn write_at_once(path: &Path, text: &str) -> std::io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    std::fs::write(&part, text)?;
    std::fs::rename(&part, path)
}

/// Waits until somebody makes the file.
pub(super) fn wait_for_file(path: &Path) -> Result<(), Stop> {
    let start = Instant::now();
    while !path.exists() {
        if start.elapsed() > PATIENCE {
            return Err(Stop::broken(format!("{} did not appear", path.display())));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

#[cfg(unix)]
fn own_session() -> Result<(), Stop> {
    rustix::process::setsid()
        .map(drop)
        .map_err(|error| Stop::broken(format!("cannot have a session of my own: {error}")))
}

#[cfg(not(unix))]
fn own_session() -> Result<(), Stop> {
    Err(Stop::broken("own_session is not possible on this system"))
}

/// Survives SIGTERM from here on.
pub(super) fn ignore_term() -> Result<(), Stop> {
    watch_term().map(drop)
}

/// Survives SIGTERM from here on, and notes it.
#[cfg(unix)]
pub(super) fn watch_term() -> Result<Arc<AtomicBool>, Stop> {
    let seen = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&seen))
        .map(|_| seen)
        .map_err(|error| Stop::broken(format!("cannot ignore SIGTERM: {error}")))
}

/// There is no SIGTERM to survive.
#[cfg(not(unix))]
pub(super) fn watch_term() -> Result<Arc<AtomicBool>, Stop> {
    Ok(Arc::default())
}

/// Waits until SIGTERM was seen.
pub(super) fn wait_for_term(seen: &AtomicBool) -> Result<(), Stop> {
    let start = Instant::now();
    while !seen.load(Ordering::SeqCst) {
        if start.elapsed() > PATIENCE {
            return Err(Stop::broken("nobody ended me"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
