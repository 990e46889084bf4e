//! A runner in a process of its own, so that a trial can kill it.

use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

use rejoin::core::Lifecycle;
use rejoin::process::SystemHost;
use rejoin::stores::FsStore;
use serde::{Deserialize, Serialize};

use crate::agents::Place;
use crate::pinned::Pinned;
use crate::stage::{Stage, agent, checkpoints, request};

const FLAG: &str = "--runner";

#[derive(Serialize, Deserialize)]
struct Job {
    cli: Pinned,
    place: Place,
    prompt: String,
    /// Whether it takes checkpoints.
    marks: bool,
}

/// Starts a runner of this prompt. End it by its handle.
pub(crate) fn start(stage: &Stage, prompt: &str) -> Child {
    start_of(stage, prompt, false)
}

/// The same, of one that takes checkpoints.
pub(crate) fn start_with_checkpoints(stage: &Stage, prompt: &str) -> Child {
    start_of(stage, prompt, true)
}

fn start_of(stage: &Stage, prompt: &str, marks: bool) -> Child {
    let job = Job { cli: stage.cli.clone(), place: stage.place.clone(), prompt: prompt.to_owned(), marks };
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
    let Job { cli, place, prompt, marks } = serde_json::from_str(&args.next()?).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = FsStore::open(place.store()).unwrap();
    let mut lifecycle =
        Lifecycle::new(Arc::new(store), Arc::new(SystemHost::new())).agent(agent(&cli, &place));
    if marks {
        lifecycle = lifecycle.checkpointer(Arc::new(checkpoints(&place)));
    }
    let outcome = runtime.block_on(lifecycle.run(request(&cli, &place.project(), &prompt)));
    Some(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
