//! The recorder, before a shell in place of a CLI.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rejoin_test_support::recorder::{Call, leading_args, pid};

fn recorded(folder: &Path, script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fake-agent"));
    command.args(leading_args(Path::new("/bin/sh"), folder)).args(["-c", script]);
    command
}

fn run(folder: &Path, script: &str) -> Output {
    recorded(folder, script).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn what_goes_through_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), "printf 'out\\0'; printf err >&2; exit 3");
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"out\0"[..], &b"err"[..]));
    assert_eq!(output.status.code(), Some(3));
    let call = Call::last(dir.path()).unwrap();
    assert_eq!((call.stdout, call.stderr), (output.stdout, output.stderr));
    assert_eq!(call.args, ["-c", "printf 'out\\0'; printf err >&2; exit 3"]);
}

#[test]
fn every_call_has_a_place_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Call::last(dir.path()).is_err());
    for number in 1..=11 {
        run(dir.path(), &format!("echo {number}"));
        assert_eq!(Call::last(dir.path()).unwrap().stdout, format!("{number}\n").into_bytes());
    }
}

#[test]
fn standard_input_is_the_programs() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("text"), "said").unwrap();
    let input = std::fs::File::open(dir.path().join("text")).unwrap();
    let output = recorded(dir.path(), "cat").stdin(input).output().unwrap();
    assert_eq!(output.stdout, b"said");
}

#[test]
fn it_dies_as_the_program_died() {
    let dir = tempfile::tempdir().unwrap();
    for (signal, number) in [("KILL", 9), ("TERM", 15), ("INT", 2)] {
        let output = run(dir.path(), &format!("echo on the way; kill -{signal} $$; sleep 60"));
        assert_eq!(output.status.signal(), Some(number), "{signal}");
        assert_eq!(Call::last(dir.path()).unwrap().stdout, b"on the way\n");
    }
}

#[test]
fn it_outlives_what_the_program_survives() {
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    let script =
        format!("trap '' TERM; echo ready; until test -e {}; do sleep 0.01; done; exit 5", go.display());
    let mut child = recorded(dir.path(), &script).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_ne!(pid(dir.path()).unwrap(), child.id());
    let asked = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(asked.success());
    std::fs::write(go, "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn a_program_that_is_not_there_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let nothing = leading_args(&dir.path().join("nothing"), dir.path());
    let output = Command::new(env!("CARGO_BIN_EXE_fake-agent")).args(nothing).output().unwrap();
    assert_eq!(output.status.code(), Some(70));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("recorder: "));
}
