//! Causes of an [`AgentError`](session_core::error::AgentError): found by `source()` and a downcast.

use std::path::PathBuf;

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A text that the operating system ends at its first NUL character.
    #[error("{what} holds a NUL character")]
    Nul {
        /// Which argument or variable.
        what: String,
    },
    /// Arguments and environment are larger than the operating system takes.
    #[error("the arguments and the environment, {bytes} bytes in all, are more than the system takes")]
    TooLong {
        /// Their size in bytes, NUL characters included.
        bytes: usize,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The folder to work in is not there any more, or cannot be entered.
    #[error("the folder {cwd} cannot be entered")]
    Cwd {
        /// The folder.
        cwd: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The program is a script whose interpreter is missing, or was built for a loader that is missing.
    #[error("its interpreter is missing")]
    Interpreter {
        /// The system's answer.
        source: std::io::Error,
    },
}

/// Why no sandbox can be put around a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// Without a state dir, the agent's sessions lie among those of others.
    #[error("there is no state dir: the agent keeps its sessions among those of others")]
    NoStateDir,
    /// The work tree is the home, with all logins in it.
    #[error("the work tree {cwd} is the user's home, or everything")]
    Home {
        /// The work tree.
        cwd: PathBuf,
    },
    /// The work tree lies where only session files are to be.
    #[error("the work tree {cwd} lies in the state dir")]
    InStateDir {
        /// The work tree.
        cwd: PathBuf,
    },
    /// The work tree is, or lies in, the folder of a store: records, logs, locks and state dirs of all mailboxes.
    #[error("the work tree {cwd} lies in the store {store}")]
    InStore {
        /// The work tree.
        cwd: PathBuf,
        /// The folder of the store.
        store: PathBuf,
    },
    /// The home is what the agent says it is: it could have moved the real one away.
    #[error("the home {home} lies in the work tree {cwd}, and is missing or reached by a link there")]
    HomeInWorkTree {
        /// The work tree.
        cwd: PathBuf,
        /// The home, as the environment names it.
        home: PathBuf,
    },
    /// This would be started outside of the sandbox, and may have been put there by an agent.
    #[error(
        "{program} is to be started outside of the sandbox, and lies in {folder}, or is reached through it"
    )]
    Program {
        /// The agent's program, a file among its leading arguments, or the launcher.
        program: PathBuf,
        /// The work tree, the state dir, or a store.
        folder: PathBuf,
    },
    /// A login of the agent's would be shown.
    #[error("the login {login} lies in what is shown, such as the work tree {cwd}")]
    Login {
        /// The work tree.
        cwd: PathBuf,
        /// The file.
        login: PathBuf,
    },
    /// This agent writes where the session to fork lies, and that belongs to another key.
    #[error("to fork {original}, the agent would have to write beside it")]
    Original {
        /// The session's file.
        original: PathBuf,
    },
    /// A path that cannot be looked at.
    #[error("{path} cannot be looked at")]
    Path {
        /// The path.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
}

/// Why a program is not one that can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocateError {
    /// The name is in no folder of the child's `PATH`.
    #[error("it is in no folder of PATH ({folders} looked at)")]
    NotInPath {
        /// How many folders were looked at.
        folders: usize,
    },
    /// The child has no `PATH` to look the name up in.
    #[error("the environment of the child has no PATH")]
    NoPath,
    /// There is a directory.
    #[error("it is a directory")]
    Directory,
    /// Nobody may execute it.
    #[error("it has no execute permission")]
    NotPermitted,
}

/// Why a version probe has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// It ended in order, but what it printed holds no version.
    #[error("it printed no version, but: {printed:?}")]
    NoVersion {
        /// What it printed, cut where it is long.
        printed: String,
    },
    /// It failed.
    #[error("it ended with {status} and printed: {printed:?}")]
    Failed {
        /// How it ended.
        status: String,
        /// What it printed, cut where it is long.
        printed: String,
    },
    /// It was still running after the limit, and was ended.
    #[error("it was still running after {seconds} seconds, having printed: {printed:?}")]
    TimedOut {
        /// The limit in seconds.
        seconds: u64,
        /// What it printed, cut where it is long.
        printed: String,
    },
}
