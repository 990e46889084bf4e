//! Plays the steps of a script.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use super::Stop;
use super::call::{Call, count};
use super::child::{self, wait_for_file};
use super::replay;
use super::script::{Death, FileText, Repeat, Script, Slowly, Step, Truncate};
use super::template::{Values, expand, expand_json};
use super::{claude, codex};

/// Repeated texts are written in pieces of about this size.
const BLOCK: usize = 64 * 1024;

/// Runs the agent.
pub(super) fn run(script_path: &Path, argv: Vec<String>) -> Result<(), Stop> {
    let script = Script::read(script_path)?;
    let is_probe = argv == ["--version"];
    // A probe never has input, but it may inherit one that stays open.
    let call = if is_probe {
        Call {
            argv,
            cwd: std::env::current_dir().unwrap_or_default(),
            stdin: Vec::new(),
            prompt: String::new(),
        }
    } else {
        Call::receive(&script, argv)?
    };
    if let Some(log) = &script.log {
        call.log(Path::new(log))?;
    }
    let mut out = Output::open()?;
    if is_probe {
        return out.write(format!("{}\n", script.version).as_bytes());
    }
    let nth = count(script_path)?;
    let case = script
        .cases
        .into_iter()
        .find(|case| case.when.matches(&call.argv, nth, &call.prompt))
        .ok_or_else(|| Stop::broken(format!("no case for call {nth} with {:?}", call.argv)))?;
    let session = claude::Session::asked_for(&call);
    let mut player = Player { call, version: script.version, out, session };
    case.steps.into_iter().try_for_each(|step| player.play(step))
}

/// Standard output without a buffer, so that every write is one write.
#[derive(Debug)]
pub(super) struct Output(File);

impl Output {
    fn open() -> Result<Self, Stop> {
        #[cfg(unix)]
        let own = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned();
        #[cfg(windows)]
        let own = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned();
        own.map(|own| Self(File::from(own)))
            .map_err(|error| Stop::broken(format!("there is no standard output: {error}")))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.0.write_all(bytes).map_err(|error| output_error(&error))
    }

    #[cfg(unix)]
    fn close(&mut self) -> Result<(), Stop> {
        // The descriptor cannot be left empty: the next file opened would become the output.
        let nothing = OpenOptions::new()
            .write(true)
            .open("/dev/null")
            .map_err(|error| Stop::broken(format!("cannot close the output: {error}")))?;
        rustix::stdio::dup2_stdout(&nothing)
            .map_err(|error| Stop::broken(format!("cannot close the output: {error}")))?;
        self.0 = nothing;
        Ok(())
    }

    #[cfg(not(unix))]
    fn close(&mut self) -> Result<(), Stop> {
        Err(Stop::broken("close_stdout is not possible on this system"))
    }
}

fn output_error(error: &io::Error) -> Stop {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Stop::OutputClosed
    } else {
        Stop::broken(format!("cannot write: {error}"))
    }
}

/// A call on its way through the steps.
#[derive(Debug)]
pub(super) struct Player {
    pub(super) call: Call,
    pub(super) version: String,
    pub(super) out: Output,
    pub(super) session: claude::Session,
}

impl Values for Player {
    fn value(&self, name: &str) -> Option<String> {
        Some(match name {
            "sid" => self.session.id.clone().unwrap_or_default(),
            "prompt" => self.call.prompt.clone(),
            "cwd" => self.call.cwd.to_string_lossy().into_owned(),
            "pid" => std::process::id().to_string(),
            "turns" => self.session.user_turns().to_string(),
            "transcript" => self.session.transcript.to_string_lossy().into_owned(),
            _ => return None,
        })
    }
}

impl Player {
    fn play(&mut self, step: Step) -> Result<(), Stop> {
        match step {
            Step::Stdout(text) => self.out.write(expand(&text, self).as_bytes()),
            Step::Line(json) => self.out.write(format!("{}\n", expand_json(json.get(), self)).as_bytes()),
            Step::StdoutBytes(bytes) => self.out.write(&bytes),
            Step::StdoutRepeat(repeat) => {
                let text = expand(&repeat.text, self);
                write_often(&mut self.out.0, &text, &repeat)
            }
            Step::StdoutFile(path) => self.copy_out(&self.path(&path)),
            Step::StdoutLines(path) => self.lines_out(&self.path(&path)),
            Step::Slowly(slowly) => self.write_slowly(&slowly),
            Step::CloseStdout(true) => self.out.close(),
            Step::Stderr(text) => self.stderr(&expand(&text, self)),
            Step::StderrRepeat(repeat) => {
                write_often(&mut io::stderr(), &expand(&repeat.text, self), &repeat)
            }
            Step::Append(file) => self.write_file(&file, OpenOptions::new().create(true).append(true)),
            Step::Create(file) => {
                self.write_file(&file, OpenOptions::new().create(true).write(true).truncate(true))
            }
            Step::Remove(path) => remove(&self.path(&path)),
            Step::Truncate(cut) => truncate(&self.path(&cut.path), &cut),
            Step::Touch(path) => touch(&self.path(&path)),
            Step::SleepMs(ms) => {
                sleep(Duration::from_millis(ms));
                Ok(())
            }
            Step::WaitForFile(path) => wait_for_file(&self.path(&path)),
            Step::Child(mut child) => {
                child.pid_file = child.pid_file.map(|path| expand(&path, self));
                child::leave(child)
            }
            Step::IgnoreTerm(true) => child::ignore_term(),
            Step::CloseStdout(false) | Step::IgnoreTerm(false) => Ok(()),
            Step::KillSelf(death) => die(death),
            Step::Exit(code) => Err(Stop::Exit(code)),
            Step::Fixture(fixture) => {
                let ready = fixture.ready.map(|path| self.path(&path));
                replay::play(self, &self.path(&fixture.folder), ready.as_deref())
            }
            Step::Claude(step) => claude::turn(self, &step),
            Step::Codex(step) => codex::turn(self, &step),
        }
    }

