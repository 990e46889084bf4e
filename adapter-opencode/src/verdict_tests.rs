use std::path::{Path, PathBuf};

use serde_json::Value;
use session_core::{CliDialect, Ended, NativeId, Version};

use super::*;
use crate::OpencodeDialect;
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

fn evidence_from(version: &str, asked: Asked, stdout: &str, stderr: &str, exit: Exit) -> Evidence {
    let ended = Ended { exit, stderr_tail: stderr };
    Evidence {
        asked,
        version: Some(version.to_owned()),
        exit,
        ended_by: None,
        stderr_tail: stderr.to_owned(),
        observation: decode_for_tests(version, stdout.as_bytes(), &ended),
        leftovers_ended: 0,
    }
}

#[test]
fn every_fixture_has_its_verdict() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for folder in fixtures() {
        count += 1;
        let meta: Value = serde_json::from_str(&read(&folder.join("meta.json"))).unwrap();
        let [stdout, stderr] = ["stdout.jsonl", "stderr.txt"].map(|name| read(&folder.join(name)));
        let asked = serde_json::from_value(meta["asked"].clone()).unwrap();
        let exit = serde_json::from_value(meta["exit"].clone()).unwrap();
        let mut evidence = evidence_from(meta["version"].as_str().unwrap(), asked, &stdout, &stderr, exit);
        evidence.ended_by = serde_json::from_value(meta["ended_by"].clone()).unwrap();
        let expect = [&meta["verdict"], &meta["activity"], &meta["session"]];
        let found = [
            serde_json::json!(OpencodeDialect::default().classify(&evidence).name()),
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
        assert!(OpencodeDialect::default().capabilities(Version::parse(version).as_ref()).verified);
        assert!(fixtures().iter().any(|folder| folder.parent().unwrap().ends_with(version)), "{version}");
    }
}

const S1: &str = "ses_1";

fn resume() -> Asked {
    Asked::Resume(NativeId::new(S1))
}

fn evidence(stdout: &str, stderr: &str, exit: Exit) -> Evidence {
    evidence_from("1.18.33", resume(), stdout, stderr, exit)
}

fn step(reason: &str) -> String {
    format!(
        "{{\"type\":\"step_start\",\"sessionID\":\"{S1}\",\"part\":{{}}}}\n\
         {{\"type\":\"text\",\"sessionID\":\"{S1}\",\"part\":{{\"text\":\"hi\"}}}}\n\
         {{\"type\":\"step_finish\",\"sessionID\":\"{S1}\",\"part\":{{\"reason\":\"{reason}\"}}}}\n"
    )
}

fn error(name: &str, data: &str) -> String {
    format!(
        "{{\"type\":\"error\",\"sessionID\":\"{S1}\",\"error\":{{\"name\":\"{name}\",\"data\":{data}}}}}\n"
    )
}

#[test]
fn success_is_a_stop_without_an_error_after_it_and_a_proper_exit() {
    let cases = [
        (step("stop"), Exit::Code(0), Verdict::Completed),
        (step("stop"), Exit::Code(1), Verdict::Crashed),
        (step("stop"), Exit::Signal(9), Verdict::Crashed),
        (step("tool-calls"), Exit::Code(0), Verdict::NoResult),
        (step("length"), Exit::Code(0), Verdict::LimitReached),
        (step("unknown"), Exit::Code(0), Verdict::Transient),
        (step("tool-calls") + &step("stop"), Exit::Code(0), Verdict::Completed),
        (step("stop") + &error("UnknownError", "{}"), Exit::Code(0), Verdict::Unknown),
        (error("ContextOverflowError", "{}") + &step("stop"), Exit::Code(1), Verdict::Crashed),
        (
            error("ContextOverflowError", "{}") + &step("stop") + &step("stop"),
            Exit::Code(1),
            Verdict::Completed,
        ),
        (error("ContextOverflowError", "{}").repeat(2), Exit::Code(1), Verdict::ContextOverflow),
        (error("ContextOverflowError", "{}"), Exit::Signal(9), Verdict::Crashed),
        (error("ContextOverflowError", "{}"), Exit::Code(0), Verdict::ContextOverflow),
        (step("stop").replace(S1, ""), Exit::Code(0), Verdict::Unknown),
    ];
    for (stdout, exit, verdict) in cases {
        assert_eq!(of(&evidence(&stdout, "", exit)), verdict, "{stdout} {exit:?}");
    }
}

#[test]
fn who_ended_it_counts_only_without_a_success() {
    for (by, verdict) in [
        (EndedBy::Cancel, Verdict::Cancelled),
        (EndedBy::StartLimit, Verdict::TimedOut),
        (EndedBy::IdleLimit, Verdict::TimedOut),
        (EndedBy::TotalLimit, Verdict::TimedOut),
    ] {
        let mut ended = evidence(&step("tool-calls"), "", Exit::Signal(15));
        ended.ended_by = Some(by);
        assert_eq!(of(&ended), verdict);
        let mut done = evidence(&step("stop"), "", Exit::Signal(15));
        done.ended_by = Some(by);
        assert_eq!(of(&done), Verdict::Completed);
    }
}

