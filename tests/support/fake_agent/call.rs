//! One call of the agent: what it was given, and the log of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Stop;
use super::script::{Script, Stdin};

/// What one call of the fake agent was given, as its log keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The agent's own arguments, without those of the fake agent.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// All of standard input; bytes which are not UTF-8 are replaced.
    pub stdin: String,
    /// The process.
    pub pid: u32,
}

/// Reads the log of a script back, oldest call first. A log that nobody wrote yet has no calls.
///
/// # Errors
///
/// When the file cannot be read, or a line of it is no call.
pub fn read_calls(log: &Path) -> io::Result<Vec<CallRecord>> {
    let text = match std::fs::read_to_string(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    text.lines().map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
}

/// A call while it is played.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) argv: Vec<String>,
    pub(super) cwd: PathBuf,
    pub(super) stdin: Vec<u8>,
    pub(super) prompt: String,
}

impl Call {
    /// Takes in what the process was given.
    pub(super) fn receive(script: &Script, argv: Vec<String>) -> Result<Self, Stop> {
        let cwd = std::env::current_dir()
            .map_err(|error| Stop::broken(format!("there is no working directory: {error}")))?;
        let mut stdin = Vec::new();
        if script.stdin == Stdin::Read {
            // A closed standard input is an empty one, as for the real CLI.
            let _ = io::stdin().lock().read_to_end(&mut stdin);
        }
        let prompt = prompt(&argv, &String::from_utf8_lossy(&stdin));
        Ok(Self { argv, cwd, stdin, prompt })
    }

    /// Appends this call to the log of the script.
    pub(super) fn log(&self, path: &Path) -> Result<(), Stop> {
        let plain = |text: OsString| text.to_string_lossy().into_owned();
        let record = CallRecord {
            argv: self.argv.clone(),
            env: std::env::vars_os().map(|(name, value)| (plain(name), plain(value))).collect(),
            cwd: self.cwd.clone(),
            stdin: String::from_utf8_lossy(&self.stdin).into_owned(),
            pid: std::process::id(),
        };
        let mut line = serde_json::to_vec(&record).expect("a record of strings always serializes");
        line.push(b'\n');
        append_locked(path, &line).map_err(|error| Stop::file("cannot append to", path, &error))
    }
}

/// The lock keeps long lines of agents that run at the same time apart.
fn append_locked(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.lock()?;
    file.write_all(bytes)
}

/// The prompt as the real CLI puts it together: the argument after `--`, a newline, standard input.
fn prompt(argv: &[String], stdin: &str) -> String {
    let positional = argv.iter().skip_while(|arg| *arg != "--").nth(1);
    let mut parts = vec![positional.map_or("", String::as_str), stdin];
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// Counts this call in the file beside the script; the first one is number 1.
pub(super) fn count(script: &Path) -> Result<u64, Stop> {
    let mut name = script.as_os_str().to_owned();
    name.push(".calls");
    let path = PathBuf::from(name);
    next_number(&path).map_err(|error| Stop::file("cannot count the calls in", &path, &error))
}

fn next_number(path: &Path) -> io::Result<u64> {
    let mut file: File = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let number = text.trim().parse::<u64>().unwrap_or(0) + 1;
    file.rewind()?;
    // A number never gets shorter, so nothing of the old one stays behind.
    file.write_all(number.to_string().as_bytes())?;
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_joins_the_command_line_and_standard_input() {
        let argv = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(prompt(&argv(&["-p", "--", "-hello", "ignored"]), ""), "-hello");
        assert_eq!(prompt(&argv(&["-p", "--", "a"]), "b\n"), "a\nb\n");
        assert_eq!(prompt(&argv(&["-p", "--model", "m"]), "b"), "b");
    }

    #[test]
    fn calls_are_counted_from_one() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script.json");
        let numbers: Vec<_> = (0..11).map(|_| count(&script).unwrap()).collect();
        assert_eq!(numbers, (1..=11).collect::<Vec<_>>());
    }

    #[test]
    fn a_log_that_nobody_wrote_has_no_calls() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_calls(&dir.path().join("none.jsonl")).unwrap(), []);
    }
}
