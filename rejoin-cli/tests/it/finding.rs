//! `search` and `relocate`.

use crate::support::sessions::{CHANGELOG, CODEX, ELSEWHERE, LOGIN, TITLE, codex};
use crate::support::{Machine, Said};

#[test]
fn sessions_are_found_by_what_was_said_in_them() {
    let machine = Machine::with_sessions();
    let told = machine.rejoin(&["search", "add", "TEST", "--json"]).ok().json();
    assert_eq!(told["sessions"].as_array().unwrap().len(), 1, "{told}");
    let found = &told["sessions"][0];
    assert_eq!((&found["session"]["id"], &found["session"]["title"]), (&LOGIN.into(), &TITLE.into()));
    let hit = &found["hits"][0];
    assert_eq!((&hit["place"], &hit["excerpt"]), (&"prompt".into(), &"Now add a test".into()));
    let (from, to) = (hit["from"].as_u64().unwrap(), hit["to"].as_u64().unwrap());
    let excerpt = hit["excerpt"].as_str().unwrap();
    assert_eq!(&excerpt[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()], "add");

    let said = machine.rejoin(&["search", "there is one now"]).ok();
    assert!(said.stdout.contains(LOGIN) && said.stdout.contains("There is one now."), "{said:?}");
}

#[test]
fn of_a_limited_search_the_newest_sessions_of_any_agent_are_left() {
    let machine = Machine::with_sessions();
    let newer = [3, 4].map(|last| format!("019b8d2b-b6f8-713f-b434-8bd03b8dece{last}"));
    for (id, day) in newer.iter().zip(["01", "02"]) {
        let path = codex(&machine, id, &machine.project, "Say the word", "The word.");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("2026-01-05", &format!("2026-04-{day}"))).unwrap();
    }
    let told = machine.rejoin(&["search", "the", "--limit", "2", "--json"]).ok().json();
    let ids: Vec<_> = told["sessions"].as_array().unwrap().iter().map(|it| &it["session"]["id"]).collect();
    assert_eq!(ids, [newer[1].as_str(), newer[0].as_str()]);
    assert_eq!((&told["complete"], &told["more"]), (&true.into(), &true.into()), "{told}");
    for (limit, more) in [("2", true), ("6", false)] {
        let told = machine.rejoin(&["list", "-n", limit, "--json"]).ok().json();
        assert_eq!((&told["complete"], &told["more"]), (&true.into(), &more.into()), "{told}");
    }
}

#[test]
fn a_session_that_lies_in_several_files_is_searched_in_all_of_them() {
    let machine = Machine::with_sessions();
    let first = codex(&machine, CODEX, &machine.project, "Before it went on", "Yes.");
    let part = CODEX.replace("019b", "029b");
    let second = first.with_file_name(format!("rollout-2026-01-06T08-00-11-{CODEX}_{part}.jsonl"));
    let header = format!(
        "{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{CODEX}\",\"cwd\":\"/\",\"history_base\":{{\"thread_id\":\"{CODEX}\"}}}}}}\n"
    );
    std::fs::write(second, header).unwrap();
    let told = machine.rejoin(&["search", "went on", "--json"]).ok().json();
    assert_eq!(told["sessions"][0]["session"]["id"], CODEX, "{told}");
    assert!(told["sessions"][0]["hits"][0]["path"].as_str().unwrap().ends_with(&format!("{CODEX}.jsonl")));
}

#[test]
fn nothing_is_no_word_to_search_for() {
    let machine = Machine::with_sessions();
    assert_eq!(machine.rejoin(&["search", ""]).code, 2);
}

#[test]
fn a_search_is_of_the_folders_that_are_asked_for() {
    let machine = Machine::with_sessions();
    assert!(machine.rejoin(&["search", "sorted"]).ok().stdout.contains(ELSEWHERE));
    let said = machine.rejoin(&["search", "sorted", "--scope", "here"]);
    assert_eq!((said.code, said.stdout.as_str()), (3, ""), "{said:?}");
    let told = machine.rejoin(&["search", "sorted", "--scope", "here", "--json"]);
    assert_eq!((told.code, told.json()["sessions"].as_array().unwrap().len()), (3, 0));
}

#[test]
fn a_session_that_is_relocated_is_continued_in_its_new_folder() {
    let machine = Machine::with_sessions();
    let elsewhere = machine.folder("elsewhere");
    let to = elsewhere.to_str().unwrap();
    let refused = machine.rejoin(&["relocate", CHANGELOG, to, "--json"]);
    assert_eq!((refused.code, &refused.json()["error"]["code"]), (5, &"other_project".into()), "{refused:?}");

    let yes = ["relocate", CHANGELOG, to, "--other-project", "--json"];
    assert_eq!(machine.rejoin(&yes).code, 8, "its agent is asked for its version");
    machine.install("claude", "#!/bin/sh\necho '2.1.332 (Claude Code)'\n");
    let told = machine.rejoin(&yes).ok().json();
    assert_eq!(told["outcome"], "nothing_to_do", "this version finds it from anywhere: {told}");
    machine.install("claude", "#!/bin/sh\necho '2.0.14 (Claude Code)'\n");
    let told = machine.rejoin(&[&yes[..], &["--dry-run"]].concat()).ok().json();
    assert_eq!((&told["outcome"], &told["way"]), (&"would_be_done".into(), &"move".into()), "{told}");
    let told = machine.rejoin(&yes).ok().json();
    assert_eq!(told["outcome"], "done", "{told}");
    assert!(!std::path::Path::new(told["from_path"].as_str().unwrap()).exists());
    let path = told["to_path"].as_str().unwrap();
    assert!(path.contains("-elsewhere/") && std::path::Path::new(path).is_file(), "{told}");
    let list = ["list", "--scope", "here", "--json"];
    let listed: Said = machine.command(&list).current_dir(&elsewhere).output().unwrap().into();
    let listed = listed.ok().json();
    let folders: Vec<_> =
        listed["sessions"].as_array().unwrap().iter().map(|it| (&it["id"], &it["last_cwd"])).collect();
    assert_eq!(folders, [(&CHANGELOG.into(), &to.into()), (&ELSEWHERE.into(), &to.into())], "{listed}");
    let said = machine.command(&["resume", CHANGELOG]).current_dir(&elsewhere).output().unwrap();
    let line = format!("cd {to} && claude --resume {CHANGELOG}\n");
    assert_eq!(String::from_utf8(said.stdout).unwrap(), line, "its file tells of the old folder");
}

#[test]
fn a_folder_that_is_not_there_is_no_place_for_a_session() {
    let machine = Machine::with_sessions();
    let said = machine.rejoin(&["relocate", LOGIN, "nowhere"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.stderr.contains("nowhere"), "{said:?}");
}
