//! An agent in a sandbox that shows its own state dir, its work tree, and nothing of anybody else.
//!
//! ```text
//! cargo run --example sandboxed_run
//! cargo run --example sandboxed_run -- --agent claude
//! ```
//!
//! It needs `bwrap` (Debian: `apt-get install bubblewrap`). Where that is missing, or may not make namespaces, it says so and
//! ends with 69; with 1 where something was seen that must not be. Without arguments, the agent is scripted; with `--agent`,
//! the installed CLI says two sentences in an empty project, logged in by its variables (`ANTHROPIC_API_KEY` and the like).

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what the example is for")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use clap::{Parser, ValueEnum};
use rejoin::adapters::{ClaudeOptions, CodexOptions, OpencodeOptions, claude, codex, opencode};
use rejoin::core::{Content, Mount, Program, Purpose};
use rejoin::error::BoxError;
use rejoin::process::{Bubblewrap, Environment, Invocation, Launcher};
use rejoin::stores::FsStore;
use rejoin::{Agent, LlmRequest, MountPlan, SessionKey, SessionRef, Sessions};
use rejoin_test_support::{ScriptedAgent, fake_agent};

/// There is no sandbox on this machine: `EX_UNAVAILABLE` of `sysexits.h`.
const NO_SANDBOX: u8 = 69;

/// What stands in the file that plays a login.
const SECRET: &str = "sk-not-a-real-key";

