//! What others take for the same, each call in a process of its own that tells its time without its start.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Where the peers are installed, and where they may write.
#[derive(Debug)]
pub(crate) struct Peers {
    folder: PathBuf,
    home: tempfile::TempDir,
}

/// A peer that reads sessions of Claude Code.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sdk {
    Python,
    TypeScript,
}

impl Sdk {
    pub(crate) const ALL: [Self; 2] = [Self::Python, Self::TypeScript];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Python => "Python SDK",
            Self::TypeScript => "TypeScript SDK",
        }
    }
}

impl Peers {
    /// Those that `cargo xtask` installed there.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, home: tempfile::tempdir().expect("there is a folder for temporary files") }
    }

    /// The time of one call on a home of Claude Code, as the peer tells it.
    pub(crate) fn sdk(&self, sdk: Sdk, call: &[&str], home: &Path) -> Duration {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/transcripts/peers");
        let mut command = match sdk {
            Sdk::Python => {
                let mut python = self.bare(&self.folder.join("python/bin/python"));
                python.arg(scripts.join("sdk.py"));
                python
            }
            Sdk::TypeScript => {
                let mut node = self.bare(Path::new("node"));
                node.arg(scripts.join("sdk.mjs")).arg(self.folder.join("npm"));
                node
            }
        };
        command.arg(call[0]).arg(home).args(&call[1..]);
        let output = command.output().expect("the peer is installed");
        assert!(output.status.success(), "{}: {}", sdk.name(), String::from_utf8_lossy(&output.stderr));
        let millis: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("it prints a number");
        Duration::from_secs_f64(millis / 1e3)
    }

    /// The time that ccusage takes for the totals of a home of Claude Code, its start included.
    pub(crate) fn ccusage(&self, home: &Path) -> Duration {
        let mut command = self.bare(&self.folder.join("programs/node_modules/.bin/ccusage"));
        command.args(["claude", "session", "--json", "-O"]).env("CLAUDE_CONFIG_DIR", home);
        let start = Instant::now();
        let output = command.output().expect("the peer is installed");
        let took = start.elapsed();
        assert!(output.status.success(), "ccusage: {}", String::from_utf8_lossy(&output.stderr));
        took
    }

    fn bare(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.home.path());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command
    }
}
