//! The fake agent on a stage.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rejoin::adapters::{ClaudeDialect, ClaudeOptions, CodexDialect, CodexOptions, claude, codex};
use rejoin::core::{AgentAdapter, Program, SessionQuery, Speaker, async_trait};
use rejoin::process::{CliAgent, Environment};
use rejoin::{Agent, NativeId};
use rejoin_test_support::fake_agent::{leading_args, read_calls};
use serde_json::{Value, json};
use session_contract::Scratch;
use session_contract::agent::{AgentFixture, Cannot, Play};

/// A CLI that the fake agent plays.
#[derive(Debug)]
pub(crate) struct Played {
    /// What it prints as its version.
    version: &'static str,
    make: fn(Program, Environment) -> Agent,
    without_agent: fn(Program, Environment) -> Box<dyn AgentAdapter>,
    /// The step of a whole turn, with this answer.
    turn: fn(Option<&str>) -> Value,
    /// The step of a turn up to the middle.
    half: fn() -> Value,
    /// What it prints when it fails to continue a session and names another one.
    strays: Option<fn(&NativeId) -> Vec<Value>>,
}

pub(crate) const CLAUDE: Played = Played {
    version: "2.1.332 (Claude Code)",
    make: |program, environment| {
        claude().options(ClaudeOptions::new().program(program)).environment(environment).into()
    },
    without_agent: |program, environment| {
        let dialect = ClaudeDialect::new(ClaudeOptions::new().program(program));
        Box::new(CliAgent::new(dialect).environment(environment))
    },
    turn: |say| json!({ "claude": { "say": say } }),
    half: || json!({ "claude": { "stop_after": "assistant" } }),
    strays: Some(|id| {
        let words = "No conversation found with session ID: the one asked for";
        let end = json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 0,
            "session_id": id, "errors": [words],
        });
        vec![json!({ "line": end }), json!({ "stderr": format!("{words}\n") }), json!({ "exit": 1 })]
    }),
};

/// A version without forks: the fake agent plays none of Codex.
pub(crate) const CODEX: Played = Played {
    version: "codex-cli 0.130.0",
    make: |program, environment| {
        codex().options(CodexOptions::new().program(program)).environment(environment).into()
    },
    without_agent: |program, environment| {
        let dialect = CodexDialect::new(CodexOptions::new().program(program));
        Box::new(CliAgent::new(dialect).environment(environment))
    },
    turn: |say| json!({ "codex": { "say": say } }),
    half: || json!({ "codex": { "stop_after": "user" } }),
    strays: None,
};

#[derive(Debug)]
pub(crate) struct Cli {
    folder: PathBuf,
    project: PathBuf,
    state: PathBuf,
    played: &'static Played,
    agent: Agent,
}

impl Cli {
    pub(crate) fn new(scratch: &Scratch, played: &'static Played) -> Self {
        let folder = scratch.dir().canonicalize().unwrap();
        for name in ["home", "state", "project"] {
            std::fs::create_dir(folder.join(name)).unwrap();
        }
        let program = leading_args(&folder.join("script.json"))
            .into_iter()
            .fold(Program::new(env!("CARGO_BIN_EXE_fake-agent")), Program::leading_arg);
        let agent = (played.make)(program, environment(&folder));
        let (project, state) = (folder.join("project"), folder.join("state"));
        let cli = Self { folder, project, state, played, agent };
        cli.script(&[(played.turn)(None)]);
        cli
    }

    /// From now on, every call plays these steps.
    fn script(&self, steps: &[Value]) {
        let script = json!({
            "version": self.played.version,
            "log": self.folder.join("calls.jsonl"),
            "cases": [{ "steps": steps }],
        });
        let _ = std::fs::remove_file(self.reached());
        std::fs::write(self.folder.join("script.json"), script.to_string()).unwrap();
    }

    fn reached(&self) -> PathBuf {
        self.folder.join("reached")
    }
}

