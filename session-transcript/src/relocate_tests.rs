use std::fs::File;
use std::time::{Duration, SystemTime};

use session_core::{Below, LiveSession, Places, RecordFacts, RecordKind, Said};

use super::*;

/// A file a session, `<id>.log` in a folder by the name of the cwd; what belongs to it lies in `<id>/`.
#[derive(Debug)]
struct Filed;

impl TranscriptFormat for Filed {
    fn places(&self, query: &SessionQuery<'_>) -> Places {
        let projects = query.state_dir.unwrap().join("projects");
        let file = format!("{}.log", query.id);
        let exact = vec![projects.join(query.cwd.file_name().unwrap()).join(file)];
        Places { exact, below: vec![Below { folder: projects, depth: 1 }] }
    }
    fn is_file_of(&self, name: &str, query: &SessionQuery<'_>) -> bool {
        name.strip_suffix(".log") == Some(query.id.as_str())
    }
    fn is_packed(&self, name: &str) -> bool {
        name.ends_with(".z")
    }
    fn belongings(&self, file: &Path) -> Vec<PathBuf> {
        vec![file.with_extension("")]
    }
    fn shared(&self, file: &Path) -> Vec<PathBuf> {
        vec![file.with_file_name("memory")]
    }
    fn live_folder(&self, state_dir: Option<&Path>) -> Option<PathBuf> {
        Some(state_dir?.join("live"))
    }
    fn live(&self, note: &[u8]) -> Option<LiveSession> {
        let text = std::str::from_utf8(note).ok()?;
        let (id, rest) = text.split_once(' ')?;
        let (pid, started) = rest.split_once(' ').map_or((rest, None), |(pid, started)| (pid, Some(started)));
        let started = started.map(str::to_owned);
        Some(LiveSession { id: NativeId::new(id), pid: pid.parse().ok()?, started })
    }
    fn record(&self, line: &[u8]) -> Option<RecordFacts> {
        line.starts_with(b"p").then(|| RecordFacts::new(RecordKind::Prompt))
    }
    fn said(&self, _: &[u8]) -> Option<Said> {
        None
    }
    fn numbered(&self, _: &[u8], _: u64) -> Option<Vec<u8>> {
        None
    }
    fn unarchived(&self, _: &Path) -> Option<PathBuf> {
        None
    }
}

const TEXT: &str = "p one\nnoise\np two\n";

struct Stage(tempfile::TempDir);

impl Stage {
    /// A session with what belongs to it, in `old`.
    fn new() -> Self {
        let stage = Self(tempfile::tempdir().unwrap());
        stage.write("projects/old/s.log", TEXT);
        stage.write("projects/old/s/subagents/a.log", "p helper\n");
        stage.write("projects/old/s/tool-results/r1.txt", "result");
        stage.write("projects/old/t.log", "p another\n");
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn order(&self, way: Way) -> Order {
        Order {
            id: NativeId::new("s"),
            cwd: "/w/new".into(),
            state_dir: Some(self.0.path().to_owned()),
            version: None,
            from: self.path("projects/old/s.log"),
            bytes: TEXT.len() as u64,
            way,
        }
    }

    fn relocate(&self, way: Way) -> Relocated {
        relocate(&Filed, &self.order(way), 1000).unwrap()
    }

    /// Every file with its content, by its path.
    fn tree(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        let mut folders = vec![self.0.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for child in fs::read_dir(folder).unwrap() {
                let path = child.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(self.0.path()).unwrap().to_str().unwrap().to_owned();
                    files.push((name, fs::read_to_string(path).unwrap_or_default()));
                }
            }
        }
        files.sort();
        files
    }

    /// The places where the session's file is.
    fn places(&self) -> Vec<String> {
        self.tree().into_iter().map(|(name, _)| name).filter(|name| name.ends_with("/s.log")).collect()
    }
}

#[test]
fn a_session_moves_with_all_that_belongs_to_it_and_a_second_time_changes_nothing() {
    let stage = Stage::new();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    File::options().append(true).open(stage.path("projects/old/s.log")).unwrap().set_modified(old).unwrap();
    let done = stage.relocate(Way::Move);
    let Relocated::Done { to, records: 2, split: false, way: Way::Move, .. } = &done else {
        panic!("{done:?}")
    };
    assert_eq!(*to, stage.path("projects/new/s.log"));
    assert_eq!(fs::metadata(to).unwrap().modified().unwrap(), old, "the agents list by it");
    let names: Vec<_> = stage.tree().into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "projects/new/s.log",
            "projects/new/s/subagents/a.log",
            "projects/new/s/tool-results/r1.txt",
            "projects/old/t.log"
        ]
    );
    let mut again = stage.order(Way::Move);
    again.from.clone_from(to);
    assert_eq!(relocate(&Filed, &again, 1000).unwrap(), Relocated::NothingToDo);
}

