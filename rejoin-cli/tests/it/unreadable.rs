//! Stores, homes and sessions that are there and cannot be read. A file in a folder's place and a link to itself are read by
//! nobody, not even by who may read everything.

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::runs;
use crate::support::sessions::{CHANGELOG, CODEX, Claude, EMPTY, LOGIN};
use crate::support::{Machine, Said, write};

fn with(machine: &Machine, variable: &str, value: &Path, words: &[&str]) -> Said {
    machine.command(words).env(variable, value).output().unwrap().into()
}

/// Ways in which a store is there, or may be, and cannot be read.
fn stores_that_cannot_be_read() -> Vec<(&'static str, Machine)> {
    let broken = |spoil: &dyn Fn(&Machine)| {
        let machine = Machine::with_sessions();
        spoil(&machine);
        machine
    };
    let link = |at: &Path, to: &Path| {
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(to, at).unwrap();
    };
    vec![
        ("a file in the place of the folder around it", broken(&|it| write(&it.store(), ""))),
        ("a link to itself in its place", broken(&|it| link(&it.store(), &it.store()))),
        ("a link to nowhere in its place", broken(&|it| link(&it.store(), Path::new("/no/disk")))),
        ("a file in its place", broken(&|it| write(&it.store().join(".agent-sessions"), ""))),
        ("a broken version", broken(&|it| write(&it.store().join(".agent-sessions/version.json"), "{"))),
        ("no folder of records", broken(&|it| write(&it.store().join(".agent-sessions/records"), ""))),
    ]
}

#[test]
fn a_store_that_cannot_be_read_hides_nothing_else_and_is_told() {
    for (what, machine) in stores_that_cannot_be_read() {
        let told = machine.rejoin(&["list", "--json"]).ok().json();
        assert_eq!(told["sessions"].as_array().unwrap().len(), 4, "{what}: {told}");
        assert_eq!((&told["complete"], &told["notices"][0]["kind"]), (&false.into(), &"unreadable".into()));
        let said = machine.rejoin(&["search", "login"]).ok();
        assert!(said.stdout.contains(LOGIN) && said.stderr.contains("could not be read"), "{what}: {said:?}");

        let told = machine.rejoin(&["doctor", "--json"]).ok().json();
        assert_eq!((&told["complete"], &told["agents"][0]["sessions"]), (&false.into(), &4.into()), "{what}");
        assert!(told["store"]["problem"].is_string(), "{what}: {told}");
        let said = machine.rejoin(&["doctor"]).ok();
        assert!(said.stdout.contains("it cannot be read") && !said.stdout.contains("not there"), "{said:?}");

        for words in [&["explain", "q"][..], &["close", "q"], &["sweep", "--dry-run", "--live-all"]] {
            let said = machine.rejoin(words);
            assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{what}, {words:?}: {said:?}");
            assert!(!said.stderr.contains("there is no store"), "{what}, {words:?}: {said:?}");
            assert!(said.stderr.contains(machine.store().to_str().unwrap()), "{what}: {said:?}");
        }
        let said = machine.rejoin(&["show", "q"]);
        assert!(said.code == 3 && said.stderr.contains("not everything"), "{what}: {said:?}");
    }
}

#[test]
fn a_home_of_an_agent_that_was_named_and_is_not_there_is_told() {
    let machine = Machine::with_sessions();
    let variables = [("CLAUDE_CONFIG_DIR", "claude"), ("CODEX_HOME", "codex"), ("OPENCODE_DB", "opencode")];
    for (variable, agent) in variables {
        let nowhere = Path::new("/not/mounted");
        let around = |words: &[&str]| with(&machine, variable, nowhere, words);
        let told = around(&["list", "--agent", agent, "--json"]).ok().json();
        assert_eq!(told["complete"], false, "{variable}: {told}");
        assert_eq!(told["notices"][0]["path"], "/not/mounted", "{variable}: {told}");
        let told = around(&["doctor", "--json"]).ok().json();
        assert_eq!((&told["complete"], &told["notices"][0]["path"]), (&false.into(), &"/not/mounted".into()));
        assert!(around(&["search", "anything at all"]).stderr.contains("/not/mounted"), "{variable}");
        for word in ["0f3a1c00-1111-4111-8111-00000000000f", "no such title"] {
            let said = around(&["show", word]);
            assert!(said.code == 3 && said.stderr.contains("not everything"), "{variable}: {said:?}");
        }
    }
}

#[test]
fn a_home_of_an_agent_that_is_no_folder_is_told_and_one_that_was_never_used_is_not() {
    let machine = Machine::new();
    let told = machine.rejoin(&["list", "--json"]).ok().json();
    assert_eq!((&told["complete"], told["notices"].as_array().unwrap().len()), (&true.into(), 0), "{told}");
    let homes = [".claude", ".claude/projects", ".codex", ".codex/sessions", ".local/share/opencode"];
    for home in homes {
        for is_link in [false, true] {
            let machine = Machine::new();
            let path = machine.home.join(home);
            if is_link {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                symlink("/no/disk", &path).unwrap();
            } else {
                write(&path, "");
            }
            let told = machine.rejoin(&["list", "--json"]).ok().json();
            assert_eq!(told["complete"], false, "{home} (a link: {is_link}): {told}");
            assert!(told["notices"].to_string().contains(path.to_str().unwrap()), "{home}: {told}");
        }
    }
}

