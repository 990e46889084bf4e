//! An agent of your own: a dialect says how its command line is built, its lines are read, its end is judged.
//! Processes, time limits, leases, records and fallbacks are not the dialect's business.
//!
//! The agent here is a shell script that keeps one text file a session and speaks lines such as `id …`, `say …`.
//!
//! ```text
//! cargo run --example custom_adapter
//! ```

#![expect(clippy::print_stdout, reason = "printing is what the example is for")]

use std::path::{Path, PathBuf};

use rejoin::core::decide::Verdict;
use rejoin::core::error::CommandError;
use rejoin::core::{
    CliDialect, CommandSpec, Decoder, EnvMap, Evidence, Exit, Final, Mode, Program, ReachCapability,
    StateLayout, Turn, Version,
};
use rejoin::error::Report;
use rejoin::process::{CliAgent, Environment};
use rejoin::stores::MemoryStore;
use rejoin::{AgentCapabilities, AgentEvent, AgentId, LlmRequest, NativeId, SessionRef, Sessions};

const SCRIPT: &str = r#"
case "$1" in --version) echo "notes 1.0.0"; exit 0;; esac
file="$HOME/$2.txt"
if [ "$1" = --resume ] && [ ! -f "$file" ]; then echo "no such notes: $2" >&2; exit 4; fi
cat >> "$file"; echo >> "$file"
echo "id $2"
echo "say I have $(grep -c . "$file") notes"
echo "end"
"#;

#[derive(Debug)]
struct Notes {
    id: AgentId,
    script: PathBuf,
}

impl CliDialect for Notes {
    fn id(&self) -> &AgentId {
        &self.id
    }

    fn program(&self) -> Program {
        Program::new("sh").leading_arg(&self.script)
    }

    fn version_probe(&self) -> CommandSpec {
        CommandSpec { args: vec!["--version".into()], ..CommandSpec::default() }
    }

    fn capabilities(&self, _: Option<&Version>) -> AgentCapabilities {
        // Start from nothing and raise what is true.
        let mut capabilities = AgentCapabilities::NONE;
        capabilities.resumable_sessions = true;
        capabilities.headless_resume = true;
        capabilities.resume_reach = ReachCapability::Anywhere;
        capabilities.caller_chosen_id = true;
        capabilities.verified = true;
        capabilities
    }

    fn accepts_id(&self, id: &NativeId) -> bool {
        // A UUID: it is a part of a path and of a command line, so nothing else is.
        let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        id.as_str().len() == 36 && id.is_argument_safe() && id.as_str().bytes().all(is_part)
    }

    fn command(&self, turn: &Turn<'_>, _: &EnvMap) -> Result<CommandSpec, CommandError> {
        let (flag, id) = match turn.mode {
            Mode::Fresh { id: Some(id) } => ("--new", id),
            Mode::Resume { id } => ("--resume", id),
            Mode::Fresh { id: None } | Mode::Fork { .. } => {
                return Err(CommandError::Unsupported { version: "1.0.0".to_owned(), what: "fork" });
            }
        };
        // The prompt goes by stdin, never by an argument.
        let args = vec![flag.into(), id.as_str().into()];
        Ok(CommandSpec { args, stdin: turn.prompt.into(), ..CommandSpec::default() })
    }

    fn preparations(&self, _: &Turn<'_>, _: &EnvMap) -> Result<Vec<CommandSpec>, CommandError> {
        Ok(Vec::new())
    }

    fn decoder(&self, _: &Turn<'_>) -> Box<dyn Decoder> {
        Box::new(NotesDecoder::default())
    }

    fn classify(&self, evidence: &Evidence) -> Verdict {
        match (evidence.exit, &evidence.observation.end) {
            (_, Some(_)) => Verdict::Completed,
            (Exit::Code(4), None) => Verdict::Missing,
            (Exit::Signal(_), None) => Verdict::Crashed,
            _ => Verdict::Unknown,
        }
    }

    fn state(&self, _: Option<&Path>, _: &EnvMap, _: Option<&Version>) -> StateLayout {
        StateLayout::default()
    }
}

#[derive(Default)]
struct NotesDecoder {
    answer: String,
}

impl Decoder for NotesDecoder {
    fn line(&mut self, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)) {
        let line = String::from_utf8_lossy(line);
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("id", id) => {
                emit(&AgentEvent::Session { id });
                emit(&AgentEvent::ModelCalled);
            }
            ("say", text) => {
                text.clone_into(&mut self.answer);
                emit(&AgentEvent::Text(text));
            }
            ("end", _) => {
                let text = std::mem::take(&mut self.answer);
                emit(&AgentEvent::Finished(&Final { kind: "end".to_owned(), text, ..Final::default() }));
            }
            _ => emit(&AgentEvent::Noise { line: &line }),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Report> {
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("notes.sh");
    std::fs::write(&script, SCRIPT)?;
    let notes = CliAgent::new(Notes { id: AgentId::new("notes")?, script })
        .environment(Environment::bare().pass(&["PATH"]).set("HOME", folder.path()));
    let sessions = Sessions::builder(MemoryStore::new()).agent(notes).build();

    let run = async |prompt: &str| {
        let request = LlmRequest::new(prompt).cwd(folder.path()).session(SessionRef::new("issue-7", "notes"));
        sessions.run(request).await
    };
    for prompt in ["buy milk", "water the plants"] {
        let result = run(prompt).await?;
        println!("{:<10} {}", result.route.code(), result.text);
    }
    // The notes are lost; the run goes on, and says why it began anew.
    for entry in std::fs::read_dir(folder.path())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            std::fs::remove_file(path)?;
        }
    }
    let result = run("call Ada").await?;
    println!(
        "{:<10} {}  ({})",
        result.route.code(),
        result.text,
        result.resume_fallback.map_or("", |why| why.code())
    );
    Ok(())
}
