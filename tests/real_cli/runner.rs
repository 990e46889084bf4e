//! A runner in a process of its own, so that a trial can kill it.

use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

use rejoin::Agent;
use rejoin::core::Lifecycle;
use rejoin::process::SystemHost;
use rejoin::stores::FsStore;
use serde::{Deserialize, Serialize};

use crate::pinned::Pinned;
use crate::stage::{Stage, agent, environment, request};

const FLAG: &str = "--runner";

#[derive(Serialize, Deserialize)]
struct Job {
    version: String,
    program: PathBuf,
    path: String,
    root: PathBuf,
    url: String,
    prompt: String,
}

/// Starts a runner of this prompt. End it by its handle.
pub(crate) fn start(stage: &Stage, prompt: &str) -> Child {
    let job = Job {
        version: stage.cli.version.clone(),
        program: stage.cli.program.clone(),
        path: stage.cli.path.clone(),
        root: stage.root(),
        url: stage.model.url(),
        prompt: prompt.to_owned(),
    };
    Command::new(std::env::current_exe().unwrap())
        .args([FLAG, &serde_json::to_string(&job).unwrap()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

pub(crate) fn become_runner_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args().skip(1);
    if args.next()? != FLAG {
        return None;
    }
    let job: Job = serde_json::from_str(&args.next()?).unwrap();
    let cli =
        Pinned { agent: "claude".to_owned(), version: job.version, program: job.program, path: job.path };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let agent = Agent::from(agent(&cli, environment(&job.root, &cli, &job.url)));
    let store = FsStore::open(job.root.join("store")).unwrap();
    let lifecycle = Lifecycle::new(Arc::new(store), Arc::new(SystemHost::new())).agent(agent);
    let outcome = runtime.block_on(lifecycle.run(request(&job.root.join("project"), &job.prompt)));
    Some(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
