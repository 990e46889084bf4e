//! Try two ways from one conversation, keep the better one, and begin anew without losing the other.
//!
//! ```text
//! cargo run --example fork
//! ```
//!
//! A fork is a second mailbox that begins with what the first one said, whole or up to a prompt. The original is not touched,
//! and both go on. `clear` begins a new conversation; the old one is kept in the record, and can be rejoined.

#![expect(clippy::print_stdout, reason = "printing is what the example is for")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use rejoin::adapters::{Claude, ClaudeOptions, claude};
use rejoin::core::Program;
use rejoin::error::Report;
use rejoin::process::Environment;
use rejoin::stores::FsStore;
use rejoin::{ForkRequest, LlmRequest, LlmResult, SessionKey, SessionRef, Sessions};
use rejoin_test_support::{ScriptedAgent, fake_agent};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Report> {
    // The scripted agent is this program once more.
    if let Some(code) = fake_agent::become_agent_if_asked() {
        return Ok(code);
    }
    let folder = tempfile::tempdir()?;
    let work = folder.path().join("work");
    std::fs::create_dir(&work)?;
    let sessions = Sessions::builder(FsStore::open(folder.path())?)
        .agent(scripted(folder.path())?)
        .checkpointer(rejoin::checkpoints(folder.path()))
        .build();
    let first = SessionKey::new("issue-42", "claude")?;
    let run = async |key: &SessionKey, prompt: &str| -> Result<LlmResult, Report> {
        let session = SessionRef::from(key);
        let result = sessions.run(LlmRequest::new(prompt).cwd(&work).session(session)).await?;
        println!("{key}: {prompt}: {} [{}]", result.text, result.route.code());
        Ok(result)
    };
    run(&first, "Fix the login bug").await?;
    let second_prompt = run(&first, "Now add a test for it").await?;

    // The same conversation, whole, in a second mailbox.
    let whole = SessionKey::new("issue-42-b", "claude")?;
    let forked = sessions.fork(&ForkRequest::new(first.clone(), whole.clone(), &work)).await?;
    println!("\n{whole} begins with {} prompts of {first}", forked.kept);
    run(&whole, "Use another library").await?;

    // As it was before the second prompt.
    let early = SessionKey::new("issue-42-c", "claude")?;
    let before = second_prompt.checkpoint.ok_or("a checkpoint was taken")?;
    let forked = sessions.fork(&ForkRequest::new(first.clone(), early.clone(), &work).at(before)).await?;
    println!("\n{early} begins with {} prompt of {first}", forked.kept);
    run(&early, "Do not add a test").await?;

    // The original knows of none of that.
    println!();
    let original = run(&first, "Write the changelog").await?;
    assert!(original.resumed, "the original goes on as if nothing had been");

    // A new conversation in the same mailbox, and back to the old one.
    let cleared = sessions.clear(&first).await?;
    println!();
    run(&first, "Something else").await?;
    let old = cleared.session.ok_or("there was a conversation")?;
    let _ = sessions.rejoin(&first, &old).await?;
    run(&first, "Where were we?").await?;
    Ok(ExitCode::SUCCESS)
}

/// An agent that works without a model. With the real one, `claude()` is all there is to it.
fn scripted(base: &Path) -> Result<Claude, Box<dyn Error + Send + Sync>> {
    let agent = ScriptedAgent::claude(base, "this is prompt {{turns}} of our conversation")?;
    let program = agent.leading_args.iter().fold(Program::new(&agent.program), |p, arg| p.leading_arg(arg));
    let environment = Environment::bare().pass(&["PATH"]).set("HOME", base);
    Ok(claude().options(ClaudeOptions::default().program(program)).environment(environment))
}
