//! A stage: a folder, a script as the agent, and a dialect of JSON lines.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use session_core::decide::Verdict;
use session_core::error::{AgentError, CommandError};
use session_core::{
    AgentAdapter, AgentCapabilities, AgentEvent, AgentId, Cancel, CliDialect, CommandSpec, Decoder, Ended,
    EndedBy, EnvChange, EnvMap, EventSink, Evidence, Exit, Final, Installation, Limits, Link, Mode, Mount,
    NativeId, Program, RunId, StateLayout, Turn, TurnReport, Version,
};
use session_process::{CliAgent, Environment};

/// What the script says when its turn is done.
pub(crate) const END: &str = r#"echo '{"end":"ok"}'"#;

#[derive(Debug, Clone)]
pub(crate) struct Dialect {
    pub(crate) id: AgentId,
    pub(crate) program: Program,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<EnvChange>,
    pub(crate) links: Vec<Link>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) scratch: Vec<PathBuf>,
    pub(crate) preparations: Vec<OsString>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) writes_original: bool,
}

impl CliDialect for Dialect {
    fn id(&self) -> &AgentId {
        &self.id
    }
    fn program(&self) -> Program {
        self.program.clone()
    }
    fn version_probe(&self) -> CommandSpec {
        CommandSpec { args: vec!["--version".into()], ..CommandSpec::default() }
    }
    fn capabilities(&self, _: Option<&Version>) -> AgentCapabilities {
        AgentCapabilities::NONE
    }
    fn accepts_id(&self, id: &NativeId) -> bool {
        id.is_argument_safe()
    }
    fn command(&self, turn: &Turn<'_>, _: &EnvMap) -> Result<CommandSpec, CommandError> {
        let (args, env) = (self.args.clone(), self.env.clone());
        Ok(CommandSpec { args, env, stdin: turn.prompt.as_bytes().to_vec() })
    }
    fn preparations(&self, _: &Turn<'_>, _: &EnvMap) -> Result<Vec<CommandSpec>, CommandError> {
        let spec = |arg: &OsString| CommandSpec { args: vec![arg.clone()], ..CommandSpec::default() };
        Ok(self.preparations.iter().map(spec).collect())
    }
    fn decoder(&self, _: &Turn<'_>) -> Box<dyn Decoder> {
        Box::new(JsonLines::default())
    }
    fn classify(&self, evidence: &Evidence) -> Verdict {
        let proper = evidence.exit == Exit::Code(0) || evidence.ended_by == Some(EndedBy::Linger);
        match (&evidence.observation.end, proper) {
            (Some(_), true) => Verdict::Completed,
            (None, true) => Verdict::NoResult,
            (_, false) => Verdict::Crashed,
        }
    }
    fn state(&self, _: Option<&Path>, _: &EnvMap, _: Option<&Version>) -> StateLayout {
        StateLayout {
            links: self.links.clone(),
            hidden: self.hidden.clone(),
            scratch: self.scratch.clone(),
            mounts: self.mounts.clone(),
            writes_original: self.writes_original,
            ..StateLayout::default()
        }
    }
}

/// `{"owes": …}` is said only at the end of the output.
#[derive(Default)]
struct JsonLines {
    owed: Option<String>,
}

impl Decoder for JsonLines {
    fn line(&mut self, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)) {
        let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(line) else {
            emit(&AgentEvent::Noise { line: &String::from_utf8_lossy(line) });
            return;
        };
        for (name, value) in &object {
            let text = value.as_str().unwrap_or_default();
            match name.as_str() {
                "session" => emit(&AgentEvent::Session { id: text }),
                "model" => emit(&AgentEvent::ModelCalled),
                "tool" => emit(&AgentEvent::ToolStarted { id: text, name: "sh" }),
                "text" => emit(&AgentEvent::Text(text)),
                "end" => {
                    emit(&AgentEvent::Finished(&Final { kind: text.to_owned(), ..Final::default() }));
                }
                "owes" => self.owed = Some(text.to_owned()),
                kind => emit(&AgentEvent::Other { kind }),
            }
        }
    }
    fn end(&mut self, ended: &Ended<'_>, emit: &mut dyn FnMut(&AgentEvent<'_>)) {
        if let Some(kind) = self.owed.take() {
            emit(&AgentEvent::Noise { line: &format!("{:?}: {}", ended.exit, ended.stderr_tail.trim()) });
            emit(&AgentEvent::Finished(&Final { kind, ..Final::default() }));
        }
    }
}

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) dialect: Dialect,
    pub(crate) environment: Environment,
    pub(crate) limits: Limits,
    pub(crate) cancel: Cancel,
    pub(crate) max_line: usize,
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) run: RunId,
    /// What was detected, if not the dialect's program as it stands.
    pub(crate) installed: Option<PathBuf>,
}

