use std::path::{Path, PathBuf};

use serde_json::Value;
use session_core::{CliDialect, NativeId, Observation, Version};

use super::*;
use crate::ClaudeDialect;
use crate::decode::decode_for_tests;

fn fixtures() -> Vec<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "tests read fixtures")]
    let children = |path: &Path| -> Vec<PathBuf> {
        let mut all: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    children(&root).iter().flat_map(|version| children(version)).collect()
}

#[expect(clippy::disallowed_methods, reason = "tests read fixtures")]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn meta(folder: &Path) -> Value {
    serde_json::from_str(&read(&folder.join("meta.json"))).unwrap()
}

fn evidence_of(folder: &Path) -> Evidence {
    let meta = meta(folder);
    let asked: Asked = serde_json::from_value(meta["asked"].clone()).unwrap();
    let observation = decode_for_tests(&asked, read(&folder.join("stdout.jsonl")).as_bytes());
    Evidence {
        asked,
        version: Some(meta["version"].as_str().unwrap().to_owned()),
        exit: serde_json::from_value(meta["exit"].clone()).unwrap(),
        ended_by: serde_json::from_value(meta["ended_by"].clone()).unwrap(),
        stderr_tail: read(&folder.join("stderr.txt")),
        observation,
        leftovers_ended: 0,
    }
}

#[test]
fn every_fixture_has_its_verdict() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for folder in fixtures() {
        count += 1;
        let evidence = evidence_of(&folder);
        let meta = meta(&folder);
        let expect = [&meta["verdict"], &meta["activity"], &meta["session"]];
        let found = [
            serde_json::json!(ClaudeDialect::default().classify(&evidence).name()),
            serde_json::json!(evidence.observation.activity().name()),
            serde_json::json!(evidence.observation.session),
        ];
        if found.each_ref() != expect {
            wrong.push(format!("{}: {found:?}, expected {expect:?}", folder.display()));
        }
    }
    assert!(count > 100, "{count} fixtures");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_signature_names_where_it_was_seen() {
    for signature in SIGNATURES {
        assert!(!signature.seen.is_empty(), "{}", signature.text);
    }
    for version in crate::VERIFIED {
        assert!(ClaudeDialect::default().capabilities(Version::parse(version).as_ref()).verified);
        assert!(fixtures().iter().any(|folder| folder.parent().unwrap().ends_with(version)), "{version}");
    }
}

const S1: &str = "11111111-1111-4111-8111-111111111111";
const S9: &str = "99999999-1111-4111-8111-111111111111";

fn evidence(asked: Asked, stdout: &str, stderr: &str, exit: Exit) -> Evidence {
    let observation = decode_for_tests(&asked, stdout.as_bytes());
    Evidence {
        asked,
        version: None,
        exit,
        ended_by: None,
        stderr_tail: stderr.to_owned(),
        observation,
        leftovers_ended: 0,
    }
}

fn resume() -> Asked {
    Asked::Resume(NativeId::new(S1))
}

fn init(id: &str) -> String {
    format!("{{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"{id}\"}}\n")
}

fn result(id: &str, rest: &str) -> String {
    format!("{{\"type\":\"result\",\"session_id\":\"{id}\",{rest}}}\n")
}

