use proptest::prelude::*;
use session_core::{Conversation, NativeId, Version};

use super::*;

const ID: &str = "01a227c3-e394-7433-81c9-11184db5edac";
const OTHER: &str = "01a227c8-bd64-7d52-b5a1-a368308c0dfa";

fn format() -> CodexTranscripts {
    CodexTranscripts::new(EnvMap::new())
}

#[expect(clippy::disallowed_methods, reason = "tests read session files")]
fn lines(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("session-files").join(file);
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn facts(file: &str) -> Vec<RecordFacts> {
    lines(file).iter().map(|line| format().record(line.as_bytes()).expect(line)).collect()
}

fn count(facts: &[RecordFacts], kind: RecordKind) -> usize {
    facts.iter().filter(|facts| facts.kind == kind).count()
}

/// Session files of the real programs, with the vendor's texts left out.
#[test]
fn a_conversation_of_so_many_prompts_counts_so_many() {
    let rows = [
        ("0.63.0/fresh-resume.jsonl", 2, 2),
        ("0.98.0/fresh-resume.jsonl", 2, 2),
        ("0.130.0/fresh-resume.jsonl", 2, 2),
        ("0.171.0/fresh-resume.jsonl", 2, 2),
        // Cut by SIGKILL and SIGINT, then resumed.
        ("0.63.0/sigkill-model-thinking.jsonl", 2, 1),
        ("0.98.0/sigkill-tool-running.jsonl", 2, 1),
        ("0.171.0/sigint-model-thinking.jsonl", 2, 1),
        // What the agent puts in while a tool runs is no prompt.
        ("0.98.0/tool-edit.jsonl", 1, 1),
        // A fork holds only its own. The first turn of the compacted one was left out of the file.
        ("0.171.0/fork.jsonl", 1, 1),
        ("0.171.0/compaction.jsonl", 1, 1),
        // Turns that were taken back stay in the file.
        ("0.130.0/rollback.jsonl", 3, 3),
    ];
    for (file, prompts, answers) in rows {
        let facts = facts(file);
        let found = (count(&facts, RecordKind::Prompt), count(&facts, RecordKind::Answer));
        assert_eq!(found, (prompts, answers), "{file}");
        assert_eq!(facts[0].cwd.as_deref(), Some(Path::new("/home/user/project")), "{file}");
        assert!(facts[1..].iter().all(|facts| facts.cwd.is_none()), "{file}: it began in one folder");
    }
}

#[test]
fn records_are_numbered_from_0_148_on_and_say_so() {
    let new = facts("0.171.0/fresh-resume.jsonl");
    let numbers: Vec<_> = new.iter().map(|facts| facts.number.unwrap()).collect();
    assert!(numbers.iter().copied().eq(0..new.len() as u64));
    assert_eq!(new[0].needs_version, Some([0, 148, 0]));
    assert!(new.iter().all(|facts| !facts.inherits));
    for file in ["0.63.0/fresh-resume.jsonl", "0.98.0/fresh-resume.jsonl", "0.130.0/fresh-resume.jsonl"] {
        let old = facts(file);
        assert!(old.iter().all(|facts| facts.number.is_none() && facts.needs_version.is_none()), "{file}");
    }
}

#[test]
fn a_fork_and_a_segment_go_on_from_another_file() {
    for file in ["0.171.0/fork.jsonl", "0.171.0/revert-segment.jsonl"] {
        let facts = facts(file);
        assert!(facts[0].inherits && facts[0].number.is_some_and(|number| number > 0), "{file}");
        assert_eq!(facts[0].needs_version, Some([0, 148, 0]));
        assert!(facts[1..].iter().all(|facts| !facts.inherits), "{file}");
    }
}

#[test]
fn what_was_said_is_told_in_order() {
    for version in ["0.63.0", "0.98.0", "0.130.0", "0.171.0"] {
        let mut conversation = Conversation::default();
        for line in lines(&format!("{version}/fresh-resume.jsonl")) {
            if let Some(said) = format().said(line.as_bytes()) {
                conversation.push(said, 1 << 20);
            }
        }
        let by: Vec<_> = conversation.said.iter().map(|said| said.by).collect();
        assert_eq!(by, [Speaker::User, Speaker::Agent, Speaker::User, Speaker::Agent], "{version}");
        let texts: Vec<_> = conversation.said.iter().map(|said| said.text.as_str()).collect();
        assert_eq!((texts[0], texts[2]), ("hello, session one", "again"), "{version}");
        assert!(texts[3].contains("user_turns"), "{version}");
    }
}

#[test]
fn a_record_of_an_older_version_can_have_a_number() {
    for line in lines("0.130.0/fresh-resume.jsonl") {
        let before = format().record(line.as_bytes()).unwrap();
        let numbered = format().numbered(line.as_bytes(), 17).unwrap();
        let after = format().record(&numbered).unwrap();
        assert_eq!(after, RecordFacts { number: Some(17), ..before });
        let values: [serde_json::Value; 2] =
            [line.as_bytes(), &numbered].map(|line| serde_json::from_slice(line).unwrap());
        assert_eq!(values[0]["payload"], values[1]["payload"]);
        assert_eq!(format().numbered(&numbered, 18), None, "it has one");
    }
    for none in ["", "[]", "{}", "{\"type\":7}", "rubbish"] {
        assert_eq!(format().numbered(none.as_bytes(), 1), None, "{none:?}");
    }
}

fn query(id: &NativeId) -> SessionQuery<'_> {
    SessionQuery { id, cwd: Path::new("/w"), state_dir: Some(Path::new("/s")), version: None }
}

