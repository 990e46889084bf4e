//! What every file and crate of the house must look like.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;

use rejoin_test_support::verified::Verified;

/// No file is longer than this.
const FILE_LIMIT: usize = 400;
/// The orchestration reads top to bottom.
const LIFECYCLE_LIMIT: usize = 200;
/// The rooms of every adapter crate.
const ROOMS: &[&str] =
    &["lib", "dialect", "options", "command", "wire", "decode", "verdict", "transcript", "state"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The files below the root, build products and hidden folders left out.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(path);
            } else if path.is_file() {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 50, "the walk finds the house");
    found
}

fn crates() -> Vec<PathBuf> {
    let with_manifest = |path: &PathBuf| path.file_name().is_some_and(|name| name == "Cargo.toml");
    files().into_iter().filter(with_manifest).map(|path| path.parent().unwrap().to_owned()).collect()
}

#[test]
fn files_stay_small() {
    let long: Vec<_> = files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| {
            let lines = std::fs::read_to_string(&path).unwrap().lines().count();
            let limit =
                if path.ends_with("session-core/src/lifecycle.rs") { LIFECYCLE_LIMIT } else { FILE_LIMIT };
            (lines > limit).then(|| format!("{} has {lines} lines", path.display()))
        })
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn every_published_crate_says_what_it_is() {
    for folder in crates() {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(manifest.contains("description ="), "{} has no description", folder.display());
        if !manifest.contains("publish = false") {
            let readme = std::fs::read_to_string(folder.join("README.md")).unwrap_or_default();
            assert!(readme.lines().count() > 5, "{} has no README", folder.display());
        }
    }
}

#[test]
fn every_adapter_has_the_same_rooms() {
    let adapters: Vec<_> = crates()
        .into_iter()
        .filter(|f| f.file_name().unwrap().to_string_lossy().starts_with("adapter-"))
        .collect();
    assert!(!adapters.is_empty());
    for adapter in adapters {
        for room in ROOMS {
            let there =
                adapter.join(format!("src/{room}.rs")).exists() || adapter.join("src").join(room).is_dir();
            assert!(there, "{} has no room {room}", adapter.display());
        }
    }
}

/// The arrows: adapters, store, process, transcript and suite see the core alone; the core sees none of them.
#[test]
fn the_arrows_point_down() {
    let pure = ["session-core", "adapter-claude", "adapter-codex", "adapter-opencode"];
    let house = [
        "session-checkpoint",
        "session-process",
        "session-store-fs",
        "session-transcript",
        "session-contract",
        "adapter-claude",
        "adapter-codex",
        "adapter-opencode",
        "rejoin",
        "rejoin-cli",
    ];
    for folder in crates() {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if name == "rejoin"
            || name == "rejoin-cli"
            || !(house.contains(&name.as_str()) || pure.contains(&name.as_str()))
        {
            continue;
        }
        let output = Command::new(env!("CARGO"))
            .args(["tree", "-p", &name, "-e", "normal", "--prefix", "none", "--offline"])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8(output.stdout).unwrap();
        let crates: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(crates.contains(&name.as_str()));
        for sibling in house.iter().filter(|sibling| **sibling != name) {
            assert!(!crates.contains(sibling), "{name} sees {sibling}");
        }
        if pure.contains(&name.as_str()) {
            for runtime in ["tokio", "rustix", "process-wrap"] {
                assert!(!crates.contains(&runtime), "{name} is pure and sees {runtime}");
            }
        }
    }
}

/// The command stands on the facade, and sees nothing of the house past it.
#[test]
fn the_command_sees_the_facade_alone() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "-p", "rejoin-cli", "-e", "normal", "--depth", "1", "--prefix", "none", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let ours = tree.lines().filter(|line| line.contains(&*root().to_string_lossy()));
    let ours: Vec<_> = ours.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(ours, ["rejoin-cli", "rejoin"]);
}

/// The stated minimum is one that every dependency keeps.
#[test]
fn no_dependency_needs_a_newer_compiler_than_stated() {
    // What is built here is here: nothing has to be fetched for it.
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(rustc.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform", &host])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |text: &str| -> Vec<u32> {
        let parts = text.split('.').map(|part| part.parse().unwrap());
        parts.chain(std::iter::repeat(0)).take(3).collect()
    };
    let packages = metadata["packages"].as_array().unwrap();
    let stated = packages.iter().find(|package| package["name"] == "rejoin").unwrap();
    let stated = number(stated["rust_version"].as_str().unwrap());
    let newer: Vec<_> = packages
        .iter()
        .filter(|package| package["rust_version"].as_str().is_some_and(|version| number(version) > stated))
        .map(|package| format!("{} needs {}", package["name"], package["rust_version"]))
        .collect();
    assert!(newer.is_empty(), "{newer:#?}");
}

/// Every fixture is a whole one: what was written, what was asked, and the verdict expected of it.
#[test]
fn no_fixture_is_half() {
    let mut folders = std::collections::BTreeMap::<PathBuf, Vec<String>>::new();
    for path in files() {
        let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let Some(at) = parts.iter().position(|part| part == "fixtures") else { continue };
        if parts.len() > at + 3 {
            let name = parts.last().unwrap().clone();
            folders.entry(path.parent().unwrap().to_owned()).or_default().push(name);
        }
    }
    assert!(folders.len() > 100, "{} fixtures", folders.len());
    for (folder, mut names) in folders {
        names.sort();
        assert_eq!(names, ["meta.json", "stderr.txt", "stdout.jsonl"], "{}", folder.display());
    }
}

/// What was seen on the real CLIs is told of every pinned version of every agent that it tells of.
#[test]
fn verified_tells_of_every_pinned_version() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let document = Verified::parse(&read("docs/verified.md")).unwrap();
    let pins: serde_json::Value = serde_json::from_str(&read("tests/real_cli/versions.json")).unwrap();
    let agents: Vec<_> = pins.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(document.agents().collect::<Vec<_>>(), agents, "every pinned agent");
    for agent in agents {
        let versions = pins[agent]["versions"].as_array().unwrap();
        let pinned: Vec<_> = versions.iter().map(|pin| pin["version"].as_str().unwrap()).collect();
        assert_eq!(document.versions(agent), pinned, "{agent}: the pinned versions, the newest first");
        for version in pinned {
            for scenario in
                ["fresh", "resume", "resume, nobody looks", "deleted", "CLI killed in a resumed turn"]
            {
                assert!(
                    document.cell(agent, version, scenario).is_some(),
                    "{agent} {version}: no {scenario}"
                );
            }
        }
    }
}

#[test]
fn every_claim_about_security_names_a_test_that_is_there() {
    let document = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let sources: String = files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    // A name in lower case with so many words is a test's; a case of the contract is a function or a name in its list.
    let is_name = |text: &&str| {
        text.matches('_').count() >= 3 && text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_'))
    };
    let quoted = document.split('`').skip(1).step_by(2);
    let names: Vec<&str> = quoted.filter(is_name).filter(|name| *name != "hide_secrets_from_tools").collect();
    assert!(names.len() > 30, "the claims are found: {names:?}");
    let words: std::collections::BTreeSet<&str> =
        sources.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let none: Vec<_> = names.iter().filter(|name| !words.contains(*name)).collect();
    assert!(none.is_empty(), "no such test: {none:#?}");
}
