//! Which sessions a folder of Claude Code holds.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rejoin::core::history::{
    Depth, ListQuery, NoticeKind, Resumability, Scope, SessionKind, TitleSource, Unresumable,
};
use rejoin::core::{Presence, SessionCatalog as _};
use serde_json::json;

use crate::desk::{jsonl, said, user, uuid};
use crate::room::{Room, id, number, talk, wait};

fn exact(path: impl Into<PathBuf>) -> Scope {
    Scope::Exact(path.into())
}

fn quick() -> ListQuery {
    ListQuery { depth: Depth::Quick, ..ListQuery::default() }
}

#[test]
fn folders_with_dots_underscores_and_spaces_have_their_sessions() {
    let room = Room::new();
    let folders = [("/w/jane.roe/my_app v2", "-w-jane-roe-my-app-v2"), ("/w/.dotfiles", "-w--dotfiles")];
    for (at, (folder, project)) in (1..).zip(folders) {
        room.talk(project, at, folder);
        // Filed elsewhere, as after a move, and said to be of there.
        room.talk("-somewhere", at + 10, folder);
        let listing = room.list(ListQuery { scope: exact(folder), ..ListQuery::default() });
        let mut found: Vec<_> = listing.sessions.iter().map(number).collect();
        found.sort_unstable();
        assert_eq!(found, [at, at + 10], "{folder}");
        assert!(listing.sessions.iter().all(|entry| entry.resumable == Resumability::Yes));
        for session in [at, at + 10] {
            assert_eq!(room.look(session, folder).presence, Presence::Present, "{session} of {folder}");
        }
    }
}

#[test]
fn a_folder_that_the_agent_never_saw_is_not_one_without_sessions() {
    let room = Room::new();
    fs::create_dir_all(room.dir().join("projects/-w-emptied")).unwrap();
    room.write("-w-empty", 1, "");
    room.talk("-w-demo", 2, "/w/demo");
    let listed = |folder: &str| {
        let listing = room.list(ListQuery { scope: exact(folder), ..ListQuery::default() });
        assert!(listing.is_complete());
        (listing.sessions.len(), listing.filed_in)
    };
    let place = |name: &str| vec![room.dir().join("projects").join(name)];
    assert_eq!(listed("/w/demo"), (1, place("-w-demo")));
    assert_eq!(listed("/w/emptied"), (0, place("-w-emptied")));
    assert_eq!(listed("/w/empty"), (0, place("-w-empty")));
    assert_eq!(listed("/w/never"), (0, vec![]));
    let below = room.list(ListQuery { scope: Scope::Below("/w/demo".into()), ..ListQuery::default() });
    assert_eq!(below.filed_in, [""; 0].map(PathBuf::from), "of one folder alone");
}

#[test]
fn whatever_hash_ends_the_name_of_a_long_folder_its_records_tell_whose_it_is() {
    let room = Room::new();
    let long = format!("/w/{}", "deep/".repeat(52)) + "x";
    let name: String =
        long.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(200).collect();
    let other = format!("{}y", &long[..long.len() - 1]);
    room.talk(&format!("{name}-abc123"), 1, &long);
    room.talk(&format!("{name}-zzz999"), 2, &other);
    assert_eq!(long.len(), 264);
    assert_eq!(room.numbers(exact(&long)), [1]);
    assert_eq!(room.numbers(exact(&other)), [2]);
    let look = room.look(1, &long);
    assert_eq!(
        (look.presence, look.path),
        (Presence::Present, Some(room.path(&format!("{name}-abc123"), 1)))
    );
}

#[test]
fn the_time_of_a_session_with_a_damaged_line_is_that_of_its_last_one() {
    let room = Room::new();
    let mut lines: Vec<_> = (0..100)
        .map(|at| {
            let mut line = user(&format!("u{at}"), None, &format!("turn {at}"));
            line["timestamp"] = json!(format!("2026-03-01T{:02}:{:02}:00.000Z", 10 + at / 60, at % 60));
            line.to_string()
        })
        .collect();
    lines[40].insert_str(0, "{\"type\":\"pr-link\",\"sessionId\":\"S1\",\"prNu");
    room.write("-w", 1, lines.join("\n") + "\n");
    for query in [quick(), ListQuery::default()] {
        let listing = room.list(query);
        let entry = &listing.sessions[0];
        assert_eq!(entry.updated.unwrap().to_string(), "2026-03-01T11:39:00Z");
        assert!(!entry.exact || entry.turns == Some(100));
    }
}

