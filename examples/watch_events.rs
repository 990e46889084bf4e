//! Watch a run while it goes on: every event of the agent, as it comes.
//!
//! ```text
//! cargo run --example watch_events
//! ```

#![expect(clippy::print_stdout, reason = "printing is what the example is for")]

use std::process::ExitCode;

use rejoin::adapters::{ClaudeOptions, claude};
use rejoin::core::Program;
use rejoin::error::Report;
use rejoin::process::Environment;
use rejoin::stores::FsStore;
use rejoin::{AgentEvent, LlmRequest, SessionRef, Sessions};
use rejoin_test_support::{ScriptedAgent, fake_agent};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Report> {
    // The scripted agent is this program once more.
    if let Some(code) = fake_agent::become_agent_if_asked() {
        return Ok(code);
    }
    let folder = tempfile::tempdir()?;
    // An agent that runs a tool before it answers.
    let tool = json!({ "name": "Bash", "input": { "command": "cargo test" } });
    let steps = json!([{ "claude": { "tool": tool, "say": "The tests pass." } }]);
    let scripted = ScriptedAgent::with_cases(folder.path(), &json!([{ "steps": steps }]))?;
    let program =
        scripted.leading_args.iter().fold(Program::new(&scripted.program), |p, arg| p.leading_arg(arg));
    let agent = claude()
        .options(ClaudeOptions::default().program(program))
        .environment(Environment::bare().pass(&["PATH"]).set("HOME", folder.path()));
    let sessions = Sessions::builder(FsStore::open(folder.path())?).agent(agent).build();

    // A closure is a sink. It runs on the task that reads the agent: be quick, or hand the event to a channel.
    let mut sink = |event: &AgentEvent<'_>| match event {
        AgentEvent::Started { attempt } => println!("started    {attempt:?}"),
        AgentEvent::Session { id } => println!("session    {id}"),
        AgentEvent::ModelCalled => println!("model      called"),
        AgentEvent::ToolStarted { name, .. } => println!("tool       {name} started"),
        AgentEvent::ToolFinished { is_error, .. } => println!("tool       finished, error: {is_error}"),
        AgentEvent::Text(text) => println!("text       {text}"),
        AgentEvent::Finished(end) => println!("finished   {}", end.kind),
        // Kinds that have no meaning here are passed on by name; there will be new ones.
        AgentEvent::Other { kind } => println!("other      {kind}"),
        other => println!("{other:?}"),
    };
    let request = LlmRequest::new("Run the tests")
        .cwd(std::env::current_dir()?)
        .session(SessionRef::new("issue-7", "claude").named("agent/issue-7"));
    let result = sessions.run_with(request, &mut sink).await?;
    println!("\nanswer     {}", result.text);
    Ok(ExitCode::SUCCESS)
}