#[test]
fn a_throw_away_session_of_a_failed_resume_is_no_session() {
    let stdout =
        init(S9) + &result(S9, r#""subtype":"error_during_execution","is_error":true,"num_turns":0"#);
    let stderr = format!("No conversation found with session ID: {S1}\n");
    let evidence = evidence(resume(), &stdout, &stderr, Exit::Code(1));
    assert_eq!(of(&evidence), Verdict::Missing);
    assert_eq!(evidence.observation.session, None);
    assert_eq!(evidence.observation.activity(), Activity::None);
}

#[test]
fn a_kill_after_init_counts_as_a_model_call() {
    for id in [S1, S9] {
        let evidence = evidence(resume(), &init(id), "", Exit::Signal(9));
        assert_eq!(of(&evidence), Verdict::Crashed);
        assert_eq!(evidence.observation.activity(), Activity::ModelCalled);
    }
}

#[test]
fn an_error_that_may_have_called_the_model_is_not_taken_back() {
    let ends = [
        (S1, r#""subtype":"error_during_execution","is_error":true,"num_turns":0"#),
        (S9, r#""subtype":"error_during_execution","is_error":true,"num_turns":1"#),
        (S9, r#""subtype":"error_during_execution","is_error":false,"num_turns":0"#),
        (
            S9,
            r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"usage":{"input_tokens":1}"#,
        ),
        (
            S9,
            r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"terminal_reason":"aborted_streaming""#,
        ),
        (
            S9,
            r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"errors":["[ede_diagnostic] x"]"#,
        ),
        (S9, r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"duration_api_ms":3"#),
    ];
    for (id, end) in ends {
        let evidence = evidence(resume(), &(init(id) + &result(id, end)), "", Exit::Code(1));
        assert_eq!(evidence.observation.activity(), Activity::ModelCalled, "{end}");
        assert_ne!(of(&evidence), Verdict::Missing, "{end}");
    }
}

#[test]
fn an_unknown_text_never_condemns_a_session() {
    let end = r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"errors":["La session a disparu"]"#;
    let evidence = evidence(resume(), &result(S1, end), "La session a disparu\n", Exit::Code(1));
    assert_eq!(of(&evidence), Verdict::Unknown);
    assert_eq!(evidence.observation.activity(), Activity::None);
}

#[test]
fn a_not_found_text_counts_only_in_a_failed_resume() {
    let stderr = format!("No conversation found with session ID: {S1}\n");
    let fresh = evidence(Asked::Fresh(None), "", &stderr, Exit::Code(1));
    assert_eq!(of(&fresh), Verdict::Unknown);
    let began = evidence(resume(), &init(S1), &stderr, Exit::Code(1));
    assert_ne!(of(&began), Verdict::Missing);
    let exit_zero = evidence(resume(), "", &stderr, Exit::Code(0));
    assert_eq!(of(&exit_zero), Verdict::NoResult);
    // The model may say it as well.
    let said =
        init(S1) + &result(S1, &format!(r#""subtype":"success","is_error":false,"result":{stderr:?}"#));
    assert_eq!(of(&evidence(resume(), &said, "", Exit::Code(0))), Verdict::Completed);
}

#[test]
fn a_path_that_is_too_long_for_the_agents_own_place_is_no_lost_session() {
    let stderr = "Error: ENAMETOOLONG: name too long, mkdir '/home/ada/.claude/projects/-w-a'\n";
    for asked in [resume(), Asked::Fresh(None)] {
        assert_eq!(of(&evidence(asked, "", stderr, Exit::Code(1))), Verdict::Misconfigured);
    }
}

#[test]
fn a_valid_result_decides_and_nothing_less() {
    let good = init(S1) + &result(S1, r#""subtype":"success","is_error":false,"result":"done""#);
    for exit in [Exit::Code(0), Exit::Code(1), Exit::Signal(15), Exit::Code(143)] {
        assert_eq!(of(&evidence(resume(), &good, "", exit)), Verdict::Completed, "{exit:?}");
    }
    let error =
        init(S1) + &result(S1, r#""subtype":"success","is_error":true,"result":"API Error: 400 odd""#);
    assert_eq!(of(&evidence(resume(), &error, "", Exit::Code(0))), Verdict::Unknown);
    // The init line was lost: the result names the conversation, too. One that names none proves nothing.
    let late = result(S1, r#""subtype":"success","is_error":false,"result":"done""#);
    assert_eq!(of(&evidence(resume(), &late, "", Exit::Code(0))), Verdict::Completed);
    let nameless = late.replace(S1, "");
    assert_eq!(of(&evidence(resume(), &nameless, "", Exit::Code(0))), Verdict::Unknown);
    assert_eq!(of(&evidence(resume(), &init(S1), "", Exit::Code(0))), Verdict::NoResult);
}

#[test]
fn what_a_session_holds_and_what_an_account_lacks() {
    let cases = [
        ("Prompt is too long", Verdict::ContextOverflow),
        (
            "API Error: 400 messages.1.content.0: Invalid `signature` in `thinking` block",
            Verdict::Incompatible,
        ),
        ("API Error: 400 messages.1.content.0: Invalid signature in thinking block", Verdict::Incompatible),
        (
            "API Error: 400 {\"message\":\"messages.17: `tool_use` ids were found without `tool_result` blocks\"}",
            Verdict::Incompatible,
        ),
        ("You've hit your session limit · resets 1pm", Verdict::RateLimited),
        ("Claude AI usage limit reached|1760000000", Verdict::RateLimited),
        ("API Error: 503 {}", Verdict::Transient),
        ("API Error: 418 {}", Verdict::Unknown),
    ];
    for (text, verdict) in cases {
        let end =
            serde_json::json!({"type": "result", "subtype": "success", "is_error": true, "result": text});
        let stdout = format!("{}{end}\n", init(S1));
        assert_eq!(of(&evidence(resume(), &stdout, "", Exit::Code(1))), verdict, "{text}");
    }
}

#[test]
fn a_rejected_usage_limit_is_told_by_its_event() {
    let stdout = init(S1) + "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\"}}\n";
    assert_eq!(of(&evidence(resume(), &stdout, "", Exit::Code(1))), Verdict::RateLimited);
    let allowed = init(S1) + "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"allowed\"}}\n";
    assert_eq!(of(&evidence(resume(), &allowed, "", Exit::Code(1))), Verdict::Crashed);
}

#[test]
fn who_ended_it_counts_only_without_a_success() {
    let good = init(S1) + &result(S1, r#""subtype":"success","is_error":false"#);
    for (by, verdict) in [
        (EndedBy::Cancel, Verdict::Cancelled),
        (EndedBy::StartLimit, Verdict::TimedOut),
        (EndedBy::IdleLimit, Verdict::TimedOut),
        (EndedBy::TotalLimit, Verdict::TimedOut),
    ] {
        let mut ended = evidence(resume(), &init(S1), "", Exit::Signal(15));
        ended.ended_by = Some(by);
        assert_eq!(of(&ended), verdict);
        let mut done = evidence(resume(), &good, "", Exit::Signal(15));
        done.ended_by = Some(by);
        assert_eq!(of(&done), Verdict::Completed);
    }
}

#[test]
fn nothing_at_all_is_unknown_or_a_crash() {
    let _: Observation = Observation::default();
    assert_eq!(of(&evidence(resume(), "", "", Exit::Code(1))), Verdict::Unknown);
    assert_eq!(of(&evidence(resume(), "", "", Exit::Code(0))), Verdict::NoResult);
    assert_eq!(of(&evidence(resume(), "", "", Exit::Signal(9))), Verdict::Crashed);
}