    pub(super) fn stderr(&self, text: &str) -> Result<(), Stop> {
        io::stderr().write_all(text.as_bytes()).map_err(|error| output_error(&error))
    }

    fn path(&self, text: &str) -> PathBuf {
        PathBuf::from(expand(text, self))
    }

    pub(super) fn copy_out(&mut self, path: &Path) -> Result<(), Stop> {
        let mut file = File::open(path).map_err(|error| Stop::file("cannot read", path, &error))?;
        io::copy(&mut file, &mut self.out.0).map(drop).map_err(|error| output_error(&error))
    }

    fn lines_out(&mut self, path: &Path) -> Result<(), Stop> {
        let cannot = |error: io::Error| Stop::file("cannot read", path, &error);
        let mut file = BufReader::with_capacity(BLOCK, File::open(path).map_err(cannot)?);
        let mut line = Vec::new();
        while file.read_until(b'\n', &mut line).map_err(cannot)? > 0 {
            self.out.write(&line)?;
            line.clear();
        }
        Ok(())
    }

    fn write_slowly(&mut self, slowly: &Slowly) -> Result<(), Stop> {
        for piece in expand(&slowly.text, self).as_bytes().chunks(slowly.chunk.get()) {
            self.out.write(piece)?;
            sleep(Duration::from_millis(slowly.pause_ms));
        }
        Ok(())
    }

    fn write_file(&self, file: &FileText, options: &OpenOptions) -> Result<(), Stop> {
        let path = self.path(&file.path);
        options
            .open(&path)
            .and_then(|mut opened| opened.write_all(expand(&file.text, self).as_bytes()))
            .map_err(|error| Stop::file("cannot write", &path, &error))
    }
}

fn write_often(to: &mut impl Write, text: &str, repeat: &Repeat) -> Result<(), Stop> {
    if text.is_empty() {
        return Ok(());
    }
    let per_block = (BLOCK / text.len()).clamp(1, repeat.times.max(1));
    let block = text.repeat(per_block);
    let mut left = repeat.times;
    while left > 0 {
        let now = left.min(per_block);
        to.write_all(&block.as_bytes()[..now * text.len()]).map_err(|error| output_error(&error))?;
        left -= now;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), Stop> {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Stop::file("cannot remove", path, &error))
        }
        _ => Ok(()),
    }
}

fn truncate(path: &Path, cut: &Truncate) -> Result<(), Stop> {
    let shorten = || {
        let file = OpenOptions::new().write(true).open(path)?;
        let len = file.metadata()?.len();
        file.set_len(match (cut.keep_bytes, cut.drop_bytes) {
            (Some(keep), None) => keep.min(len),
            (None, Some(drop)) => len.saturating_sub(drop),
            _ => return Err(io::Error::other("truncate needs either keep_bytes or drop_bytes")),
        })
    };
    shorten().map_err(|error| Stop::file("cannot shorten", path, &error))
}

fn touch(path: &Path) -> Result<(), Stop> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::now()))
        .map_err(|error| Stop::file("cannot touch", path, &error))
}

/// Ends itself by a signal, unless it survives that.
#[cfg(unix)]
fn die(death: Death) -> Result<(), Stop> {
    use rustix::process::Signal;
    match death {
        Death::Kill => send_self(Signal::KILL),
        Death::Term => send_self(Signal::TERM),
        Death::Int => die_by(Signal::INT.as_raw()),
        Death::Abrt => send_self(Signal::ABORT),
    }
}

#[cfg(unix)]
fn send_self(signal: rustix::process::Signal) -> Result<(), Stop> {
    rustix::process::kill_process(rustix::process::getpid(), signal)
        .map_err(|error| Stop::broken(format!("cannot die: {error}")))
}

/// Dies by the signal of this number, whatever was to be survived.
#[cfg(unix)]
pub(super) fn die_by(signal: i32) -> Result<(), Stop> {
    use rustix::process::Signal;
    let known =
        Signal::from_named_raw(signal).ok_or_else(|| Stop::broken(format!("there is no signal {signal}")))?;
    // A shell's background job is begun with the interrupt ignored.
    let by_default = signal_hook::low_level::emulate_default_handler(signal);
    by_default.map_err(|error| Stop::broken(format!("cannot die: {error}")))?;
    // Where that was not enough, such as for a signal that nobody can handle.
    send_self(known)
}

#[cfg(not(unix))]
fn die(death: Death) -> Result<(), Stop> {
    Err(Stop::broken(format!("kill_self {death:?} is not possible on this system")))
}

#[cfg(not(unix))]
pub(super) fn die_by(signal: i32) -> Result<(), Stop> {
    Err(Stop::broken(format!("there is no signal {signal} on this system")))
}
