//! A folder with a script, and the fake agent playing it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rejoin_test_support::fake_agent::leading_args;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Stage {
    dir: TempDir,
}

impl Stage {
    /// A stage whose agent always plays these steps.
    pub(crate) fn with_steps(steps: &Value) -> Self {
        Self::with_script(&json!({"cases": [{"steps": steps}]}))
    }

    pub(crate) fn with_script(script: &Value) -> Self {
        let stage = Self { dir: tempfile::tempdir().unwrap() };
        stage.change_script(script);
        std::fs::create_dir(stage.path("project")).unwrap();
        stage
    }

    /// `DIR` in the script stands for the folder of the stage.
    pub(crate) fn change_script(&self, script: &Value) {
        let dir = self.dir.path().to_str().unwrap();
        std::fs::write(self.path("script.json"), script.to_string().replace("DIR", dir)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The agent with a home of its own, ready to be started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fake-agent"));
        command
            .args(leading_args(&self.path("script.json")))
            .args(args)
            .env_clear()
            .env("HOME", self.path("home"))
            .current_dir(self.path("project"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the agent to its end.
    pub(crate) fn run(&self, args: &[&str], stdin: &str) -> Output {
        run(self.command(args), stdin)
    }
}

pub(crate) fn run(mut command: Command, stdin: &str) -> Output {
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A file of JSON lines.
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The JSON lines of a transcript.
pub(crate) fn records(path: &Path) -> Vec<Value> {
    json_lines(&std::fs::read_to_string(path).unwrap())
}
