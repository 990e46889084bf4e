//! Lists: which sessions, in which order, and what is said of what could not be read.

use std::fs;
use std::path::PathBuf;

use session_core::history::{Depth, ListQuery, NoticeKind, Resumability, Scope, SessionKind, Unresumable};
use session_core::{NativeId, SessionCatalog as _};
use session_transcript::FileCatalog;

use crate::talk::{Rooms, START, Talk, ids};

#[tokio::test]
async fn sessions_are_listed_newest_first_by_what_they_say_and_in_one_order() {
    let rooms = Rooms::new();
    rooms.session("a/first", "/w/a", 1);
    rooms.session("b/third", "/w/b", 3);
    rooms.session("a/second", "/w/a", 2);
    // Copied later, with its records as they were.
    let copied = rooms.session("a/copied", "/w/a", 0);
    crate::talk::written(&copied, 9);
    // Of a clock that was wrong: a session is not younger than its file.
    let ahead = rooms.session("a/ahead", "/w/a", 500);
    crate::talk::written(&ahead, 2);
    for depth in [Depth::Quick, Depth::Exact] {
        let listing = rooms.list(&ListQuery { depth, ..rooms.query() }).await;
        assert_eq!(ids(&listing), ["third", "ahead", "second", "first", "copied"]);
        assert!(listing.is_complete());
        let third = &listing.sessions[0];
        assert_eq!(third.first_prompt.as_deref(), Some("prompt of b/third"));
        assert_eq!(third.cwd, Some(PathBuf::from("/w/b")));
        assert_eq!(third.source.state_dir.as_deref(), Some(rooms.dir()));
        assert_eq!(third.updated.unwrap().as_millis(), i64::try_from((START + 3) * 1000).unwrap());
        for limit in 0..7 {
            let cut = rooms.list(&ListQuery { depth, limit: Some(limit), ..rooms.query() }).await;
            assert_eq!(cut.sessions, listing.sessions[..limit.min(5)], "a limit changes nothing else");
            assert_eq!((cut.is_complete(), cut.more), (true, limit < 5), "what was asked for is no trouble");
        }
    }
}

/// Ties in time are those of an image, whose files are all of one time.
#[tokio::test]
async fn a_limit_leaves_the_newest_whatever_the_times_of_the_files() {
    let rooms = Rooms::new();
    for n in 0..200_u64 {
        let path = rooms.session(&format!("r{}/s{n:03}", n % 7), "/w", n * 37 % 200);
        if n % 3 == 0 {
            crate::talk::written(&path, n * 11 % 300);
        }
    }
    for same_time in [false, true] {
        if same_time {
            for n in 0..200 {
                crate::talk::written(&rooms.path(&format!("rooms/r{}/s{n:03}.talk", n % 7)), 100);
            }
        }
        let all = rooms.list(&rooms.query()).await;
        assert_eq!(all.sessions.len(), 200);
        for limit in [1, 31, 32, 33, 120] {
            let cut = rooms.list(&ListQuery { limit: Some(limit), ..rooms.query() }).await;
            assert_eq!(cut.sessions, all.sessions[..limit]);
        }
    }
}

#[tokio::test]
async fn a_limit_counts_what_was_not_left_out() {
    let rooms = Rooms::new();
    for n in 0..150 {
        let text = format!("h|{}||\np|{}|/w|review\n", 1000 + n, 1000 + n);
        rooms.write(&format!("rooms/x/program{n}.talk"), text, 1000 + n);
    }
    for n in 0..5 {
        rooms.session(&format!("x/person{n}"), "/w", n);
    }
    rooms.write("rooms/x/empty.talk", "o|1||\n", 2000);
    rooms.write("rooms/x/person0/helpers/helper.talk", "p|1|/w|help\n", 3000);
    let listed = |kinds: &[SessionKind], with_empty, limit| {
        let query = ListQuery { kinds: kinds.to_vec(), with_empty, limit, ..rooms.query() };
        let rooms = &rooms;
        async move { rooms.list(&query).await }
    };
    let people = listed(&[SessionKind::Main], false, Some(5)).await;
    assert_eq!(ids(&people), ["person4", "person3", "person2", "person1", "person0"]);
    let programs = listed(&[SessionKind::Headless], false, None).await;
    assert_eq!(programs.sessions.len(), 150, "a runtime can ask for exactly its own");
    let helpers = listed(&[SessionKind::Sidechain], false, None).await;
    assert_eq!(ids(&helpers), ["helper"]);
    let both = listed(&[], false, None).await;
    assert_eq!((both.sessions.len(), both.empty), (155, 1));
    let with_empty = listed(&[], true, Some(1)).await;
    assert_eq!(ids(&with_empty), ["empty"]);
    assert_eq!(with_empty.sessions[0].resumable, Resumability::No(Unresumable::Empty));
}

