//! Take back what a prompt did: its files, its conversation, and the taking back itself.
//!
//! ```text
//! cargo run --example rewind
//! ```
//!
//! A scripted agent works in a temporary folder: its first prompt writes a file, its second one rewrites it, makes another and
//! deletes a third, as a shell would. Meanwhile a person writes notes. Going back touches what the prompts changed, and
//! nothing else.

#![expect(clippy::print_stdout, reason = "printing is what the example is for")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rejoin::adapters::{Claude, ClaudeOptions, claude};
use rejoin::core::Program;
use rejoin::error::Report;
use rejoin::process::Environment;
use rejoin::stores::FsStore;
use rejoin::{
    LlmRequest, RewindMode, RewindOutcome, RewindRequest, RewindTo, SessionKey, SessionRef, Sessions,
};
use rejoin_test_support::{ScriptedAgent, fake_agent};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Report> {
    // The scripted agent is this program once more.
    if let Some(code) = fake_agent::become_agent_if_asked() {
        return Ok(code);
    }
    let folder = tempfile::tempdir()?;
    let (base, work) = (folder.path().join("base"), folder.path().join("work"));
    fs::create_dir_all(&base)?;
    fs::create_dir_all(&work)?;
    fs::write(work.join("old.txt"), "nobody needs this\n")?;

    let sessions = Sessions::builder(FsStore::open(&base)?)
        .agent(scripted(&base)?)
        .checkpointer(rejoin::checkpoints(&base))
        .build();
    let key = SessionKey::new("issue-42", "claude")?;
    for prompt in ["Write the login page", "Make it nicer, and clean up"] {
        let result = sessions.run(request(&key, prompt, &work)).await?;
        println!("{prompt}: {}", result.text);
    }
    fs::write(work.join("notes.txt"), "do not forget the logo\n")?;
    show("after two prompts, and a person's notes", &work)?;

    // What would be done, before anything is.
    let wish = RewindRequest::new(key.clone(), &work).to(RewindTo::Turns(1)).mode(RewindMode::Both);
    let preview = sessions.foresee_rewind(&wish).await?;
    println!("\nto take back the last prompt would change:");
    for change in &preview.files.restore {
        println!("    {}", change.path.display());
    }
    println!("and the conversation: {:?}", preview.conversation);

    let rewound = sessions.rewind(&wish).await?;
    show(&format!("rewound ({})", told(&rewound.outcome)), &work)?;
    let result = sessions.run(request(&key, "Only make it nicer", &work)).await?;
    println!("\nthe next prompt: {}", result.text);
    assert!(result.resumed, "the conversation goes on from the kept prompt");

    // On second thoughts: take that prompt back, and then the first rewind, too.
    let _ = sessions.rewind(&wish).await?;
    let undone = sessions
        .rewind(&RewindRequest::new(key.clone(), &work).to(RewindTo::Checkpoint(rewound.undo)))
        .await?;
    show(&format!("back where it was after two prompts ({})", told(&undone.outcome)), &work)?;
    Ok(ExitCode::SUCCESS)
}

fn told(outcome: &RewindOutcome) -> String {
    match outcome {
        RewindOutcome::Done => "done".to_owned(),
        RewindOutcome::Partial(left) => format!("in part: {left:?}"),
    }
}

fn request(key: &SessionKey, prompt: &str, work: &Path) -> LlmRequest {
    LlmRequest::new(prompt).cwd(work).session(SessionRef::from(key))
}

fn show(title: &str, work: &Path) -> Result<(), Box<dyn Error + Send + Sync>> {
    println!("\n{title}:");
    let entries: Result<Vec<_>, _> = fs::read_dir(work)?.collect();
    let mut paths: Vec<PathBuf> = entries?.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        println!(
            "    {}: {}",
            path.file_name().unwrap_or_default().display(),
            fs::read_to_string(&path)?.trim()
        );
    }
    Ok(())
}

/// An agent that works without a model. With the real one, `claude()` is all there is to it.
fn scripted(base: &Path) -> Result<Claude, Box<dyn Error + Send + Sync>> {
    let say = json!({ "claude": { "say": "this is prompt {{turns}} of our conversation" } });
    let create =
        |name: &str, text: &str| json!({ "create": { "path": format!("{{{{cwd}}}}/{name}"), "text": text } });
    let agent = ScriptedAgent::with_cases(
        base,
        &json!([
            { "when": { "prompt": "clean up" }, "steps": [
                create("login.html", "a nicer page\n"), create("style.css", "body {}\n"),
                { "remove": "{{cwd}}/old.txt" }, say ] },
            { "when": { "prompt": "Only" }, "steps": [create("login.html", "a much nicer page\n"), say] },
            { "steps": [create("login.html", "a page\n"), say] },
        ]),
    )?;
    let program = agent.leading_args.iter().fold(Program::new(&agent.program), |p, arg| p.leading_arg(arg));
    let environment = Environment::bare().pass(&["PATH"]).set("HOME", base);
    Ok(claude().options(ClaudeOptions::default().program(program)).environment(environment))
}
