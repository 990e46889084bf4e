//! `resume` where no person is asked.

use crate::support::Machine;
use crate::support::sessions::{CHANGELOG, CODEX, Claude, ELSEWHERE, EMPTY, LOGIN, TITLE, codex};

#[test]
fn the_line_that_continues_a_session_goes_to_its_folder_first() {
    let machine = Machine::with_sessions();
    let folder = machine.project.display();
    let said = machine.rejoin(&["resume", LOGIN]).ok();
    assert_eq!(said.stdout, format!("cd {folder} && claude --resume {LOGIN}\n"));
    let said = machine.rejoin(&["resume", CODEX]).ok();
    assert_eq!(said.stdout, format!("cd {folder} && codex resume {CODEX}\n"));

    let told = machine.rejoin(&["resume", LOGIN, "--json"]).ok().json();
    let invocation = &told["invocation"];
    assert_eq!(invocation["args"], serde_json::json!(["--resume", LOGIN]));
    assert_eq!(invocation["line"], said_line(&machine));
}

fn said_line(machine: &Machine) -> String {
    format!("cd {} && claude --resume {LOGIN}", machine.project.display())
}

#[test]
fn a_session_is_found_by_its_title_and_words_of_it_only_propose_it() {
    let machine = Machine::with_sessions();
    for words in [&[TITLE][..], &["fix", "the", "LOGIN", "bug"], &[&LOGIN[..8]]] {
        let said = machine.rejoin(&[&["resume"], words].concat()).ok();
        assert_eq!(said.stdout, format!("{}\n", said_line(&machine)), "{words:?}");
    }
    let said = machine.rejoin(&["resume", "login", "bug"]);
    assert_eq!((said.code, said.stdout.as_str()), (4, ""), "{said:?}");
    assert!(said.stderr.contains(LOGIN), "{said:?}");
    // Words of another project's propose nothing here: what finds them is told.
    let said = machine.rejoin(&["resume", "the cellar"]);
    assert_eq!((said.code, said.stdout.as_str()), (3, ""), "{said:?}");
    assert!(said.stderr.contains("rejoin search"), "{said:?}");
    assert!(machine.rejoin(&["search", "cellar"]).ok().stdout.contains(ELSEWHERE));
}

#[test]
fn a_title_that_two_sessions_have_is_the_callers_to_decide() {
    let machine = Machine::with_sessions();
    let other = "4e5f6000-1111-4111-8111-000000000005";
    Claude::new(&machine, other, &machine.project, 25).turn("Again", "Yes.").title(TITLE).write();
    let told = machine.rejoin(&["resume", TITLE, "--json"]);
    assert_eq!(told.code, 4);
    let told = told.json();
    assert_eq!(told["error"]["code"], "ambiguous");
    let candidates = told["error"]["candidates"].to_string();
    assert!(candidates.contains(LOGIN) && candidates.contains(other), "{told}");
}

#[test]
fn a_title_of_another_project_needs_a_yes_and_an_id_does_not() {
    let machine = Machine::with_sessions();
    let said = machine.rejoin(&["resume", "Sort the cellar"]);
    assert_eq!((said.code, said.stdout.as_str()), (5, ""), "{said:?}");
    assert!(said.stderr.contains(ELSEWHERE), "{said:?}");
    for words in [&["resume", ELSEWHERE][..], &["resume", "--other-project", "Sort the cellar"]] {
        assert!(machine.rejoin(words).ok().stdout.contains(ELSEWHERE));
    }
}

#[test]
fn what_cannot_be_continued_is_told_why() {
    let machine = Machine::with_sessions();
    let said = machine.rejoin(&["resume", EMPTY]);
    assert_eq!(said.code, 7, "{said:?}");
    assert!(said.stderr.contains("nothing was said in it"), "{said:?}");
}

#[test]
fn a_folder_that_is_gone_is_told_with_what_helps() {
    let machine = Machine::with_sessions();
    std::fs::remove_dir(machine.folder("elsewhere")).unwrap();
    // What is told is done, word for word: by a version that finds a session from anywhere, and by one that does not.
    for (version, steps) in [("2.1.332", 1), ("2.0.14", 2)] {
        machine.install("claude", &format!("#!/bin/sh\necho '{version} (Claude Code)'\n"));
        let said = machine.rejoin(&["resume", ELSEWHERE]);
        assert_eq!(said.code, 3, "{said:?}");
        let (_, way) = said.stderr.trim_end().rsplit_once(": ").unwrap();
        let told: Vec<_> = way.split(", then ").collect();
        assert_eq!(told.len(), steps, "{way}");
        let mut line = String::new();
        for step in told {
            let words: Vec<_> = step.strip_prefix("rejoin ").unwrap().split(' ').collect();
            line = machine.rejoin(&words).ok().stdout;
        }
        let folder = machine.project.display();
        assert_eq!(line, format!("cd {folder} && claude --resume {ELSEWHERE}\n"));
    }
}