impl Stage {
    /// A stage whose agent is this shell script. `$DIR` is the stage's folder.
    pub(crate) fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = folder.path().join("agent");
        write_program(&program, &format!("#!/bin/sh\n{script}\n"));
        let environment =
            Environment::bare().pass(&["PATH"]).set("HOME", folder.path()).set("DIR", folder.path());
        Self {
            dialect: Dialect {
                id: AgentId::new("fake").expect("a valid id"),
                program: Program::new(program),
                args: Vec::new(),
                env: Vec::new(),
                links: Vec::new(),
                hidden: Vec::new(),
                scratch: Vec::new(),
                preparations: Vec::new(),
                mounts: Vec::new(),
                writes_original: false,
            },
            environment,
            limits: Limits::default(),
            cancel: Cancel::new(),
            max_line: 64 << 20,
            state_dir: None,
            run: RunId::new(uuid::Uuid::new_v4()),
            installed: None,
            folder,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn agent(&self) -> CliAgent<Dialect> {
        CliAgent::new(self.dialect.clone())
            .environment(self.environment.clone())
            .max_line_bytes(self.max_line)
    }

    pub(crate) fn installation(&self) -> Installation {
        Installation {
            program: self.installed.clone().unwrap_or_else(|| self.dialect.program.program.clone()),
            version: Version::parse("1.2.3"),
            capabilities: AgentCapabilities::NONE,
        }
    }

    pub(crate) async fn run(&self, sink: &mut dyn EventSink) -> Result<TurnReport, AgentError> {
        self.run_in(self.folder.path(), "hello", sink).await
    }

    pub(crate) async fn run_in(
        &self,
        cwd: &Path,
        prompt: &str,
        sink: &mut dyn EventSink,
    ) -> Result<TurnReport, AgentError> {
        let installation = self.installation();
        let turn = Turn {
            run: self.run,
            prompt,
            cwd,
            mode: Mode::Fresh { id: None },
            name: None,
            model: None,
            recipe: session_core::TurnRecipe::default(),
            state_dir: self.state_dir.as_deref(),
            installation: &installation,
            limits: &self.limits,
            cancel: &self.cancel,
        };
        self.agent().run(turn, sink).await
    }

    /// A turn of this mode, by this agent of the stage's.
    pub(crate) async fn run_by(
        &self,
        agent: &CliAgent<Dialect>,
        mode: Mode<'_>,
        sink: &mut dyn EventSink,
    ) -> Result<TurnReport, AgentError> {
        let installation = self.installation();
        let turn = Turn {
            run: self.run,
            prompt: "hello",
            cwd: &self.path("work"),
            mode,
            name: None,
            model: None,
            recipe: session_core::TurnRecipe::default(),
            state_dir: self.state_dir.as_deref(),
            installation: &installation,
            limits: &self.limits,
            cancel: &self.cancel,
        };
        agent.run(turn, sink).await
    }

    /// The processes of the stage's run that are there, as this test finds them by itself.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let wanted = format!("REJOIN_RUN={}", self.run);
        let all = fs::read_dir("/proc").expect("procfs");
        let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(|pid: &i32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|text| text == wanted.as_bytes()) && is_there(*pid)
        })
        .collect()
    }
}

pub(crate) fn write_program(path: &Path, text: &str) {
    fs::write(path, text).expect("the script is written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("the script is executable");
}

/// Whether the process runs: it has a number, and is not only waiting to be collected.
pub(crate) fn is_there(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A sink that keeps texts and noise.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) texts: Vec<String>,
    pub(crate) noise: Vec<String>,
    pub(crate) cancel_at: Option<(String, Cancel)>,
}

impl EventSink for Heard {
    fn event(&mut self, event: &AgentEvent<'_>) {
        match event {
            AgentEvent::Text(text) => {
                if let Some((at, cancel)) = &self.cancel_at
                    && at == text
                {
                    cancel.cancel();
                }
                self.texts.push((*text).to_owned());
            }
            AgentEvent::Noise { line } => self.noise.push((*line).to_owned()),
            _ => {}
        }
    }
}

impl Heard {
    /// Cancels the stage's run when the agent says this.
    pub(crate) fn cancelling(stage: &Stage, at: &str) -> Self {
        Self { cancel_at: Some((at.to_owned(), stage.cancel.clone())), ..Self::default() }
    }
}
