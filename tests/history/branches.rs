//! Branches of the session files that the real Codex wrote.

use std::path::{Path, PathBuf};

use rejoin::NativeId;
use rejoin::adapters::CodexTranscripts;
use rejoin::core::history::{EntryKind, PageQuery, Restored, SessionSource, TranscriptPage};
use rejoin::core::{
    Branch, BranchOrder, BranchRefusal, Branched, EnvMap, Inspection, SessionCatalog as _, SessionQuery,
    Spot, Timestamp,
};
use rejoin::transcript::FileCatalog;

use crate::room::wait;

/// A state dir with session files of the real program.
struct Home(tempfile::TempDir);

impl Home {
    fn with(file: &str) -> (Self, NativeId, PathBuf) {
        let text = recorded(file);
        let header: serde_json::Value =
            serde_json::from_slice(text.split(|it| *it == b'\n').next().unwrap()).unwrap();
        let id = NativeId::new(header["payload"]["id"].as_str().unwrap());
        let home = Self(tempfile::tempdir().unwrap());
        let folder = home.0.path().join("sessions/2026/11/29");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("rollout-2026-11-29T14-44-38-{id}.jsonl"));
        std::fs::write(&path, text).unwrap();
        (home, id, path)
    }

    fn query<'a>(&'a self, id: &'a NativeId) -> SessionQuery<'a> {
        SessionQuery {
            id,
            cwd: Path::new("/home/user/project"),
            state_dir: Some(self.0.path()),
            version: None,
        }
    }

    fn branch(&self, id: &NativeId, turns: u64, bytes: Option<u64>, into: &Path) -> Branched {
        let keep = Spot { native_id: id.clone(), turns, bytes };
        let order = BranchOrder {
            query: self.query(id),
            keep: &keep,
            into: Some(into),
            seed: uuid::Uuid::new_v4(),
            now: Timestamp::from_millis(1_796_000_000_000),
        };
        wait(catalog().branch(order)).unwrap()
    }

    fn look(&self, id: &NativeId) -> Inspection {
        wait(catalog().inspect(self.query(id))).unwrap()
    }

    fn source(&self, path: &Path) -> SessionSource {
        SessionSource { path: path.to_owned(), state_dir: Some(self.0.path().to_owned()) }
    }

    fn restored(&self, id: &NativeId, path: &Path) -> Restored {
        wait(catalog().restore(id, &self.source(path))).unwrap()
    }

    fn page(&self, id: &NativeId, path: &Path) -> TranscriptPage {
        wait(catalog().page(id, &self.source(path), &PageQuery::Last { turns: 100 })).unwrap()
    }
}

fn catalog() -> FileCatalog<CodexTranscripts> {
    FileCatalog::new(CodexTranscripts::new(EnvMap::new()))
}

fn recorded(file: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapter-codex/session-files").join(file);
    std::fs::read(path).unwrap()
}

/// What the last line says, in a word.
fn last_word(text: &[u8]) -> String {
    let line = text.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap();
    let record: serde_json::Value = serde_json::from_slice(line).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&record["type"]), text(&record["payload"]["type"])).trim().to_owned()
}

#[test]
fn a_branch_after_the_first_turn_ends_where_that_ended() {
    let rows = [
        ("0.63.0/fresh-resume.jsonl", "response_item message"),
        ("0.98.0/fresh-resume.jsonl", "event_msg token_count"),
        ("0.130.0/fresh-resume.jsonl", "event_msg task_complete"),
        ("0.171.0/fresh-resume.jsonl", "event_msg task_complete"),
        // An interrupted turn ended, too.
        ("0.171.0/sigint-model-thinking.jsonl", "event_msg turn_aborted"),
    ];
    for (file, last) in rows {
        let (home, id, path) = Home::with(file);
        let original = std::fs::read(&path).unwrap();
        let Branched::Done(Branch { id: new, path: to, turns: 1, bytes: Some(bytes) }) =
            home.branch(&id, 1, None, home.0.path())
        else {
            panic!("{file}");
        };
        let text = std::fs::read(&to).unwrap();
        assert_eq!((last_word(&text), text.len() as u64), (last.to_owned(), bytes), "{file}");
        assert_eq!(home.look(&new).user_turns, 1, "{file}");
        // The records are those of the original, one by one, but for the ids.
        let plain = |text: &[u8], id: &NativeId| {
            let text = String::from_utf8(text.to_vec()).unwrap().replace(id.as_str(), "own");
            text.replace("\"forked_from_id\":\"own\",", "")
                .replace(&format!("\"forked_from_id\":\"{}\",", self::id(file)), "")
        };
        let (branch, whole) = (plain(&text, &new), plain(&original, &id));
        assert!(whole.starts_with(&branch), "{file}");
        // The same spot by its size is the same branch.
        let end = whole[..branch.len()].lines().count();
        let size: usize = original.split_inclusive(|it| *it == b'\n').take(end).map(<[u8]>::len).sum();
        let Branched::Done(again) = home.branch(&id, 1, Some(size as u64), home.0.path()) else {
            panic!("{file}")
        };
        assert_eq!(plain(&std::fs::read(&again.path).unwrap(), &again.id), branch, "{file}");
        // What is had back of it is the beginning of what is had back of the original.
        let (one, all) = (home.restored(&new, &to), home.restored(&id, &path));
        assert_eq!((one.turns, all.turns), (1, 2), "{file}");
        assert_eq!((one.cwd, one.model), (all.cwd, all.model), "{file}");
        let said = |page: TranscriptPage| -> Vec<EntryKind> {
            page.entries.into_iter().map(|located| located.entry.kind).collect()
        };
        let (kept, whole) = (said(home.page(&new, &to)), said(home.page(&id, &path)));
        assert!(kept.len() > 1 && kept.len() < whole.len());
        assert_eq!(kept[1..], whole[1..kept.len()], "{file}");
        assert_eq!(std::fs::read(&path).unwrap(), original, "{file}: the original is as it was");
        assert_eq!(home.look(&id).user_turns, 2);
        let too_far = home.branch(&id, 3, None, home.0.path());
        assert_eq!(too_far, Branched::Refused(BranchRefusal::SpotGone), "{file}");
    }
}

fn id(file: &str) -> NativeId {
    Home::with(file).1
}

#[test]
fn a_file_that_goes_on_from_another_keeps_its_chain_where_that_is() {
    let (home, id, path) = Home::with("0.171.0/fork.jsonl");
    let original = std::fs::read(&path).unwrap();
    let Branched::Done(branch) = home.branch(&id, 1, None, home.0.path()) else { panic!() };
    let text = String::from_utf8(std::fs::read(&branch.path).unwrap()).unwrap();
    let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let before: serde_json::Value =
        serde_json::from_slice(original.split(|it| *it == b'\n').next().unwrap()).unwrap();
    assert_eq!(header["payload"]["history_base"], before["payload"]["history_base"]);
    assert_eq!(header["payload"]["forked_from_id"], id.as_str());
    let other = tempfile::tempdir().unwrap();
    let refused = home.branch(&id, 1, None, other.path());
    assert!(matches!(refused, Branched::Refused(BranchRefusal::Unsupported(_))), "{refused:?}");
    assert_eq!(other.path().read_dir().unwrap().count(), 0, "nothing is written there");
}