#[test]
fn the_errors_of_a_call_are_told_by_name_and_status() {
    for (name, data, verdict) in [
        ("APIError", r#"{"statusCode":403}"#, Verdict::Unauthenticated),
        ("ProviderAuthError", "{}", Verdict::Unauthenticated),
        ("APIError", r#"{"statusCode":429}"#, Verdict::RateLimited),
        ("APIError", r#"{"statusCode":402}"#, Verdict::RateLimited),
        ("APIError", r#"{"statusCode":503}"#, Verdict::Transient),
        ("APIError", r#"{"statusCode":400,"message":"prompt is too long: 2 > 1"}"#, Verdict::ContextOverflow),
        ("APIError", r#"{"statusCode":418}"#, Verdict::Unknown),
        ("MessageOutputLengthError", "{}", Verdict::LimitReached),
        ("UnknownError", r#"{"message":"Model not found: a/b."}"#, Verdict::Misconfigured),
    ] {
        assert_eq!(of(&evidence(&error(name, data), "", Exit::Code(1))), verdict, "{name} {data}");
    }
}

/// The same prompt would be refused for ever: the next run must not try that session again.
#[test]
fn a_conversation_that_the_provider_takes_no_more_is_incompatible() {
    for text in [
        "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
        "No tool output found for function call call_1.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ] {
        let data = serde_json::json!({"message": text, "statusCode": 400}).to_string();
        let stdout = error("APIError", &data);
        for exit in [Exit::Code(0), Exit::Code(1)] {
            assert_eq!(of(&evidence(&stdout, "", exit)), Verdict::Incompatible, "{text}");
        }
        // The model may say it as well.
        let said = step("tool-calls").replace("\"hi\"", &serde_json::json!(text).to_string());
        assert_eq!(of(&evidence(&said, text, Exit::Code(0))), Verdict::NoResult, "{text}");
    }
}

#[test]
fn a_not_found_text_counts_only_in_a_resume_of_which_nothing_else_was_heard() {
    let stderr = "Error: Session not found\n";
    assert_eq!(of(&evidence("", stderr, Exit::Code(1))), Verdict::Missing);
    let fresh = evidence_from("1.18.33", Asked::Fresh(None), "", stderr, Exit::Code(1));
    assert_eq!(of(&fresh), Verdict::Unknown);
    let began = evidence(&step("tool-calls"), stderr, Exit::Code(1));
    assert_eq!(of(&began), Verdict::Crashed);
    let told = evidence(&error("UnknownError", "{}"), stderr, Exit::Code(1));
    assert_eq!(of(&told), Verdict::Unknown);
    // The model may say it as well.
    let said = step("tool-calls").replace("hi", "Session not found");
    assert_eq!(of(&evidence(&said, "", Exit::Code(0))), Verdict::NoResult);
}

#[test]
fn a_silent_end_may_have_called_the_model_and_a_refusal_did_not() {
    let greeting =
        "Performing one time database migration, may take a few minutes...\nsqlite-migration:done\n";
    let models = "ERROR 2026-11-29T21:13:41 +3ms service=models.dev error=Unable to connect Failed to fetch models.dev\n";
    for (stderr, exit, verdict, activity) in [
        ("", Exit::Code(0), Verdict::NoResult, Activity::ModelCalled),
        (greeting, Exit::Code(0), Verdict::NoResult, Activity::ModelCalled),
        ("SyntaxError: x", Exit::Code(0), Verdict::NoResult, Activity::ModelCalled),
        (models, Exit::Code(0), Verdict::NoResult, Activity::ModelCalled),
        ("(node:7) Warning: odd", Exit::Code(0), Verdict::NoResult, Activity::ModelCalled),
        ("a plugin's line", Exit::Code(0), Verdict::NoResult, Activity::ModelCalled),
        ("", Exit::Code(1), Verdict::Crashed, Activity::ModelCalled),
        (models, Exit::Code(1), Verdict::Crashed, Activity::ModelCalled),
        ("", Exit::Signal(9), Verdict::Crashed, Activity::ModelCalled),
        ("", Exit::Code(137), Verdict::Crashed, Activity::ModelCalled),
        ("Error: odd", Exit::Code(1), Verdict::Unknown, Activity::None),
    ] {
        let evidence = evidence("", stderr, exit);
        assert_eq!(
            (of(&evidence), evidence.observation.activity()),
            (verdict, activity),
            "{stderr:?} {exit:?}"
        );
    }
}

#[test]
fn a_refusal_with_exit_0_is_one_only_where_the_version_ends_so() {
    let log = "ERROR 2026-11-29T21:13:41 +3ms service=plugin error=SyntaxError: Unexpected token\n";
    for (version, stderr, activity) in [
        ("1.2.1", "SyntaxError: Failed to parse JSON", Activity::None),
        ("1.2.1", log, Activity::ModelCalled),
        ("1.15.13", "SyntaxError: Failed to parse JSON", Activity::ModelCalled),
    ] {
        let asked = Asked::Resume(NativeId::new("ses_1"));
        let evidence = evidence_from(version, asked, "", stderr, Exit::Code(0));
        assert_eq!(evidence.observation.activity(), activity, "{version} {stderr}");
    }
}

#[test]
fn a_rejected_permission_is_told_from_other_ends_in_a_tool() {
    let rejected = "! permission requested: bash (rm *); auto-rejecting\n";
    assert_eq!(of(&evidence(&step("tool-calls"), rejected, Exit::Code(0))), Verdict::Misconfigured);
    // Where the turn went on, it does not matter.
    assert_eq!(of(&evidence(&step("stop"), rejected, Exit::Code(0))), Verdict::Completed);
}
