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
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.target.as_ref().is_some_and(|found| found.name == target))
        .filter_map(|message| message.executable)
        .next_back()
        .ok_or_else(|| format!("cargo built no program for {target}"))
}