#[test]
fn files_are_searched_for_below_the_days_and_in_the_archive() {
    let below = |home: &str| {
        let at = |name: &str, depth| Below { folder: Path::new(home).join(name), depth };
        vec![at("sessions", 3), at("archived_sessions", 0)]
    };
    let id = NativeId::new(ID);
    let version = Version::parse("0.171.0");
    let in_state = SessionQuery { version: version.as_ref(), ..query(&id) };
    assert_eq!(format().places(&in_state), Places { exact: Vec::new(), below: below("/s") });
    let at_home = SessionQuery { state_dir: None, ..query(&id) };
    let home = CodexTranscripts::new([("HOME", "/home/u")].into_iter().collect());
    assert_eq!(home.places(&at_home).below, below("/home/u/.codex"));
    assert_eq!(format().places(&at_home), Places::default());
}

#[test]
fn a_file_is_the_sessions_by_its_whole_name() {
    let id = NativeId::new(ID);
    let is = |name: &str| format().is_file_of(name, &query(&id));
    let at = "rollout-2026-11-29T14-44-38";
    for name in [
        format!("{at}-{ID}.jsonl"),
        format!("{at}-{ID}_{OTHER}.jsonl"),
        format!("{at}-{ID}.jsonl.zst"),
        format!("{at}-{ID}_{OTHER}.jsonl.zst"),
    ] {
        assert!(is(&name), "{name}");
        assert_eq!(format().is_packed(&name), name.ends_with(".zst"));
    }
    for name in [
        format!("{at}-{OTHER}.jsonl"),
        format!("{at}-{OTHER}_{ID}.jsonl"),
        format!("{at}-{ID}.jsonl.tmp"),
        format!("{at}-{ID}_x.jsonl"),
        format!("{at}-{ID}x.jsonl"),
        format!("{ID}.jsonl"),
        format!("rollout-{ID}.jsonl"),
        format!("rollout-2026-11-29T14:44:38-{ID}.jsonl"),
        "rollout-".to_owned(),
        String::new(),
        format!(".mend-{at}-{ID}.jsonl"),
    ] {
        assert!(!is(&name), "{name}");
    }
}

#[test]
fn an_id_that_is_none_leads_nowhere() {
    let long = format!("{ID}0");
    let upper = ID.to_uppercase();
    let plain = ID.replace('-', "");
    for bad in ["", "..", "../../etc/passwd", "issue-42", &ID[1..], &long, &upper, &plain] {
        assert!(!is_thread_id(bad), "{bad:?}");
        let id = NativeId::new(bad);
        assert_eq!(format().places(&query(&id)), Places::default(), "{bad:?}");
    }
    assert!(is_thread_id(ID));
}

#[test]
fn an_archived_file_belongs_to_the_day_in_its_name() {
    let name = format!("rollout-2026-11-29T14-44-38-{ID}.jsonl");
    let archived = Path::new("/s/archived_sessions").join(&name);
    let home = Path::new("/s/sessions/2026/11/29").join(&name);
    assert_eq!(format().unarchived(&archived), Some(home.clone()));
    assert_eq!(format().unarchived(&home), None);
    assert_eq!(format().unarchived(Path::new("/s/archived_sessions/notes.txt")), None);
}

#[test]
fn what_is_no_record_is_none_and_what_changed_is_still_one() {
    for line in
        ["", "{}", "null", "[]", "{\"a\":1}", "{\"type\":\"event_msg\"", "{\"type\":1}", "\0{\"type\":\"x\"}"]
    {
        assert_eq!(format().record(line.as_bytes()), None, "{line:?}");
    }
    for line in [
        r#"{"type":"event_msg","payload":7}"#,
        r#"{"type":"event_msg","payload":{"type":{"a":1}}}"#,
        r#"{"type":"session_meta","payload":{"cwd":["x"]}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}}"#,
        r#"{"type":"brand_new"}"#,
    ] {
        assert_eq!(format().record(line.as_bytes()).unwrap().kind, RecordKind::Other, "{line}");
    }
    let odd = r#"{"type":"event_msg","ordinal":4,"payload":{"type":"user_message","message":["x"]}}"#;
    assert_eq!(format().record(odd.as_bytes()).unwrap().number, Some(4));
}

proptest! {
    #[test]
    fn any_bytes_are_read(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (format().record(&line), format().said(&line), format().numbered(&line, 3));
    }

    #[test]
    fn any_name_is_looked_at(name in "\\PC{0,80}") {
        let id = NativeId::new(ID);
        let _ = (format().is_file_of(&name, &query(&id)), format().unarchived(&Path::new("/archived_sessions").join(name)));
    }
}
