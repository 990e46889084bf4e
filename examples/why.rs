//! Why did the last run of a mailbox resume, fall back or start fresh, and what was tried?
//!
//! ```text
//! cargo run --example why
//! cargo run --example why -- --state-dir . --mailbox issue-42 --agent claude
//! cargo run --example why -- --state-dir . --mailbox issue-42 --agent claude --json
//! ```
//!
//! Without `--state-dir`, a scripted agent makes three runs in a temporary folder first, the last one with a session that
//! was deleted. With it, nothing is run: the records in that folder are read.

#![expect(clippy::print_stdout, reason = "printing is what the example is for")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use rejoin::adapters::{Claude, ClaudeOptions, claude};
use rejoin::core::Program;
use rejoin::error::Report;
use rejoin::process::Environment;
use rejoin::stores::FsStore;
use rejoin::{LlmRequest, SessionKey, SessionRef, Sessions};
use rejoin_test_support::{ScriptedAgent, fake_agent};

#[derive(Debug, Parser)]
#[command(about = "Why the last run of a mailbox went as it did")]
struct Args {
    /// The folder that holds `.agent-sessions`.
    #[arg(long)]
    state_dir: Option<PathBuf>,
    /// The unit of work.
    #[arg(long, default_value = "issue-42")]
    mailbox: String,
    /// The agent.
    #[arg(long, default_value = "claude")]
    agent: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Report> {
    // The scripted agent is this program once more.
    if let Some(code) = fake_agent::become_agent_if_asked() {
        return Ok(code);
    }
    let args = Args::parse();
    let temporary = tempfile::tempdir()?;
    let base = args.state_dir.as_deref().unwrap_or(temporary.path());
    let sessions = Sessions::builder(FsStore::open(base)?).agent(scripted(temporary.path())?).build();
    let key = SessionKey::new(&args.mailbox, &args.agent)?;
    if args.state_dir.is_none() {
        for prompt in ["Fix the login bug", "Now add a test for it"] {
            sessions.run(request(&key, prompt)?).await?;
        }
        // What a clean-up job does one day.
        std::fs::remove_dir_all(state_of(base)?)?;
        sessions.run(request(&key, "And write the changelog")?).await?;
    }
    let explanation = sessions.explain(&key).await?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&explanation)?);
    } else {
        println!("{explanation}");
    }
    Ok(ExitCode::SUCCESS)
}

fn request(key: &SessionKey, prompt: &str) -> Result<LlmRequest, Box<dyn Error + Send + Sync>> {
    let session = SessionRef::from(key).named("agent/issue-42-fix-login");
    Ok(LlmRequest::new(prompt).cwd(std::env::current_dir()?).session(session))
}

fn scripted(folder: &Path) -> Result<Claude, Box<dyn Error + Send + Sync>> {
    let agent = ScriptedAgent::claude(folder, "Prompt {{turns}} of our conversation.")?;
    let program = agent.leading_args.iter().fold(Program::new(&agent.program), |p, arg| p.leading_arg(arg));
    let environment = Environment::bare().pass(&["PATH"]).set("HOME", folder);
    Ok(claude().options(ClaudeOptions::default().program(program)).environment(environment))
}

/// Where the agent keeps the session's file: the state dir of the only key.
fn state_of(base: &Path) -> Result<PathBuf, Box<dyn Error + Send + Sync>> {
    let mut folder = base.join(".agent-sessions/state");
    // One folder for the mailbox, one for the agent.
    for _ in 0..2 {
        folder = std::fs::read_dir(&folder)?.next().ok_or("the agent kept nothing")??.path();
    }
    Ok(folder.join("projects"))
}
