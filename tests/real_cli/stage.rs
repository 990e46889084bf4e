//! One trial's world: a throw-away home, a project that is a git repository, a store, a model.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rejoin::adapters::{Claude, ClaudeOptions, claude};
use rejoin::core::{Lifecycle, Program};
use rejoin::process::{Environment, SystemHost};
use rejoin::stores::FsStore;
use rejoin::{Agent, LlmRequest, LlmResult, NativeId, RunError, SessionKey, SessionRecord, SessionRef};
use rejoin_test_support::ContextReply;
use rejoin_test_support::fake_model::FakeModel;

use crate::matrix;
use crate::pinned::Pinned;

/// How long anything may take here; a trial that waits longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) cli: Pinned,
    pub(crate) model: FakeModel,
    pub(crate) project: PathBuf,
    /// One of each kind, so that the version is asked for once.
    looking: OnceLock<Lifecycle>,
    blind: OnceLock<Lifecycle>,
    dir: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new(cli: &Pinned) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["home", "tmp", "store", "project"] {
            std::fs::create_dir(root.join(folder)).unwrap();
        }
        let project = root.join("project");
        let (looking, blind) = (OnceLock::new(), OnceLock::new());
        let stage = Self { cli: cli.clone(), model: FakeModel::start(), project, looking, blind, dir };
        stage.git(&["init", "-q"]);
        stage.git(&[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "root",
        ]);
        stage
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(crate) fn git(&self, args: &[&str]) {
        let status =
            Command::new("git").args(args).current_dir(&self.project).env("HOME", self.root()).status();
        assert!(status.unwrap().success(), "git {args:?}");
    }

    /// The bare environment of every run here: no credentials, no telemetry, no updates, loopback only.
    pub(crate) fn environment(&self) -> Environment {
        environment(&self.root(), &self.cli, &self.model.url())
    }

    pub(crate) fn claude(&self) -> Claude {
        agent(&self.cli, self.environment())
    }

    pub(crate) fn store(&self) -> FsStore {
        FsStore::open(self.root().join("store")).unwrap()
    }

    /// The lifecycle with or without a look at the session's file before and after each run.
    pub(crate) fn lifecycle(&self, look: bool) -> Lifecycle {
        let make = || {
            let agent = Agent::from(self.claude());
            let agent = if look { agent } else { agent.without_catalog() };
            Lifecycle::new(Arc::new(self.store()), Arc::new(SystemHost::new())).agent(agent)
        };
        if look { self.looking.get_or_init(make) } else { self.blind.get_or_init(make) }.clone()
    }

    pub(crate) fn request(&self, prompt: &str) -> LlmRequest {
        request(&self.project, prompt)
    }

    pub(crate) async fn run(&self, prompt: &str) -> Result<LlmResult, RunError> {
        self.lifecycle(true).run(self.request(prompt)).await
    }

    /// Runs a prompt, notes the outcome as a row of the matrix with the turns that reached the model, and says it.
    pub(crate) async fn row(
        &self,
        scenario: &str,
        look: bool,
        request: LlmRequest,
    ) -> Result<LlmResult, RunError> {
        let before = self.turns();
        let outcome = self.lifecycle(look).run(request).await;
        matrix::note(&self.cli, scenario, &outcome, self.turns() - before);
        outcome
    }

    /// Turns of a conversation that reached the model, side requests left out.
    pub(crate) fn turns(&self) -> usize {
        self.model.requests().iter().filter(|request| request.is_turn()).count()
    }

    pub(crate) async fn record(&self) -> SessionRecord {
        self.lifecycle(true).record(&key()).await.unwrap().unwrap()
    }

    pub(crate) async fn bound(&self) -> NativeId {
        self.record().await.binding.unwrap().native_id
    }

    /// The session's file.
    pub(crate) fn transcript(&self, id: &NativeId) -> PathBuf {
        let name = format!("{id}.jsonl");
        let is_it = |path: &PathBuf| path.file_name().is_some_and(|found| found == name.as_str());
        self.transcripts().into_iter().find(is_it).unwrap_or_else(|| panic!("no transcript of {id}"))
    }

    /// All session files in the state dirs.
    pub(crate) fn transcripts(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.root().join("store/.agent-sessions/state")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                    found.push(path);
                }
            }
        }
        found
    }

    /// Writes another native id into the record.
    pub(crate) async fn tamper_id(&self, id: &str) {
        use rejoin::SessionStore as _;
        let mut record = self.record().await;
        record.binding.as_mut().unwrap().native_id = NativeId::new(id);
        let document = rejoin::core::codec::encode(&record);
        let saved = self.store().save(&key(), &document, &rejoin::core::Guard::Any).await.unwrap();
        assert!(matches!(saved, rejoin::core::Saved::Done(_)));
    }

    /// Live processes whose environment names this stage's home.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mark = format!("HOME={}", self.root().join("home").display());
        let of_stage = |entry: std::fs::DirEntry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let environ = std::fs::read(entry.path().join("environ")).ok()?;
            environ.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes()).then_some(pid)
        };
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| of_stage(entry.unwrap())).collect()
    }
}

/// What the model said of the context that it got.
pub(crate) fn reply(result: &LlmResult) -> ContextReply {
    ContextReply::parse(&result.text).unwrap_or_else(|| panic!("no context in {:?}", result.text))
}

pub(crate) fn key() -> SessionKey {
    SessionKey::new("issue-42", "claude").unwrap()
}

pub(crate) fn request(project: &Path, prompt: &str) -> LlmRequest {
    LlmRequest::new(prompt)
        .cwd(project)
        .session(SessionRef::new("issue-42", "claude").named("agent/issue-42-login"))
}

pub(crate) fn environment(root: &Path, cli: &Pinned, url: &str) -> Environment {
    Environment::bare()
        .set("HOME", root.join("home"))
        .set("TMPDIR", root.join("tmp"))
        .set("PATH", &cli.path)
        .set("LANG", "C.UTF-8")
        .set("TERM", "dumb")
        .set("IS_SANDBOX", "1")
        .set("ANTHROPIC_BASE_URL", url)
        .set("ANTHROPIC_API_KEY", "none")
        .set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .set("DISABLE_AUTOUPDATER", "1")
        .set("DISABLE_TELEMETRY", "1")
        .set("CLAUDE_CODE_MAX_RETRIES", "1")
}

pub(crate) fn agent(cli: &Pinned, environment: Environment) -> Claude {
    claude().options(ClaudeOptions::new().program(Program::new(&cli.program))).environment(environment)
}