fn environment(folder: &Path) -> Environment {
    Environment::bare().pass(&["PATH"]).set("HOME", folder.join("home"))
}

/// A prompt as the model gets it: the fake agent keeps stdin as it is, and the blocks of a message are one text.
fn as_the_model_gets_it(text: String) -> String {
    let message: Value = serde_json::from_str(&text).unwrap_or_default();
    let blocks = message.pointer("/message/content").and_then(Value::as_array);
    let texts = blocks.map(|blocks| blocks.iter().filter_map(|block| block["text"].as_str()).collect());
    texts.unwrap_or(text)
}

fn files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![below.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() { folders.push(path) } else { found.push(path) }
        }
    }
    found
}

#[async_trait]
impl AgentFixture for Cli {
    fn adapter(&self) -> &dyn AgentAdapter {
        self.agent.adapter()
    }

    fn without_agent(&self) -> Option<Box<dyn AgentAdapter>> {
        let nowhere = Program::new(self.folder.join("nowhere"));
        Some((self.played.without_agent)(nowhere, environment(&self.folder)))
    }

    fn cwd(&self) -> &Path {
        &self.project
    }

    fn state_dir(&self) -> Option<&Path> {
        Some(&self.state)
    }

    async fn stage(&self, play: &Play) -> Result<(), Cannot> {
        let child = || {
            let pid = self.folder.join("pid");
            json!({ "child": { "seconds": 1000, "own_session": true, "ignore_term": true, "pid_file": pid } })
        };
        let steps = match play {
            Play::Works => vec![(self.played.turn)(None)],
            Play::Says(text) => vec![(self.played.turn)(Some(text))],
            Play::Stops => {
                let wait = [json!({ "touch": self.reached() }), json!({ "sleep_ms": 600_000 })];
                [child(), (self.played.half)()].into_iter().chain(wait).collect()
            }
            Play::Dies => vec![(self.played.half)(), json!({ "kill_self": "KILL" })],
            Play::DiesAtOnce => vec![json!({ "exit": 7 })],
            Play::EndsInSilence => vec![json!({ "exit": 0 })],
            Play::FailsNaming(id) => {
                let strays = self.played.strays.ok_or(Cannot("no version was seen to do that"))?;
                strays(id)
            }
            Play::LeavesSomething => vec![child(), (self.played.turn)(None)],
        };
        self.script(&steps);
        Ok(())
    }

    async fn delete(&self, id: &NativeId) -> Result<(), Cannot> {
        for path in files(&self.state) {
            if path.file_name().is_some_and(|name| name.to_string_lossy().contains(id.as_str())) {
                std::fs::remove_file(path).unwrap();
            }
        }
        Ok(())
    }

    async fn stopped(&self) {
        while !self.reached().exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn conversation(&self, id: &NativeId) -> Vec<String> {
        let installation = self.agent.adapter().detect().await.unwrap();
        let query = SessionQuery {
            id,
            cwd: self.cwd(),
            state_dir: self.state_dir(),
            version: installation.version.as_ref(),
        };
        let conversation = self.agent.catalog().unwrap().last_said(query, usize::MAX).await.unwrap();
        let prompts = conversation.said.into_iter().filter(|said| said.by == Speaker::User);
        prompts.map(|said| as_the_model_gets_it(said.text)).collect()
    }

    async fn started(&self) -> usize {
        let calls = read_calls(&self.folder.join("calls.jsonl")).unwrap();
        calls.into_iter().filter(|call| call.argv != ["--version"]).count()
    }

    async fn running(&self) -> usize {
        let home = self.folder.join("home").display().to_string();
        let is_ours = |entry: std::fs::DirEntry| {
            std::fs::read(entry.path().join("environ"))
                .is_ok_and(|environ| environ.windows(home.len()).any(|window| window == home.as_bytes()))
        };
        std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(is_ours).filter(|ours| *ours).count()
    }

    fn outlives_its_runner(&self) -> bool {
        true
    }
}