#[derive(Debug, Parser)]
#[command(about = "An agent in a sandbox that shows nothing of anybody else")]
struct Args {
    /// Which agent to run.
    #[arg(long, value_enum, default_value_t = AgentChoice::Scripted)]
    agent: AgentChoice,
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
async fn main() -> Result<ExitCode, BoxError> {
    // The scripted agent is this program once more, in the sandbox.
    if let Some(code) = fake_agent::become_agent_if_asked() {
        return Ok(code);
    }
    let choice = Args::parse().agent;
    if let Err(why) = try_bwrap() {
        eprintln!("no sandbox here: {why}");
        return Ok(ExitCode::from(NO_SANDBOX));
    }

    let temporary = tempfile::tempdir()?;
    let folder = temporary.path().canonicalize()?;
    let (base, project) = (folder.join("store"), folder.join("project"));
    fs::create_dir(&base)?;
    fs::create_dir(&project)?;
    let environment = environment(choice, &folder)?;
    let sessions = Sessions::builder(FsStore::open(&base)?)
        .agent(agent(choice, environment.clone(), &folder.join("agent"))?)
        .build();

    // Another mailbox, with a conversation of its own.
    let turn = |mailbox: &str, prompt: &str| {
        sessions.run(LlmRequest::new(prompt).cwd(&project).session(SessionRef::new(mailbox, choice.id())))
    };
    turn("issue-7", "Here is something that issue 42 must not know").await?;

    let key = SessionKey::new("issue-42", choice.id())?;
    let plan = sessions.mount_plan(&key, &project).await?;
    println!("the sandbox of {key}");
    plan.mounts().iter().filter(|mount| !mount.optional || mount.path.exists()).for_each(|mount| {
        let how = match (mount.content, mount.read_only) {
            (Content::Empty, _) => "empty",
            (Content::Host, true) => "to read",
            (Content::Host, false) => "to write",
        };
        println!("  {how:<8}  {:<10}  {}", format!("{:?}", mount.purpose), mount.path.display());
    });
    plan.withheld()
        .iter()
        .for_each(|mount| println!("  withheld  {:<10}  {}", "Login", mount.path.display()));

    println!("\ntwo runs");
    for prompt in ["Fix the login bug", "Now add a test for it"] {
        let result = turn("issue-42", prompt).await?;
        println!("  {:<8}  {}", result.route.code(), result.text);
        if prompt.starts_with("Now") && !result.resumed {
            return Err("the second run did not continue the first one".into());
        }
    }

    println!("\nseen from inside");
    let seen = look_around(&environment, &plan, &folder)?;
    for path in &seen.files {
        println!("  {}", path.strip_prefix(&folder).unwrap_or(path).display());
    }
    let own = base.join(".agent-sessions/state/issue-42");
    let of_others: Vec<_> =
        seen.files.iter().filter(|path| path.starts_with(&base) && !path.starts_with(&own)).collect();
    let logins: Vec<_> = plan.withheld().iter().filter(|login| seen.files.contains(&login.path)).collect();
    if !of_others.is_empty() || !logins.is_empty() || seen.has_secret {
        eprintln!("seen, and must not be: {of_others:?} {logins:?}");
        return Ok(ExitCode::FAILURE);
    }
    println!("\nno record, no audit log, no lock, no login, and nothing of issue-7");
    Ok(ExitCode::SUCCESS)
}

/// Whether a sandbox can be made at all.
fn try_bwrap() -> Result<(), String> {
    let plan = MountPlan::new("/", Vec::new(), [Mount::read_only("/", Purpose::System)]);
    let path = Environment::bare().pass(&["PATH"]);
    let output = inside(&path, &plan, &["true"]).map_err(|error| {
        format!("bwrap cannot be started ({error}); install it, on Debian by `apt-get install bubblewrap`")
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!(
        "bwrap may not make namespaces ({said}); it needs user namespaces, or root that may mount; a container has to allow that"
    ))
}

/// Runs a command in the same sandbox as the agent.
fn inside(environment: &Environment, plan: &MountPlan, command: &[&str]) -> Result<Output, BoxError> {
    let command = Invocation {
        program: command[0].into(),
        args: command[1..].iter().map(Into::into).collect(),
        env: environment.map().clone(),
        cwd: plan.cwd().to_owned(),
    };
    let start = Bubblewrap::new().wrap(command, plan)?;
    let mut process = Command::new(&start.program);
    process.args(&start.args).env_clear().envs(start.env.iter()).current_dir(&start.cwd).stdin(Stdio::null());
    Ok(process.output()?)
}

/// What a program sees that looks around in there.
struct Seen {
    files: Vec<PathBuf>,
    has_secret: bool,
}

/// Everything below the folder that holds store, project and home, and in the home.
fn look_around(environment: &Environment, plan: &MountPlan, folder: &Path) -> Result<Seen, BoxError> {
    let home = environment.map().get("HOME").map_or(folder, Path::new);
    let places = [folder.display().to_string(), home.display().to_string()];
    let list = inside(environment, plan, &["find", &places[0], &places[1], "!", "-type", "d"])?;
    let secret = inside(environment, plan, &["grep", "-rqsF", SECRET, &places[0], &places[1]])?;
    let mut files: Vec<_> = String::from_utf8(list.stdout)?.lines().map(PathBuf::from).collect();
    files.sort();
    files.dedup();
    Ok(Seen { files, has_secret: secret.status.success() })
}

/// The scripted agent has a home of its own, with a file that plays a login; a real one has what this program has.
fn environment(choice: AgentChoice, folder: &Path) -> Result<Environment, BoxError> {
    if choice != AgentChoice::Scripted {
        return Ok(Environment::inherited());
    }
    let home = folder.join("home");
    fs::create_dir_all(home.join(".claude"))?;
    fs::write(home.join(".claude/.credentials.json"), SECRET)?;
    Ok(Environment::bare().pass(&["PATH"]).set("HOME", home))
}

fn agent(choice: AgentChoice, environment: Environment, script: &Path) -> Result<Agent, BoxError> {
    let sandbox = Bubblewrap::new();
    Ok(match choice {
        AgentChoice::Claude => claude().environment(environment).launcher(sandbox).into(),
        // Its own sandbox does not work in another one.
        AgentChoice::Codex => codex()
            .options(CodexOptions::new().bypass_sandbox(true))
            .environment(environment)
            .launcher(sandbox)
            .into(),
        AgentChoice::Opencode => {
            opencode().options(OpencodeOptions::new()).environment(environment).launcher(sandbox).into()
        }
        AgentChoice::Scripted => {
            // Not in the project: what an agent could have written is not started outside of the sandbox.
            fs::create_dir(script)?;
            let scripted =
                ScriptedAgent::claude(script, "Prompt {{turns}} of our conversation; I remember them all.")?;
            let program = scripted
                .leading_args
                .iter()
                .fold(Program::new(&scripted.program), |p, arg| p.leading_arg(arg));
            let options = ClaudeOptions::default().program(program);
            let sandbox = Rehearsal { script: script.to_owned(), sandbox };
            claude().options(options).environment(environment).launcher(sandbox).into()
        }
    })
}

/// The scripted agent counts its calls beside its script, so it may write there. No real agent may where its program lies.
#[derive(Debug)]
struct Rehearsal {
    script: PathBuf,
    sandbox: Bubblewrap,
}

impl Launcher for Rehearsal {
    fn wrap(&self, command: Invocation, plan: &MountPlan) -> Result<Invocation, BoxError> {
        let script = Mount::writable(&self.script, Purpose::Program);
        self.sandbox.wrap(command, &plan.clone().show(script))
    }
}