#[test]
fn a_folder_that_is_gone_is_no_trouble_where_the_agent_finds_the_session_from_here() {
    let machine = Machine::with_sessions();
    let id = "019b8d2b-b6f8-713f-b434-8bd03b8dece6";
    machine.install("codex", "#!/bin/sh\necho codex-cli 0.171.0\n");
    codex(&machine, id, &machine.folder("gone"), "Paint the shed", "Red.");
    std::fs::remove_dir(machine.folder("gone")).unwrap();
    let said = machine.rejoin(&["resume", id]);
    assert_eq!(said.code, 3, "nobody knows that it is this folder: {said:?}");
    let said = machine.rejoin(&["resume", id, "--other-project"]).ok();
    assert_eq!(said.stdout, format!("cd {} && codex resume {id}\n", machine.project.display()));
}

#[test]
fn without_a_terminal_what_could_be_continued_is_a_list() {
    let machine = Machine::with_sessions();
    let said = machine.rejoin(&["resume", "--current", LOGIN]).ok();
    let found = |id: &str| said.stdout.contains(id);
    assert_eq!(
        [LOGIN, CHANGELOG, ELSEWHERE, CODEX, EMPTY].map(found),
        [false, true, true, true, false],
        "{said:?}"
    );
    let told = machine.rejoin(&["resume", "--scope", "here", "--json"]).ok().json();
    assert_eq!(told["sessions"].as_array().unwrap().len(), 3, "{told}");
}

#[test]
fn what_is_not_a_line_to_be_run_never_stands_where_it_would_be() {
    let machine = Machine::with_sessions();
    // Nobody is at a terminal here, so nobody can pick.
    for words in [&["resume", "--pick"][..], &["resume", "--exec"], &["resume", ""], &["resume", " "]] {
        let said = machine.rejoin(words);
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{said:?}");
        assert!(!said.stderr.is_empty());
    }
    assert!(machine.rejoin(&["resume"]).ok().stdout.contains(&LOGIN[..8]));
}

#[test]
fn a_word_means_to_show_what_it_means_to_resume() {
    let machine = Machine::with_sessions();
    // To look at a session, no agent is started.
    machine.install("claude", "#!/bin/sh\necho asked >> \"$HOME/asked\"\n");
    let words = [LOGIN, &LOGIN[..8], TITLE, "fix the LOGIN bug", "login bug", "broken", "no such words", " "];
    for word in words {
        let shown = machine.rejoin(&["show", word]);
        assert!(!machine.home.join("asked").exists());
        let resumed = machine.rejoin(&["resume", word]);
        std::fs::remove_file(machine.home.join("asked")).ok();
        assert_eq!((shown.code, &shown.stderr), (resumed.code, &resumed.stderr), "{word}");
        assert_eq!(shown.stdout.contains(LOGIN), resumed.stdout.contains(LOGIN), "{word}");
    }
    // What nobody can continue, and what is of another project, can be looked at.
    for word in [EMPTY, &EMPTY[..8], ELSEWHERE, "Sort the cellar"] {
        machine.rejoin(&["show", word]).ok();
    }
}

#[test]
fn of_an_archived_session_it_is_told_how_it_comes_out_of_the_archive() {
    let machine = Machine::with_sessions();
    let id = "019b8d2b-b6f8-713f-b434-8bd03b8dece7";
    let path = codex(&machine, id, &machine.project, "Paint the shed", "Red.");
    let archive = machine.home.join(".codex/archived_sessions");
    std::fs::create_dir_all(&archive).unwrap();
    std::fs::rename(&path, archive.join(path.file_name().unwrap())).unwrap();
    let said = machine.rejoin(&["resume", id]);
    assert_eq!((said.code, said.stdout.as_str()), (7, ""), "{said:?}");
    assert!(said.stderr.trim_end().ends_with(&format!("archive: codex unarchive {id}")), "{said:?}");
}
