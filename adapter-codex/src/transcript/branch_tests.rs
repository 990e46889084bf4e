use std::path::Path;

use serde_json::Value;
use session_core::{EnvMap, NativeId, Seed, SessionQuery, Timestamp, TranscriptFormat as _};

use super::*;
use crate::CodexTranscripts;

/// The fields that name the session, in whatever record.
const NAMING: &[&str] = &["id", "session_id", "thread_id"];

const TO: &str = "01a30000-0000-7000-8000-000000000001";

fn format() -> CodexTranscripts {
    CodexTranscripts::new(EnvMap::new())
}

#[expect(clippy::disallowed_methods, reason = "tests read session files")]
fn lines(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("session-files").join(file);
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn parsed(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap()
}

fn id_of(lines: &[String]) -> NativeId {
    NativeId::new(parsed(lines[0].as_bytes())["payload"]["id"].as_str().unwrap())
}

#[test]
fn a_turn_begins_with_what_is_written_for_its_prompt() {
    let rows = [
        (r#"{"type":"event_msg","payload":{"type":"task_started"}}"#, Seam::Opens),
        (r#"{"type":"event_msg","payload":{"type":"thread_settings_applied"}}"#, Seam::Leads),
        (r#"{"type":"response_item","payload":{"type":"message","role":"user"}}"#, Seam::Leads),
        (r#"{"type":"response_item","payload":{"type":"message","role":"developer"}}"#, Seam::Leads),
        (r#"{"type":"response_item","payload":{"type":"message","role":"assistant"}}"#, Seam::Within),
        (r#"{"type":"response_item","payload":{"type":"function_call_output"}}"#, Seam::Within),
        (r#"{"type":"turn_context","payload":{}}"#, Seam::Within),
        (r#"{"type":"event_msg","payload":{"type":"task_complete"}}"#, Seam::Closes),
        (r#"{"type":"event_msg","payload":{"type":"turn_aborted"}}"#, Seam::Closes),
    ];
    for (line, expected) in rows {
        assert_eq!(seam(line.as_bytes()), expected, "{line}");
    }
}

#[test]
fn every_record_becomes_the_branchs_and_says_the_same() {
    for file in [
        "0.63.0/fresh-resume.jsonl",
        "0.98.0/tool-edit.jsonl",
        "0.130.0/rollback.jsonl",
        "0.171.0/fresh-resume.jsonl",
        "0.171.0/fork.jsonl",
        "0.171.0/compaction.jsonl",
    ] {
        let lines = lines(file);
        let (from, to) = (id_of(&lines), NativeId::new(TO));
        let heir = Heir { from: &from, to: &to };
        let mut rewritten = 0;
        for (at, line) in lines.iter().enumerate() {
            let anew = match carried(line.as_bytes(), &heir) {
                Carried::AsItIs => {
                    // Only words may still name it.
                    assert!(
                        NAMING.iter().all(|name| parsed(line.as_bytes())["payload"][*name] != from.as_str()),
                        "{file}: {line}"
                    );
                    continue;
                }
                Carried::Anew(anew) => anew,
                Carried::LeftOut => panic!("nothing is left out"),
            };
            rewritten += 1;
            let (mut before, mut after) = (parsed(line.as_bytes()), parsed(&anew));
            if at == 0 {
                assert_eq!(after["payload"]["forked_from_id"], from.as_str(), "{file}");
                before["payload"]["forked_from_id"] = Value::Null;
                after["payload"]["forked_from_id"] = Value::Null;
            }
            for name in NAMING {
                if before["payload"][*name] == from.as_str() {
                    before["payload"][*name] = TO.into();
                }
            }
            assert_eq!(after, before, "{file}");
            let (one, other) = (format().record(line.as_bytes()), format().record(&anew));
            assert_eq!(one, other, "{file}");
        }
        assert!(rewritten > 0, "{file}");
        let header = format().carried(lines[0].as_bytes(), &heir);
        assert!(matches!(header, Carried::Anew(_)));
    }
}

#[test]
fn words_that_name_the_original_stay_as_they_were_said() {
    let (from, to) = (NativeId::new("01a227c3-e394-7433-81c9-11184db5edac"), NativeId::new(TO));
    let said = format!(
        r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"text":"about {from}"}}]}}}}"#
    );
    let heir = Heir { from: &from, to: &to };
    assert_eq!(carried(said.as_bytes(), &heir), Carried::AsItIs);
    let event = format!(
        r#"{{ "type" : "event_msg" , "payload" : {{"message":"{from} \u00e9 1.50","thread_id" : "{from}" }} }}"#
    );
    let expected = format!(
        r#"{{ "type" : "event_msg" , "payload" : {{"message":"{from} \u00e9 1.50","thread_id" : "{TO}" }} }}"#
    );
    assert_eq!(carried(event.as_bytes(), &heir), Carried::Anew(expected.into_bytes()));
    for rubbish in [&b"{\"type\""[..], b"", b"\xff\xfe", b"[]", from.as_str().as_bytes()] {
        assert_eq!(carried(rubbish, &heir), Carried::AsItIs);
        assert_eq!(seam(rubbish), Seam::Within);
    }
}

#[test]
fn a_new_session_lies_where_it_is_found() {
    let seed =
        Seed { random: uuid::Uuid::from_u128(u128::MAX), now: Timestamp::from_millis(1_795_963_478_945) };
    let id = format().new_id(&seed).unwrap();
    assert_eq!(id.as_str(), "01a227c3-e3a1-7fff-bfff-ffffffffffff");
    let query =
        SessionQuery { id: &id, cwd: Path::new("/w"), state_dir: Some(Path::new("/s")), version: None };
    let path = format().new_path(&query, &seed).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert_eq!(path.parent().unwrap(), Path::new("/s/sessions/2026/11/29"));
    assert_eq!(name, format!("rollout-2026-11-29T14-44-38-{id}.jsonl"));
    assert!(format().is_file_of(name, &query));
}
