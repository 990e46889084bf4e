//! A program that takes this process's terminal over.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use session_core::error::{AgentError, AgentErrorKind};
use session_core::{AgentId, EnvMap, Program};

use crate::locate::locate;

/// Runs an agent's own interface in this folder, with the standard streams of this process. On Unix the program takes the
/// place of this process, so that this returns only where that failed; elsewhere it is waited for, and its exit code
/// returned. Nothing is watched and nothing ends it: this is for a person who asked for it.
///
/// Blocks. Restore the terminal before.
///
/// # Errors
/// [`AgentError`]: the program is not there, or could not be started.
pub fn take_over(
    agent: &AgentId,
    program: &Program,
    args: &[OsString],
    cwd: &Path,
    environment: &EnvMap,
) -> Result<i32, AgentError> {
    let found = locate(agent, &program.program, environment)?;
    let mut command = Command::new(&found);
    command.args(&program.leading_args).args(args).current_dir(cwd).env_clear().envs(environment.iter());
    // As a shell has it that went there: some agents believe this one, and not the system.
    command.env("PWD", cwd);
    let failed = |error| {
        let what = format!("{} in {}", found.display(), cwd.display());
        AgentError::new(AgentErrorKind::Spawn, agent.clone(), what).with_source(error)
    };
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        Err(failed(command.exec()))
    }
    #[cfg(not(unix))]
    {
        command.status().map(|status| status.code().unwrap_or(1)).map_err(failed)
    }
}
