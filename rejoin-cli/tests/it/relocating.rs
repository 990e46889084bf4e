//! `relocate`, and `resume` and `run` after it: with an agent that a script plays, of several versions.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::sessions::{CHANGELOG, CODEX, LOGIN};
use crate::support::{Machine, Said};

/// The agent's script finds a session in its own folder alone, as old versions do.
fn with_version(version: &str) -> Machine {
    let machine = Machine::new();
    let script = include_str!("support/agent.sh").replace("2.1.332", version);
    machine.install("claude", &script);
    machine
}

/// One that finds a session from anywhere.
fn with_newest() -> Machine {
    let machine = Machine::new();
    let found = r#"[ -n "$resumed" ] && file=$(echo "${CLAUDE_CONFIG_DIR:-$HOME/.claude}"/projects/*/"$id.jsonl")
mkdir -p"#;
    let script =
        include_str!("support/agent.sh").replace(r#"[ -n "$resumed" ] && [ ! -f "$file" ]"#, "false");
    machine.install("claude", &script.replacen("mkdir -p", found, 1));
    machine
}

fn only_version(machine: &Machine, version: &str) {
    machine.install("claude", &format!("#!/bin/sh\necho '{version} (Claude Code)'\n"));
}

fn at(machine: &Machine, folder: &Path, words: &[&str]) -> Said {
    let path = format!("{}:/usr/bin:/bin", machine.home.join("bin").display());
    machine.command(words).env("PATH", path).current_dir(folder).output().unwrap().into()
}

fn run(machine: &Machine, folder: &Path, mailbox: &str) -> String {
    at(machine, folder, &["run", "-m", mailbox, "-a", "claude", "--", "x"]).ok().stdout
}

fn relocate(machine: &Machine, folder: &Path, words: &[&str]) -> serde_json::Value {
    at(machine, folder, &[&["relocate", "--json"], words].concat()).ok().json()
}

fn git(folder: &Path, words: &[&str]) {
    let mut git = Command::new("git");
    git.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(words);
    git.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
    assert!(git.output().unwrap().status.success(), "git {words:?}");
}

/// The project as a repository, and another work tree of it.
fn tree(machine: &Machine) -> PathBuf {
    let tree = machine.project.with_file_name("wt");
    git(&machine.project, &["init", "-q"]);
    git(&machine.project, &["commit", "-q", "--allow-empty", "-m", "root"]);
    git(&machine.project, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    tree
}

/// Where the line of a resume goes to.
fn goes_to(said: &Said) -> &str {
    said.stdout.strip_prefix("cd ").and_then(|line| line.split_once(" && ")).unwrap().0
}

#[test]
fn where_the_file_lies_is_where_a_session_is_continued_and_it_comes_back_from_there() {
    let machine = Machine::with_sessions();
    only_version(&machine, "2.0.14");
    // Nothing that is known tells of this folder, not even another session.
    for name in ["elsewhere", "one-of.its own"] {
        let there = machine.folder(name);
        let third = machine.folder("third");
        let told = relocate(&machine, &machine.project, &[LOGIN, there.to_str().unwrap(), "--other-project"]);
        assert_eq!(told["outcome"], "done", "{told}");
        for from in [&machine.project, &there, &third] {
            let said = at(&machine, from, &["resume", LOGIN]).ok();
            assert_eq!(goes_to(&said).trim_matches('\''), there.to_str().unwrap(), "{said:?}");
        }
        // It began here: that is no other project.
        let told = relocate(&machine, &machine.project, &[LOGIN]);
        assert_eq!(told["outcome"], "done", "{told}");
        let path = told["to_path"].as_str().unwrap();
        assert!(path.contains("-project/") && Path::new(path).is_file(), "{told}");
        let said = at(&machine, &third, &["resume", LOGIN]).ok();
        assert_eq!(goes_to(&said), machine.project.to_str().unwrap());
    }
}

#[test]
fn a_session_that_was_moved_to_a_folder_that_is_gone_is_told_with_what_brings_it_here() {
    let machine = Machine::with_sessions();
    only_version(&machine, "2.0.14");
    let there = machine.folder("there");
    relocate(&machine, &machine.project, &[LOGIN, there.to_str().unwrap(), "--other-project"]);
    std::fs::remove_dir(&there).unwrap();
    let said = machine.rejoin(&["resume", LOGIN]);
    assert_eq!((said.code, said.stdout.as_str()), (3, ""), "its old folder does not have it: {said:?}");
    assert!(said.stderr.contains(&format!("rejoin relocate {LOGIN}, then")), "{said:?}");
    relocate(&machine, &machine.project, &[LOGIN]);
    assert_eq!(goes_to(&machine.rejoin(&["resume", LOGIN]).ok()), machine.project.to_str().unwrap());
}

#[test]
fn a_mailbox_whose_work_tree_is_gone_goes_on_where_it_was_relocated_to() {
    for version in ["2.0.14", "2.1.200"] {
        let machine = with_version(version);
        let (tree, third) = (tree(&machine), machine.folder("third"));
        run(&machine, &tree, "wt");
        git(&machine.project, &["worktree", "remove", "--force", tree.to_str().unwrap()]);
        // The weakest thing that works is told, and no yes.
        let said = at(&machine, &machine.project, &["resume", "wt"]);
        let (_, way) = said.stderr.trim_end().rsplit_once(": ").unwrap();
        let first = way.split(", then ").next().unwrap();
        assert!(first.starts_with("rejoin relocate ") && !first.contains("--other"), "{said:?}");
        let words: Vec<_> = first.strip_prefix("rejoin ").unwrap().split(' ').collect();
        at(&machine, &machine.project, &words).ok();
        for from in [&third, &machine.project] {
            let said = at(&machine, from, &["resume", "wt"]).ok();
            assert_eq!(goes_to(&said), machine.project.to_str().unwrap(), "{version}");
        }
        assert_eq!(run(&machine, &machine.project, "wt"), "prompt 2: x\n", "{version}");
    }
}

#[test]
fn of_a_folder_that_was_renamed_a_plain_relocation_is_told() {
    let machine = with_version("2.0.14");
    run(&machine, &machine.project, "mb");
    let renamed = machine.project.with_file_name("renamed");
    std::fs::rename(&machine.project, &renamed).unwrap();
    let said = at(&machine, &renamed, &["resume", "mb"]);
    assert_eq!(said.code, 3);
    assert!(said.stderr.contains("rejoin relocate ") && !said.stderr.contains("--other"), "{said:?}");
    assert_eq!(relocate(&machine, &renamed, &["mb"])["outcome"], "done");
    assert_eq!(run(&machine, &renamed, "mb"), "prompt 2: x\n");
}

#[test]
fn a_relocated_conversation_of_a_mailbox_is_found_again_where_it_went() {
    for version in ["2.0.14", "2.1.200", "2.1.332"] {
        let machine = if version == "2.1.332" { with_newest() } else { with_version(version) };
        let elsewhere = machine.folder("elsewhere");
        let to = elsewhere.to_str().unwrap();
        run(&machine, &machine.project, "iss3");
        let moved = relocate(&machine, &machine.project, &["iss3", to, "--other-project"]);
        // The newest finds it from anywhere: only that it lives there is noted.
        let outcome = if version == "2.1.332" { "noted" } else { "done" };
        assert_eq!(moved["outcome"], outcome, "{version}: {moved}");
        assert_eq!(goes_to(&at(&machine, &machine.project, &["resume", "iss3"]).ok()), to, "{version}");
        assert_eq!(run(&machine, &machine.project, "iss3"), "prompt 1: x\n", "fresh, of its own folder");
        assert_eq!(run(&machine, &elsewhere, "iss3"), "prompt 2: x\n", "{version}");
        assert_eq!(run(&machine, &machine.project, "iss3"), "prompt 2: x\n", "{version}");
        assert_eq!(run(&machine, &elsewhere, "iss3"), "prompt 3: x\n", "{version}");
        let again = relocate(&machine, &elsewhere, &["iss3"]);
        assert_eq!(again["outcome"], "nothing_to_do", "{again}");
        // That of the past is relocated, too, by its id.
        let past = at(&machine, &elsewhere, &["list", "--json"]).ok().json();
        let past: Vec<_> =
            past["sessions"].as_array().unwrap().iter().filter(|one| one["bound"] == false).collect();
        let third = machine.folder("third");
        let id = past[0]["id"].as_str().unwrap();
        relocate(&machine, &third, &[id, "--other-project"]);
        assert_eq!(run(&machine, &third, "iss3"), "prompt 3: x\n", "{version}");
    }
}

#[test]
fn a_version_that_looks_in_its_own_folder_alone_is_told_of_a_file_that_stayed() {
    let machine = with_newest();
    let elsewhere = machine.folder("elsewhere");
    run(&machine, &machine.project, "mb");
    assert_eq!(relocate(&machine, &elsewhere, &["mb", "--other-project"])["outcome"], "noted");
    // An older one is installed since.
    machine.install("claude", &include_str!("support/agent.sh").replace("2.1.332", "2.0.14"));
    let said =
        at(&machine, &elsewhere, &["run", "-m", "mb", "-a", "claude", "--json", "--", "x"]).ok().json();
    assert_eq!(said["why"], "workdir_differs", "{said}");
}

#[test]
fn a_dry_run_says_what_the_real_call_would_and_changes_nothing() {
    let machine = Machine::with_sessions();
    let elsewhere = machine.folder("elsewhere");
    let to = elsewhere.to_str().unwrap();
    for id in [LOGIN, CODEX] {
        let words = ["relocate", id, to, "--other-project"];
        let dry = machine.rejoin(&[&words[..], &["--dry-run"]].concat());
        let real = machine.rejoin(&words);
        assert_eq!((dry.code, &dry.stdout, &dry.stderr), (8, &real.stdout, &real.stderr), "{real:?}");
    }
    machine.install("codex", "#!/bin/sh\necho codex-cli 0.171.0\n");
    only_version(&machine, "2.0.14");
    for (id, dry, real) in [
        (CODEX, "nothing_to_do", "nothing_to_do"),
        (LOGIN, "would_be_done", "done"),
        (LOGIN, "nothing_to_do", "nothing_to_do"),
    ] {
        let words = [id, to, "--other-project"];
        let told = relocate(&machine, &machine.project, &[&words[..], &["--dry-run"]].concat());
        assert_eq!(told["outcome"], dry, "{told}");
        assert_eq!(relocate(&machine, &machine.project, &words)["outcome"], real);
    }
    // What stands in the way is told.
    let listed = machine.rejoin(&["list", "--json"]).ok().json();
    let listed = listed["sessions"].as_array().unwrap().iter().find(|one| one["id"] == CHANGELOG).unwrap();
    std::fs::hard_link(listed["path"].as_str().unwrap(), machine.home.join("second name")).unwrap();
    let words = ["relocate", CHANGELOG, to, "--other-project", "--json"];
    for dry in [&["--dry-run"][..], &[]] {
        let said = machine.rejoin(&[&words[..], dry].concat());
        assert_eq!((said.code, &said.json()["outcome"]), (7, &"refused".into()), "{said:?}");
    }
}

#[test]
fn a_dry_run_notes_nothing_in_a_record() {
    let machine = with_newest();
    let elsewhere = machine.folder("elsewhere");
    run(&machine, &machine.project, "mb");
    let told = relocate(&machine, &elsewhere, &["mb", "--other-project", "--dry-run"]);
    assert_eq!(told["outcome"], "would_be_noted", "{told}");
    assert_eq!(run(&machine, &machine.project, "mb"), "prompt 2: x\n");
}

#[test]
fn folders_are_told_by_their_real_paths_and_nothing_in_them_reaches_a_terminal_raw() {
    let machine = Machine::with_sessions();
    only_version(&machine, "2.0.14");
    let elsewhere = machine.folder("elsewhere");
    let typed = machine.project.join("../elsewhere");
    let words = ["relocate", LOGIN, typed.to_str().unwrap(), "--other-project"];
    let said = machine.rejoin(&words).ok();
    assert!(said.stdout.starts_with(&format!("it continues in {}: ", elsewhere.display())), "{said:?}");
    let said = machine.rejoin(&["relocate", LOGIN, "/x\u{1b}\n/y\n"]);
    assert_eq!((said.code, said.stderr.lines().count()), (3, 1), "{said:?}");
    assert!(said.stderr.contains(r"/x\u{1b}"), "{said:?}");
}
