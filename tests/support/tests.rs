//! The fake agent and the fake model as their users see them: from outside, as programs and over the network.
#![expect(clippy::unwrap_used, reason = "helpers fail a test as the test itself does")]

#[path = "tests/agent.rs"]
mod agent;
#[path = "tests/claude.rs"]
mod claude;
#[path = "tests/codex.rs"]
mod codex;
#[path = "tests/http.rs"]
mod http;
#[path = "tests/model.rs"]
mod model;
#[path = "tests/openai.rs"]
mod openai;
#[cfg(unix)]
#[path = "tests/processes.rs"]
mod processes;
#[cfg(unix)]
#[path = "tests/recorder.rs"]
mod recorder;
#[cfg(unix)]
#[path = "tests/replay.rs"]
mod replay;
#[path = "tests/stage.rs"]
mod stage;
