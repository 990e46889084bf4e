//! Where the program is.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use session_core::error::{AgentError, AgentErrorKind};
use session_core::{AgentId, EnvMap};

use crate::error::LocateError;

/// Finds the program: a path as it stands, a name in the child's `PATH`. The answer is absolute, and symbolic
/// links in it are kept, because launchers look at the name they were called by.
pub(crate) fn locate(agent: &AgentId, program: &Path, env: &EnvMap) -> Result<PathBuf, AgentError> {
    let fail = |kind, cause: LocateError| {
        AgentError::new(kind, agent.clone(), program.display().to_string()).with_source(cause)
    };
    if program.components().count() != 1 || program.is_absolute() || has_separator(program) {
        return at_path(agent, program);
    }
    let Some(path) = env.get("PATH") else {
        return Err(fail(AgentErrorKind::NotFound, LocateError::NoPath));
    };
    let mut folders = 0;
    let mut refused = None;
    for folder in std::env::split_paths(path) {
        folders += 1;
        // An empty or relative entry means the folder that the agent works in: never a place for its program.
        if !folder.is_absolute() {
            continue;
        }
        for candidate in candidates(&folder, program) {
            let Ok(metadata) = fs::metadata(&candidate) else { continue };
            match unusable(&metadata) {
                None => return Ok(candidate),
                Some(why) => refused = refused.or(Some((candidate, why))),
            }
        }
    }
    match refused {
        Some((candidate, why)) => {
            let what = candidate.display().to_string();
            Err(AgentError::new(AgentErrorKind::NotExecutable, agent.clone(), what).with_source(why))
        }
        None => Err(fail(AgentErrorKind::NotFound, LocateError::NotInPath { folders })),
    }
}

fn at_path(agent: &AgentId, program: &Path) -> Result<PathBuf, AgentError> {
    let what = program.display().to_string();
    let error = |kind| AgentError::new(kind, agent.clone(), what.clone());
    let absolute =
        std::path::absolute(program).map_err(|e| error(AgentErrorKind::NotFound).with_source(e))?;
    let metadata = fs::metadata(&absolute).map_err(|cause| {
        let missing = matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        let kind = if missing { AgentErrorKind::NotFound } else { AgentErrorKind::NotExecutable };
        error(kind).with_source(cause)
    })?;
    match unusable(&metadata) {
        None => Ok(absolute),
        Some(why) => Err(error(AgentErrorKind::NotExecutable).with_source(why)),
    }
}

fn has_separator(program: &Path) -> bool {
    program.as_os_str().as_encoded_bytes().iter().any(|byte| std::path::is_separator(char::from(*byte)))
}

fn unusable(metadata: &Metadata) -> Option<LocateError> {
    if metadata.is_dir() {
        return Some(LocateError::Directory);
    }
    (!executable(metadata)).then_some(LocateError::NotPermitted)
}

/// Whether anybody may execute it; whether we may, the start tells.
#[cfg(unix)]
pub(crate) fn executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
pub(crate) fn executable(_: &Metadata) -> bool {
    true
}

#[cfg(unix)]
fn candidates(folder: &Path, program: &Path) -> [PathBuf; 1] {
    [folder.join(program)]
}

#[cfg(not(unix))]
fn candidates(folder: &Path, program: &Path) -> [PathBuf; 4] {
    let with = |suffix: &str| {
        let mut name = folder.join(program).into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    };
    [with(".exe"), with(".cmd"), with(".bat"), with("")]
}
