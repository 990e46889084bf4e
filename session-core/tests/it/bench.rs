//! A lifecycle over a scripted agent, ready to run.

use std::sync::Arc;

use session_core::decide::Why;
use session_core::error::RunError;
use session_core::*;

use crate::faulty::Faulty;
use crate::scripted::*;

pub(crate) struct Bench {
    pub(crate) agent: Scripted,
    pub(crate) store: Faulty,
    pub(crate) host: Arc<StillHost>,
    pub(crate) lifecycle: Lifecycle,
}

pub(crate) fn bench_with(agent: Scripted, catalog: bool) -> Bench {
    let store = Faulty::default();
    let host = Arc::new(StillHost::default());
    host.folders.lock().unwrap().insert("/w/demo".into(), folder("/w/demo", 1, "/w/demo/.git"));
    let plain = Agent::new(agent.clone());
    let registered = if catalog { plain.with_catalog(Glass(agent.clone())) } else { plain };
    let lifecycle = Lifecycle::new(Arc::new(store.clone()), host.clone()).agent(registered);
    Bench { agent, store, host, lifecycle }
}

pub(crate) fn bench() -> Bench {
    bench_with(Scripted::new(), true)
}

impl Bench {
    pub(crate) async fn run(&self, prompt: &str) -> LlmResult {
        self.lifecycle.run(request(prompt)).await.unwrap()
    }
    pub(crate) async fn fails(&self, prompt: &str) -> (Why, FailedRun) {
        match self.lifecycle.run(request(prompt)).await {
            Err(RunError::Failed { why, run }) => (why, *run),
            other => panic!("{other:?}"),
        }
    }
    pub(crate) async fn record(&self) -> SessionRecord {
        self.lifecycle.record(&key()).await.unwrap().unwrap()
    }
    pub(crate) async fn bound(&self) -> Option<String> {
        self.record().await.binding.map(|binding| binding.native_id.to_string())
    }
    pub(crate) fn lose(&self, id: &str) {
        self.agent.world().sessions.remove(id);
    }
}

/// A mailbox with a session in `/w/demo` (in the past) and one in `/w/other` (in force).
pub(crate) async fn two_folders() -> (Bench, Option<NativeId>, Option<NativeId>) {
    let bench = bench();
    let other = ("/w/other".into(), folder("/w/other", 3, "/w/other/.git"));
    bench.host.folders.lock().unwrap().extend([other]);
    let here = bench.run("here").await.session_id;
    let there = bench.lifecycle.run(request("there").cwd("/w/other")).await.unwrap().session_id;
    (bench, here, there)
}
