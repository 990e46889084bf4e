//! The version probe: asked once, in a place of its own.

use std::error::Error;
use std::fs;
use std::time::{Duration, SystemTime};

use session_core::AgentAdapter;
use session_core::error::AgentErrorKind;
use session_process::error::ProbeError;

use crate::support::{Stage, write_program};

/// A script that counts its calls beside itself, and touches its home.
const PROBED: &str = r#"echo "$HOME" >> "${0%/*}/calls"; echo x > "$HOME/touched"; echo x > touched"#;

#[tokio::test]
async fn the_version_is_asked_once_until_the_program_changes() {
    let stage = Stage::new(&format!("{PROBED}\necho '2.1.332 (Fake)'"));
    let agent = stage.agent();
    let calls = || stage.read("calls").lines().count();
    let (first, second) = tokio::join!(agent.detect(), agent.detect());
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(agent.detect().await.unwrap().version.unwrap().numbers, [2, 1, 332]);
    assert_eq!(calls(), 1);

    write_program(&stage.path("agent"), &format!("#!/bin/sh\n{PROBED}\necho v2.1.333 >&2"));
    let file = fs::File::options().write(true).open(stage.path("agent")).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(1000)).unwrap();
    drop(file);
    assert_eq!(agent.detect().await.unwrap().version.unwrap().text, "2.1.333");
    assert_eq!(calls(), 2);
}

#[tokio::test]
async fn the_probe_touches_nothing_of_the_caller() {
    let stage = Stage::new(&format!("{PROBED}\necho 1.0.0; env > \"${{0%/*}}/env\""));
    stage.agent().detect().await.unwrap();
    assert!(!stage.path("touched").exists());
    let calls = stage.read("calls");
    let home = std::path::Path::new(calls.trim());
    assert_ne!(home, stage.folder.path());
    assert!(!home.exists(), "the folder of the probe is gone with it");
    let env = stage.read("env");
    assert!(env.contains("PATH=") && !env.lines().any(|line| line.starts_with("DIR=")), "{env}");
}

#[tokio::test]
async fn a_script_behind_an_interpreter_is_watched_too() {
    let mut stage = Stage::new(&format!("{PROBED}\necho 1.0.0"));
    let script = stage.path("agent");
    stage.dialect.program = session_core::Program::new("sh").leading_arg(&script);
    let agent = stage.agent();
    assert_eq!(agent.detect().await.unwrap().version.unwrap().text, "1.0.0");
    write_program(&script, &format!("{PROBED}\necho 1.0.1 longer"));
    assert_eq!(agent.detect().await.unwrap().version.unwrap().text, "1.0.1");
}

#[tokio::test]
async fn a_program_that_does_not_say_its_version_is_not_the_agent() {
    for (script, said) in
        [("echo no numbers here", "no numbers"), ("echo 1.2.3; echo broken >&2; exit 3", "1.2.3")]
    {
        let error = Stage::new(script).agent().detect().await.unwrap_err();
        assert_eq!(error.kind(), AgentErrorKind::Probe);
        let cause = error.source().unwrap();
        assert!(cause.to_string().contains(said), "{cause}");
        assert!(cause.downcast_ref::<ProbeError>().is_some());
    }
    let error = Stage::new("head -c 5000000 /dev/zero | tr '\\0' x").agent().detect().await.unwrap_err();
    assert!(error.source().unwrap().to_string().len() < 1000);
}
