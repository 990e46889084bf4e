//! Asking a program for its version, without letting it touch anything of the user's.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use session_core::error::{AgentError, AgentErrorKind, BoxError};
use session_core::{Cancel, CliDialect, EnvMap, Exit, Limits, RunId, Version};

use tempfile::TempDir;

use crate::error::ProbeError;
use crate::launch::Launch;
use crate::lines::Piece;
use crate::pump::{Job, pump};

const LIMIT: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_secs(1);
/// How much of its output is kept, in bytes.
const OUTPUT: usize = 16 * 1024;
/// How much of it an error shows, in bytes.
const SHOWN: usize = 500;

/// By what an installation is known to be the one asked before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    program: PathBuf,
    leading_args: Vec<OsString>,
    files: Vec<Option<(SystemTime, u64)>>,
}

impl Stamp {
    pub(crate) fn of(program: &Path, leading_args: &[OsString]) -> Self {
        // An argument may be the script that the program is only the interpreter of.
        let files = std::iter::once(program).chain(leading_args.iter().map(Path::new)).map(|path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        });
        Self { program: program.to_owned(), leading_args: leading_args.to_vec(), files: files.collect() }
    }
}

/// Asks for the version: in a folder made for it, which is also its home, because agents write into the home
/// that they find even when they are asked nothing else.
pub(crate) async fn version<D: CliDialect>(
    dialect: &D,
    base: &EnvMap,
    program: &Path,
    leading_args: Vec<OsString>,
) -> Result<Version, AgentError> {
    let id = dialect.id();
    let fail = |cause: BoxError| {
        AgentError::new(AgentErrorKind::Probe, id.clone(), program.display().to_string()).with_source(cause)
    };
    let home = home(base).map_err(|error| fail(error.into()))?;
    let mut env = EnvMap::new();
    // What no program can be started without.
    for name in ["PATH", "SYSTEMROOT", "PATHEXT"] {
        if let Some(value) = base.get(name) {
            env.set(name, value);
        }
    }
    for name in ["HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"] {
        env.set(name, home.path());
    }
    let spec = dialect.version_probe();
    spec.env.iter().for_each(|change| env.apply(change));
    let mut args = leading_args;
    args.extend(spec.args);
    let run = RunId::new(uuid::Uuid::new_v4());
    let has_input = !spec.stdin.is_empty();
    let program = program.to_owned();
    let cwd = home.path().to_owned();
    let launch = Launch { agent: id, run, program, args, env, cwd, has_input, is_launcher: false };
    let child = launch.start().await?;

    let mut limits = Limits::default();
    (limits.start, limits.idle, limits.total, limits.grace) = (LIMIT, LIMIT, LIMIT, GRACE);
    let cancel = Cancel::new();
    let job = Job { run, input: spec.stdin, max_line: OUTPUT, limits: &limits, cancel: &cancel };
    let mut printed = String::new();
    let outcome = pump(child, job, &mut |piece| {
        let (Piece::Line(line) | Piece::Cut(line)) = piece;
        if printed.len() < OUTPUT {
            printed.push_str(&String::from_utf8_lossy(line));
            printed.push('\n');
        }
        false
    })
    .await;
    let said = |printed: String| {
        let all = if printed.trim().is_empty() { &outcome.stderr_tail } else { &printed };
        let all = all.trim();
        all.char_indices().take_while(|(at, _)| *at < SHOWN).map(|(_, c)| c).collect()
    };
    if outcome.ended_by.is_some() {
        let cause = ProbeError::TimedOut { seconds: LIMIT.as_secs(), printed: said(printed) };
        return Err(fail(cause.into()));
    }
    if outcome.exit != Exit::Code(0) {
        let status = match outcome.exit {
            Exit::Code(code) => format!("code {code}"),
            Exit::Signal(signal) => format!("signal {signal}"),
            Exit::Unknown => "an unknown state".to_owned(),
        };
        return Err(fail(ProbeError::Failed { status, printed: said(printed) }.into()));
    }
    let version = dialect.version(&printed).or_else(|| dialect.version(&outcome.stderr_tail));
    version.ok_or_else(|| fail(ProbeError::NoVersion { printed: said(printed) }.into()))
}

fn home(base: &EnvMap) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("rejoin-probe-");
    let own = ["TMPDIR", "TEMP"].iter().find_map(|name| base.get(name)).map(Path::new);
    match own.filter(|folder| folder.is_dir()) {
        Some(folder) => builder.tempdir_in(folder),
        None => builder.tempdir(),
    }
}
