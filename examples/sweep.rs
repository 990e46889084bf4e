//! The life of a mailbox to its end: used, closed, swept, and what a dry run says before.
//!
//! ```text
//! cargo run --example sweep
//! cargo run --example sweep -- --state-dir . --live issue-42 --live issue-43
//! cargo run --example sweep -- --state-dir . --live issue-42 --remove
//! ```
//!
//! Without `--state-dir`, a scripted agent works on three issues in a temporary folder first. With it, nothing is run, and
//! nothing is removed unless `--remove` is said.

#![expect(clippy::print_stdout, reason = "printing is what the example is for")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rejoin::adapters::{Claude, ClaudeOptions, claude};
use rejoin::core::Program;
use rejoin::error::Report;
use rejoin::process::Environment;
use rejoin::stores::FsStore;
use rejoin::{Closing, Live, LlmRequest, Retention, SessionKey, SessionRef, Sessions, Sweep};
use rejoin_test_support::{ScriptedAgent, fake_agent};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Parser)]
#[command(about = "Remove what no live mailbox owns")]
struct Args {
    /// The folder that holds `.agent-sessions`.
    #[arg(long)]
    state_dir: Option<PathBuf>,
    /// A mailbox that is alive; as often as there are such.
    #[arg(long)]
    live: Vec<String>,
    /// How many days an orphan is kept.
    #[arg(long, default_value_t = 7)]
    grace_days: u32,
    /// How many bytes all state dirs may take; what was idle longest goes first, live mailboxes included.
    #[arg(long)]
    at_most: Option<u64>,
    /// Remove, and not only say what would be.
    #[arg(long)]
    remove: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Report> {
    // The scripted agent is this program once more.
    if let Some(code) = fake_agent::become_agent_if_asked() {
        return Ok(code);
    }
    let args = Args::parse();
    let temporary = tempfile::tempdir()?;
    let agent = scripted(temporary.path())?;
    let Some(base) = &args.state_dir else { return a_whole_life(temporary.path(), agent).await };

    let sessions = Sessions::builder(FsStore::open(base)?).agent(agent).build();
    let mut retention = Retention::new();
    if let Some(bytes) = args.at_most {
        retention = retention.state_at_most(bytes).live_too(true);
    }
    // A list that came out empty is an error here: a tracker that failed must not wipe everything.
    let sweep = Sweep::new(Live::of(args.live)?).grace(DAY * args.grace_days).retention(retention);
    println!("{}", sessions.sweep(&sweep.dry_run(!args.remove)).await?);
    Ok(ExitCode::SUCCESS)
}

async fn a_whole_life(base: &Path, agent: Claude) -> Result<ExitCode, Report> {
    let sessions = Sessions::builder(FsStore::open(base)?).agent(agent).build();
    for issue in ["issue-41", "issue-42", "issue-43"] {
        let request = LlmRequest::new("Make a plan").cwd(std::env::current_dir()?);
        sessions.run(request.session(SessionRef::new(issue, "claude"))).await?;
    }

    println!("# issue-41 is merged, and the runtime says so");
    for closed in sessions.close("issue-41", Closing::Done).await? {
        println!("closed {}, state removed: {}", closed.key, closed.state_removed);
    }

    println!("\n# issue-42 was deleted, and nobody said so: within the grace it stays");
    let tracker = || Live::of(["issue-43"]);
    println!("{}", sessions.sweep(&Sweep::new(tracker()?)).await?);

    println!("\n# a week later, first as a dry run (here: without the grace)");
    let sweep = Sweep::new(tracker()?).grace(Duration::ZERO);
    println!("{}", sessions.sweep(&sweep.clone().dry_run(true)).await?);
    println!("{}", sessions.sweep(&sweep).await?);

    println!("\n# what its log says");
    println!("{}", sessions.explain(&SessionKey::new("issue-42", "claude")?).await?);

    println!("\n# a list that is empty by mistake");
    match Live::of(Vec::<String>::new()) {
        Err(error) => println!("{error}"),
        Ok(_) => return Err("an empty list was taken".into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn scripted(folder: &Path) -> Result<Claude, Box<dyn Error + Send + Sync>> {
    let agent = ScriptedAgent::claude(folder, "Prompt {{turns}} of our conversation.")?;
    let program = agent.leading_args.iter().fold(Program::new(&agent.program), |p, arg| p.leading_arg(arg));
    let environment = Environment::bare().pass(&["PATH"]).set("HOME", folder);
    Ok(claude().options(ClaudeOptions::default().program(program)).environment(environment))
}