#[test]
fn what_holds_nothing_is_counted_and_every_way_to_ask_agrees() {
    let room = Room::new();
    let snapshot = |of| json!({"type": "file-history-snapshot", "messageId": uuid(of), "snapshot": {"trackedFileBackups": {}}});
    let mut real = vec![snapshot("u1")];
    real.extend(talk("/w", "real words"));
    room.write("-w", 1, jsonl(&[snapshot("x"), snapshot("y")]));
    room.write("-w", 2, jsonl(&real));
    room.write("-w", 3, "");
    room.write("-w", 4, jsonl(&[json!({"type": "summary", "summary": "words", "leafUuid": "x"})]));
    let titles = [
        json!({"type": "custom-title", "customTitle": "words", "sessionId": "s"}),
        json!({"type": "mode", "mode": "normal", "sessionId": "s"}),
    ];
    room.write("-w", 5, jsonl(&titles));
    room.write("-w", 6, jsonl(&[user("u1", None, " \n ")]));
    let empty = [1, 3, 4, 5, 6];
    for query in [quick(), ListQuery::default()] {
        let listing = room.list(query.clone());
        assert_eq!(listing.sessions.iter().map(number).collect::<Vec<_>>(), [2], "{:?}", query.depth);
        assert_eq!(listing.empty, 5);
        let latest = room.list(ListQuery { limit: Some(1), ..query.clone() });
        assert_eq!(latest.sessions.iter().map(number).collect::<Vec<_>>(), [2]);
        let all = room.list(ListQuery { with_empty: true, ..query });
        assert_eq!(all.sessions.len(), 6);
    }
    for number in empty {
        let [entry] = &room.find(number)[..] else { panic!("{number}") };
        assert_eq!(entry.resumable, Resumability::No(Unresumable::Empty), "{number}");
        assert_eq!(room.look(number, "/w").presence, Presence::Empty, "{number}");
    }
    assert_eq!(room.search("real"), [2]);
}

#[test]
fn the_agents_own_index_hides_nothing_and_adds_nothing() {
    let index = json!({"version": 1, "entries": [
        {"sessionId": id(1), "fullPath": "x", "firstPrompt": "of the index", "summary": "of the index"},
        {"sessionId": id(9), "fullPath": "y", "firstPrompt": "gone", "messageCount": 9},
    ]})
    .to_string();
    for text in [Some(index.as_str()), None, Some(&index[..index.len() / 2])] {
        let room = Room::new();
        for (at, number) in (0..).zip([3_u32, 1, 2]) {
            let path = room.talk("-w", number, "/w");
            let time = UNIX_EPOCH + Duration::from_secs(1_780_000_000 + at);
            fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
            let mut lines = talk("/w", "hi");
            lines.iter_mut().for_each(|line| line["timestamp"] = json!(1_780_000_000 + at));
            let text = jsonl(&lines);
            room.write("-w", number, text);
        }
        if let Some(text) = text {
            fs::write(room.dir().join("projects/-w/sessions-index.json"), text).unwrap();
        }
        let listing = room.list(ListQuery::default());
        assert_eq!(listing.sessions.iter().map(number).collect::<Vec<_>>(), [2, 1, 3]);
        assert!(listing.is_complete() && listing.sessions.iter().all(|entry| entry.title.is_none()));
    }
}

#[test]
fn a_name_stays_however_much_is_said_after_it() {
    let (room, cache) = (Room::new(), tempfile::tempdir().unwrap());
    let title = |text: &str| json!({"type": "custom-title", "customTitle": text, "sessionId": "s"});
    let mut lines = talk("/w", "hi");
    lines.push(title("billing rework"));
    lines.extend((3..53).map(|at| user(&format!("u{at}"), Some("a2"), &"long ".repeat(20_000))));
    let path = room.write("-w", 1, jsonl(&lines));
    assert!(fs::metadata(&path).unwrap().len() > 5_000_000);
    let mut other = talk("/w", "hi");
    other.extend([title("a"), title("b"), json!({"type": "ai-title", "aiTitle": "c", "sessionId": "s"})]);
    room.write("-w", 2, jsonl(&other));
    let catalog = room.catalog().index(cache.path().join("index"));
    let query = ListQuery { state_dir: Some(room.dir().to_owned()), ..ListQuery::default() };
    let names = || {
        let mut sessions = wait(catalog.list(&query)).unwrap().sessions;
        sessions.sort_by_key(number);
        sessions
            .into_iter()
            .map(|entry| entry.title.map(|title| (title.text, title.source)))
            .collect::<Vec<_>>()
    };
    let given = |text: &str| Some((text.to_owned(), TitleSource::Given));
    for _ in 0..2 {
        assert_eq!(names(), [given("billing rework"), given("b")]);
    }
    fs::write(&path, fs::read_to_string(&path).unwrap() + &title("another").to_string() + "\n").unwrap();
    assert_eq!(names(), [given("another"), given("b")]);
}

#[test]
fn two_sides_of_a_container_are_asked_for_together_and_are_two_without() {
    let room = Room::new();
    room.talk("-container-app", 1, "/container/app");
    room.talk("-home-dev-app", 2, "/home/dev/app");
    room.talk("-home-dev-app-old", 3, "/home/dev/app-old");
    let both = ["/container/app", "/home/dev/app"].map(PathBuf::from);
    assert_eq!(room.numbers(Scope::AnyBelow(both.to_vec())), [1, 2]);
    for (at, folder) in (1..).zip(both) {
        assert_eq!(room.numbers(exact(folder)), [at], "nothing is guessed");
    }
}

