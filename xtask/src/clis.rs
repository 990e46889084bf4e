//! The pinned CLIs: which ones, and their installation with npm, one folder a version.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::{Outcome, root};

/// Where the exact versions stand, and nowhere else.
const VERSIONS: &str = "tests/real_cli/versions.json";

/// Which of the pinned CLIs.
#[derive(Debug, clap::Args)]
pub(crate) struct Selection {
    /// Which of the pinned versions of each agent.
    #[arg(long, value_enum, default_value_t = Which::All)]
    versions: Which,
    /// All pinned versions, which is what happens without it too.
    #[arg(long, conflicts_with = "versions")]
    all: bool,
    /// Only this agent.
    #[arg(long)]
    agent: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// The first pinned one.
    Newest,
    /// The first and the last pinned one.
    Ends,
    /// All pinned ones.
    All,
}

#[derive(Deserialize)]
struct Pins {
    package: String,
    program: String,
    versions: Vec<Pin>,
}

#[derive(Deserialize)]
struct Pin {
    version: String,
}

/// A CLI that is there.
#[derive(Serialize)]
pub(crate) struct Installed {
    agent: String,
    version: String,
    program: PathBuf,
    path: String,
}

impl Selection {
    /// Installs them where they are not there yet.
    pub(crate) fn install(&self) -> Result<Vec<Installed>, String> {
        let text =
            std::fs::read_to_string(root().join(VERSIONS)).map_err(|error| format!("{VERSIONS}: {error}"))?;
        let pins: BTreeMap<String, Pins> =
            serde_json::from_str(&text).map_err(|error| format!("{VERSIONS}: {error}"))?;
        let mut installed = Vec::new();
        for (agent, pins) in
            pins.iter().filter(|(agent, _)| self.agent.as_ref().is_none_or(|only| only == *agent))
        {
            let last = pins.versions.len().saturating_sub(1);
            for (at, pin) in pins.versions.iter().enumerate() {
                let wanted = match self.versions {
                    Which::Newest => at == 0,
                    Which::Ends => at == 0 || at == last,
                    Which::All => true,
                };
                if wanted {
                    installed.push(install(agent, pins, &pin.version)?);
                }
            }
        }
        if installed.is_empty() {
            return Err(format!("nothing in {VERSIONS} fits"));
        }
        Ok(installed)
    }
}

fn install(agent: &str, pins: &Pins, version: &str) -> Result<Installed, String> {
    let folder = root().join(format!("target/real-cli/{agent}-{version}"));
    let program = folder.join("node_modules/.bin").join(&pins.program);
    // The mark is written last, so that half an installation is made again.
    let mark = folder.join("installed");
    if !mark.exists() {
        println!("installing {agent} {version}");
        let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(fail)?;
        }
        std::fs::create_dir_all(&folder).map_err(fail)?;
        let status = Command::new("npm")
            .args(["install", "--no-fund", "--no-audit", "--no-package-lock", "--loglevel=error"])
            .args(["--include=optional", "--prefix"])
            .arg(&folder)
            .arg(format!("{}@{version}", pins.package))
            .status()
            .map_err(|error| format!("npm could not be started ({error}); install Node.js with npm"))?;
        if !status.success() || !program.exists() {
            return Err(format!("npm could not install {}@{version}", pins.package));
        }
        for_this_machine(&folder.join("node_modules"), &pins.package)?;
        std::fs::write(&mark, "").map_err(fail)?;
    }
    println!("{agent} {version} is at {}", program.display());
    Ok(Installed { agent: agent.to_owned(), version: version.to_owned(), program, path: child_path() })
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(default, rename = "optionalDependencies")]
    optional: BTreeMap<String, String>,
}

/// Checks that the program itself is there: packages bring it as optional ones, of which npm takes the one for this
/// machine, and says nothing when it could not have it.
fn for_this_machine(modules: &Path, package: &str) -> Outcome {
    let path = modules.join(package).join("package.json");
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| fail(&error))?;
    let manifest: Manifest = serde_json::from_str(&text).map_err(|error| fail(&error))?;
    let is_there = |name: &String| {
        modules.join(name).exists() || modules.join(package).join("node_modules").join(name).exists()
    };
    if manifest.optional.is_empty() || manifest.optional.keys().any(is_there) {
        return Ok(());
    }
    let names: Vec<_> = manifest.optional.keys().map(String::as_str).collect();
    Err(format!("npm left out the program of {package} for this machine; it has: {}", names.join(", ")))
}

/// The folders that a CLI needs: Node for the older ones, git and a shell for all.
fn child_path() -> String {
    let node = std::env::var_os("PATH").and_then(|path| {
        std::env::split_paths(&path).find(|folder: &PathBuf| Path::new(folder).join("node").exists())
    });
    let folders = node.into_iter().map(|folder| folder.display().to_string());
    folders.chain(["/usr/local/bin", "/usr/bin", "/bin"].map(str::to_owned)).collect::<Vec<_>>().join(":")
}
