//! A runner in a process of its own, so that a trial can kill it.

use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

use rejoin::core::Lifecycle;
use rejoin::process::SystemHost;
use rejoin::stores::FsStore;
use serde::{Deserialize, Serialize};

use crate::agents::Place;
use crate::pinned::Pinned;
use crate::stage::{Stage, agent, request};

const FLAG: &str = "--runner";

#[derive(Serialize, Deserialize)]
struct Job {
    cli: Pinned,
    place: Place,
    prompt: String,
}

/// Starts a runner of this prompt. End it by its handle.
pub(crate) fn start(stage: &Stage, prompt: &str) -> Child {
    let job = Job { cli: stage.cli.clone(), place: stage.place.clone(), prompt: prompt.to_owned() };
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
    let Job { cli, place, prompt } = serde_json::from_str(&args.next()?).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = FsStore::open(place.store()).unwrap();
    let lifecycle = Lifecycle::new(Arc::new(store), Arc::new(SystemHost::new())).agent(agent(&cli, &place));
    let outcome = runtime.block_on(lifecycle.run(request(&cli, &place.project(), &prompt)));
    Some(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
