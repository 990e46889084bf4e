use std::path::Path;

use session_core::{EnvMap, NativeId, Seed, Timestamp, TranscriptFormat as _};

use super::*;
use crate::ClaudeTranscripts;

const FROM: &str = "11111111-1111-4111-8111-111111111111";
const TO: &str = "22222222-2222-4222-8222-222222222222";

fn carry(line: &str) -> Carried {
    let (from, to) = (NativeId::new(FROM), NativeId::new(TO));
    carried(line.as_bytes(), &Heir { from: &from, to: &to })
}

fn anew(line: &str) -> String {
    match carry(line) {
        Carried::Anew(anew) => String::from_utf8(anew).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_record_becomes_the_branchs_and_says_where_it_was_copied_from() {
    let line = format!(
        r#"{{"parentUuid":null, "type":"user","uuid":"u1","sessionId" : "{FROM}","message":{{"content":"of {FROM}: \u00e9 1.50"}}}}"#
    );
    let expected = format!(
        r#"{{"parentUuid":null, "type":"user","uuid":"u1","sessionId" : "{TO}","forkedFrom":{{"sessionId":"{FROM}","messageUuid":"u1"}},"message":{{"content":"of {FROM}: \u00e9 1.50"}}}}"#
    );
    assert_eq!(anew(&line), expected);
    // What is no record of the conversation was not copied.
    let mode = format!(r#"{{"type":"mode","mode":"normal","sessionId":"{FROM}"}}"#);
    assert_eq!(anew(&mode), mode.replace(FROM, TO));
    // One that was copied before keeps where from.
    let copied =
        format!(r#"{{"type":"user","uuid":"u","forkedFrom":{{"sessionId":"x"}},"sessionId":"{FROM}"}}"#);
    assert_eq!(anew(&copied), copied.replace(FROM, TO));
}

#[test]
fn what_is_not_the_originals_stays_as_it_is_and_what_was_granted_stays_behind() {
    let granted =
        format!(r#"{{"type":"permission-mode","permissionMode":"bypassPermissions","sessionId":"{FROM}"}}"#);
    assert_eq!(carry(&granted), Carried::LeftOut);
    let others = [
        r#"{"type":"user","uuid":"u","sessionId":"33333333-1111-4111-8111-111111111111"}"#,
        r#"{"type":"summary","summary":"s","leafUuid":"x"}"#,
        r#"{"type":"user","sessionId":7}"#,
        r#"{"type":"user","sessionId":"1111"#,
        "",
        "rubbish",
        "\u{fffd}",
    ];
    for line in others {
        assert_eq!(carry(line), Carried::AsItIs, "{line}");
    }
}

#[test]
fn what_is_written_for_a_prompt_goes_with_it() {
    let rows = [
        (r#"{"type":"queue-operation","operation":"enqueue"}"#, Seam::Opens),
        (r#"{"type":"queue-operation","operation":"dequeue"}"#, Seam::Leads),
        (r#"{"type":"file-history-snapshot","messageId":"u","isSnapshotUpdate":false}"#, Seam::Leads),
        (r#"{"type":"file-history-snapshot","messageId":"u","isSnapshotUpdate":true}"#, Seam::Within),
        (r#"{"type":"assistant"}"#, Seam::Closes),
        (r#"{"type":"user","message":{"content":[{"type":"tool_result"}]}}"#, Seam::Closes),
        (r#"{"type":"user","isMeta":true}"#, Seam::Within),
        (r#"{"type":"assistant","isSidechain":true}"#, Seam::Within),
        (r#"{"type":"last-prompt"}"#, Seam::Within),
        ("rubbish", Seam::Within),
    ];
    for (line, expected) in rows {
        assert_eq!(seam(line.as_bytes()), expected, "{line}");
    }
}

#[test]
fn a_new_id_is_one_that_the_agent_takes_and_its_copies_of_files_go_along() {
    let format = ClaudeTranscripts::new(EnvMap::new());
    let seed = Seed { random: uuid::Uuid::from_u128(1), now: Timestamp::EPOCH };
    let id = format.new_id(&seed).unwrap();
    assert_eq!(id.as_str(), "00000000-0000-4000-8000-000000000001");
    let (from, to) = (format!("/s/projects/-w/{FROM}.jsonl"), format!("/t/projects/-v/{TO}.jsonl"));
    let expected = [
        (format!("/s/projects/-w/{FROM}"), format!("/t/projects/-v/{TO}")),
        (format!("/s/file-history/{FROM}"), format!("/t/file-history/{TO}")),
    ];
    let expected = expected.map(|(from, to)| (from.into(), to.into()));
    assert_eq!(format.heirlooms(Path::new(&from), Path::new(&to)), expected);
}