#[test]
fn a_folder_that_was_moved_into_another_hides_no_session() {
    let room = Room::new();
    room.talk("-w-new", 9, "/w/new");
    let nested = room.talk("-w-new/-w-old", 1, "/w/old");
    fs::create_dir_all(room.dir().join("projects/-w-new/memory")).unwrap();
    fs::create_dir_all(room.dir().join("projects/-w-new/-w-old/memory")).unwrap();
    fs::write(room.dir().join("projects/-w-new/-w-old/memory").join(id(7) + ".jsonl"), "{}").unwrap();
    assert_eq!(room.numbers(Scope::All), [1, 9]);
    assert_eq!(room.numbers(exact("/w/old")), [1]);
    assert_eq!(room.find(1)[0].source.path, nested);
    assert_eq!(room.find(1)[0].kind, SessionKind::Main);
}

#[test]
fn a_time_after_that_of_its_file_stays_as_written_and_is_told() {
    let room = Room::new();
    let written = UNIX_EPOCH + Duration::from_secs(1_772_359_200);
    let times = ["2026-03-01T18:00:00.000Z", "2026-03-01T10:30:00.000Z", "2026-03-01T09:00:00.000Z"];
    for (number, time) in (1..).zip(times) {
        let mut lines = talk("/w", "hi");
        lines.iter_mut().for_each(|line| line["timestamp"] = json!(time));
        let path = room.write("-w", number, jsonl(&lines));
        fs::File::options().append(true).open(path).unwrap().set_modified(written).unwrap();
    }
    for query in [quick(), ListQuery::default()] {
        let listing = room.list(query);
        let ahead = listing.sessions.iter().find(|entry| number(entry) == 1).unwrap();
        assert_eq!(ahead.updated.unwrap().to_string(), "2026-03-01T18:00:00Z");
        let told: Vec<(&Path, _)> =
            listing.notices.iter().map(|notice| (notice.path.as_path(), &notice.kind)).collect();
        assert_eq!(told, [(ahead.source.path.as_path(), &NoticeKind::TimeAhead)]);
        assert!(listing.is_complete());
    }
}

/// A session is filed under the folder that it was in last, a work tree, which may be gone by now.
#[test]
fn sessions_of_work_trees_are_of_their_repository_and_of_the_folder_that_they_began_in() {
    let room = Room::new();
    room.talk("-w-demo", 1, "/w/demo");
    let mut lines = talk("/w/demo", "begun in the main tree");
    lines.extend(talk("/w/demo-fix", "gone on in a linked one").into_iter().map(|mut line| {
        line["uuid"] = json!(line["uuid"].as_str().unwrap().replace("-0000-", "-1111-"));
        line
    }));
    let moved = room.write("-w-demo-fix", 2, jsonl(&lines));
    let gone = room.talk("-w-demo--claude-worktrees-gone", 3, "/w/demo/.claude/worktrees/gone");
    room.talk("-w-demo-other", 4, "/w/demo-other");
    let trees = ["/w/demo", "/w/demo-fix"].map(PathBuf::from);
    assert_eq!(room.numbers(Scope::AnyBelow(trees.to_vec())), [1, 2, 3]);
    assert_eq!(room.numbers(exact("/w/demo")), [1, 2]);
    for (number, place) in [(2, moved), (3, gone)] {
        assert_eq!(room.find(number)[0].source.path, place);
    }
    // It is continued where it is now.
    let entry = &room.find(2)[0];
    assert_eq!(entry.last_cwd.as_deref(), Some(Path::new("/w/demo-fix")));
    assert_eq!(room.look(2, "/w/demo-fix").user_turns, 2);
}

/// What helpers said lies in the file of the session, and is nearly all of it.
#[test]
fn turns_among_very_many_lines_of_helpers_are_counted_and_the_title_before_them_is_found() {
    let room = Room::new();
    let mut lines = vec![json!({"type": "custom-title", "customTitle": "parser", "sessionId": id(1)})];
    let long = "x".repeat(2000);
    for turn in 0..14 {
        let main = [
            user(&format!("u{turn}"), None, &format!("turn {turn}")),
            said(&format!("a{turn}"), &format!("u{turn}"), "yes"),
        ];
        lines.extend(main);
        lines.extend((0..250).map(|at| {
            let name = format!("h{}", turn * 250 + at);
            let mut line = if at % 2 == 0 { user(&name, None, &long) } else { said(&name, "h0", &long) };
            line["isSidechain"] = json!(true);
            line
        }));
    }
    room.write("-w", 1, jsonl(&lines));
    for (query, turns) in [(quick(), None), (ListQuery::default(), Some(14))] {
        let entry = &room.list(query).sessions[0];
        assert_eq!(entry.title.as_ref().map(|title| title.text.as_str()), Some("parser"));
        assert_eq!((entry.turns, entry.kind), (turns, SessionKind::Main));
        assert_eq!((entry.first_prompt.as_deref(), entry.resumable), (Some("turn 0"), Resumability::Yes));
    }
    // It is there, whatever its agent says of it.
    let look = room.look(1, "/w");
    assert_eq!((look.presence, look.user_turns), (Presence::Present, 14));
}
