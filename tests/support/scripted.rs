//! The fake agent for programs that play it themselves, such as examples.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::fake_agent::leading_args;

/// This very program as a scripted agent: it must call
/// [`become_agent_if_asked`](crate::fake_agent::become_agent_if_asked) first thing in `main`.
#[derive(Debug, Clone)]
pub struct ScriptedAgent {
    /// The program to run.
    pub program: PathBuf,
    /// What stands before the agent's own arguments.
    pub leading_args: Vec<String>,
}

impl ScriptedAgent {
    /// Plays the session behaviour of Claude Code, answering with this text; `{{turns}}` and the other names of
    /// [`fake_agent`](crate::fake_agent) expand in it.
    ///
    /// # Errors
    /// When the script cannot be written into the folder.
    pub fn claude(folder: &Path, say: &str) -> io::Result<Self> {
        Self::with_cases(folder, &json!([{ "steps": [{ "claude": { "say": say } }] }]))
    }

    /// Plays the session behaviour of Codex, in the same way.
    ///
    /// # Errors
    /// When the script cannot be written into the folder.
    pub fn codex(folder: &Path, say: &str) -> io::Result<Self> {
        let cases = json!([{ "steps": [{ "codex": { "say": say } }] }]);
        Self::play(folder, "scripted-codex.json", &json!({ "version": "codex-cli 0.171.0", "cases": cases }))
    }

    /// Plays these cases.
    ///
    /// # Errors
    /// When the script cannot be written into the folder.
    pub fn with_cases(folder: &Path, cases: &Value) -> io::Result<Self> {
        Self::play(folder, "scripted-agent.json", &json!({ "cases": cases }))
    }

    fn play(folder: &Path, name: &str, script: &Value) -> io::Result<Self> {
        let path = folder.join(name);
        std::fs::write(&path, script.to_string())?;
        let script = path;
        Ok(Self { program: std::env::current_exe()?, leading_args: leading_args(&script) })
    }
}
