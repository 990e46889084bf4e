//! `list`, `show`, `doctor`, `completions`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::Value;

use crate::support::Machine;
use crate::support::sessions::{CHANGELOG, CODEX, Claude, ELSEWHERE, EMPTY, LOGIN, TITLE};

fn ids(document: &Value) -> Vec<&str> {
    document["sessions"].as_array().unwrap().iter().map(|session| session["id"].as_str().unwrap()).collect()
}

#[test]
fn the_list_has_the_sessions_of_all_agents_newest_first() {
    let machine = Machine::with_sessions();
    let list = machine.rejoin(&["list", "--json"]).ok().json();
    assert_eq!(ids(&list), [LOGIN, CHANGELOG, ELSEWHERE, CODEX]);
    assert_eq!((&list["schema"], &list["command"], &list["empty"]), (&1.into(), &"list".into(), &1.into()));
    let login = &list["sessions"][0];
    assert_eq!((&login["title"], &login["title_source"]), (&TITLE.into(), &"given".into()));
    assert_eq!((&login["turns"], &login["branch"]), (&2.into(), &"main".into()));
    assert_eq!(login["cwd"], machine.project.to_str().unwrap());
    assert!(login["updated"].as_str().unwrap().ends_with('Z'), "UTC: {login}");
    assert_eq!((&login["resumable"], &login["exact"]), (&true.into(), &true.into()));
    assert_eq!(list["sessions"][3]["agent"], "codex");
}

#[test]
fn a_list_is_of_folders_agents_kinds_and_numbers() {
    let machine = Machine::with_sessions();
    let list = |words: &[&str]| {
        let list = machine.rejoin(&[&["list", "--json"], words].concat()).ok().json();
        ids(&list).join(" ")
    };
    assert_eq!(list(&["--scope", "here"]), [LOGIN, CHANGELOG, CODEX].join(" "));
    assert_eq!(list(&["--agent", "codex"]), CODEX);
    assert_eq!(list(&["--limit", "2"]), [LOGIN, CHANGELOG].join(" "));
    assert_eq!(list(&["--kind", "sidechain"]), "");
    assert_eq!(list(&["--empty", "--agent", "claude"]).matches(EMPTY).count(), 1);
    assert_eq!(list(&["--quick"]).split(' ').count(), 4);
}

#[test]
fn a_list_for_people_has_a_session_a_line_and_no_colours_in_a_pipe() {
    let machine = Machine::with_sessions();
    let said = machine.rejoin(&["ls"]).ok();
    let lines: Vec<_> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{said:?}");
    assert!(lines[0].contains(TITLE) && lines[0].contains(LOGIN) && !lines[0].contains('~'), "{said:?}");
    assert!(said.stdout.contains("  1 turn  ") && !said.stdout.contains("  1 turns"), "{said:?}");
    assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
    assert_eq!(said.stderr, "", "no progress where nobody sees it");
}

#[test]
fn of_an_empty_list_a_person_is_told_why_it_is_empty() {
    let machine = Machine::with_sessions();
    let said = machine.rejoin(&["list", "--kind", "headless"]).ok();
    assert_eq!(said.stdout, "", "{said:?}");
    assert!(said.stderr.starts_with("no session was found"), "{said:?}");
    let said = machine.rejoin(&["list", "--kind", "headless", "--json"]).ok();
    assert_eq!(said.stderr, "", "programs read the document");
}

#[test]
fn an_index_is_kept_in_the_cache_and_may_be_deleted() {
    let machine = Machine::with_sessions();
    let first = machine.rejoin(&["list", "--json"]).ok().stdout;
    let cache = machine.home.join(".cache/rejoin");
    assert!(cache.is_dir());
    assert_eq!(machine.rejoin(&["list", "--json"]).ok().stdout, first);
    std::fs::remove_dir_all(&cache).unwrap();
    assert_eq!(machine.rejoin(&["list", "--json"]).ok().stdout, first);
    let elsewhere = machine.folder("cache");
    machine.command(&["list"]).env("XDG_CACHE_HOME", &elsewhere).output().unwrap();
    assert!(elsewhere.join("rejoin").is_dir());
}

#[test]
fn looking_makes_no_store() {
    let machine = Machine::with_sessions();
    for words in [&["list"][..], &["show", LOGIN], &["resume", LOGIN], &["doctor"], &["search", "login"]] {
        machine.rejoin(words);
    }
    assert!(!machine.store().exists() && !machine.project.join(".agent-sessions").exists());
}

