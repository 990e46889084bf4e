//! How the command ends.

use std::process::Stdio;

use crate::support::sessions::{Claude, LOGIN};
use crate::support::{Machine, Said};

#[test]
fn exit_codes_are_as_documented() {
    let machine = Machine::with_sessions();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["list"], 0, ""),
        (&["show", "no such session"], 3, "not_found"),
        (&["explain", "issue-1"], 3, "not_found"),
        (&["list", "--agent", "nobody"], 2, "usage"),
        (&["run", "-m", "a", "-a", "claude", "--", "x"], 8, "no_agent"),
        (&["run", "-m", "a", "-a", "claude"], 2, "usage"),
        (&["run", "-m", "a", "-a", "nobody", "--", "x"], 2, "usage"),
        (&["--store", "/nowhere", "run", "-m", "a", "-a", "claude", "--", "x"], 1, "failed"),
        (&["--store", "/nowhere", "list"], 3, "not_found"),
    ];
    for (words, code, name) in cases {
        let plain = machine.rejoin(words);
        assert_eq!(plain.code, *code, "{words:?}: {plain:?}");
        let told = machine.rejoin(&[words, &["--json"][..]].concat());
        // What stands behind `--` is a prompt.
        if words.contains(&"--") {
            continue;
        }
        assert_eq!(told.code, *code, "{words:?}: {told:?}");
        let told = told.json();
        if *code != 0 {
            assert_eq!((&told["error"]["code"], &told["error"]["exit"]), (&(*name).into(), &(*code).into()));
            assert!(plain.stdout.is_empty() && plain.stderr.starts_with("rejoin: "), "{plain:?}");
        }
    }
    for words in [&["nonsense"][..], &["list", "--nonsense"], &["run"], &["sweep"], &[]] {
        assert_eq!(machine.rejoin(words).code, 2, "{words:?}");
    }
    for words in [&["--help"][..], &["--version"], &["run", "--help"]] {
        let said = machine.rejoin(words).ok();
        assert!(!said.stdout.is_empty() && said.stderr.is_empty(), "{words:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let machine = Machine::new();
    let long = "x".repeat(1000);
    let mut session = Claude::new(&machine, LOGIN, &machine.project, 30);
    for _ in 0..200 {
        session = session.turn("more", &long);
    }
    session.write();
    for words in [&["list"][..], &["list", "--json"], &["show", LOGIN, "-n", "200"], &["completions", "zsh"]]
    {
        let mut child = machine.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The reader is gone before anything is read.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{words:?}: {output:?}");
    }
}

#[test]
fn colours_are_there_when_they_are_asked_for() {
    let machine = Machine::with_sessions();
    let has = |words: &[&str]| machine.rejoin(words).ok().stdout.contains('\u{1b}');
    assert!(has(&["show", LOGIN, "--color", "always"]));
    assert!(!has(&["show", LOGIN]));
    assert!(!has(&["show", LOGIN, "--color", "never"]));
    assert!(!has(&["show", LOGIN, "--color", "always", "--json"]));
}

#[test]
fn a_store_that_the_environment_names_and_that_is_not_there_is_told() {
    let machine = Machine::with_sessions();
    let around = |words: &[&str]| -> Said {
        machine.command(words).env("REJOIN_STORE", "/no/store").output().unwrap().into()
    };
    let cases: [(&[&str], i32); 6] = [
        (&["list"], 0),
        (&["show", LOGIN], 0),
        (&["search", "login"], 0),
        (&["resume", LOGIN], 0),
        (&["show", "issue-1"], 3),
        (&["explain", "issue-1"], 3),
    ];
    for (words, code) in cases {
        let said = around(words);
        assert_eq!(said.code, code, "{words:?}: {said:?}");
        let told =
            if words[1..] == ["issue-1"] && words[0] == "show" { "not everything" } else { "/no/store" };
        assert!(said.stderr.contains(told), "{words:?}: {said:?}");
    }
    for words in [&["list", "--json"][..], &["search", "login", "--json"]] {
        let told = around(words).ok().json();
        assert_eq!((&told["complete"], &told["notices"][0]["path"]), (&false.into(), &"/no/store".into()));
    }
    // One's own need not be there before the first run.
    assert_eq!(machine.rejoin(&["list"]).ok().stderr, "");
}

#[test]
fn what_is_said_of_a_sweep_of_everything_is_for_people() {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.store().join(".agent-sessions")).unwrap();
    // Nobody is named on stdin.
    let said = machine.rejoin(&["sweep", "--dry-run", "--live-file", "-"]);
    assert_eq!((said.code, said.stderr.contains("no mailbox is said to be alive")), (2, true), "{said:?}");
    assert!(!said.stderr.contains("::"), "{said:?}");
}
