//! What an index spares, in bytes, and that it changes nothing else.

use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::path::Path;

use session_core::history::{Depth, ListQuery, Listing};

use super::*;
use crate::stamp::now;
use crate::talk::{Rooms, Talk};

/// A clock that goes so far ahead that what was just written is long ago.
fn later() -> i64 {
    now() + 3_600_000_000_000
}

/// A list, and how many bytes of session files were read for it.
fn list_by(rooms: &Rooms, index: Option<&Path>, clock: fn() -> i64, query: &ListQuery) -> (Listing, u64) {
    list_as(&Talk::default(), rooms, index, clock, query)
}

fn list_as(
    format: &Talk,
    rooms: &Rooms,
    index: Option<&Path>,
    clock: fn() -> i64,
    query: &ListQuery,
) -> (Listing, u64) {
    let count = AtomicU64::new(0);
    let owner = crate::catalog::owner(format);
    let index = index.map(|path| (path, owner.as_str()));
    let plain = Plain::default();
    let lister = Lister { format, limit: 1000, index, count: &count, clock, plain: &plain };
    let listing = lister.list(query, &format.roots(Some(rooms.dir())));
    (listing, count.into_inner())
}

fn list(rooms: &Rooms, index: &Path) -> (Listing, u64) {
    list_by(rooms, Some(index), later, &rooms.query())
}

fn truth(rooms: &Rooms) -> Listing {
    list_by(rooms, None, later, &rooms.query()).0
}

