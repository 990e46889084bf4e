//! What is said on the command line, and what comes of it.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::runs;
use crate::support::sessions::{CHANGELOG, Claude, LOGIN};
use crate::support::{Machine, Said};

#[test]
fn a_mailbox_is_closed_for_one_agent_by_its_key() {
    let machine = runs::machine();
    runs::run(&machine, &[], "one").ok();
    let closed = runs::rejoin(&machine, &["close", "issue-42@claude", "--json"]).ok().json();
    assert_eq!((&closed["mailbox"], &closed["closed"][0]["agent"]), (&"issue-42".into(), &"claude".into()));
    assert_eq!(runs::rejoin(&machine, &["close", "issue-42@claude"]).ok().stdout, "nothing was open\n");
    // A mailbox that is called so comes first.
    runs::run(&machine, &[], "one").ok();
    let words = ["run", "-m", "issue-42@claude", "-a", "claude", "--", "two"];
    runs::rejoin(&machine, &words).ok();
    let closed = runs::rejoin(&machine, &["close", "issue-42@claude", "--json"]).ok().json();
    assert_eq!(closed["mailbox"], "issue-42@claude", "{closed}");
    let closed = runs::rejoin(&machine, &["close", "issue-42"]).ok();
    assert!(closed.stdout.starts_with("closed issue-42@claude: "), "{closed:?}");
}

#[test]
fn to_close_what_is_not_there_leaves_nothing_behind() {
    let machine = runs::machine();
    runs::run(&machine, &[], "one").ok();
    let locks = || std::fs::read_dir(machine.store().join(".agent-sessions/locks")).unwrap().count();
    let before = locks();
    for word in ["isue-42", "isue-42@claude", "issue-42@codex"] {
        assert_eq!(runs::rejoin(&machine, &["close", word]).ok().stdout, "nothing was open\n");
    }
    assert_eq!(locks(), before);
}

#[test]
fn a_run_that_a_signal_ends_says_which_by_its_exit_code() {
    let machine = Machine::new();
    let pipe = machine.home.join("started");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && { echo '2.1.332 (Claude Code)'; exit 0; }\n\
        echo started > \"$HOME/started\"\nexec tail -f /dev/null\n";
    machine.install("claude", script);
    let path = format!("{}:/usr/bin:/bin", machine.home.join("bin").display());
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let words = ["run", "-m", "a", "-a", "claude", "--json", "--", "one"];
        let mut command = machine.command(&words);
        let child = command.env("PATH", &path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It is there once the agent runs.
        assert_eq!(std::fs::read_to_string(&pipe).unwrap(), "started\n");
        kill_process(Pid::from_child(&child), signal).unwrap();
        let said = Said::from(child.wait_with_output().unwrap());
        assert_eq!(said.code, code, "{said:?}");
        let error = &said.json()["error"];
        assert_eq!((&error["code"], &error["exit"]), (&"cancelled".into(), &code.into()), "{error}");
    }
}

#[test]
fn words_are_searched_wherever_they_stand_and_a_phrase_where_one_is_asked_for() {
    let machine = Machine::with_sessions();
    for words in [&["login broken"][..], &["broken login"], &["login", "broken"], &["  broken  login "]] {
        let said = machine.rejoin(&[&["search"], words].concat()).ok();
        assert!(said.stdout.contains(LOGIN), "{words:?}: {said:?}");
    }
    for (phrase, code) in [("login broken", 3), ("login page is broken", 0)] {
        assert_eq!(machine.rejoin(&["search", "--phrase", phrase]).code, code, "{phrase}");
    }
    for words in [&[""][..], &["   "], &["", " "], &["--phrase", " "]] {
        let said = machine.rejoin(&[&["search"], words].concat());
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{words:?}: {said:?}");
    }
}

#[test]
fn a_number_that_leaves_nothing_is_not_taken_for_nothing_there() {
    let machine = Machine::with_sessions();
    for words in [["list", "-n", "0"].as_slice(), &["search", "login", "-n", "0"]] {
        let said = machine.rejoin(words).ok();
        assert_eq!(said.stderr, "nothing is shown: of what was found, --limit leaves nothing\n", "{words:?}");
        let told = machine.rejoin(&[words, &["--json"]].concat()).ok().json();
        assert_eq!((&told["more"], &told["complete"]), (&true.into(), &true.into()), "{told}");
    }
    assert_eq!(machine.rejoin(&["search", "nobody said that", "-n", "0"]).code, 3);
}

#[test]
fn the_line_for_earlier_turns_shows_them_as_these_were_shown() {
    let machine = runs::machine();
    Claude::new(&machine, LOGIN, &machine.project, 30).turn("one", "1").turn("two", "2").write();
    runs::run(&machine, &[], "one").ok();
    let store = machine.store();
    let store = store.to_str().unwrap();
    let said = machine.rejoin(&["show", LOGIN, "-n", "1", "--full", "--store", store]).ok();
    assert!(said.stdout.contains("› two"), "{said:?}");
    let hint = said.stdout.lines().find_map(|line| line.strip_prefix("… rejoin ")).unwrap();
    assert!(hint.ends_with(&format!(" -n 1 --full --store {store}")), "{hint}");
    let said = machine.rejoin(&hint.replace('\'', "").split(' ').collect::<Vec<_>>()).ok();
    assert!(said.stdout.contains("› one") && !said.stdout.contains("two"), "{said:?}");
}

#[test]
fn a_title_needs_no_quotes_to_be_shown() {
    let machine = Machine::with_sessions();
    for command in ["show", "resume"] {
        let said = machine.rejoin(&[command, "Write", "the", "changelog", "--json"]);
        assert!(said.stdout.contains(CHANGELOG) || said.code == 4, "{command}: {said:?}");
        let said = machine.rejoin(&[command, "Fix", "the", "login", "bug", "--json"]).ok().json();
        assert_eq!(said["session"]["id"], LOGIN, "{command}");
    }
}

#[test]
fn documents_of_words_that_are_not_understood_name_the_command_where_one_is_said() {
    let machine = Machine::new();
    let cases: [(&[&str], &str); 7] = [
        (&["list", "--nonsense"], "list"),
        (&["ls", "--nonsense"], "list"),
        (&["--store", "show", "--color=never", "list", "--nonsense"], "list"),
        (&["run"], "run"),
        (&["list", "--agent", "nobody"], "list"),
        (&["nonsense"], "rejoin"),
        (&["--nonsense"], "rejoin"),
    ];
    for (words, command) in cases {
        let said = machine.rejoin(&[&["--json"], words].concat());
        assert_eq!((said.code, &said.json()["command"]), (2, &command.into()), "{words:?}");
    }
}
