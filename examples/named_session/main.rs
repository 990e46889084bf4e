//! One mailbox, one continuous conversation.
//!
//! ```text
//! cargo run --example named_session
//! cargo run --example named_session -- --json
//! cargo run --example named_session -- --agent claude --prompt "Fix the login bug" --branch agent/issue-42-login
//! ```
//!
//! Without arguments it runs three turns with a scripted agent: a fresh one, a resumed one, and one whose session
//! was deleted. With `--agent claude`, `codex` or `opencode` it runs one turn with the installed CLI in the current folder;
//! the next call for the same mailbox and agent continues the conversation.

mod show;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use rejoin::adapters::{Claude, ClaudeOptions, CodexOptions, CodexProvider, claude, codex, opencode};
use rejoin::core::Program;
use rejoin::process::Environment;
use rejoin::stores::FsStore;
use rejoin::{
    Agent, Cancel, LlmRequest, NativeId, RESUME_SETTING, ResumeSetting, SessionKey, SessionRef, Sessions,
};
use rejoin_test_support::{ScriptedAgent, fake_agent};

#[derive(Debug, Parser)]
#[command(about = "One mailbox, one continuous conversation")]
struct Args {
    /// Which agent to run.
    #[arg(long, value_enum, default_value_t = AgentChoice::Scripted)]
    agent: AgentChoice,
    /// What to say. The scripted agent has three prompts of its own.
    #[arg(long)]
    prompt: Option<String>,
    /// The unit of work that owns the conversation.
    #[arg(long, default_value = "issue-42")]
    mailbox: String,
    /// The branch that names the session for people. The name of a mailbox's first run stays.
    #[arg(long, default_value = "agent/issue-42-fix-login")]
    branch: String,
    /// The folder in which the store keeps everything, in `.agent-sessions`. It is made where it is missing.
    /// [default: the current folder; a temporary one for the scripted agent]
    #[arg(long)]
    state_dir: Option<PathBuf>,
    /// The model's endpoint: a proxy, or a server on this machine. opencode has it in its own configuration.
    #[arg(long)]
    model_url: Option<String>,
    /// Print one JSON object a turn, and nothing else.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AgentChoice {
    Scripted,
    Claude,
    Codex,
    Opencode,
}

impl AgentChoice {
    /// The agent's id. The scripted one plays Claude Code.
    const fn id(self) -> &'static str {
        match self {
            Self::Scripted | Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // The scripted agent is this program once more.
    if let Some(code) = fake_agent::become_agent_if_asked() {
        return code;
    }
    let args = Args::parse();
    match run(&args).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            show::no_turn(args.json, &*error);
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<bool, Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let scripted = args.agent == AgentChoice::Scripted;
    let here = std::env::current_dir()?;
    let base = match &args.state_dir {
        Some(base) => base.clone(),
        None if scripted => temporary.path().to_owned(),
        None => here.clone(),
    };
    // The store itself wants its base to be there, so that a disk that is not mounted is not taken for an empty one.
    std::fs::create_dir_all(&base).map_err(|error| format!("{}: {error}", base.display()))?;
    let environment = environment(args, temporary.path());
    let setting = environment.map().get(RESUME_SETTING).and_then(|value| value.to_str()).unwrap_or_default();
    let setting = ResumeSetting::new().organisation(ResumeSetting::parse(setting)?);
    let agent: Agent = match args.agent {
        AgentChoice::Claude => claude().environment(environment).into(),
        AgentChoice::Codex => codex().options(codex_options(args)?).environment(environment).into(),
        AgentChoice::Opencode if args.model_url.is_some() => {
            return Err("opencode takes the model's endpoint from its own configuration".into());
        }
        AgentChoice::Opencode => opencode().environment(environment).into(),
        AgentChoice::Scripted => scripted_claude(temporary.path())?.environment(environment).into(),
    };
    let sessions = Sessions::builder(FsStore::open(&base)?).agent(agent).resume_setting(setting).build();

    let session = SessionRef::new(&args.mailbox, args.agent.id()).named(&args.branch);
    let cancel = cancel_on_signal();
    let request =
        |prompt: &str| LlmRequest::new(prompt).cwd(&here).session(session.clone()).cancel(cancel.clone());
    let key = SessionKey::new(&args.mailbox, args.agent.id())?;
    let name = if scripted { "claude, played by a script" } else { args.agent.id() };
    show::title(args.json, &key, name, &base);

    if let Some(prompt) = args.prompt.as_deref().or((!scripted).then_some("What did I ask you before?")) {
        return Ok(show::turn(args.json, 1, prompt, &sessions.run(request(prompt)).await));
    }
    let mut well = true;
    let mut ours = None;
    for (number, prompt) in
        (1..).zip(["Fix the login bug", "Now add a test for it", "And write the changelog"])
    {
        if let (3, Some(id)) = (number, &ours) {
            show::lost(args.json, &delete_session_file(&base, id)?);
        }
        let result = sessions.run(request(prompt)).await;
        well &= show::turn(args.json, number, prompt, &result);
        // Only a session that began here is this program's to delete.
        if let (1, Ok(result)) = (number, &result) {
            ours = result.session_id.clone().filter(|_| !result.resumed);
        }
    }
    show::audit(args.json, &key, &sessions.audit(&key, None).await?);
    Ok(well)
}

/// Ends the run in order when this program is asked to end: the agent would outlive it otherwise.
fn cancel_on_signal() -> Cancel {
    let cancel = Cancel::new();
    let handle = cancel.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            handle.cancel();
        }
    });
    cancel
}

/// The scripted agent needs nothing from the environment; the real one needs its credentials.
fn environment(args: &Args, home: &Path) -> Environment {
    let mut environment = match args.agent {
        AgentChoice::Scripted => Environment::bare().pass(&["PATH", RESUME_SETTING]).set("HOME", home),
        AgentChoice::Claude | AgentChoice::Codex | AgentChoice::Opencode => Environment::inherited(),
    };
    if let (AgentChoice::Claude, Some(url)) = (args.agent, &args.model_url) {
        environment = environment.set("ANTHROPIC_BASE_URL", url);
    }
    environment
}

/// A model of one's own is a provider of its own to Codex; its key stands in `MODEL_KEY`.
fn codex_options(args: &Args) -> Result<CodexOptions, Box<dyn Error>> {
    let options = CodexOptions::new();
    Ok(match &args.model_url {
        None => options,
        Some(url) => options.provider(CodexProvider::new("own", url)?.env_key("MODEL_KEY")?),
    })
}

fn scripted_claude(folder: &Path) -> Result<Claude, Box<dyn Error>> {
    let agent = ScriptedAgent::claude(folder, "Prompt {{turns}} of our conversation; I remember them all.")?;
    let program = agent.leading_args.iter().fold(Program::new(&agent.program), |p, arg| p.leading_arg(arg));
    Ok(claude().options(ClaudeOptions::default().program(program)))
}

/// What a clean-up job, a new machine or a user does one day: the agent's file of the session is gone.
fn delete_session_file(base: &Path, id: &NativeId) -> Result<PathBuf, Box<dyn Error>> {
    let name = format!("{id}.jsonl");
    let mut folders = vec![base.join(".agent-sessions/state")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|found| found == name.as_str()) {
                std::fs::remove_file(&path)?;
                return Ok(path.strip_prefix(base).unwrap_or(&path).to_owned());
            }
        }
    }
    Err("the agent kept no session file".into())
}