fn append(path: &Path, text: &str) {
    File::options().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Sessions of some length, and an index of them.
fn indexed() -> (Rooms, PathBuf) {
    let rooms = Rooms::new();
    for n in 0..10 {
        let text = format!("p|{n}000|/w/{n}|prompt {n}\n").repeat(500);
        rooms.write(&format!("rooms/a/s{n}.talk"), text, n);
    }
    let index = rooms.path("cache/index");
    let (first, read) = list(&rooms, &index);
    assert_eq!(first, truth(&rooms));
    assert!(read > 10 * 500 * 15, "all was read: {read}");
    (rooms, index)
}

#[test]
fn what_an_older_revision_of_the_format_made_is_not_believed() {
    let (rooms, index) = indexed();
    let loud = Talk { revision: 1, ..Talk::default() };
    for _ in 0..2 {
        let (listing, _) = list_as(&loud, &rooms, Some(&index), later, &rooms.query());
        assert_eq!(listing.sessions[0].first_prompt.as_deref(), Some("PROMPT 9"));
    }
    assert_eq!(list(&rooms, &index).0, truth(&rooms), "nor what a later one made");
}

#[test]
fn what_did_not_change_is_not_read_again() {
    let (rooms, index) = indexed();
    let (again, read) = list(&rooms, &index);
    assert_eq!((again, read), (truth(&rooms), 0));
    let quick = ListQuery { depth: Depth::Quick, ..rooms.query() };
    let (quick, read) = list_by(&rooms, Some(&index), later, &quick);
    assert_eq!((quick, read), (truth(&rooms), 0), "what is indexed is exact, however it is asked for");
}

#[test]
fn of_what_was_added_to_only_the_new_bytes_are_read() {
    let (rooms, index) = indexed();
    let paths: Vec<_> = (0..4).map(|n| rooms.path(&format!("rooms/a/s{n}.talk"))).collect();
    // The last one's line comes in two parts.
    let added = "p|2000000|/elsewhere|added\n";
    for path in &paths {
        append(path, added);
    }
    append(&paths[3], "p|3000");
    for round in 0..2 {
        let (listing, read) = list(&rooms, &index);
        assert_eq!(listing, truth(&rooms), "{round}");
        let entry = listing.sessions.iter().find(|entry| entry.id.as_str() == "s3").unwrap();
        assert_eq!((entry.turns, entry.torn_tail), (Some(501), true));
        // Those bytes, and the few before and at the end that tell whether it is the same file.
        let (least, most) = (added.len() as u64 * 4, (added.len() as u64 + 6 + 512) * 4);
        assert!(if round == 0 { read >= least && read <= most } else { read == 0 }, "{round}: {read}");
    }
    append(&paths[3], "000|/last|whole\n");
    let (listing, read) = list(&rooms, &index);
    let entry = listing.sessions.iter().find(|entry| entry.id.as_str() == "s3").unwrap();
    assert_eq!((entry.turns, entry.torn_tail), (Some(502), false));
    assert_eq!(entry.last_cwd.as_deref(), Some(Path::new("/last")));
    assert!(read < 600, "{read}");
}

/// However little time passed: the clock is the real one.
#[test]
fn a_file_that_was_written_anew_is_read_anew() {
    let (rooms, index) = indexed();
    let path = rooms.path("rooms/a/s5.talk");
    let text = fs::read_to_string(&path).unwrap();
    let shorter = &text[..text.len() / 2];
    let other = text.replace("prompt", "PROMPT");
    let longer = other.clone() + "p|9|/w|more\n";
    for (what, text) in [("same", &*text), ("other", &other), ("longer", &longer), ("shorter", shorter)] {
        for in_place in [true, false] {
            for _ in 0..20 {
                if in_place {
                    let mut file = File::options().write(true).open(&path).unwrap();
                    file.rewind().unwrap();
                    file.write_all(text.as_bytes()).unwrap();
                    file.set_len(text.len() as u64).unwrap();
                } else {
                    fs::write(rooms.path("new"), text).unwrap();
                    fs::rename(rooms.path("new"), &path).unwrap();
                }
                // Whoever copies a file keeps its time.
                crate::talk::written(&path, 5);
                let (listing, _) = list_by(&rooms, Some(&index), now, &rooms.query());
                assert_eq!(listing, truth(&rooms), "{what}, in place: {in_place}");
            }
        }
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(list(&rooms, &index).0.sessions.len(), 9);
}

#[test]
fn whatever_happens_to_an_index_changes_how_much_is_read_alone() {
    let (rooms, index) = indexed();
    let sound = fs::read(&index).unwrap();
    let truth = truth(&rooms);
    let check = |what: &str, reads: Option<bool>| {
        let (listing, read) = list(&rooms, &index);
        assert_eq!(listing, truth, "{what}");
        assert!(reads.is_none_or(|reads| reads == (read > 0)), "{what}: {read} bytes");
    };
    let part = memchr::memmem::rfind(&sound, b"s9.talk").unwrap();
    for length in [0, 1, 11, 12, 16, 17, 24, 25, 40, part / 2, part] {
        fs::write(&index, &sound[..length]).unwrap();
        check(&format!("cut to {length}"), Some(true));
    }
    for at in (0..part).step_by(97) {
        let mut broken = sound.clone();
        broken[at] ^= 0x20;
        fs::write(&index, &broken).unwrap();
        check(&format!("byte {at}"), Some(true));
    }
    fs::write(&index, [sound.as_slice(), b"more"].concat()).unwrap();
    check("more behind it", None);
    fs::remove_file(&index).unwrap();
    check("deleted", Some(true));
    check("and written again", Some(false));
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    check("a folder in its place", Some(true));
    check("which stays", Some(true));
}

#[cfg(unix)]
#[test]
fn an_index_that_others_could_have_written_is_not_believed() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let (rooms, index) = indexed();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&index), mode(index.parent().unwrap())), (0o600, 0o700));
    fs::set_permissions(&index, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(list(&rooms, &index).1 > 0);
    assert_eq!((list(&rooms, &index).1, mode(&index)), (0, 0o600), "it was written anew");
    let elsewhere = rooms.path("elsewhere");
    fs::rename(&index, &elsewhere).unwrap();
    symlink(&elsewhere, &index).unwrap();
    let before = fs::read(&elsewhere).unwrap();
    assert!(list(&rooms, &index).1 > 0);
    assert_eq!(fs::read(&elsewhere).unwrap(), before, "nothing is written through a link");
    assert!(std::process::Command::new("mkfifo").arg(rooms.path("pipe")).status().unwrap().success());
    fs::rename(rooms.path("pipe"), &index).unwrap();
    assert_eq!(list(&rooms, &index).0, truth(&rooms), "nobody waits for a pipe");
}

