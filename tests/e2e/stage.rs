//! One test's world: a folder with a project, a store, a home, and a scripted agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rejoin::adapters::{ClaudeOptions, claude};
use rejoin::core::{Lifecycle, Program};
use rejoin::process::{Environment, SystemHost};
use rejoin::stores::FsStore;
use rejoin::{Agent, FailedRun, LlmRequest, LlmResult, RunError, SessionKey, SessionRecord, SessionRef, Why};
use rejoin_test_support::fake_agent::{CallRecord, leading_args, read_calls};
use serde_json::{Value, json};

pub(crate) struct Stage {
    dir: tempfile::TempDir,
    look: bool,
}

/// The step that plays Claude Code.
pub(crate) fn works() -> Value {
    json!({ "steps": [{ "claude": {} }] })
}

pub(crate) fn key() -> SessionKey {
    SessionKey::new("issue-42", "claude").unwrap()
}

impl Stage {
    pub(crate) fn new() -> Self {
        let stage = Self { dir: tempfile::tempdir().unwrap(), look: true };
        for folder in ["home", "store", "project"] {
            std::fs::create_dir(stage.path(folder)).unwrap();
        }
        stage.script(&json!([works()]));
        stage
    }

    /// Nobody looks at session files: what is known is what the agent says.
    pub(crate) fn blind(mut self) -> Self {
        self.look = false;
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// From here on the agent plays these cases; calls are counted anew.
    pub(crate) fn script(&self, cases: &Value) {
        let script = json!({ "log": self.path("calls.jsonl"), "cases": cases });
        std::fs::write(self.path("script.json"), script.to_string()).unwrap();
        let _ = std::fs::remove_file(self.path("script.json.calls"));
    }

    pub(crate) fn program(&self) -> Program {
        let fold = |program: Program, arg: String| program.leading_arg(arg);
        leading_args(&self.path("script.json"))
            .into_iter()
            .fold(Program::new(env!("CARGO_BIN_EXE_fake-agent")), fold)
    }

    pub(crate) fn environment(&self) -> Environment {
        Environment::bare().pass(&["PATH"]).set("HOME", self.path("home"))
    }

    pub(crate) fn lifecycle_of(&self, program: Program, environment: Environment) -> Lifecycle {
        let agent =
            Agent::from(claude().options(ClaudeOptions::new().program(program)).environment(environment));
        let agent = if self.look { agent } else { agent.without_catalog() };
        let store = FsStore::open(self.path("store")).unwrap();
        Lifecycle::new(Arc::new(store), Arc::new(SystemHost::new())).agent(agent)
    }

    pub(crate) fn lifecycle(&self) -> Lifecycle {
        self.lifecycle_of(self.program(), self.environment())
    }

    pub(crate) fn request(&self, prompt: &str) -> LlmRequest {
        LlmRequest::new(prompt)
            .cwd(self.path("project"))
            .session(SessionRef::new("issue-42", "claude").named("agent/issue-42"))
    }

    pub(crate) async fn run(&self, prompt: &str) -> LlmResult {
        self.lifecycle().run(self.request(prompt)).await.unwrap()
    }

    pub(crate) async fn fails(&self, request: LlmRequest) -> (Why, FailedRun) {
        match self.lifecycle().run(request).await {
            Err(RunError::Failed { why, run }) => (why, *run),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn record(&self) -> SessionRecord {
        self.lifecycle().record(&key()).await.unwrap().unwrap()
    }

    pub(crate) async fn bound(&self) -> Option<String> {
        self.record().await.binding.map(|binding| binding.native_id.to_string())
    }

    /// The agent's calls, version probes left out.
    pub(crate) fn calls(&self) -> Vec<CallRecord> {
        let calls = read_calls(&self.path("calls.jsonl")).unwrap();
        calls.into_iter().filter(|call| call.argv != ["--version"]).collect()
    }

    /// All files below a folder.
    pub(crate) fn files(&self, below: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.path(below)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() { folders.push(path) } else { found.push(path) }
            }
        }
        found
    }

    /// The session files that the agent keeps.
    pub(crate) fn transcripts(&self) -> Vec<PathBuf> {
        let is_transcript = |path: &PathBuf| path.extension().is_some_and(|e| e == "jsonl") && in_state(path);
        self.files("store").into_iter().filter(is_transcript).collect()
    }

    /// The file of the key's record.
    pub(crate) fn record_file(&self) -> PathBuf {
        let mut files = self.files("store/.agent-sessions/records");
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }
}

fn in_state(path: &Path) -> bool {
    path.iter().any(|part| part == "state")
}

/// Processes that are there and whose environment carries this text.
pub(crate) fn processes_with(text: &str) -> usize {
    let has = |entry: std::fs::DirEntry| {
        std::fs::read(entry.path().join("environ"))
            .is_ok_and(|environ| environ.windows(text.len()).any(|window| window == text.as_bytes()))
    };
    std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(has).filter(|found| *found).count()
}
