//! A scripted agent CLI.
//!
//! It is the program `fake-agent`, and any other program that calls [`become_agent_if_asked`] first thing in
//! `main`. It is started as `<program> --fake-agent <script.json> <agent arguments…>`, so whoever runs it is
//! configured with a program and the [`leading_args`].
//!
//! # The script
//!
//! ```json
//! {
//!   "version": "2.1.332 (Claude Code)",
//!   "log": "/tmp/calls.jsonl",
//!   "stdin": "read",
//!   "cases": [
//!     { "when": { "has": ["--resume"], "lacks": ["--fork-session"], "nth": 2, "prompt": "part" },
//!       "steps": [ { "line": { "type": "system" } }, { "exit": 1 } ] },
//!     { "steps": [ { "claude": {} } ] }
//!   ]
//! }
//! ```
//!
//! - `version` is what a call with exactly `--version` prints. Such a call is logged, but neither counted nor
//!   matched.
//! - `log` names a file to which every call appends a [`CallRecord`] as one JSON line.
//! - `stdin` is `read` (the default: all of it, before a case is chosen) or `ignore`.
//! - The first case whose `when` matches is played; a `when` without conditions always matches. `has` and
//!   `lacks` are whole arguments, `nth` counts the calls of this script from 1 (kept in `<script>.calls`),
//!   `prompt` is a part of the prompt, which is the argument after `--` and then standard input.
//!
//! A step is one of:
//!
//! | step | effect |
//! |---|---|
//! | `{"stdout": "text"}`, `{"stderr": "text"}` | writes the text as it is |
//! | `{"line": {…}}` | writes the JSON value as one line, keys in the order given |
//! | `{"stdout_bytes": [0, 255]}` | writes bytes |
//! | `{"stdout_repeat": {"text": "x", "times": 9}}`, `stderr_repeat` | writes the text many times |
//! | `{"stdout_file": "path"}` | writes a file, as fast as the system can |
//! | `{"stdout_lines": "path"}` | writes a file line by line, one system call each, as agents do |
//! | `{"slowly": {"text": "x", "chunk": 1, "pause_ms": 0}}` | writes pieces of `chunk` bytes, one system call each |
//! | `{"close_stdout": true}` | lets the reader see the end of the output |
//! | `{"append": {"path": "p", "text": "x"}}`, `create` | writes to a file, or makes it anew |
//! | `{"remove": "path"}` | removes a file or a folder if it exists |
//! | `{"truncate": {"path": "p", "keep_bytes": 9}}`, `drop_bytes` | shortens a file |
//! | `{"touch": "path"}` | makes a file, or sets its time to now |
//! | `{"sleep_ms": 9}`, `{"wait_for_file": "path"}` | waits; for a file at most 60 s |
//! | `{"child": {"seconds": 9, "own_session": true, "ignore_term": true, "hold_stdout": true, "pid_file": "p"}}` | leaves a child process behind; the next step runs when it is ready |
//! | `{"ignore_term": true}` | survives SIGTERM from here on |
//! | `{"kill_self": "KILL"}` | dies by `KILL`, `TERM`, `INT` or `ABRT` |
//! | `{"exit": 3}` | ends; without it the end of the steps is exit 0 |
//! | `{"fixture": {"folder": "p", "ready": "f"}}` | plays a recorded run to its end ([`fixture`](crate::fixture)); makes `f` when all is written. A call whose first argument is not the recorded one does nothing |
//! | `{"claude": {…}}` | plays one turn of Claude Code 2.1.332, see [`ClaudeStep`] |
//! | `{"codex": {…}}` | plays one turn of Codex 0.171, see [`CodexStep`] |
//!
//! Texts and paths expand `{{sid}}`, `{{prompt}}`, `{{cwd}}`, `{{pid}}`, `{{turns}}` and `{{transcript}}`;
//! inside `line` the values are escaped for JSON. `{{sid}}` is the session the call asked for until a `claude`
//! step has decided it; `{{turns}}` are the user texts in its `{{transcript}}`.
//!
//! A broken script is a message on standard error and exit 70. An output nobody reads any more ends the agent
//! with exit 141.

mod call;
mod child;
mod claude;
mod codex;
mod play;
mod replay;
mod script;
mod template;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

pub use call::{CallRecord, read_calls};
pub use claude::project_folder_name;
pub use script::{ClaudeStep, CodexStep, CodexStop, Lookup, StopAfter, ToolUse};

/// The first argument of a call that is meant for the fake agent.
const AGENT_FLAG: &str = "--fake-agent";

/// The exit code of an agent whose script cannot be read or played.
pub const BROKEN_SCRIPT: u8 = 70;

/// The exit code of an agent whose output nobody reads any more, as shells report SIGPIPE.
pub const OUTPUT_CLOSED: u8 = 141;

/// The arguments which make a program the fake agent of this script; the agent's own follow them.
#[must_use]
pub fn leading_args(script: &Path) -> Vec<String> {
    vec![AGENT_FLAG.to_owned(), script.to_string_lossy().into_owned()]
}

/// Plays the agent when this process was started as one, and says how to exit.
///
/// `None` means that this is an ordinary run of the program. Call it before anything else in `main`: the
/// program is also started a second time for every child process that a script leaves behind.
#[must_use]
pub fn become_agent_if_asked() -> Option<ExitCode> {
    main_with(std::env::args_os().skip(1))
}

/// [`become_agent_if_asked`] with explicit arguments, without the name of the program.
pub fn main_with(args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args;
    let first = args.next()?;
    if first == child::CHILD_FLAG {
        return Some(exit_code(child::live(args.next())));
    }
    if first != AGENT_FLAG {
        return None;
    }
    let Some(script) = args.next() else {
        return Some(exit_code(Err(Stop::broken(format!("{AGENT_FLAG} needs a script")))));
    };
    let argv = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    Some(exit_code(play::run(Path::new(&script), argv)))
}

/// Why the agent ends before its steps do.
#[derive(Debug)]
enum Stop {
    /// The script says so.
    Exit(u8),
    /// The script is wrong, or cannot be carried out here.
    Broken(String),
    /// Nobody reads the output.
    OutputClosed,
}

impl Stop {
    fn broken(message: impl Into<String>) -> Self {
        Self::Broken(message.into())
    }

    /// For errors of files that the script names.
    fn file(what: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::Broken(format!("{what} {}: {error}", path.display()))
    }
}

fn exit_code(played: Result<(), Stop>) -> ExitCode {
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Exit(code)) => ExitCode::from(code),
        Err(Stop::OutputClosed) => ExitCode::from(OUTPUT_CLOSED),
        Err(Stop::Broken(message)) => {
            // The exit code still tells when standard error is gone.
            let _ = writeln!(std::io::stderr(), "fake agent: {message}");
            ExitCode::from(BROKEN_SCRIPT)
        }
    }
}
