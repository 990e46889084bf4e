//! An agent that there is not, and its dialect, which holds the whole contract.

use std::path::Path;

use serde_json::{Value, json};
use session_core::decide::{Activity, Verdict};
use session_core::error::CommandError;
use session_core::*;

/// Version 1 has no sessions that last, version 2 continues them under a new id, version 3 does everything.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) id: AgentId,
}

pub(crate) const LIMIT: usize = 200_000;

pub(crate) fn at_least(version: Option<&Version>, major: u64) -> bool {
    version.is_none_or(|version| version.at_least(major, 0, 0))
}

fn unsupported(turn: &Turn<'_>, what: &'static str) -> CommandError {
    let version =
        turn.installation.version.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
    CommandError::Unsupported { version, what }
}

fn checked(id: &NativeId) -> Result<&str, CommandError> {
    is_id(id.as_str()).then(|| id.as_str()).ok_or_else(|| CommandError::Id { id: id.to_string() })
}

pub(crate) fn is_id(text: &str) -> bool {
    text.strip_prefix("s-")
        .is_some_and(|digits| digits.len() == 10 && digits.bytes().all(|b| b.is_ascii_digit()))
}

impl Sample {
    pub(crate) fn new() -> Self {
        Self { id: AgentId::new("sample").unwrap() }
    }
}

impl CliDialect for Sample {
    fn id(&self) -> &AgentId {
        &self.id
    }

    fn program(&self) -> Program {
        Program::new("sample")
    }

    fn version_probe(&self) -> CommandSpec {
        CommandSpec { args: vec!["--version".into()], ..CommandSpec::default() }
    }

    fn capabilities(&self, version: Option<&Version>) -> AgentCapabilities {
        let mut capabilities = AgentCapabilities::NONE;
        capabilities.session_state_path = Some("sessions");
        if at_least(version, 2) {
            capabilities.resumable_sessions = true;
            capabilities.headless_resume = true;
            capabilities.id_on_resume = IdOnResume::Replaced;
            capabilities.fork = ForkSupport::No;
        }
        if at_least(version, 3) {
            capabilities.id_on_resume = IdOnResume::Kept;
            capabilities.caller_chosen_id = true;
            capabilities.fork = ForkSupport::CallerChoosesId;
            capabilities.names = true;
            capabilities.prompt_limit = Some(LIMIT);
        }
        let verified = ["1.0.0", "2.0.0", "3.0.0"];
        capabilities.verified = version.is_some_and(|version| verified.contains(&version.text.as_str()));
        capabilities
    }

    fn accepts_id(&self, id: &NativeId) -> bool {
        is_id(id.as_str())
    }

    fn new_id(&self, random: &str) -> NativeId {
        // The digits of a UUID, folded to ten: what is random enough for a test.
        let number = random.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        NativeId::new(format!("s-{:010}", number % 10_000_000_000))
    }

    fn preparations(&self, _: &Turn<'_>, _: &EnvMap) -> Result<Vec<CommandSpec>, CommandError> {
        Ok(Vec::new())
    }

    fn command(&self, turn: &Turn<'_>, _: &EnvMap) -> Result<CommandSpec, CommandError> {
        let version = turn.installation.version.as_ref();
        let limit = turn.installation.capabilities.prompt_limit.unwrap_or(usize::MAX);
        if turn.prompt.len() > limit {
            return Err(CommandError::PromptTooLarge { length: turn.prompt.len(), limit });
        }
        let mut args = vec!["run".to_owned(), "--json".to_owned()];
        let mut push = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
        match turn.mode {
            Mode::Fresh { id: None } => {}
            Mode::Fresh { id: Some(_) } if !at_least(version, 3) => {
                return Err(unsupported(turn, "take an id"));
            }
            Mode::Fresh { id: Some(id) } => push(&["--new", checked(id)?]),
            Mode::Resume { .. } if !at_least(version, 2) => {
                return Err(unsupported(turn, "continue a session"));
            }
            Mode::Resume { id } => push(&["--continue", checked(id)?]),
            Mode::Fork { .. } if !at_least(version, 3) => return Err(unsupported(turn, "fork a session")),
            Mode::Fork { source, transcript, id } => {
                push(&["--copy", checked(source)?]);
                if let Some(file) = transcript.and_then(Path::to_str) {
                    push(&[&format!("--file={file}")]);
                }
                if let Some(id) = id {
                    push(&["--new", checked(id)?]);
                }
            }
        }
        if let Some(name) = turn.name.filter(|_| at_least(version, 3)) {
            push(&[&format!("--title={name}")]);
        }
        let mut stdin = turn.prompt.as_bytes().to_vec();
        if turn.prompt.starts_with('/') {
            push(&["--blocks"]);
            stdin = json!({ "text": turn.prompt }).to_string().into_bytes();
        }
        let args = args.into_iter().map(Into::into).collect();
        Ok(CommandSpec { args, env: vec![EnvChange::remove("SESSION_ID")], stdin })
    }

