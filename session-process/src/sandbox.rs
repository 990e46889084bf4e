//! The seam at which a runtime puts a sandbox around an agent.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use session_core::error::BoxError;
use session_core::{EnvMap, MountPlan};

/// A process to be started. `Debug` shows names of variables, never values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// A path, or a name to be looked up in the `PATH` of [`env`](Self::env), as far as no agent writes there.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment; [`MountPlan::env`] is in it already.
    pub env: EnvMap,
    /// The folder to start it in.
    pub cwd: PathBuf,
}

/// Puts a sandbox of the runtime's around an agent's commands: those that prepare a turn, and the turn. The version probe
/// stays outside, in an empty folder, as it does without a sandbox; so do looks at session files, by the same paths.
///
/// The launcher's own program is looked up without the folders of `PATH` that lie in the work tree or the state dir, and refused
/// where it lies there. A launcher that is a script should call what it needs by paths: its `PATH` is the agent's.
///
/// # Contract
/// 1. The command runs in the foreground of the launcher's process: with its stdin, stdout and stderr, and with the exit
///    code of the command as its own. A launcher adds nothing to stdout.
/// 2. Its environment reaches the command, `REJOIN_RUN` among it, which is added at the start: by it, what a run left is
///    found.
/// 3. What lies in [`MountPlan::mounts`] is there, under the same paths, and nothing else of the machine.
/// 4. When the launcher's process ends, whatever ended it, nothing that runs inside stays.
///
/// A run that is to end is first asked inside, and the launcher's own process only where nothing else is left: most
/// launchers would take everything down with them, and the agent would not write its session to the end.
pub trait Launcher: Debug + Send + Sync + 'static {
    /// The process that runs this one in a sandbox of this plan. A launcher may add to the plan
    /// ([`MountPlan::show`]) what it knows and nobody else does.
    ///
    /// # Errors
    /// Whatever is in the way; the run is not started.
    fn wrap(&self, command: Invocation, plan: &MountPlan) -> Result<Invocation, BoxError>;
}

impl<L: Launcher + ?Sized> Launcher for Arc<L> {
    fn wrap(&self, command: Invocation, plan: &MountPlan) -> Result<Invocation, BoxError> {
        (**self).wrap(command, plan)
    }
}
