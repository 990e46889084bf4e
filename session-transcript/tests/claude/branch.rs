//! Branches of sessions that are made up at random: at every turn, what the session was at that time.

use std::path::{Path, PathBuf};

use adapter_claude::ClaudeTranscripts;
use serde_json::{Value, json};
use session_core::history::{Restored, SessionSource};
use session_core::{
    Branch, BranchOrder, BranchRefusal, Branched, EnvMap, Inspection, NativeId, SessionCatalog as _,
    SessionQuery, Spot, Timestamp,
};
use session_transcript::FileCatalog;

use crate::session::{Dice, Writer};

const ORIGINAL: &str = "11111111-1111-4111-8111-111111111111";

/// A state dir with one session, and how long its file was after each turn.
struct Room {
    dir: tempfile::TempDir,
    text: Vec<u8>,
    ends: Vec<u64>,
}

impl Room {
    fn new(seed: u64) -> Self {
        let (text, ends) = written(seed);
        let room = Self { dir: tempfile::tempdir().unwrap(), text, ends };
        std::fs::create_dir_all(room.file().parent().unwrap()).unwrap();
        std::fs::write(room.file(), &room.text).unwrap();
        room
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join(format!("projects/-w/{ORIGINAL}.jsonl"))
    }

    async fn branch(&self, turns: u64, bytes: Option<u64>, seed: u64) -> Branched {
        let id = NativeId::new(ORIGINAL);
        let keep = Spot { native_id: id.clone(), turns, bytes };
        let query =
            SessionQuery { id: &id, cwd: Path::new("/w"), state_dir: Some(self.dir.path()), version: None };
        let order = BranchOrder {
            query,
            keep: &keep,
            into: Some(self.dir.path()),
            seed: uuid::Uuid::from_u64_pair(seed, turns),
            now: Timestamp::from_millis(1_790_000_000_000),
        };
        catalog().branch(order).await.unwrap()
    }
}

fn catalog() -> FileCatalog<ClaudeTranscripts> {
    FileCatalog::new(ClaudeTranscripts::new(EnvMap::new()))
}

/// Some turns, as different versions write them, and what lies between.
fn written(seed: u64) -> (Vec<u8>, Vec<u64>) {
    let (mut dice, mut writer, mut ends) = (Dice::new(seed ^ 77), Writer::new(Dice::new(seed)), Vec::new());
    let queues = dice.one_in(2);
    for turn in 0..2 + dice.below(4) {
        if queues {
            writer.line(
                &json!({"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "content": "c"}),
            );
            writer.line(&json!({"type": "queue-operation", "operation": "dequeue", "sessionId": "s"}));
            writer
                .line(&json!({"type": "permission-mode", "permissionMode": "acceptEdits", "sessionId": "s"}));
        }
        if dice.one_in(2) {
            writer.line(&json!({"type": "file-history-snapshot", "messageId": "next", "snapshot": {}, "isSnapshotUpdate": false}));
        }
        writer.prompt();
        for _ in 0..dice.below(3) {
            writer.reply();
        }
        if turn > 0 && dice.one_in(4) {
            writer.compact();
            writer.reply();
        }
        if dice.one_in(3) {
            writer.title();
        }
        if dice.one_in(2) {
            writer.line(&json!({"type": "cost-state", "totalCostUSD": f64::from(u32::try_from(turn).unwrap()), "sessionId": "s"}));
        }
        ends.push(writer.text.len() as u64);
    }
    let text = String::from_utf8(std::mem::take(&mut writer.text)).unwrap();
    // The id has another length than its mark.
    let (text, long) = (text.into_bytes(), format!("\"sessionId\":\"{ORIGINAL}\""));
    let named = |part: &[u8]| String::from_utf8(part.to_vec()).unwrap().replace("\"sessionId\":\"s\"", &long);
    let ends = ends.iter().map(|end| named(&text[..usize::try_from(*end).unwrap()]).len() as u64).collect();
    (named(&text).into_bytes(), ends)
}

async fn looked_at(file: &Path) -> (Inspection, Restored) {
    let dir = file.ancestors().nth(3).unwrap();
    let id = NativeId::new(file.file_stem().unwrap().to_str().unwrap());
    let query = SessionQuery { id: &id, cwd: Path::new("/w"), state_dir: Some(dir), version: None };
    let source = SessionSource { path: file.to_owned(), state_dir: Some(dir.to_owned()) };
    (catalog().inspect(query).await.unwrap(), catalog().restore(&id, &source).await.unwrap())
}

/// What both have to say alike: all but where it lies, and what was copied.
fn told(mut restored: Restored) -> Restored {
    restored.usage = restored.usage_with_copied;
    for boundary in &mut restored.boundaries {
        boundary.span = None;
    }
    restored
}

/// The records without the marks of a branch.
fn records(text: &[u8], id: &NativeId) -> Vec<Value> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let plain = |line: &[u8]| {
        let mut record: Value = serde_json::from_slice(line).unwrap();
        if record.get("sessionId").is_some_and(|it| it == id.as_str()) {
            record["sessionId"] = "own".into();
        }
        record.as_object_mut().unwrap().remove("forkedFrom");
        record
    };
    lines.map(plain).collect()
}

#[tokio::test]
async fn a_branch_at_any_turn_is_what_the_session_was_then() {
    for seed in 1..=12 {
        let room = Room::new(seed);
        for (at, end) in room.ends.iter().enumerate() {
            let kept = &room.text[..usize::try_from(*end).unwrap()];
            let then = Room::new(seed);
            std::fs::write(then.file(), kept).unwrap();
            let (look, restored) = looked_at(&then.file()).await;
            let turns = at as u64 + 1;
            assert_eq!(look.user_turns, turns, "seed {seed}");
            let mut expected = records(kept, &NativeId::new(ORIGINAL));
            expected.retain(|record| record["type"] != "permission-mode");
            for bytes in [Some(*end), None, Some(*end - 1), Some(u64::MAX)] {
                let Branched::Done(Branch { id, path, turns: told_turns, bytes: size }) =
                    room.branch(turns, bytes, seed).await
                else {
                    panic!("seed {seed}, turn {turns}");
                };
                let text = std::fs::read(&path).unwrap();
                assert_eq!((told_turns, size), (turns, Some(text.len() as u64)));
                assert_eq!(records(&text, &id), expected, "seed {seed}, turn {turns}, {bytes:?}");
                assert!(!memmem(&text, b"\"permission-mode\"") && memmem(&text, b"\"forkedFrom\""));
                let (branch_look, branch_restored) = looked_at(&path).await;
                assert_eq!(branch_look.user_turns, turns);
                assert_eq!(branch_look.answers, look.answers);
                assert_eq!(told(branch_restored), told(restored.clone()), "seed {seed}, turn {turns}");
                std::fs::remove_file(path).unwrap();
            }
        }
        let more = room.branch(room.ends.len() as u64 + 1, None, seed).await;
        assert_eq!(more, Branched::Refused(BranchRefusal::SpotGone), "seed {seed}");
        assert_eq!(std::fs::read(room.file()).unwrap(), room.text, "the original is as it was");
    }
}

fn memmem(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
