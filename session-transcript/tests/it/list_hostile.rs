//! What may lie among sessions, so that a list waits, leaves the state dir, or takes what it cannot read for nothing.
#![cfg(unix)]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use session_core::history::{Depth, ListQuery, Listing, NoticeKind, SessionEntry};
use session_core::{NativeId, SessionCatalog as _};
use session_transcript::FileCatalog;

use crate::talk::{Rooms, Talk, ids};

fn unreadable(listing: &Listing) -> Vec<String> {
    let name = |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut names: Vec<_> = listing
        .notices
        .iter()
        .filter(|notice| matches!(notice.kind, NoticeKind::Unreadable(_)))
        .map(|notice| name(&notice.path))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_is_no_file_is_a_notice_and_is_not_waited_for() {
    let rooms = Rooms::new();
    rooms.session("a/s", "/w", 1);
    assert!(Command::new("mkfifo").arg(rooms.path("rooms/a/pipe.talk")).status().unwrap().success());
    fs::create_dir(rooms.path("rooms/a/folder.talk")).unwrap();
    symlink("/dev/zero", rooms.path("rooms/a/device.talk")).unwrap();
    symlink("nowhere", rooms.path("rooms/a/dangling.talk")).unwrap();
    // A folder that cannot be read, whoever asks.
    symlink("circle", rooms.path("rooms/circle")).unwrap();
    rooms.write(OsStr::from_bytes(b"rooms/a/\xff.talk").to_string_lossy().as_ref(), "p|1|/w|x\n", 0);
    fs::write(rooms.path("rooms/a").join(OsStr::from_bytes(b"\xff.talk")), "p|1|/w|x\n").unwrap();
    for depth in [Depth::Quick, Depth::Exact] {
        let listing = rooms.list(&ListQuery { depth, ..rooms.query() }).await;
        assert_eq!(listing.sessions[0].id.as_str(), "s");
        assert_eq!(unreadable(&listing), ["circle", "device.talk", "folder.talk", "pipe.talk"]);
        assert!(!listing.is_complete());
    }
    let missing = NativeId::new("missing");
    let found = FileCatalog::new(Talk::default()).find(&missing, Some(rooms.dir())).await;
    assert!(found.is_err(), "what was not looked at may hold it");
}

#[tokio::test]
async fn a_state_dir_is_never_left_and_the_agents_own_place_is() {
    let (rooms, other) = (Rooms::new(), Rooms::new());
    rooms.session("a/own", "/w", 1);
    let theirs = other.session("x/theirs", "/w", 2);
    symlink(&theirs, rooms.path("rooms/a/link.talk")).unwrap();
    symlink(rooms.path("rooms/a/own.talk"), rooms.path("rooms/a/second.talk")).unwrap();
    symlink(other.path("rooms/x"), rooms.path("rooms/linked")).unwrap();
    symlink(other.path("rooms"), rooms.path("old")).unwrap();
    let listing = rooms.list(&rooms.query()).await;
    assert_eq!(ids(&listing), ["own", "second"], "a link within the state dir leads to a session");
    assert_eq!(unreadable(&listing), ["link.talk", "linked", "old"]);
    for id in ["link", "theirs"] {
        let found = FileCatalog::new(Talk::default()).find(&NativeId::new(id), Some(rooms.dir())).await;
        assert!(found.is_err(), "{id}");
    }
    let own_place = FileCatalog::new(Talk { home: Some(rooms.dir().to_owned()), ..Talk::default() });
    let listing = own_place.list(&ListQuery::default()).await.unwrap();
    assert!(listing.is_complete());
    let mut all = ids(&listing);
    all.sort_unstable();
    assert_eq!(all, ["link", "own", "second", "theirs"]);
}

#[tokio::test]
async fn of_entries_without_end_so_many_are_looked_at() {
    let rooms = Rooms::new();
    for n in 0..50 {
        rooms.session(&format!("a/s{n}"), "/w", n);
    }
    let at_most = |entries| {
        let catalog = FileCatalog::new(Talk::default()).search_limit(entries);
        let query = rooms.query();
        async move { catalog.list(&query).await.unwrap() }
    };
    let whole = at_most(51).await;
    assert_eq!((whole.sessions.len(), whole.is_complete()), (50, true));
    let cut = at_most(50).await;
    assert_eq!((cut.sessions.len(), cut.is_complete()), (49, false));
    assert!(cut.notices.iter().any(|notice| notice.kind == NoticeKind::LimitReached));
}

#[tokio::test]
async fn rubbish_is_listed_as_what_it_is() {
    let rooms = Rooms::new();
    rooms.session("a/sound", "/w", 9);
    for (at, text) in [&b"\0\0\0\0"[..], b"\xff\xfe|||\n", b"{\n{\n{", b"p|x", b"\n\n\n"].iter().enumerate() {
        rooms.write(&format!("rooms/a/r{at}.talk"), text, 1);
    }
    let long = [b"p|1|/w|".to_vec(), vec![b'x'; 300 << 10], b"\nr|1||yes\n".to_vec()].concat();
    rooms.write("rooms/a/long.talk", &long, 2);
    for depth in [Depth::Quick, Depth::Exact] {
        let listing = rooms.list(&ListQuery { depth, ..rooms.query() }).await;
        assert_eq!(ids(&listing)[..2], ["sound", "long"], "{depth:?}");
        let prompt = listing.sessions[1].first_prompt.as_deref().unwrap();
        assert!(
            prompt.starts_with("xxx") && prompt.len() <= 1024,
            "its first prompt is longer than a window"
        );
        assert_eq!(listing.sessions[1].cwd.as_deref(), Some("/w".as_ref()));
    }
}

/// Sparse: it takes no room on the disk.
#[tokio::test]
async fn beside_a_file_of_gigabytes_a_small_one_is_listed_at_once() {
    let rooms = Rooms::new();
    rooms.session("a/small", "/w", 1);
    let large = rooms.session("a/large", "/w", 2);
    File::options().append(true).open(&large).unwrap().set_len(4 << 30).unwrap();
    crate::talk::written(&large, 2);
    let listing = rooms.list(&ListQuery { depth: Depth::Quick, ..rooms.query() }).await;
    assert_eq!(ids(&listing), ["large", "small"]);
    assert_eq!(listing.sessions[0].bytes, Some(4 << 30));
    assert_eq!(listing.sessions[0].first_prompt.as_deref(), Some("prompt of a/large"));
    assert!(!listing.sessions[0].exact && listing.sessions[1].exact);
}

#[tokio::test]
async fn no_word_of_a_session_makes_a_list_long() {
    let rooms = Rooms::new();
    let long = "é".repeat(200_000);
    let text = format!("p|1|/w|hello\nt|2|/{long}|{long}\nr|3||yes\n");
    rooms.write("rooms/a/s.talk", text, 1);
    for depth in [Depth::Quick, Depth::Exact] {
        let listing = rooms.list(&ListQuery { depth, ..rooms.query() }).await;
        let [session] = listing.sessions.as_slice() else { panic!("{listing:?}") };
        let title = &session.title.as_ref().unwrap().text;
        assert!(long.starts_with(title.as_str()) && title.len() == SessionEntry::PROMPT, "{}", title.len());
        assert_eq!(session.last_cwd.as_deref(), Some(Path::new("/w")), "no folder has so long a name");
    }
}