    fn decoder(&self, turn: &Turn<'_>) -> Box<dyn Decoder> {
        let asked = match turn.mode {
            Mode::Resume { id } => Some(id.clone()),
            Mode::Fresh { .. } | Mode::Fork { .. } => None,
        };
        Box::new(SampleDecoder { _asked: asked })
    }

    fn classify(&self, evidence: &Evidence) -> Verdict {
        let observation = &evidence.observation;
        let nothing_done = observation.activity() == Activity::None;
        if observation.end.as_ref().is_some_and(|end| !end.is_error) {
            return if observation.session.is_some() { Verdict::Completed } else { Verdict::Unknown };
        }
        match observation.trouble.as_ref().map(|(code, _)| code.as_str()) {
            Some("no_session") if nothing_done && !matches!(evidence.asked, Asked::Fresh(_)) => {
                Verdict::Missing
            }
            Some("busy") if nothing_done => Verdict::Busy,
            Some("refused") if observation.end.is_some() => Verdict::Incompatible,
            Some("login") => Verdict::Unauthenticated,
            _ => match evidence.exit {
                Exit::Code(0) => Verdict::NoResult,
                Exit::Signal(_) => Verdict::Crashed,
                _ if nothing_done => Verdict::Unknown,
                _ => Verdict::Crashed,
            },
        }
    }

    fn state(&self, state_dir: Option<&Path>, env: &EnvMap, _: Option<&Version>) -> StateLayout {
        let home = env.get("HOME").map(|home| Path::new(home).join(".sample"));
        let Some(state) = state_dir else {
            let sessions = home.map(|home| home.join("sessions"));
            return StateLayout { sessions, ..StateLayout::default() };
        };
        // An empty folder in the place of the user's shows none of what is in that.
        let empty = home.iter().map(|home| Mount::empty(home, Purpose::Private));
        let mounts = std::iter::once(Mount::writable(state, Purpose::StateDir)).chain(empty).collect();
        let links =
            home.iter().map(|home| Link { at: state.join("config"), target: home.join("config") }).collect();
        StateLayout {
            sessions: Some(state.join("sessions")),
            env: vec![EnvChange::set("SAMPLE_HOME", state)],
            scratch: vec![state.join("cache")],
            hidden: vec![state.join("login")],
            links,
            mounts,
            ..StateLayout::default()
        }
    }
}

struct SampleDecoder {
    _asked: Option<NativeId>,
}

impl Decoder for SampleDecoder {
    fn line(&mut self, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let value: Value = serde_json::from_slice(line).unwrap_or_default();
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("event") {
            "begin" => {
                emit(&AgentEvent::Session { id: text("session") });
                emit(&AgentEvent::ModelCalled);
            }
            "say" => emit(&AgentEvent::Text(text("text"))),
            "tool" => emit(&AgentEvent::ToolStarted { id: text("id"), name: text("name") }),
            "tool_end" => emit(&AgentEvent::ToolFinished { id: text("id"), is_error: false }),
            "error" => emit(&AgentEvent::Trouble { code: text("code"), status: None, text: text("text") }),
            "end" => {
                let is_error = value.get("ok") != Some(&Value::Bool(true));
                let text = text("text").to_owned();
                emit(&AgentEvent::Finished(&Final { is_error, text, ..Final::default() }));
            }
            _ => {
                let shown = String::from_utf8_lossy(&line[..line.len().min(200)]);
                emit(&AgentEvent::Noise { line: &shown });
            }
        }
    }
}
