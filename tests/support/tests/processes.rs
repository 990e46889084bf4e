//! Signals, and processes that outlive the agent.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use nix::unistd;
use rejoin_test_support::fake_agent::OUTPUT_CLOSED;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::stage::{Stage, stderr, stdout};

/// A child that a script left behind; it ends with the test.
struct Left(Pid);

impl Left {
    fn of(stage: &Stage) -> Self {
        Self(Pid::from_raw(stage.read("pid").parse().unwrap()).unwrap())
    }

    fn lives(&self) -> bool {
        test_kill_process(self.0).is_ok()
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// The session of a process, of this one where none is given. It is 0 where the session began outside of a
/// container's processes, which is why `nix` is asked: the `Pid` of `rustix` is never 0.
fn session_of(pid: Option<Pid>) -> i32 {
    let pid = pid.map(|pid| unistd::Pid::from_raw(pid.as_raw_nonzero().get()));
    unistd::getsid(pid).unwrap().as_raw()
}

fn with_child(mut child: Value) -> Stage {
    child["pid_file"] = json!("DIR/pid");
    Stage::with_steps(&json!([{"child": child}, {"stdout": "end"}]))
}

#[test]
fn a_child_outlives_the_agent_without_its_output() {
    let stage = with_child(json!({"seconds": 1000}));
    // This returns at the end of the output, so the child does not hold it.
    let output = stage.run(&[], "");
    assert_eq!(stdout(&output), "end", "{}", stderr(&output));
    let left = Left::of(&stage);
    assert!(left.lives());
    assert_eq!(session_of(Some(left.0)), session_of(None));
}

#[test]
fn a_child_can_hold_the_output_and_have_its_own_session() {
    let stage = with_child(json!({"seconds": 1000, "hold_stdout": true, "own_session": true}));
    let mut agent = stage.command(&[]).spawn().unwrap();
    drop(agent.stdin.take());
    assert!(agent.wait().unwrap().success());
    let left = Left::of(&stage);
    assert_eq!(session_of(Some(left.0)), left.0.as_raw_nonzero().get());
    let mut out = agent.stdout.take().unwrap();
    let mut start = [0; 3];
    out.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"end");
    // The end of the output comes with the end of the child.
    drop(left);
    assert_eq!(out.read(&mut start).unwrap(), 0);
}

#[test]
fn a_child_can_survive_sigterm() {
    for (ignore_term, death) in [(true, Signal::KILL), (false, Signal::TERM)] {
        let stage = Stage::with_steps(&json!([]));
        let pid_file = stage.path("pid");
        let settings = json!({"seconds": 1000, "ignore_term": ignore_term, "pid_file": pid_file});
        // Started as the agent does, but as a child of the test, which then learns how it died.
        let mut child = Command::new(env!("CARGO_BIN_EXE_fake-agent"))
            .args(["--fake-agent-child", &settings.to_string()])
            .spawn()
            .unwrap();
        while !pid_file.exists() {
            assert_eq!(child.try_wait().unwrap(), None);
            std::thread::yield_now();
        }
        let left = Left::of(&stage);
        kill_process(left.0, Signal::TERM).unwrap();
        kill_process(left.0, Signal::KILL).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(death.as_raw()));
        // The number may soon be that of another process.
        std::mem::forget(left);
    }
}

#[test]
fn an_agent_can_die_by_a_signal() {
    for (name, signal) in
        [("KILL", Signal::KILL), ("TERM", Signal::TERM), ("INT", Signal::INT), ("ABRT", Signal::ABORT)]
    {
        let stage = Stage::with_steps(&json!([{"stdout": "x"}, {"kill_self": name}, {"sleep_ms": 60_000}]));
        let output = stage.run(&[], "");
        assert_eq!(output.status.signal(), Some(signal.as_raw()));
        assert_eq!(stdout(&output), "x");
    }
}

#[test]
fn an_agent_can_survive_sigterm() {
    let stage =
        Stage::with_steps(&json!([{"ignore_term": true}, {"kill_self": "TERM"}, {"stdout": "alive"}]));
    let output = stage.run(&[], "");
    assert_eq!(stdout(&output), "alive");
    assert!(output.status.success());
}

#[test]
fn an_agent_can_close_its_output_and_go_on() {
    let stage = Stage::with_steps(&json!([
        {"stdout": "end"},
        {"close_stdout": true},
        {"stdout": "unseen"},
        {"wait_for_file": "DIR/seen"},
        {"exit": 4},
    ]));
    let mut agent = stage.command(&[]).spawn().unwrap();
    drop(agent.stdin.take());
    let mut text = String::new();
    agent.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "end");
    assert_eq!(agent.try_wait().unwrap(), None);
    std::fs::write(stage.path("seen"), "").unwrap();
    assert_eq!(agent.wait().unwrap().code(), Some(4));
}

#[test]
fn an_agent_ends_when_nobody_reads_it() {
    let stage = Stage::with_steps(&json!([{"stdout_repeat": {"text": "x", "times": 1_000_000}}]));
    let mut agent = stage.command(&[]).spawn().unwrap();
    drop(agent.stdout.take());
    drop(agent.stdin.take());
    assert_eq!(agent.wait().unwrap().code(), Some(i32::from(OUTPUT_CLOSED)));
}
