//! Refuse rather than lose context: a run that may only continue a conversation, never begin one.
//!
//! ```text
//! cargo run --example require_resume
//! ```

#![expect(clippy::print_stdout, reason = "printing is what the example is for")]

use std::process::ExitCode;

use rejoin::adapters::{ClaudeOptions, claude};
use rejoin::core::Program;
use rejoin::error::Report;
use rejoin::process::Environment;
use rejoin::stores::FsStore;
use rejoin::{LlmRequest, ResumePolicy, RunError, SessionRef, Sessions};
use rejoin_test_support::{ScriptedAgent, fake_agent};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Report> {
    // The scripted agent is this program once more.
    if let Some(code) = fake_agent::become_agent_if_asked() {
        return Ok(code);
    }
    let folder = tempfile::tempdir()?;
    let scripted = ScriptedAgent::claude(folder.path(), "Prompt {{turns}} of this conversation.")?;
    let program =
        scripted.leading_args.iter().fold(Program::new(&scripted.program), |p, arg| p.leading_arg(arg));
    let agent = claude()
        .options(ClaudeOptions::default().program(program))
        .environment(Environment::bare().pass(&["PATH"]).set("HOME", folder.path()));
    let sessions = Sessions::builder(FsStore::open(folder.path())?).agent(agent).build();

    let here = std::env::current_dir()?;
    let request = |prompt: &str| {
        LlmRequest::new(prompt)
            .cwd(&here)
            .session(SessionRef::new("issue-7", "claude").named("agent/issue-7"))
    };

    // Nothing is bound yet: there is nothing to continue, and nothing is started.
    match sessions.run(request("Go on with the plan").resume(ResumePolicy::Require)).await {
        Err(RunError::Refused { why }) => println!("refused    {} – {why}", why.code()),
        other => return Err(format!("expected a refusal, got {other:?}").into()),
    }

    let first = sessions.run(request("Make a plan")).await?;
    println!("{:<10} {}", first.route.code(), first.text);

    // Now there is.
    let second = sessions.run(request("Go on with the plan").resume(ResumePolicy::Require)).await?;
    println!("{:<10} {}", second.route.code(), second.text);
    Ok(ExitCode::SUCCESS)
}
