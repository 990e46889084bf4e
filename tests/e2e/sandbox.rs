//! What an agent left in its work tree for the next run to start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rejoin::adapters::{ClaudeOptions, claude};
use rejoin::core::{Lifecycle, Program};
use rejoin::error::{AgentErrorKind, BoxError};
use rejoin::process::{Invocation, Launcher, SystemHost};
use rejoin::stores::FsStore;
use rejoin::{Agent, MountPlan, RunError};
use rejoin_test_support::fake_agent::leading_args;

use crate::stage::*;

/// Starts the command as it is.
#[derive(Debug)]
struct NoWalls;

impl Launcher for NoWalls {
    fn wrap(&self, command: Invocation, _: &MountPlan) -> Result<Invocation, BoxError> {
        Ok(command)
    }
}

fn write_program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn lifecycle(stage: &Stage, program: Option<Program>) -> Lifecycle {
    let folders = ["project/node_modules/.bin", "bin"].map(|folder| stage.path(folder));
    let path = std::env::join_paths(folders.into_iter().chain(["/usr/bin".into(), "/bin".into()])).unwrap();
    let options = program.into_iter().fold(ClaudeOptions::new(), ClaudeOptions::program);
    let environment = stage.environment().set("PATH", path);
    let agent = Agent::from(claude().options(options).environment(environment).launcher(NoWalls));
    let store = FsStore::open(stage.path("store")).unwrap();
    Lifecycle::new(Arc::new(store), Arc::new(SystemHost::new())).agent(agent)
}

/// From the first question for the version on: what lies in the work tree is never started.
#[tokio::test]
async fn a_run_starts_nothing_of_its_work_tree_outside_of_the_sandbox() {
    let stage = Stage::new();
    let words: Vec<_> =
        leading_args(&stage.path("script.json")).iter().map(|arg| format!("'{arg}'")).collect();
    let agent = format!("exec '{}' {} \"$@\"", env!("CARGO_BIN_EXE_fake-agent"), words.join(" "));
    write_program(&stage.path("bin/claude"), &agent);
    let planted = stage.path("project/node_modules/.bin/claude");
    write_program(&planted, &format!("touch '{}'; {agent}", stage.path("planted").display()));

    let result = lifecycle(&stage, None).run(stage.request("one")).await.unwrap();
    assert!(lifecycle(&stage, None).run(stage.request("two")).await.unwrap().resumed, "{result:?}");
    drop(lifecycle(&stage, None).mount_plan(&key(), &stage.path("project")).await.unwrap());
    drop(lifecycle(&stage, None).hand_over(&key(), 10_000).await.unwrap());
    let named = lifecycle(&stage, Some(Program::new(planted)));
    match named.run(stage.request("three")).await {
        Err(RunError::Agent(error)) => assert_eq!(error.kind(), AgentErrorKind::Sandbox),
        other => panic!("{other:?}"),
    }
    assert!(!stage.path("planted").exists());
}
