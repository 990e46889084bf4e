//! Programs of others that do the same, installed from their registries to be measured beside ours.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, root};

/// From npm; without the optional packages, which bring an agent that nobody starts here.
const NPM: &[&str] = &["@anthropic-ai/claude-agent-sdk@0.3.332"];
/// From npm, with the package that holds the program for this machine.
const NPM_PROGRAMS: &[&str] = &["ccusage@20.0.24"];
/// From PyPI.
const PYPI: &[&str] = &["claude-agent-sdk==0.2.189"];

/// Installs them where they are not there yet, and returns their folder.
pub(crate) fn install() -> Result<PathBuf, String> {
    let folder = root().join("target/peers");
    // The mark is written last, so that half an installation is made again.
    let mark = folder.join("installed");
    let wanted = [NPM, NPM_PROGRAMS, PYPI].concat().join("\n");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    println!("installing {}", wanted.replace('\n', ", "));
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(fail)?;
    }
    std::fs::create_dir_all(&folder).map_err(fail)?;
    npm(&folder.join("npm"), "--omit=optional", NPM)?;
    npm(&folder.join("programs"), "--include=optional", NPM_PROGRAMS)?;
    let python = folder.join("python");
    call(Command::new("python3").args(["-m", "venv"]).arg(&python), "python3 with venv")?;
    let pip = python.join("bin/pip");
    call(Command::new(&pip).args(["install", "--quiet"]).args(PYPI), "pip")?;
    std::fs::write(&mark, wanted).map_err(fail)?;
    Ok(folder)
}

fn npm(prefix: &Path, optional: &str, packages: &[&str]) -> Outcome {
    std::fs::create_dir_all(prefix).map_err(|error| format!("{}: {error}", prefix.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-fund", "--no-audit", "--no-package-lock", "--loglevel=error"]);
    npm.args(["--ignore-scripts", optional, "--prefix"]).arg(prefix).args(packages);
    call(&mut npm, "npm")
}

fn call(command: &mut Command, name: &str) -> Outcome {
    let status = command.status().map_err(|error| format!("{name} could not be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed: {status}")) }
}
