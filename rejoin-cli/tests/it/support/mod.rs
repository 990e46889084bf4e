//! A machine of a test's own: a home, a project, and the command.

pub(crate) mod sessions;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A home without agents, and a folder to work in.
#[derive(Debug)]
pub(crate) struct Machine {
    _root: TempDir,
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
}

/// What the command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    /// The document, of which there is one.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one document: {self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it ended by itself"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

impl Machine {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        let (home, project) = (real.join("home"), real.join("project"));
        for folder in [&home, &project] {
            std::fs::create_dir_all(folder).unwrap();
        }
        Self { _root: root, home, project }
    }

    /// With a few sessions of Claude Code and Codex.
    pub(crate) fn with_sessions() -> Self {
        let machine = Self::new();
        sessions::some(&machine);
        machine
    }

    /// Another folder beside the project.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.project.parent().unwrap().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The command in the project, with nothing of this machine but where `sh` is.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rejoin"));
        command
            .args(words)
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", self.home.join("bin"))
            .current_dir(&self.project)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn rejoin(&self, words: &[&str]) -> Said {
        self.command(words).output().unwrap().into()
    }

    /// Puts a script into the `PATH`.
    pub(crate) fn install(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.home.join("bin").join(name);
        write(&path, script);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The folder of the user's own store, made.
    pub(crate) fn store(&self) -> PathBuf {
        self.home.join(".local/share/rejoin")
    }
}

/// Writes a file, and the folders that it lies in.
pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