/// The names of the folders tell nothing: what the records say does.
#[tokio::test]
async fn a_folder_is_exact_or_all_below_it_by_its_parts() {
    let rooms = Rooms::new();
    rooms.session("one/s1", "/w/labs", 1);
    rooms.session("two/s2", "/w/labs/pkg/x", 2);
    rooms.session("one/s3", "/w/labs-old", 3);
    rooms.session("-w-jane-roe-my-app-v2/dots", "/w/jane.roe/my_app v2", 4);
    let moved = "p|1700000005000|/w/demo|go\nr|1700000005000|/w/gone/tree|there\n";
    rooms.write("rooms/two/moved.talk", moved, 5);
    for depth in [Depth::Quick, Depth::Exact] {
        let listed = |scope| {
            let query = ListQuery { depth, ..rooms.scoped(scope) };
            let rooms = &rooms;
            async move { ids(&rooms.list(&query).await).join(" ") }
        };
        let path = PathBuf::from;
        assert_eq!(listed(Scope::Exact(path("/w/labs"))).await, "s1");
        assert_eq!(listed(Scope::Exact(path("/w/labs/"))).await, "s1");
        assert_eq!(listed(Scope::Below(path("/w/labs"))).await, "s2 s1");
        assert_eq!(listed(Scope::Exact(path("/w/jane.roe/my_app v2"))).await, "dots");
        assert_eq!(listed(Scope::Exact(path("/w/jane-roe/my-app-v2"))).await, "", "another folder");
        assert_eq!(listed(Scope::Exact(path("/w/demo"))).await, "moved", "it began there");
        assert_eq!(listed(Scope::Exact(path("/w/gone/tree"))).await, "moved", "it was last there");
        let trees = vec![path("/w/demo"), path("/w/gone"), path("/w/labs-old")];
        assert_eq!(listed(Scope::AnyBelow(trees)).await, "moved s3");
        assert_eq!(listed(Scope::AnyBelow(Vec::new())).await, "");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn folders_are_compared_as_real_paths_and_as_written_where_they_are_gone() {
    let rooms = Rooms::new();
    let work = tempfile::tempdir().unwrap();
    let base = work.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("real/app")).unwrap();
    for link in ["link", "other"] {
        std::os::unix::fs::symlink(base.join("real/app"), base.join(link)).unwrap();
    }
    let text = |name: &str| base.join(name).to_str().unwrap().to_owned();
    rooms.session("x/real", &text("real/app"), 1);
    rooms.session("x/linked", &text("link"), 2);
    rooms.session("x/gone", &text("link/gone"), 3);
    let listed = |scope| {
        let query = rooms.scoped(scope);
        let rooms = &rooms;
        async move { ids(&rooms.list(&query).await).join(" ") }
    };
    for name in ["link", "other", "real/app"] {
        assert_eq!(listed(Scope::Exact(base.join(name))).await, "linked real", "{name}");
        assert_eq!(listed(Scope::Below(base.join(name))).await, "gone linked real", "{name}");
        assert_eq!(listed(Scope::Exact(base.join(name).join("gone"))).await, "gone", "{name}");
    }
    fs::remove_file(base.join("link")).unwrap();
    assert_eq!(listed(Scope::Exact(base.join("link"))).await, "linked");
    assert_eq!(listed(Scope::Exact(base.join("other"))).await, "real");
}

#[tokio::test]
async fn of_copies_the_newest_is_listed_and_a_plain_file_before_a_packed_one() {
    let rooms = Rooms::new();
    let older = rooms.session("a/s", "/w/a", 1);
    let newer = rooms.session("b/s", "/w/b", 2);
    rooms.session("a/t", "/w/a", 1);
    // The same one packed is no copy of its own.
    rooms.write("rooms/a/t.talk.z", "whatever", 5);
    // A folder that a move put into the folder that was there.
    rooms.session("b/-nested/deep", "/w/old", 3);
    rooms.session("b/memory/note", "/w/old", 4);
    let listing = rooms.list(&rooms.query()).await;
    assert_eq!(ids(&listing), ["deep", "s", "t"]);
    assert_eq!(listing.sessions[1].source.path, newer);
    let copies: Vec<_> = listing.notices.iter().map(|notice| (&notice.path, &notice.kind)).collect();
    assert_eq!(copies, [(&older, &NoticeKind::OlderCopy)]);
    assert!(listing.is_complete(), "an older copy is not one that is missing");
    let archived = rooms.write("old/u.talk", "p|1|/w|archived\n", 1);
    let listing = rooms.list(&rooms.query()).await;
    let entry = listing.sessions.iter().find(|entry| entry.source.path == archived).unwrap();
    assert_eq!(entry.resumable, Resumability::Archived);
}

#[tokio::test]
async fn nowhere_to_look_is_an_error_and_no_folder_is_an_empty_list() {
    let catalog = FileCatalog::new(Talk::default());
    assert!(catalog.list(&ListQuery::default()).await.is_err());
    assert!(catalog.find(&NativeId::new("s"), None).await.is_err());
    let rooms = Rooms::new();
    let listing = rooms.list(&rooms.query()).await;
    assert!(listing.sessions.is_empty() && listing.is_complete());
    let gone = ListQuery { state_dir: Some(rooms.path("gone")), ..ListQuery::default() };
    assert!(rooms.list(&gone).await.sessions.is_empty());
}

#[tokio::test]
async fn a_session_is_found_by_its_id_alone_wherever_it_lies() {
    let rooms = Rooms::new();
    let older = rooms.session("a/s", "/w/a", 1);
    let newer = rooms.session("b/s", "/w/b", 2);
    let nested = rooms.session("b/-nested/deep", "/w/old", 3);
    let archived = rooms.write("old/u.talk", "p|1|/w|archived\n", 1);
    rooms.session("a/other", "/w/a", 1);
    let catalog = FileCatalog::new(Talk::default());
    let found = |id: &'static str| {
        let (catalog, dir) = (&catalog, rooms.dir());
        async move {
            let found = catalog.find(&NativeId::new(id), Some(dir)).await.unwrap();
            found.into_iter().map(|entry| entry.source.path).collect::<Vec<_>>()
        }
    };
    assert_eq!(found("s").await, [newer, older]);
    assert_eq!(found("deep").await, [nested]);
    assert_eq!(found("u").await, [archived]);
    assert!(found("nobody").await.is_empty());
    assert!(found("../a/s").await.is_empty(), "an id is no path");
}
