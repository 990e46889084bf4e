//! One mailbox, two agents: each has its own conversation, and the second one is told of the first one's.
//!
//! ```text
//! cargo run --example switch_agents
//! ```
//!
//! A session belongs to a mailbox *and* an agent, so switching agents loses nothing: going back continues where that
//! agent stopped. What the other one did meanwhile it is told by a hand-over: the last of what was said, delimited, of a
//! bounded size, with a word on what is left out.

#![expect(clippy::print_stdout, reason = "printing is what the example is for")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use rejoin::adapters::{ClaudeOptions, CodexOptions, claude, codex};
use rejoin::core::Program;
use rejoin::error::Report;
use rejoin::process::Environment;
use rejoin::stores::FsStore;
use rejoin::{LlmRequest, LlmResult, SessionKey, SessionRef, Sessions};
use rejoin_test_support::{ScriptedAgent, fake_agent};

/// How much of a conversation is handed over, in bytes of what was said.
const HAND_OVER: usize = 16 * 1024;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Report> {
    // The scripted agents are this program once more.
    if let Some(code) = fake_agent::become_agent_if_asked() {
        return Ok(code);
    }
    let folder = tempfile::tempdir()?;
    let sessions = sessions(folder.path())?;
    let (first, second) = (SessionKey::new("issue-42", "claude")?, SessionKey::new("issue-42", "codex")?);

    show(&first, &sessions.run(request(&first, "Fix the login bug")?).await?);
    show(&first, &sessions.run(request(&first, "Now add a test for it")?).await?);

    // The limit is reached, the bill is too high, a colleague prefers the other one: switch.
    let hand_over = sessions.hand_over(&first, HAND_OVER).await?;
    println!(
        "\nhanded over: {} messages, {} left out\n{}\n",
        hand_over.messages, hand_over.left_out, hand_over.text
    );
    show(&second, &sessions.run(request(&second, &hand_over.before("Review the change"))?).await?);
    show(&second, &sessions.run(request(&second, "Write the changelog")?).await?);

    // Going back finds the first conversation where it was.
    let hand_over = sessions.hand_over(&second, HAND_OVER).await?;
    let back = sessions.run(request(&first, &hand_over.before("Mend what the review found"))?).await?;
    show(&first, &back);
    assert!(back.resumed, "the first agent's conversation was kept");
    Ok(ExitCode::SUCCESS)
}

fn request(key: &SessionKey, prompt: &str) -> Result<LlmRequest, Box<dyn Error + Send + Sync>> {
    let session = SessionRef::from(key).named("agent/issue-42-fix-login");
    Ok(LlmRequest::new(prompt).cwd(std::env::current_dir()?).session(session))
}

fn show(key: &SessionKey, result: &LlmResult) {
    println!("{key}: {} [{}]", result.text, result.route.code());
}

/// Both agents over one store. With the real ones, `claude()` and `codex()` are all there is to it.
fn sessions(folder: &Path) -> Result<Sessions, Box<dyn Error + Send + Sync>> {
    let environment = Environment::bare().pass(&["PATH"]).set("HOME", folder);
    let say = "this is prompt {{turns}} of our conversation";
    let program = |agent: ScriptedAgent| {
        agent.leading_args.iter().fold(Program::new(&agent.program), |p, arg| p.leading_arg(arg))
    };
    let first = ClaudeOptions::default().program(program(ScriptedAgent::claude(folder, say)?));
    let second = CodexOptions::default().program(program(ScriptedAgent::codex(folder, say)?));
    Ok(Sessions::builder(FsStore::open(folder)?)
        .agent(claude().options(first).environment(environment.clone()))
        .agent(codex().options(second).environment(environment))
        .build())
}
