//! From a command to a process.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

#[cfg(windows)]
use process_wrap::tokio::JobObject;
#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use session_core::error::{AgentError, AgentErrorKind};
use session_core::{AgentId, EnvMap, RunId};

use crate::error::LaunchError;
use crate::locate::executable;
use crate::tree::MARK;

/// What to start.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) agent: &'a AgentId,
    pub(crate) run: RunId,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: EnvMap,
    pub(crate) cwd: PathBuf,
    /// Whether something is to be written to its stdin; else that is at its end at once.
    pub(crate) has_input: bool,
    /// Whether it is the launcher of a sandbox, and the agent runs within.
    pub(crate) is_launcher: bool,
}

/// A process that was started.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) handle: Box<dyn ChildWrapper>,
    pub(crate) pid: u32,
    pub(crate) is_launcher: bool,
    /// Held as long as the process may run.
    _parent: Option<Parent>,
}

/// The thread that started a launcher. Some end with it, such as `bwrap --die-with-parent`: with the thread, not with the
/// program, and one of a runtime may end at any time.
#[derive(Debug)]
struct Parent(#[expect(dead_code, reason = "the thread ends when this is dropped")] mpsc::Sender<Infallible>);

impl Launch<'_> {
    /// Starts the process, as the leader of a group of its own. Dropping the handle kills it.
    pub(crate) async fn start(&self) -> Result<Child, AgentError> {
        self.check()?;
        let mut pause = Duration::from_millis(1);
        loop {
            match self.spawn().await {
                Ok((handle, parent)) => {
                    let pid = handle.id().ok_or_else(|| self.error(AgentErrorKind::Spawn))?;
                    return Ok(Child { handle, pid, is_launcher: self.is_launcher, _parent: parent });
                }
                // Whoever writes the program, such as an update, or a process that is between fork and exec
                // while we hold it open, is about to be done.
                Err(error)
                    if error.kind() == io::ErrorKind::ExecutableFileBusy
                        && pause < Duration::from_millis(500) =>
                {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(error) => return Err(self.explain(error)),
            }
        }
    }

    async fn spawn(&self) -> io::Result<(Box<dyn ChildWrapper>, Option<Parent>)> {
        let mut command = self.command();
        if !self.is_launcher {
            return Ok((command.spawn()?, None));
        }
        let runtime = tokio::runtime::Handle::current();
        let (alive, over) = mpsc::channel();
        let (tell, told) = tokio::sync::oneshot::channel();
        let parent = move || {
            let _context = runtime.enter();
            if tell.send(command.spawn()).is_ok() {
                // Nothing is ever said: this is the end of the run.
                let _ = over.recv();
            }
        };
        std::thread::Builder::new().name("rejoin-launcher".to_owned()).spawn(parent)?;
        let handle = told.await.map_err(io::Error::other)??;
        Ok((handle, Some(Parent(alive))))
    }

    fn command(&self) -> CommandWrap {
        let mut wrap = CommandWrap::with_new(&self.program, |command| {
            command
                .args(&self.args)
                .env_clear()
                .envs(self.env.iter())
                .env(MARK, self.run.to_string())
                .current_dir(&self.cwd)
                .stdin(if self.has_input { Stdio::piped() } else { Stdio::null() })
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        });
        wrap.wrap(KillOnDrop);
        #[cfg(unix)]
        wrap.wrap(ProcessGroup::leader());
        #[cfg(windows)]
        wrap.wrap(JobObject);
        wrap
    }

    fn check(&self) -> Result<(), AgentError> {
        let nul = |text: &OsStr| text.as_encoded_bytes().contains(&0);
        let what = match self.args.iter().position(|arg| nul(arg)) {
            Some(at) => format!("argument {}", at + 1),
            None => match self.env.iter().find(|(name, value)| nul(name) || nul(value)) {
                Some((name, _)) => format!("the variable {}", name.display()),
                None => return Ok(()),
            },
        };
        Err(self.error_about(AgentErrorKind::Command, &what).with_source(LaunchError::Nul { what }))
    }

    /// Says what an error of the system means: it has one number for many troubles.
    fn explain(&self, source: io::Error) -> AgentError {
        use io::ErrorKind as Io;
        let kind = source.kind();
        if kind == Io::ArgumentListTooLong {
            let bytes = self.size();
            return self.error(AgentErrorKind::Command).with_source(LaunchError::TooLong { bytes, source });
        }
        if matches!(kind, Io::NotFound | Io::NotADirectory | Io::PermissionDenied)
            && std::fs::metadata(self.cwd.join(".")).is_err()
        {
            let cwd = self.cwd.clone();
            let what = format!("{} in {}", self.program.display(), cwd.display());
            return self
                .error_about(AgentErrorKind::Spawn, &what)
                .with_source(LaunchError::Cwd { cwd, source });
        }
        let program = std::fs::metadata(&self.program);
        match (kind, program) {
            (Io::NotFound | Io::NotADirectory, Err(_)) => {
                self.error(AgentErrorKind::NotFound).with_source(source)
            }
            (Io::NotFound, Ok(_)) => {
                self.error(AgentErrorKind::NotExecutable).with_source(LaunchError::Interpreter { source })
            }
            (Io::PermissionDenied, Ok(metadata)) if metadata.is_dir() || !executable(&metadata) => {
                self.error(AgentErrorKind::NotExecutable).with_source(source)
            }
            _ if is_not_a_program(&source) => self.error(AgentErrorKind::NotExecutable).with_source(source),
            _ => self.error(AgentErrorKind::Spawn).with_source(source),
        }
    }

    fn size(&self) -> usize {
        let args: usize = self.args.iter().map(|arg| arg.len() + 1).sum();
        let env: usize = self.env.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        args + env
    }

    fn error(&self, kind: AgentErrorKind) -> AgentError {
        self.error_about(kind, &self.program.display().to_string())
    }

    fn error_about(&self, kind: AgentErrorKind, what: &str) -> AgentError {
        AgentError::new(kind, self.agent.clone(), what)
    }
}

#[cfg(unix)]
fn is_not_a_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error())
}

#[cfg(not(unix))]
fn is_not_a_program(error: &io::Error) -> bool {
    // ERROR_BAD_EXE_FORMAT
    error.raw_os_error() == Some(193)
}