#[test]
fn a_copy_leaves_the_original_and_is_equal() {
    let stage = Stage::new();
    let before = stage.tree();
    assert!(matches!(stage.relocate(Way::Copy), Relocated::Done { records: 2, split: false, .. }));
    let after = stage.tree();
    assert!(before.iter().all(|file| after.contains(file)), "the original is as it was");
    for (name, text) in before.iter().filter(|(name, _)| name.contains("/s")) {
        assert!(after.contains(&(name.replace("/old/", "/new/"), text.clone())), "{name}");
    }
    assert_eq!(after.len(), before.len() + 3);
    assert!(matches!(stage.relocate(Way::Copy), Relocated::Already { .. }), "idempotent");
    assert_eq!(stage.tree(), after);
}

#[test]
fn what_is_in_the_place_already_is_never_overwritten() {
    for other in ["p one\n", "p one\nnoise\np TWO\n"] {
        let stage = Stage::new();
        stage.write("projects/new/s.log", other);
        let before = stage.tree();
        let refused = stage.relocate(Way::Move);
        assert!(matches!(refused, Relocated::Refused(Refusal::TargetDiffers { .. })), "{refused:?}");
        assert_eq!(stage.tree(), before);
    }
    // Equal ids with equal content are one session.
    let stage = Stage::new();
    stage.write("projects/new/s.log", TEXT);
    let before = stage.tree();
    assert!(matches!(stage.relocate(Way::Move), Relocated::Already { .. }));
    assert_eq!(stage.tree(), before);
    // Also of what belongs to it.
    let stage = Stage::new();
    stage.write("projects/new/s/tool-results/r1.txt", "other");
    let before = stage.tree();
    assert!(matches!(stage.relocate(Way::Move), Relocated::Refused(Refusal::TargetDiffers { .. })));
    assert_eq!(stage.tree(), before);
}

#[test]
fn a_folder_that_is_there_is_filled_at_its_top_level_and_never_nested() {
    let stage = Stage::new();
    stage.write("projects/new/s9.log", "p nine\n");
    stage.write("projects/new/memory/note", "new");
    stage.write("projects/old/memory/note", "old");
    stage.write("projects/new/s/tool-results/r2.txt", "second");
    stage.write("projects/new/s/tool-results/r1.txt", "result");
    let done = stage.relocate(Way::Move);
    let memory = stage.path("projects/old/memory");
    assert!(matches!(&done, Relocated::Done { left, .. } if *left == [memory]), "it is told: {done:?}");
    let names: Vec<_> = stage.tree().into_iter().map(|(name, _)| name).collect();
    for name in ["s.log", "s9.log", "s/subagents/a.log", "s/tool-results/r1.txt", "s/tool-results/r2.txt"] {
        assert!(names.contains(&format!("projects/new/{name}")), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("new/old") || name.contains("s/s/")), "{names:?}");
    // Notes of the project are of no session: both stay apart.
    assert_eq!(fs::read_to_string(stage.path("projects/old/memory/note")).unwrap(), "old");
    assert_eq!(fs::read_to_string(stage.path("projects/new/memory/note")).unwrap(), "new");
}

#[test]
fn a_session_that_somebody_has_open_or_writes_to_stays() {
    let stage = Stage::new();
    let pid = std::process::id();
    stage.write("live/1.json", &format!("s {pid}"));
    let before = stage.tree();
    assert_eq!(stage.relocate(Way::Move), Relocated::Refused(Refusal::Live { pid }));
    assert_eq!(stage.tree(), before);
    // A note that a killed process left, one of another session, and one whose number another process has by now.
    let dead = "s 4194305";
    for note in [dead.to_owned(), format!("t {pid}"), "rubbish".to_owned(), format!("s {pid} 1")] {
        let stage = Stage::new();
        stage.write("live/1.json", &note);
        let done = stage.relocate(Way::Move);
        assert!(matches!(done, Relocated::Done { .. }), "{note}: {done:?}");
    }
    let stage = Stage::new();
    let order = stage.order(Way::Move);
    stage.write("projects/old/s.log", &format!("{TEXT}p three\n"));
    assert_eq!(relocate(&Filed, &order, 1000).unwrap(), Relocated::Refused(Refusal::Growing));
    assert_eq!(stage.places(), ["projects/old/s.log"]);
}