#[test]
fn lists_of_other_folders_and_kinds_share_an_index() {
    let (rooms, index) = indexed();
    rooms.write("rooms/a/s1/helpers/h.talk", "p|1|/w|help\n", 1);
    let other = Rooms::new();
    other.session("a/other", "/w", 1);
    let helpers = ListQuery { kinds: vec![SessionKind::Sidechain], ..rooms.query() };
    let read = |rooms: &Rooms, query: &ListQuery| list_by(rooms, Some(&index), later, query).1;
    assert!(read(&other, &other.query()) > 0);
    assert!(read(&rooms, &helpers) > 0);
    fs::remove_file(rooms.path("rooms/a/s2.talk")).unwrap();
    rooms.session("a/new", "/w", 3);
    assert!(read(&rooms, &rooms.query()) > 0);
    let all = [read(&other, &other.query()), read(&rooms, &helpers), read(&rooms, &rooms.query())];
    assert_eq!(all, [0, 0, 0]);
    let kept = fs::read(&index).unwrap();
    let holds = |text: &str| memchr::memmem::find(&kept, text.as_bytes()).is_some();
    assert!(holds("s1.talk") && holds("other.talk") && !holds("s2.talk"), "what is gone is forgotten");
}

#[test]
fn an_index_of_another_format_is_not_used() {
    let (rooms, index) = indexed();
    let count = AtomicU64::new(0);
    let format = Talk::default();
    let lister = Lister {
        format: &format,
        limit: 1000,
        index: Some((&index, "another")),
        count: &count,
        clock: later,
        plain: &Plain::default(),
    };
    lister.list(&rooms.query(), &format.roots(Some(rooms.dir())));
    assert!(count.into_inner() > 0);
}

/// Of a file of gigabytes, and of a hundred thousand, so much is read as is shown.
#[test]
fn a_quick_list_of_the_newest_reads_these_alone() {
    let rooms = Rooms::new();
    let long = format!("p|1000|/w|prompt\n{}", "r|1000||yes\n".repeat(40_000));
    for n in 0..200 {
        rooms.session(&format!("a/s{n}"), "/w", n);
    }
    for n in 0..5 {
        let path = rooms.write(&format!("rooms/a/long{n}.talk"), &long, 1000);
        File::options().append(true).open(&path).unwrap().set_len(3 << 30).unwrap();
        crate::talk::written(&path, 1000);
    }
    let query = ListQuery { depth: Depth::Quick, limit: Some(10), ..rooms.query() };
    let (listing, read) = list_by(&rooms, None, later, &query);
    assert_eq!(listing.sessions.len(), 10);
    // Zeros without end are looked through for a last record, so far and no further.
    let windows = 5 * (6 << 20);
    assert!(read < windows + 64 * 100, "{read}");
}

/// Where nothing was found, it is known which folders hold no others; what is put into one is seen all the same.
#[test]
fn a_folder_that_was_moved_into_another_after_a_miss_is_looked_into() {
    let rooms = Rooms::new();
    rooms.session("a/other", "/w", 1);
    rooms.session("b/other2", "/w", 1);
    rooms.session("-c/s", "/w", 2);
    let (format, plain, count) = (Talk::default(), Plain::default(), AtomicU64::new(0));
    let lister =
        Lister { format: &format, limit: 1000, index: None, count: &count, clock: now, plain: &plain };
    let roots = format.roots(Some(rooms.dir()));
    let real = rooms.dir().canonicalize().unwrap();
    let find = |id: &str| lister.find(&NativeId::new(id), Some(rooms.dir()), &roots).unwrap();
    let folder = roots[0].folder.join("a");
    // Only what was not written just now can be known.
    while !plain.knows(&folder) {
        assert_eq!(find("gone").len(), 0);
        std::thread::yield_now();
    }
    let from = rooms.path("rooms/-c");
    fs::rename(from, rooms.path("rooms/a/-c")).unwrap();
    assert!(!plain.knows(&folder));
    let found = find("s");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0].source.path.strip_prefix(&real).or(found[0].source.path.strip_prefix(rooms.dir())).unwrap(),
        Path::new("rooms/a/-c/s.talk")
    );
    assert!(!plain.knows(&folder), "it holds one now");
}
