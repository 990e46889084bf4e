//! A store of your own: a compare-and-swap map of opaque documents, an audit log, and a lease per key.
//!
//! This one keeps its documents as rows of one map behind a lock, as a runtime might keep them in the database it
//! has anyway; the lease is the store's too. It never parses a document.
//!
//! The contract suite holds it to what it claims, in three lines: `tests/contract/main.rs`.
//!
//! ```text
//! cargo run --example custom_store
//! ```

#![expect(clippy::print_stdout, reason = "printing is what the example is for")]

mod rows;

use std::process::ExitCode;

use rejoin::adapters::{ClaudeOptions, claude};
use rejoin::core::{ListOptions, Program};
use rejoin::error::Report;
use rejoin::process::Environment;
use rejoin::{LlmRequest, SessionRef, SessionStore as _, Sessions};
use rejoin_test_support::{ScriptedAgent, fake_agent};

use rows::Rows;

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

    let store = Rows::default();
    let sessions = Sessions::builder(store.clone()).agent(agent).build();
    for prompt in ["Make a plan", "Go on with the plan"] {
        let request = LlmRequest::new(prompt)
            .cwd(std::env::current_dir()?)
            .session(SessionRef::new("issue-7", "claude").named("agent/issue-7"));
        let result = sessions.run(request).await?;
        println!("{:<10} {}", result.route.code(), result.text);
    }
    for key in store.list(&ListOptions::default()).await?.items {
        println!("stored     {key}, {} audit events", store.audit(&key, None).await?.len());
    }
    Ok(ExitCode::SUCCESS)
}