#[test]
fn the_last_turns_are_shown_and_those_before_by_their_cursor() {
    let machine = Machine::with_sessions();
    let said = machine.rejoin(&["show", LOGIN, "-n", "1"]).ok();
    assert!(said.stdout.contains("› Now add a test\n  There is one now."), "{said:?}");
    assert!(!said.stdout.contains("broken"), "{said:?}");

    let page = machine.rejoin(&["show", LOGIN, "-n", "1", "--json"]).ok().json();
    assert_eq!(page["entries"][0]["blocks"][0]["text"], "Now add a test", "{page}");
    let cursor = page["before"].as_str().unwrap();
    let before = machine.rejoin(&["show", LOGIN, "--before", cursor, "--json"]).ok().json();
    let entries = before["entries"].to_string();
    assert!(entries.contains("The login page is broken") && !entries.contains("Now add a test"), "{before}");
    for wrong in ["junk", &cursor[..cursor.len() - 1]] {
        let said = machine.rejoin(&["show", LOGIN, "--before", wrong]);
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "it is called wrongly: {said:?}");
    }
}

#[test]
fn a_session_is_shown_by_the_beginning_of_its_id_and_by_its_title() {
    let machine = Machine::with_sessions();
    for word in [&LOGIN[..8], TITLE, "fix the LOGIN bug"] {
        let page = machine.rejoin(&["show", word, "--json"]).ok().json();
        assert_eq!(page["session"]["id"], LOGIN, "{word}");
    }
}

#[test]
fn what_is_added_is_shown_as_it_comes() {
    let machine = Machine::new();
    let session = || Claude::new(&machine, LOGIN, &machine.project, 30).turn("one", "first");
    let (before, whole) = (session().text(), session().turn("two", "second").text());
    let path = session().write();
    let mut child =
        machine.command(&["show", LOGIN, "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert!(next()["entries"].to_string().contains("first"));

    let added = whole.strip_prefix(&before).unwrap();
    std::fs::File::options().append(true).open(&path).unwrap().write_all(added.as_bytes()).unwrap();
    assert_eq!(next()["entry"]["blocks"][0]["text"], "two");
    assert_eq!(next()["entry"]["blocks"][0]["text"], "second");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_file_that_is_written_anew_while_it_is_shown_is_shown_from_its_beginning() {
    let machine = Machine::new();
    let session = |prompt| Claude::new(&machine, LOGIN, &machine.project, 30).turn(prompt, "Yes.");
    let path = session("one").write();
    let mut child = machine.command(&["show", LOGIN, "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shows = |text: &str| lines.by_ref().any(|line| line.unwrap().contains(text));
    assert!(shows("› one"));
    let other = path.with_extension("new");
    std::fs::write(&other, session("another one").text()).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert!(shows("› another one"), "it ended");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_doctor_tells_what_is_installed_and_what_is_not() {
    let machine = Machine::with_sessions();
    machine.install("claude", "#!/bin/sh\necho '2.1.332 (Claude Code)'\n");
    let told = machine.rejoin(&["doctor", "--json"]).ok().json();
    let claude = &told["agents"][0];
    assert_eq!((&claude["agent"], &claude["installed"]), (&"claude".into(), &true.into()), "{told}");
    assert_eq!((&claude["version"], &claude["verified"]), (&"2.1.332".into(), &true.into()));
    assert_eq!((&claude["sessions"], &claude["resumable"]), (&4.into(), &3.into()));
    let codex = &told["agents"][1];
    assert_eq!((&codex["installed"], &codex["sessions"]), (&false.into(), &1.into()), "{told}");
    assert!(codex["problem"].as_str().unwrap().contains("codex"));
    assert_eq!((&told["store"]["found_by"], &told["store"]["exists"]), (&"home".into(), &false.into()));

    let said = machine.rejoin(&["doctor"]).ok();
    assert!(said.stdout.contains("2.1.332 (verified)"), "{said:?}");
    assert!(said.stdout.contains("\ncodex     no program codex"), "its name stands there once: {said:?}");
}

#[test]
fn every_shell_gets_its_completions() {
    let machine = Machine::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = machine.rejoin(&["completions", shell]).ok();
        assert!(said.stdout.contains("rejoin") && said.stdout.contains("relocate"), "{shell}");
    }
}

#[test]
fn a_limited_list_is_the_beginning_of_the_whole_one_also_where_times_are_equal() {
    use std::time::{Duration, SystemTime};
    let machine = Machine::new();
    // The files are of five times around the one that they note, 2026-03-09T14:07:02Z.
    for n in 0..12_u64 {
        let id = format!("5f607{n:03}-1111-4111-8111-000000000001");
        let path = Claude::new(&machine, &id, &machine.project, 7).turn("Same", "Time.").write();
        let file = std::fs::File::options().append(true).open(path).unwrap();
        let written = 1_773_065_222 + n * 5 % 12 / 3 * 60 - 120;
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(written)).unwrap();
    }
    let ids = |words: &[&str]| -> Vec<String> {
        let told = machine.rejoin(&[&["list", "--json"], words].concat()).ok().json();
        let sessions = told["sessions"].as_array().unwrap();
        sessions.iter().map(|session| session["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids(&[]);
    assert_eq!(all.len(), 12);
    for limit in 0..=12 {
        assert_eq!(ids(&["-n", &limit.to_string()]), all[..limit], "{limit}");
    }
}
