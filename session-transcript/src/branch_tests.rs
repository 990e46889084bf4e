use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Mutex;

use session_core::{
    Below, Carried, LiveSession, Places, RecordFacts, RecordKind, Said, Seam, SessionQuery, Timestamp,
};

use super::*;

/// Files `<id>.log` in a folder by the name of the cwd: `p` is a prompt, `a` an answer, `+` opens a turn, `>` leads to one, `.`
/// ends one, `g` is granted, `i` goes on from another file; the id in a line becomes the branch's.
#[derive(Debug, Default)]
struct Filed {
    /// What somebody writes while the file is copied.
    writer: Mutex<Option<PathBuf>>,
}

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
    fn heirlooms(&self, file: &Path, branch: &Path) -> Vec<(PathBuf, PathBuf)> {
        let aside =
            |file: &Path| file.ancestors().nth(3).unwrap().join("aside").join(file.file_stem().unwrap());
        vec![(file.with_extension(""), branch.with_extension("")), (aside(file), aside(branch))]
    }
    fn new_id(&self, seed: &Seed) -> Option<NativeId> {
        Some(NativeId::new(seed.random_id()))
    }
    fn seam(&self, line: &[u8]) -> Seam {
        match line.first() {
            Some(b'+') => Seam::Opens,
            Some(b'>') => Seam::Leads,
            Some(b'.' | b'a') => Seam::Closes,
            _ => Seam::Within,
        }
    }
    fn carried(&self, line: &[u8], heir: &Heir<'_>) -> Carried {
        if let Some(path) = self.writer.lock().unwrap().take() {
            let more = [&fs::read(&path).unwrap()[..], b"p more\n"].concat();
            fs::write(path, more).unwrap();
        }
        let text = String::from_utf8_lossy(line);
        match line.first() {
            Some(b'g') => Carried::LeftOut,
            _ if text.contains(" s ") => {
                Carried::Anew(text.replace(" s ", &format!(" {} ", heir.to)).into_bytes())
            }
            _ => Carried::AsItIs,
        }
    }
    fn base(&self, header: &[u8]) -> Option<session_core::history::HistoryBase> {
        let id = NativeId::new("base");
        header.starts_with(b"i").then_some(session_core::history::HistoryBase { id, end: None })
    }
    fn live_folder(&self, state_dir: Option<&Path>) -> Option<PathBuf> {
        Some(state_dir?.join("live"))
    }
    fn live(&self, note: &[u8]) -> Option<LiveSession> {
        let pid = std::str::from_utf8(note).ok()?.parse().ok()?;
        Some(LiveSession { id: NativeId::new("s"), pid, started: None })
    }
    fn record(&self, line: &[u8]) -> Option<RecordFacts> {
        let kind = match line.first()? {
            b'p' => RecordKind::Prompt,
            b'a' => RecordKind::Answer,
            b'#' => return None,
            _ => RecordKind::Other,
        };
        Some(RecordFacts::new(kind))
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

const TEXT: &str = "h s 1\ng all\np one\na yes\n. end\n> lead\n+ begin\nh 2\np two\na yes\n. end\n";
/// What is kept of the first turn.
const FIRST: &str = "h s 1\ng all\np one\na yes\n. end\n";
const SEED: uuid::Uuid = uuid::Uuid::from_u128(7);
const NEW: &str = "00000000-0000-4000-8000-000000000007";

struct Stage(tempfile::TempDir, Filed);

impl Stage {
    fn with(text: &str) -> Self {
        let stage = Self(tempfile::tempdir().unwrap(), Filed::default());
        stage.write("here/projects/w/s.log", text);
        stage.write("here/projects/w/s/helpers/a.log", "p helper\n");
        stage.write("here/aside/s/file", "copy");
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

    fn order(&self, turns: u64, bytes: Option<usize>, into: &str) -> Order {
        Order {
            id: NativeId::new("s"),
            cwd: "/x/w".into(),
            state_dir: Some(self.path("here")),
            version: None,
            keep: Spot { native_id: NativeId::new("s"), turns, bytes: bytes.map(|bytes| bytes as u64) },
            into: Some(self.path(into)),
            seed: Seed { random: SEED, now: Timestamp::EPOCH },
        }
    }

    fn branch(&self, turns: u64, bytes: Option<usize>) -> Branched {
        branch(&self.1, &self.order(turns, bytes, "here"), 1000).unwrap()
    }

    fn made(&self, turns: u64, bytes: Option<usize>) -> String {
        match self.branch(turns, bytes) {
            Branched::Done(branch) => {
                let text = fs::read_to_string(&branch.path).unwrap();
                assert_eq!((branch.turns, branch.bytes), (turns, Some(text.len() as u64)));
                text
            }
            other => panic!("{other:?}"),
        }
    }

    /// Every file with its content and every folder, by its path.
    fn tree(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut folders = vec![self.0.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for child in fs::read_dir(folder).unwrap() {
                let path = child.unwrap().path();
                let name = path.strip_prefix(self.0.path()).unwrap().to_str().unwrap().to_owned();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                    all.push((name, String::new()));
                } else {
                    all.push((name, fs::read_to_string(path).unwrap_or_default()));
                }
            }
        }
        all.sort();
        all
    }
}

fn renamed(text: &str) -> String {
    text.replace(" s ", &format!(" {NEW} ")).replace("g all\n", "")
}

#[test]
fn the_first_turn_is_kept_by_the_size_that_the_file_had_and_by_its_number() {
    for bytes in [Some(FIRST.len()), None] {
        let stage = Stage::with(TEXT);
        let before = stage.tree();
        assert_eq!(stage.made(1, bytes), renamed(FIRST));
        let after = stage.tree();
        assert!(before.iter().all(|it| after.contains(it)), "the original is as it was");
        for (name, text) in [("projects/w/{}/helpers/a.log", "p helper\n"), ("aside/{}/file", "copy")] {
            let name = format!("here/{}", name.replace("{}", NEW));
            assert!(after.contains(&(name.clone(), text.to_owned())), "{name}: {after:?}");
        }
        let mode =
            fs::metadata(stage.path(&format!("here/projects/w/{NEW}.log"))).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_size_that_is_no_end_of_that_turn_is_not_believed() {
    let second = TEXT.len();
    for bytes in [0, 1, FIRST.len() - 1, FIRST.len() + 1, second, second + 9, usize::MAX] {
        assert_eq!(Stage::with(TEXT).made(1, Some(bytes)), renamed(FIRST), "{bytes}");
    }
    // By its size, what was written behind the turn and belongs to no prompt is kept as it was.
    let lead = FIRST.len() + "> lead\n".len();
    assert_eq!(Stage::with(TEXT).made(1, Some(lead)), renamed(&TEXT[..lead]));
    assert_eq!(Stage::with(TEXT).made(2, None), renamed(TEXT));
}

#[test]
fn what_stands_between_two_turns_goes_with_the_one_that_it_belongs_to() {
    let rows = [
        ("p\na\nh\np\n", "p\na\nh\n"),
        ("p\na\n> l\nh\np\n", "p\na\n> l\nh\n"),
        ("p\na\nh\n> l\n> l\np\n", "p\na\nh\n"),
        ("p\na\nh\n+ b\nh\np\n", "p\na\nh\n"),
        ("p\na\n+ b\n. e\np\n", "p\na\n+ b\n. e\n"),
        ("p\n+ killed\n+ b\np\n", "p\n"),
        ("p\n> l\np\n", "p\n"),
        ("p\na\n\n> l\n\np\n", "p\na\n\n"),
        ("p\np\n", "p\n"),
        // Of the last turn, all that is whole; a torn line is left out.
        ("p\na\n> l\n", "p\na\n> l\n"),
        ("p\na\n# torn", "p\na\n"),
        ("p\na", "p\na\n"),
        ("p\n# damaged\na\n", "p\n# damaged\na\n"),
    ];
    for (text, kept) in rows {
        assert_eq!(Stage::with(text).made(1, None), kept, "{text:?}");
    }
}

#[test]
fn a_line_over_the_limit_is_kept_to_the_byte() {
    let long = "h s ".repeat((33 << 20) / 4);
    let stage = Stage::with(&format!("p\na\n{long}\n> l\np\n"));
    assert!(stage.made(1, None) == format!("p\na\n{long}\n"), "it is too long to be changed");
}

#[test]
fn what_cannot_be_branched_is_refused_and_nothing_is_written() {
    let gone = BranchRefusal::SpotGone;
    let text = |stage: &Stage| stage.write("here/projects/w/s.log", TEXT);
    type Case = (&'static str, fn(&Stage), u64, BranchRefusal);
    let cases: [Case; 9] = [
        ("no turn is asked for", |_| (), 0, gone.clone()),
        ("more turns than there are", |_| (), 3, gone.clone()),
        (
            "it is not there",
            |s| fs::remove_file(s.path("here/projects/w/s.log")).unwrap(),
            1,
            BranchRefusal::Missing,
        ),
        (
            "it is packed",
            |s| fs::write(s.path("here/projects/w/s.log"), [0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0]).unwrap(),
            1,
            BranchRefusal::NotPlain,
        ),
        (
            "it has another name",
            |s| fs::hard_link(s.path("here/projects/w/s.log"), s.path("other")).unwrap(),
            1,
            BranchRefusal::NotPlain,
        ),
        (
            "it is a link",
            |s| {
                fs::rename(s.path("here/projects/w/s.log"), s.path("here/real")).unwrap();
                symlink(s.path("here/real"), s.path("here/projects/w/s.log")).unwrap();
            },
            1,
            BranchRefusal::NotPlain,
        ),
        (
            "what belongs to it holds a link",
            |s| symlink(s.path("here"), s.path("here/projects/w/s/helpers/link")).unwrap(),
            1,
            BranchRefusal::NotPlain,
        ),
        (
            "a process has it open",
            |s| s.write("here/live/note", &std::process::id().to_string()),
            1,
            BranchRefusal::Live { pid: Some(std::process::id()) },
        ),
        ("it was rewritten, and is shorter", |s| s.write("here/projects/w/s.log", "h\n"), 1, gone),
    ];
    for (name, harm, turns, refusal) in cases {
        let stage = Stage::with("");
        text(&stage);
        harm(&stage);
        let before = stage.tree();
        assert_eq!(stage.branch(turns, Some(FIRST.len())), Branched::Refused(refusal), "{name}");
        assert_eq!(stage.tree(), before, "{name}");
    }
    let stage = Stage::with(TEXT);
    let mut order = stage.order(1, None, "here");
    order.keep.native_id = NativeId::new("t");
    let another = branch(&stage.1, &order, 1000).unwrap();
    assert_eq!(another, Branched::Refused(BranchRefusal::SpotGone), "the spot is another session's");
}

#[test]
fn one_that_is_written_to_meanwhile_is_left_alone() {
    let stage = Stage::with(TEXT);
    *stage.1.writer.lock().unwrap() = Some(stage.path("here/projects/w/s.log"));
    let mut before = stage.tree();
    assert_eq!(stage.branch(1, None), Branched::Refused(BranchRefusal::Growing));
    before
        .iter_mut()
        .filter(|(name, _)| name.ends_with("/s.log"))
        .for_each(|(_, text)| text.push_str("p more\n"));
    assert_eq!(stage.tree(), before);
}

#[test]
fn whoever_is_stopped_at_any_step_leaves_nothing() {
    for stop in 1.. {
        let stage = Stage::with(TEXT);
        let before = stage.tree();
        let mut journal = Journal::default();
        journal.stop = Some(stop);
        let done = carry_out(&stage.1, &stage.order(1, None, "new/dir"), 1000, &mut journal);
        if done.is_ok() {
            assert!(stop > 5, "every step was stopped at: {stop}");
            assert!(matches!(done, Ok(Branched::Done(_))), "{done:?}");
            break;
        }
        assert_eq!(stage.tree(), before, "step {stop}");
    }
}

#[test]
fn what_is_made_in_another_state_dir_is_found_there_and_never_leads_out() {
    let stage = Stage::with(TEXT);
    let order = stage.order(2, None, "there");
    let Branched::Done(made) = branch(&stage.1, &order, 1000).unwrap() else { panic!() };
    assert_eq!(made.path, stage.path(&format!("there/projects/w/{NEW}.log")));
    assert!(stage.path(&format!("there/aside/{NEW}/file")).is_file());
    assert_eq!(fs::metadata(stage.path("there")).unwrap().permissions().mode() & 0o777, 0o700);

    let stage = Stage::with(&format!("i\n{TEXT}"));
    let refused = branch(&stage.1, &stage.order(1, None, "there"), 1000).unwrap();
    assert_eq!(refused, Branched::Refused(BranchRefusal::Unsupported(OF_ANOTHER.to_owned())));
    assert!(matches!(stage.branch(1, None), Branched::Done(_)), "beside it, it goes on from the same file");

    let stage = Stage::with(TEXT);
    fs::create_dir_all(stage.path("there")).unwrap();
    fs::create_dir_all(stage.path("outside")).unwrap();
    symlink(stage.path("outside"), stage.path("there/projects")).unwrap();
    let before = stage.tree();
    branch(&stage.1, &stage.order(1, None, "there"), 1000).unwrap_err();
    assert_eq!(stage.tree(), before);
}

#[test]
fn a_branch_is_pruned_as_long_as_nobody_went_on_with_it() {
    let stage = Stage::with(TEXT);
    let before = stage.tree();
    let order = stage.order(1, None, "here");
    let Branched::Done(made) = branch(&stage.1, &order, 1000).unwrap() else { panic!() };
    let as_made = fs::read(&made.path).unwrap();
    for other in [&b"p three\n"[..], b"h\n"] {
        fs::write(&made.path, [&as_made, other].concat()).unwrap();
        let with_more = stage.tree();
        prune(&stage.1, &order, &made).unwrap_err();
        assert_eq!(stage.tree(), with_more);
    }
    // As long as it was, with another prompt.
    let text = String::from_utf8(as_made.clone()).unwrap();
    fs::write(&made.path, text.replace("a yes", "p yes")).unwrap();
    prune(&stage.1, &order, &made).unwrap_err();
    fs::write(&made.path, &as_made).unwrap();
    prune(&stage.1, &order, &made).unwrap();
    assert_eq!(stage.tree(), before);
    prune(&stage.1, &order, &made).unwrap();
}
