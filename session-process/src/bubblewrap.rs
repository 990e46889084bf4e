//! A sandbox by `bwrap`, the program of the package `bubblewrap` (Linux).

use std::ffi::OsString;
use std::path::PathBuf;

use session_core::error::BoxError;
use session_core::{Content, MountPlan};

use crate::sandbox::{Invocation, Launcher};

/// Runs commands in `bwrap`: with the plan's mounts and nothing else, with processes and System V objects of their own,
/// and to an end with the runner. The network stays as it is, since the agent needs its provider; with it stay loopback and
/// abstract sockets, so that a service of this machine that asks for no login can be reached.
///
/// Inside, nobody has a capability, root neither, which can then not unmount, remount, or make devices, and the kernel's settings
/// are to be read only. Root still owns what is root's: it reads and writes there as far as the mounts let it.
///
/// Version 0.8 was tried. It needs the right to make namespaces: user namespaces, or root with `CAP_SYS_ADMIN`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Bubblewrap {
    program: PathBuf,
}

impl Default for Bubblewrap {
    fn default() -> Self {
        Self::new()
    }
}

impl Bubblewrap {
    /// The `bwrap` in the agent's `PATH`, as far as no agent writes there.
    pub fn new() -> Self {
        Self { program: PathBuf::from("bwrap") }
    }

    /// Another program that takes the same arguments.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
    }
}

impl Launcher for Bubblewrap {
    fn wrap(&self, command: Invocation, plan: &MountPlan) -> Result<Invocation, BoxError> {
        let mut args: Vec<OsString> = Vec::new();
        let mut push = |words: &[OsString]| args.extend_from_slice(words);
        push(&["--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc"].map(OsString::from));
        // As root, the command would keep nearly all that root may: mount, unmount what covers, make devices.
        push(&["--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"].map(OsString::from));
        // Without a capability, root still may write where the kernel is told what to run: only a mount keeps it from that.
        push(&["--ro-bind", "/proc/sys", "/proc/sys"].map(OsString::from));
        for mount in plan.mounts() {
            let path = mount.path.clone().into_os_string();
            match mount.content {
                Content::Empty => push(&["--tmpfs".into(), path]),
                Content::Host => {
                    let how = match (mount.read_only, mount.optional) {
                        (false, false) => "--bind",
                        (false, true) => "--bind-try",
                        (true, false) => "--ro-bind",
                        (true, true) => "--ro-bind-try",
                    };
                    push(&[how.into(), path.clone(), path]);
                }
            }
        }
        let Invocation { program, args: own, env, cwd } = command;
        push(&["--chdir".into(), cwd.clone().into(), "--".into(), program.into()]);
        push(&own);
        Ok(Invocation { program: self.program.clone(), args, env, cwd })
    }
}

#[cfg(test)]
mod tests {
    use session_core::{EnvMap, Mount, Purpose};

    use super::*;

    #[test]
    fn the_plan_is_carried_out_word_by_word() {
        let plan = MountPlan::new(
            "/w",
            Vec::new(),
            [
                Mount::writable("/w", Purpose::WorkTree),
                Mount::empty("/w/.agent-sessions", Purpose::Cover),
                Mount::writable("/w/.agent-sessions/state/m/a", Purpose::StateDir),
                Mount::read_only("/c/x y", Purpose::Config).optional(),
                Mount::writable("/h/login", Purpose::Login).optional(),
            ],
        );
        let command = Invocation {
            program: "/opt/agent".into(),
            args: vec!["--bind".into(), "/".into(), "/".into()],
            env: EnvMap::from_iter([("A", "b")]),
            cwd: "/w".into(),
        };
        let wrapped = Bubblewrap::new().program("/opt/bwrap").wrap(command.clone(), &plan).unwrap();
        assert_eq!(
            (wrapped.program, wrapped.env, wrapped.cwd),
            ("/opt/bwrap".into(), command.env, command.cwd)
        );
        let words: Vec<_> = wrapped.args.iter().map(|arg| arg.to_str().unwrap()).collect();
        let expected = "--die-with-parent --new-session --unshare-pid --unshare-ipc --cap-drop ALL \
            --proc /proc --dev /dev --ro-bind /proc/sys /proc/sys \
            --ro-bind-try /c/x\u{a0}y /c/x\u{a0}y --bind /w /w --tmpfs /w/.agent-sessions \
            --bind /w/.agent-sessions/state/m/a /w/.agent-sessions/state/m/a --chdir /w -- /opt/agent --bind / /";
        let expected: Vec<_> = expected.split(' ').map(|word| word.replace('\u{a0}', " ")).collect();
        assert_eq!(words, expected);
    }
}
