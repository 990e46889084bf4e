//! A program that stands before another one, passes its output on and keeps a copy.
//!
//! `<this program> --record FOLDER PROGRAM ARGUMENTS…` makes `FOLDER/<number>` for each call, with `args.json`, `pid`, `stdout` and
//! `stderr`, and ends as the program ended: with its code, or by its signal. Standard input is the program's. A signal to the
//! group reaches the program as well; the recorder outlives those that ask it to end, so that it can tell.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

/// The first argument of a call that is to be recorded.
const FLAG: &str = "--record";

/// The exit code of a recorder that cannot record.
const BROKEN: u8 = 70;

/// The arguments which make a program that calls [`become_recorder_if_asked`] the recorder of this one; the other's own
/// follow them.
#[must_use]
pub fn leading_args(program: &Path, folder: &Path) -> Vec<OsString> {
    vec![FLAG.into(), folder.into(), program.into()]
}

/// One recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The arguments of the program.
    pub args: Vec<String>,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it wrote for errors.
    pub stderr: Vec<u8>,
}

impl Call {
    /// The newest call of a folder, which has ended.
    ///
    /// # Errors
    /// When nothing was recorded there, or not wholly.
    pub fn last(folder: &Path) -> io::Result<Self> {
        let call = newest(folder)?;
        Ok(Self {
            args: serde_json::from_slice(&std::fs::read(call.join("args.json"))?)?,
            stdout: std::fs::read(call.join("stdout"))?,
            stderr: std::fs::read(call.join("stderr"))?,
        })
    }
}

/// The process of the program of the newest call.
///
/// # Errors
/// When nothing was started there.
pub fn pid(folder: &Path) -> io::Result<u32> {
    std::fs::read_to_string(newest(folder)?.join("pid"))?.parse().map_err(io::Error::other)
}

/// The place of the newest call.
fn newest(folder: &Path) -> io::Result<PathBuf> {
    let calls = std::fs::read_dir(folder)?.filter_map(|entry| {
        let path = entry.ok()?.path();
        Some((path.file_name()?.to_str()?.parse::<u32>().ok()?, path))
    });
    calls.max().map(|(_, path)| path).ok_or_else(|| io::Error::other("nothing was recorded"))
}

/// Records another program when this process was started to do so, and says how to exit. Call it at the beginning of
/// `main`.
#[must_use]
pub fn become_recorder_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != FLAG {
        return None;
    }
    let recorded = match (args.next(), args.next()) {
        (Some(folder), Some(program)) => record(Path::new(&folder), program, &args.collect::<Vec<_>>()),
        _ => Err(io::Error::other(format!("{FLAG} needs a folder and a program"))),
    };
    Some(recorded.and_then(end_as).unwrap_or_else(|error| {
        // The exit code still tells when standard error is gone.
        let _ = writeln!(io::stderr(), "recorder: {error}");
        ExitCode::from(BROKEN)
    }))
}

fn record(folder: &Path, program: OsString, args: &[OsString]) -> io::Result<ExitStatus> {
    let call = (1..u32::MAX)
        .map(|number| folder.join(number.to_string()))
        .map(|call| std::fs::create_dir(&call).map(|()| call))
        .find(|made| made.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::AlreadyExists) || made.is_ok())
        .ok_or_else(|| io::Error::other("the folder is full"))??;
    let texts: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    std::fs::write(call.join("args.json"), serde_json::to_vec(&texts)?)?;
    outlive_signals()?;
    let mut child = Command::new(program).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    std::fs::write(call.join("pid"), child.id().to_string())?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let out = scope.spawn(|| tee(out, io::stdout(), &call.join("stdout")));
        let err = scope.spawn(|| tee(err, io::stderr(), &call.join("stderr")));
        let ended = child.wait()?;
        for copied in [out.join(), err.join()] {
            copied.map_err(|_| io::Error::other("a copy panicked"))??;
        }
        Ok(ended)
    })
}

/// Copies to both, piece by piece, until the end. A reader that went away does not end the copy.
fn tee(from: Option<impl Read>, mut to: impl Write, copy: &Path) -> io::Result<()> {
    let mut copy = File::create(copy)?;
    let mut from = from.ok_or_else(|| io::Error::other("there is no pipe"))?;
    let mut piece = [0; 8192];
    loop {
        let read = from.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        copy.write_all(&piece[..read])?;
        let _ = to.write_all(&piece[..read]).and_then(|()| to.flush());
    }
}

#[cfg(unix)]
fn outlive_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        // Having any handler is what counts; nobody reads the flag.
        signal_hook::flag::register(signal, std::sync::Arc::default())?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn outlive_signals() -> io::Result<()> {
    Ok(())
}

/// Ends as the program ended.
#[cfg(unix)]
fn end_as(ended: ExitStatus) -> io::Result<ExitCode> {
    use std::os::unix::process::ExitStatusExt as _;

    use rustix::process::{Signal, getpid, kill_process};
    if let Some(signal) = ended.signal() {
        signal_hook::low_level::emulate_default_handler(signal)?;
        // Where that was not enough, such as for a signal that nobody can handle.
        kill_process(getpid(), Signal::from_named_raw(signal).unwrap_or(Signal::KILL))?;
    }
    code_of(ended)
}

#[cfg(not(unix))]
fn end_as(ended: ExitStatus) -> io::Result<ExitCode> {
    code_of(ended)
}

fn code_of(ended: ExitStatus) -> io::Result<ExitCode> {
    let code = ended.code().and_then(|code| u8::try_from(code).ok());
    code.map(ExitCode::from).ok_or_else(|| io::Error::other(format!("the program ended with {ended}")))
}