#[test]
fn the_doctor_names_folders_of_sessions_that_cannot_be_read() {
    let machine = Machine::with_sessions();
    let year = machine.home.join(".codex/sessions/2027");
    symlink(&year, &year).unwrap();
    let told = machine.rejoin(&["doctor", "--json"]).ok().json();
    assert_eq!((&told["complete"], &told["notices"][0]["path"]), (&false.into(), &year.to_str().into()));
    let said = machine.rejoin(&["doctor"]).ok();
    assert!(said.stderr.contains("sessions/2027"), "{said:?}");
    assert!(said.stdout.contains("  1 session with"), "{said:?}");
    let said = machine.rejoin(&["search", "login"]).ok();
    assert_eq!(said.stderr.matches("sessions/2027").count(), 1, "it is told once: {said:?}");
    let said = machine.rejoin(&["resume", "no such words"]);
    assert!(said.stderr.contains("not everything"), "{said:?}");
}

#[test]
fn a_folder_with_a_name_that_is_no_text_is_told() {
    let machine = Machine::with_sessions();
    let name = std::ffi::OsString::from_vec(b"-w-\xff".to_vec());
    let folder = machine.home.join(".claude/projects").join(name);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(format!("{CODEX}.jsonl")), "").unwrap();
    let told = machine.rejoin(&["list", "--json"]).ok().json();
    assert_eq!(
        (&told["complete"], &told["notices"][0]["reason"]),
        (&false.into(), &"its name is not UTF-8".into())
    );
    let said = machine.rejoin(&["show", "5f607182-1111-4111-8111-000000000005"]);
    assert!(said.code == 3 && said.stderr.contains("not everything"), "{said:?}");
}

/// What could be a session, and holds none.
fn no_conversations(machine: &Machine) -> [(&'static str, &'static str); 3] {
    let place = Claude::new(machine, EMPTY, &machine.project, 5).write();
    let damaged = "5f607182-1111-4111-8111-000000000005";
    write(&place.with_file_name(format!("{damaged}.jsonl")), "garbage\nmore of it\n");
    let unreadable = "6f708192-1111-4111-8111-000000000006";
    fs::create_dir_all(place.with_file_name("elsewhere")).unwrap();
    let link = place.with_file_name(format!("{unreadable}.jsonl"));
    symlink(&link, &link).unwrap();
    [(EMPTY, "nothing was said in it"), (damaged, "its file is no conversation"), (unreadable, "")]
}

#[test]
fn the_beginning_of_an_id_is_as_good_as_the_whole_one_to_be_told_why_not() {
    let machine = Machine::with_sessions();
    for (id, why) in no_conversations(&machine) {
        let (whole, beginning) = (machine.rejoin(&["resume", id]), machine.rejoin(&["resume", &id[..8]]));
        if why.is_empty() {
            // A file that nobody can even look at is in no list.
            assert!(whole.code == 3 && beginning.code == 3, "{whole:?} {beginning:?}");
            assert!(beginning.stderr.contains("not everything"), "{beginning:?}");
            continue;
        }
        assert_eq!((whole.code, beginning.code), (7, 7), "{whole:?} {beginning:?}");
        assert!(whole.stderr.contains(why) && beginning.stderr == whole.stderr, "{whole:?} {beginning:?}");
        let shown = machine.rejoin(&["show", &id[..8]]).ok();
        assert!(shown.stdout.contains(id) && shown.stdout.contains(why), "{shown:?}");
        assert!(shown.stderr.contains("nothing is shown"), "{shown:?}");
    }
    // What can be continued comes before what cannot.
    let twin = format!("{}-2222-4222-8222-000000000009", &CHANGELOG[..8]);
    Claude::new(&machine, &twin, &machine.project, 1).write();
    assert!(machine.rejoin(&["resume", &CHANGELOG[..8]]).ok().stdout.contains(CHANGELOG));
}

#[test]
fn a_mailbox_with_a_broken_record_is_not_said_to_be_nowhere_for_sure() {
    let machine = runs::machine();
    runs::run(&machine, &[], "one").ok();
    let records = machine.store().join(".agent-sessions/records");
    for record in fs::read_dir(records).unwrap() {
        fs::write(record.unwrap().path(), "garbage").unwrap();
    }
    for command in ["resume", "show"] {
        let said = runs::rejoin(&machine, &[command, "issue-42"]);
        assert_eq!(said.code, 3, "{said:?}");
        assert!(said.stderr.contains("not everything could be looked at"), "{said:?}");
    }
}
