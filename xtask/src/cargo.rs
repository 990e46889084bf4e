//! Builds test and bench programs, so that they can be run where there is no network.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

#[derive(Deserialize)]
struct Message {
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Builds with these arguments and returns the program of this target.
pub(crate) fn build(args: &[&str], target: &str) -> Result<PathBuf, String> {
    build_all(args, [target]).map(|[program]| program)
}

/// Builds with these arguments and returns the programs of these targets.
pub(crate) fn build_all<const N: usize>(args: &[&str], targets: [&str; N]) -> Result<[PathBuf; N], String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(args)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(crate::root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo {} failed", args.join(" ")));
    }
    let mut programs = targets.map(|_| PathBuf::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(Message { target: Some(built), executable: Some(program) }) = serde_json::from_str(line)
        else {
            continue;
        };
        if let Some(at) = targets.iter().position(|target| *target == built.name) {
            programs[at] = program;
        }
    }
    match programs.iter().position(|program| program.as_os_str().is_empty()) {
        Some(at) => Err(format!("cargo built no program for {}", targets[at])),
        None => Ok(programs),
    }
}