/// At each step in turn it fails and is undone, or is killed: then the session is at one place, and the next try goes on.
#[test]
fn after_each_step_a_failure_is_undone_and_a_kill_leaves_the_session_at_one_place() {
    for way in [Way::Move, Way::Copy] {
        for (target_there, steps) in [(false, if way == Way::Move { 3 } else { 7 }), (true, 2)] {
            let stop_at = |stage: &Stage, step| {
                let mut journal = Journal::default();
                journal.stop = Some(step);
                let order = stage.order(way);
                let target = stage.path("projects/new/s.log");
                (act(&Filed, &order, &target, &mut journal).is_err(), journal)
            };
            let stage_with = || {
                let stage = Stage::new();
                if target_there {
                    stage.write("projects/new/s/subagents/a.log", "p helper\n");
                }
                stage
            };
            for step in 1..=steps {
                let stage = stage_with();
                let before = stage.tree();
                let (stopped, mut journal) = stop_at(&stage, step);
                assert!(stopped, "{way:?}, step {step} is one");
                journal.undo().unwrap();
                assert_eq!(stage.tree(), before, "{way:?}: undone after step {step}");
                assert!(target_there || !stage.path("projects/new").exists());

                let stage = stage_with();
                stop_at(&stage, step);
                let places = stage.places();
                assert!(!places.is_empty() && (way == Way::Copy || places.len() == 1), "{step}: {places:?}");
                if places == ["projects/old/s.log"] {
                    let again = stage.relocate(way);
                    assert!(matches!(again, Relocated::Done { .. }), "{way:?}, step {step}: {again:?}");
                }
                let names: Vec<_> = stage.tree().into_iter().map(|(name, _)| name).collect();
                for name in ["s.log", "s/subagents/a.log", "s/tool-results/r1.txt"] {
                    assert!(names.contains(&format!("projects/new/{name}")), "{step}, {name}: {names:?}");
                }
            }
        }
    }
}

#[test]
fn a_file_that_comes_back_at_the_old_place_is_told_as_a_split() {
    let stage = Stage::new();
    assert!(matches!(stage.relocate(Way::Move), Relocated::Done { split: false, .. }));
    stage.write("projects/old/s.log", "p written by path\n");
    let mut order = stage.order(Way::Move);
    order.bytes = 18;
    let refused = relocate(&Filed, &order, 1000).unwrap();
    assert!(matches!(refused, Relocated::Refused(Refusal::TargetDiffers { .. })), "{refused:?}");
    assert_eq!(stage.places().len(), 2, "both parts are kept");
}

#[cfg(unix)]
#[test]
fn nothing_is_moved_through_a_link_and_nothing_that_has_another_name() {
    let stage = Stage::new();
    let outside = tempfile::tempdir().unwrap();
    fs::remove_dir_all(stage.path("projects/new")).ok();
    std::os::unix::fs::symlink(outside.path(), stage.path("projects/new")).unwrap();
    assert_eq!(stage.relocate(Way::Move), Relocated::Refused(Refusal::NotPlain));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);

    let stage = Stage::new();
    fs::hard_link(stage.path("projects/old/s.log"), stage.path("another name")).unwrap();
    assert_eq!(stage.relocate(Way::Move), Relocated::Refused(Refusal::NotPlain));

    let stage = Stage::new();
    fs::rename(stage.path("projects/old/s.log"), stage.path("moved")).unwrap();
    std::os::unix::fs::symlink(stage.path("moved"), stage.path("projects/old/s.log")).unwrap();
    assert_eq!(stage.relocate(Way::Move), Relocated::Refused(Refusal::NotPlain));
}

#[test]
fn what_is_packed_stays_as_it_is() {
    let stage = Stage::new();
    let mut order = stage.order(Way::Move);
    order.from = stage.path("projects/old/s.log.z");
    assert_eq!(relocate(&Filed, &order, 1000).unwrap(), Relocated::Refused(Refusal::Packed));
}

#[cfg(unix)]
#[test]
fn a_session_seen_through_a_link_to_its_folder_is_not_removed() {
    let stage = Stage::new();
    // People whose folder moved do this by hand.
    std::os::unix::fs::symlink("old", stage.path("projects/new")).unwrap();
    for way in [Way::Move, Way::Copy] {
        let to = stage.path("projects/new/s.log");
        assert_eq!(stage.relocate(way), Relocated::Already { path: to.clone() });
        assert_eq!(fs::read_to_string(to).unwrap(), TEXT);
    }
    // It has two names in the real folder, too.
    fs::hard_link(stage.path("projects/old/s.log"), stage.path("other")).unwrap();
    stage.relocate(Way::Move);
    assert_eq!(fs::read_to_string(stage.path("projects/old/s.log")).unwrap(), TEXT);
}
