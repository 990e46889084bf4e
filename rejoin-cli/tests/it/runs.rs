//! `run`, and what is known of it afterwards: with an agent that a script plays.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Machine, Said};

/// A machine with an agent in the `PATH`.
pub(crate) fn machine() -> Machine {
    let machine = Machine::new();
    machine.install("claude", include_str!("support/agent.sh"));
    machine
}

pub(crate) fn rejoin(machine: &Machine, words: &[&str]) -> Said {
    let path = format!("{}:/usr/bin:/bin", machine.home.join("bin").display());
    machine.command(words).env("PATH", path).output().unwrap().into()
}

pub(crate) fn run(machine: &Machine, more: &[&str], prompt: &str) -> Said {
    let words = [&["run", "--mailbox", "issue-42", "--agent", "claude"], more, &["--", prompt]].concat();
    rejoin(machine, &words)
}

#[test]
fn the_second_run_of_a_mailbox_continues_the_first() {
    let machine = machine();
    let first = run(&machine, &["--name", "login"], "Fix the login bug").ok();
    assert_eq!(first.stdout, "prompt 1: Fix the login bug\n");
    assert!(first.stderr.contains("(no_prior_session)"), "{}", first.stderr);

    let second = run(&machine, &["--json"], "Now a test").ok().json();
    assert_eq!(second["text"], "prompt 2: Now a test");
    assert_eq!((&second["route"], &second["resumed"]), (&"resumed".into(), &true.into()));
    assert_eq!(second["why"], Value::Null);
    let listed = rejoin(&machine, &["list", "--json"]).ok().json();
    let listed = &listed["sessions"][0];
    let shown = rejoin(&machine, &["show", "issue-42"]).ok();
    assert!(shown.stdout.starts_with("login\n"), "{shown:?}");
    assert_eq!((&listed["title"], &listed["bound"]), (&"login".into(), &true.into()), "{listed}");
    assert!(machine.store().join(".agent-sessions/records").is_dir(), "the store is the user's own");
}

#[test]
fn a_session_that_is_gone_is_told_with_its_reason() {
    let machine = machine();
    run(&machine, &[], "one").ok();
    let state = machine.store().join(".agent-sessions/state");
    let moved = machine.home.join("moved");
    for mailbox in std::fs::read_dir(&state).unwrap() {
        std::fs::rename(mailbox.unwrap().path().join("claude/projects"), &moved)
            .or_else(|_| std::fs::rename(&state, &moved))
            .unwrap();
    }
    let told = run(&machine, &["--json"], "two").ok().json();
    assert_eq!((&told["route"], &told["why"]), (&"fell_back".into(), &"session_missing".into()), "{told}");
    let refused = run(&machine, &["--json", "--resume", "never"], "three").ok().json();
    assert_eq!(refused["why"], "resume_disabled");
}

#[test]
fn a_resume_that_is_required_and_cannot_be_had_is_refused() {
    let machine = machine();
    let said = run(&machine, &["--resume", "require"], "one");
    assert_eq!((said.code, said.stdout.as_str()), (7, ""), "{said:?}");
}

#[test]
fn the_prompt_comes_from_stdin_or_a_file_word_for_word() {
    let machine = machine();
    let path = format!("{}:/usr/bin:/bin", machine.home.join("bin").display());
    let words = ["run", "-m", "a", "-a", "claude"];
    let mut child = machine
        .command(&words)
        .env("PATH", &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"--from stdin").unwrap();
    let said = Said::from(child.wait_with_output().unwrap()).ok();
    assert_eq!(said.stdout, "prompt 1: --from stdin\n");

    std::fs::write(machine.project.join("prompt.txt"), "from a file").unwrap();
    let said = rejoin(&machine, &["run", "-m", "a", "-a", "claude", "-f", "prompt.txt"]).ok();
    assert_eq!(said.stdout, "prompt 2: from a file\n");
}

#[test]
fn explain_says_what_happened_and_close_ends_it() {
    let machine = machine();
    run(&machine, &["--name", "login"], "one").ok();
    let told = rejoin(&machine, &["explain", "issue-42"]).ok();
    assert!(told.stdout.contains("issue-42@claude (login)"), "{}", told.stdout);
    let told = rejoin(&machine, &["explain", "issue-42@claude", "--json"]).ok().json();
    assert_eq!(told["keys"][0]["last_run"]["why"], "no_prior_session", "{told}");

    let closed = rejoin(&machine, &["close", "issue-42", "--because", "cancelled", "--json"]).ok().json();
    assert_eq!((&closed["because"], &closed["closed"][0]["agent"]), (&"cancelled".into(), &"claude".into()));
    assert_eq!(closed["closed"][0]["state_removed"], true);
    assert_eq!(rejoin(&machine, &["close", "issue-42"]).ok().stdout, "nothing was open\n");
    let told = rejoin(&machine, &["explain", "issue-42@claude", "--json"]).ok().json();
    assert_eq!(told["keys"][0]["closed"]["detail"], "cancelled", "{told}");
}

#[test]
fn a_dry_sweep_tells_and_removes_nothing() {
    let machine = machine();
    run(&machine, &[], "one").ok();
    let sweep = ["sweep", "--live", "issue-1", "--grace", "0s", "--json"];
    let told = rejoin(&machine, &[&sweep[..], &["--dry-run"]].concat()).ok().json();
    assert_eq!(
        (&told["dry_run"], &told["swept"][0]["outcome"]),
        (&true.into(), &"would_be_removed".into()),
        "{told}"
    );
    let told = rejoin(&machine, &[&sweep[..], &["--remove"]].concat()).ok().json();
    assert_eq!(told["swept"][0]["outcome"], "removed", "{told}");
    let told = rejoin(&machine, &[&sweep[..], &["--remove"]].concat()).ok().json();
    assert_eq!(told["swept"].as_array().unwrap().len(), 0, "{told}");
}

#[test]
fn an_agent_that_is_not_installed_has_an_exit_code_of_its_own() {
    let machine = Machine::new();
    let said = run(&machine, &["--json"], "one");
    assert_eq!((said.code, &said.json()["error"]["code"]), (8, &"no_agent".into()));
}

#[test]
fn sessions_of_a_folder_that_was_renamed_are_told_where_nothing_is_found() {
    let machine = machine();
    run(&machine, &[], "Fix the login bug").ok();
    let renamed = machine.project.with_file_name("renamed");
    std::fs::rename(&machine.project, &renamed).unwrap();
    let path = format!("{}:/usr/bin:/bin", machine.home.join("bin").display());
    let mut command = machine.command(&["resume", "no such words"]);
    let said = Said::from(command.env("PATH", path).current_dir(&renamed).output().unwrap());
    assert_eq!((said.code, said.stdout.as_str()), (3, ""), "{said:?}");
    let told = format!("1 session is of {}, which is gone", machine.project.display());
    assert!(said.stderr.contains(&told), "{said:?}");
}
