//! Sessions that somebody began without Rejoin, in the agent's own place: which are meant, and what is done with them.

use std::fs;
use std::path::{Path, PathBuf};

use rejoin::core::Lifecycle;
use rejoin::core::decide::{Sign, Workdir};
use rejoin::core::history::{ListQuery, Resumability, Scope, SessionsQuery, Unresumable};
use rejoin::{Answer, NotResumed, Relocated, Relocation, Route, Seek, Wanted, Way, Why};
use serde_json::json;

use crate::relocating::git;
use crate::stage::Stage;

fn id(number: u32) -> String {
    format!("{number:08x}-1111-4111-8111-111111111111")
}

/// The folder in which Claude Code files sessions of a folder.
fn filed(stage: &Stage, folder: &Path) -> PathBuf {
    let name: String =
        folder.to_str().unwrap().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    stage.path("home").join(".claude/projects").join(name)
}

/// A session that began in the first of the folders and was in the others then.
fn session(place: &Path, number: u32, folders: &[&Path]) -> PathBuf {
    let uuid = |at: usize| format!("{number:08x}-2222-4222-8222-{at:012}");
    let mut lines = Vec::new();
    for (turn, folder) in folders.iter().enumerate() {
        let record = |kind: &str, at: usize, message: serde_json::Value| {
            let parent = at.checked_sub(1).map(uuid);
            json!({"type": kind, "uuid": uuid(at), "parentUuid": parent, "sessionId": id(number), "cwd": folder,
                "isSidechain": false, "timestamp": format!("2026-05-08T18:29:{at:02}.000Z"), "message": message})
        };
        let text = json!([{"type": "text", "text": "yes"}]);
        lines.push(record(
            "user",
            turn * 2,
            json!({"role": "user", "content": format!("words of {number}")}),
        ));
        let reply = json!({"id": format!("msg_{turn}"), "model": "m", "role": "assistant", "content": text});
        lines.push(record("assistant", turn * 2 + 1, reply));
    }
    write(place, number, &lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

fn write(place: &Path, number: u32, text: &str) -> PathBuf {
    fs::create_dir_all(place).unwrap();
    let path = place.join(id(number) + ".jsonl");
    fs::write(&path, text).unwrap();
    path
}

async fn numbers(lifecycle: &Lifecycle, scope: Scope) -> Vec<u32> {
    let query =
        SessionsQuery { list: ListQuery { scope, ..ListQuery::default() }, ..SessionsQuery::default() };
    let listing = lifecycle.list(&query).await.unwrap();
    let number = |id: &str| u32::from_str_radix(&id[..8], 16).unwrap();
    let mut numbers: Vec<_> =
        listing.sessions.iter().map(|listed| number(listed.entry.id.as_str())).collect();
    numbers.sort_unstable();
    numbers
}

#[tokio::test]
async fn a_repository_has_the_sessions_of_all_its_work_trees_also_of_those_that_are_gone() {
    let stage = Stage::new();
    let demo = stage.path("project");
    let trees = ["wt/fix", "wt/gone"].map(|name| demo.join(".claude").join(name));
    git(&demo, &["init", "-q"]);
    git(&demo, &["commit", "-q", "--allow-empty", "-m", "root"]);
    for tree in &trees {
        git(&demo, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    }
    session(&filed(&stage, &demo), 1, &[&demo]);
    let second = session(&filed(&stage, &trees[0]), 2, &[&demo, &trees[0]]);
    session(&filed(&stage, &trees[1]), 3, &[&trees[1]]);
    session(&filed(&stage, &stage.path("other")), 4, &[&stage.path("other")]);
    git(&demo, &["worktree", "remove", "--force", trees[1].to_str().unwrap()]);
    let lifecycle = stage.lifecycle().state_dirs(false);
    for from in [&demo, &trees[0]] {
        let scope = lifecycle.work_tree(from).await.unwrap().scope();
        assert_eq!(numbers(&lifecycle, scope).await, [1, 2, 3], "{}", from.display());
    }
    assert_eq!(numbers(&lifecycle, Scope::Exact(demo.clone())).await, [1, 2], "it began there");
    let located = lifecycle.locate(&Seek::new(Wanted::Text(id(2)), &demo)).await.unwrap();
    let hit = located.hit().unwrap();
    assert_eq!((hit.folder.as_ref(), hit.workdir), (Some(&trees[0]), Workdir::SameRepository));
    assert_eq!(hit.session.entry.source.path, second);
    let here = lifecycle.locate(&Seek::new(Wanted::Text(id(2)), &trees[0])).await.unwrap();
    assert!(matches!(here.answer, Answer::Found { how: Sign::Id, .. }), "{here:?}");
    assert!(stage.calls().is_empty());
}

#[tokio::test]
async fn what_holds_nothing_is_told_before_anything_is_started() {
    let stage = Stage::new();
    let (project, place) = (stage.path("project"), filed(&stage, &stage.path("project")));
    let snapshot = "{\"type\":\"file-history-snapshot\",\"messageId\":\"x\",\"snapshot\":{}}\n";
    let summary = "{\"type\":\"summary\",\"summary\":\"old\",\"leafUuid\":\"x\"}\n";
    let mode =
        "{\"type\":\"custom-title\",\"customTitle\":\"old\"}\n{\"type\":\"mode\",\"mode\":\"normal\"}\n";
    let texts = [snapshot.repeat(2), String::new(), summary.to_owned(), mode.to_owned()];
    let lifecycle = stage.lifecycle().state_dirs(false);
    for (number, text) in (1..).zip(&texts) {
        write(&place, number, text);
        let told = lifecycle.locate(&Seek::new(Wanted::Text(id(number)), &project)).await.unwrap();
        let Answer::CannotResume { why, .. } = told.answer else { panic!("{number}: {told:?}") };
        assert_eq!(why, NotResumed::File(Resumability::No(Unresumable::Empty)));
    }
    let title = lifecycle.locate(&Seek::new(Wanted::Text("old".to_owned()), &project)).await.unwrap();
    assert_eq!(title.answer, Answer::Nothing, "a title alone is no conversation");
    assert!(stage.calls().is_empty());
}

/// What an earlier move put one level too deep comes to its place, and another session's file stays.
#[tokio::test]
async fn a_session_that_was_moved_too_deep_is_relocated_to_its_place() {
    let stage = Stage::new();
    let script = json!({"version": "2.0.14 (Claude Code)", "log": stage.path("calls.jsonl"), "cases": []});
    fs::write(stage.path("script.json"), script.to_string()).unwrap();
    let (project, old) = (stage.path("project"), stage.path("old"));
    let place = filed(&stage, &project);
    session(&place, 9, &[&project]);
    let nested = place.join(filed(&stage, &old).file_name().unwrap());
    let deep = session(&nested, 1, &[&old]);
    for folder in [&place, &nested] {
        fs::create_dir_all(folder.join("memory")).unwrap();
        fs::write(folder.join("memory/note.md"), folder.to_str().unwrap()).unwrap();
    }
    let lifecycle = stage.lifecycle().state_dirs(false);
    let seek = Seek::new(Wanted::Text(id(1)), &project).other_project(true);
    let located = lifecycle.locate(&seek).await.unwrap();
    let wish = Relocation::new(located.hit().unwrap().session.clone(), &project);
    let done = lifecycle.relocate(&wish.clone().way(Way::Move)).await.unwrap();
    let Relocated::Done { to, left, .. } = &done else { panic!("{done:?}") };
    assert_eq!((to, deep.exists()), (&place.join(id(1) + ".jsonl"), false));
    assert_eq!(left, &[nested.join("memory")], "that of the other folder is named, and stays");
    assert_eq!(fs::read_to_string(place.join("memory/note.md")).unwrap(), place.to_str().unwrap());
    assert_eq!(numbers(&lifecycle, Scope::All).await, [1, 9]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_run_behind_a_link_is_made_in_the_real_folder_and_is_the_same_project() {
    let stage = Stage::new();
    let (real, link) = (stage.path("project"), stage.path("link"));
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let lifecycle = stage.lifecycle();
    lifecycle.run(stage.request("alpha").cwd(&link)).await.unwrap();
    let second = lifecycle.run(stage.request("beta")).await.unwrap();
    assert_eq!(second.route, Route::Resumed);
    assert!(stage.calls().iter().all(|call| call.cwd == real), "{:?}", stage.calls());
}

#[tokio::test]
async fn a_session_over_the_limit_of_size_is_left_as_it_is() {
    let stage = Stage::new();
    stage.run("alpha").await;
    let file = stage.transcripts().remove(0);
    fs::File::options().append(true).open(&file).unwrap().set_len(65 << 20).unwrap();
    let lifecycle = stage.lifecycle().max_session_bytes(64 << 20);
    let fresh = lifecycle.run(stage.request("beta")).await.unwrap();
    assert_eq!(fresh.route, Route::FellBack(Why::TooLarge));
    assert_eq!(fs::metadata(&file).unwrap().len(), 65 << 20);
}
