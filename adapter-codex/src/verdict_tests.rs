use std::path::{Path, PathBuf};

use serde_json::Value;
use session_core::{CliDialect, NativeId, Version};

use super::*;
use crate::CodexDialect;
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
    let observation = decode_for_tests(read(&folder.join("stdout.jsonl")).as_bytes());
    Evidence {
        asked: serde_json::from_value(meta["asked"].clone()).unwrap(),
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
            serde_json::json!(CodexDialect::default().classify(&evidence).name()),
            serde_json::json!(evidence.observation.activity().name()),
            serde_json::json!(evidence.observation.session),
        ];
        if found.each_ref() != expect {
            wrong.push(format!("{}: {found:?}, expected {expect:?}", folder.display()));
        }
    }
    assert!(count > 150, "{count} fixtures");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every row of a table is reached by a real run, or says that it is not.
#[test]
fn every_signature_names_where_it_was_seen() {
    let written: Vec<String> = fixtures()
        .iter()
        .map(|folder| read(&folder.join("stdout.jsonl")) + &read(&folder.join("stderr.txt")))
        .collect();
    for signature in SIGNATURES {
        assert!(!signature.seen.is_empty(), "{}", signature.text);
        let fixture = signature.seen.split_once(' ').map_or("", |(_, rest)| rest);
        let names_one = fixtures()
            .iter()
            .any(|folder| fixture.split(' ').any(|word| folder.file_name().is_some_and(|name| name == word)));
        let shown = written.iter().any(|text| text.contains(signature.text));
        assert!(!names_one || shown, "{:?} is in no fixture", signature.text);
    }
    for version in crate::VERIFIED {
        assert!(CodexDialect::default().capabilities(Version::parse(version).as_ref()).verified);
        assert!(fixtures().iter().any(|folder| folder.parent().unwrap().ends_with(version)), "{version}");
    }
}

const S1: &str = "01a227c3-e394-7433-81c9-11184db5edac";

fn evidence(asked: Asked, stdout: &str, stderr: &str, exit: Exit) -> Evidence {
    Evidence {
        asked,
        version: None,
        exit,
        ended_by: None,
        stderr_tail: stderr.to_owned(),
        observation: decode_for_tests(stdout.as_bytes()),
        leftovers_ended: 0,
    }
}

fn resume() -> Asked {
    Asked::Resume(NativeId::new(S1))
}

fn started() -> String {
    format!("{{\"type\":\"thread.started\",\"thread_id\":\"{S1}\"}}\n{{\"type\":\"turn.started\"}}\n")
}

fn failed(text: &str) -> String {
    let line = serde_json::json!({"type": "turn.failed", "error": {"message": text}});
    format!("{}{line}\n", started())
}

fn completed() -> String {
    started() + "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}\n"
}

#[test]
fn a_success_needs_the_end_of_the_turn_and_of_the_process_and_an_id() {
    let of = |stdout: &str, exit| of(&evidence(resume(), stdout, "", exit));
    assert_eq!(of(&completed(), Exit::Code(0)), Verdict::Completed);
    // A launcher that was killed ends with 0.
    assert_eq!(of(&started(), Exit::Code(0)), Verdict::NoResult);
    assert_eq!(of("", Exit::Code(0)), Verdict::NoResult);
    assert_eq!(of(&completed(), Exit::Code(1)), Verdict::Unknown);
    assert_eq!(of(&completed(), Exit::Code(101)), Verdict::Crashed);
    assert_eq!(of(&completed(), Exit::Signal(9)), Verdict::Crashed);
    let nameless = completed().replace(S1, "");
    assert_eq!(of(&nameless, Exit::Code(0)), Verdict::Unknown);
}

#[test]
fn who_ended_it_counts_only_without_a_success() {
    for (by, verdict) in [
        (EndedBy::Cancel, Verdict::Cancelled),
        (EndedBy::StartLimit, Verdict::TimedOut),
        (EndedBy::IdleLimit, Verdict::TimedOut),
        (EndedBy::TotalLimit, Verdict::TimedOut),
    ] {
        let mut ended = evidence(resume(), &started(), "", Exit::Signal(15));
        ended.ended_by = Some(by);
        assert_eq!(of(&ended), verdict);
        let mut done = evidence(resume(), &completed(), "", Exit::Signal(15));
        done.ended_by = Some(by);
        assert_eq!(of(&done), Verdict::Completed);
    }
    let mut lingered = evidence(resume(), &completed(), "", Exit::Code(143));
    lingered.ended_by = Some(EndedBy::Linger);
    assert_eq!(of(&lingered), Verdict::Completed);
}

#[test]
fn what_condemns_counts_only_in_the_agents_own_line_of_a_failed_resume() {
    let line = format!("Error: thread/resume: thread/resume failed: no rollout found for thread id {S1}\n");
    assert_eq!(of(&evidence(resume(), "", &line, Exit::Code(1))), Verdict::Missing);
    for (asked, stdout, stderr, exit) in [
        (Asked::Fresh(None), "", line.as_str(), Exit::Code(1)),
        (resume(), started().as_str(), line.as_str(), Exit::Code(1)),
        (resume(), "", line.as_str(), Exit::Code(0)),
        (resume(), "", &format!("hook: {line}"), Exit::Code(1)),
        (resume(), "", &format!("2026-11-29T14:45:51.635505Z ERROR codex_core: {line}"), Exit::Code(1)),
        (resume(), failed(&line).as_str(), "", Exit::Code(1)),
    ] {
        assert_ne!(of(&evidence(asked, stdout, stderr, exit)), Verdict::Missing, "{stdout}{stderr}{exit:?}");
    }
}

#[test]
fn an_unknown_text_never_condemns_a_session() {
    let evidence = evidence(resume(), "", "Error: la session a disparu\n", Exit::Code(1));
    assert_eq!(of(&evidence), Verdict::Unknown);
    assert_eq!(evidence.observation.activity(), Activity::None);
}

/// Lines of the log are written in good runs, too: they speak only where nothing else does.
#[test]
fn the_log_speaks_last() {
    let log = "2026-11-29T14:45:51.635505Z ERROR codex_core::codex: Failed to create session: Permission denied (os error 13)\n";
    let silent = evidence(resume(), "", log, Exit::Code(1));
    assert_eq!(of(&silent), Verdict::Misconfigured);
    let line = format!(
        "{log}Error: thread/resume: thread/resume failed: thread {S1} already has an active writer\n"
    );
    assert_eq!(of(&evidence(resume(), "", &line, Exit::Code(1))), Verdict::Busy);
    assert_eq!(of(&evidence(resume(), &completed(), log, Exit::Code(0))), Verdict::Completed);
    assert!(!is_trace("Error: x") && !is_trace("2026 ERROR x") && is_trace(log));
}

#[test]
fn what_a_session_holds_and_what_an_account_lacks() {
    let cases = [
        (
            "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
            Verdict::ContextOverflow,
        ),
        ("You’ve hit your usage limit. Try again at 3:00 PM.", Verdict::RateLimited),
        ("Quota exceeded. Check your plan and billing details.", Verdict::RateLimited),
        (
            "Your access token could not be refreshed. Please log out and sign in again.",
            Verdict::Unauthenticated,
        ),
        ("unexpected status 502 Bad Gateway: x, url: http://localhost/v1/responses", Verdict::Transient),
        ("unexpected status 418 I'm a teapot: x", Verdict::Unknown),
        ("{\"error\":{\"code\":\"invalid_encrypted_content\"}}", Verdict::Incompatible),
        ("Missing required parameter: 'input[3].encrypted_content'.", Verdict::Incompatible),
        ("No tool output found for function call call_1.", Verdict::Incompatible),
        (
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
            Verdict::Incompatible,
        ),
        ("something new", Verdict::Unknown),
    ];
    for (text, verdict) in cases {
        assert_eq!(of(&evidence(resume(), &failed(text), "", Exit::Code(1))), verdict, "{text}");
    }
}

#[test]
fn the_words_of_the_model_say_nothing() {
    let said = serde_json::json!({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message",
        "text": "Error: no rollout found for thread id; hit your usage limit; unexpected status 401"}});
    let stdout = format!("{}{said}\n", started());
    assert_eq!(of(&evidence(resume(), &stdout, "", Exit::Code(1))), Verdict::Crashed);
    let failed = format!("{stdout}{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"odd\"}}}}\n");
    assert_eq!(of(&evidence(resume(), &failed, "", Exit::Code(1))), Verdict::Unknown);
}

#[test]
fn nothing_at_all_is_unknown_or_a_crash() {
    assert_eq!(of(&evidence(resume(), "", "", Exit::Code(1))), Verdict::Unknown);
    assert_eq!(of(&evidence(resume(), "", "", Exit::Code(2))), Verdict::Misconfigured);
    assert_eq!(of(&evidence(resume(), "", "", Exit::Signal(9))), Verdict::Crashed);
    assert_eq!(of(&evidence(resume(), "", "", Exit::Code(101))), Verdict::Crashed);
    assert_eq!(of(&evidence(resume(), "", "", Exit::Code(137))), Verdict::Crashed);
    assert_eq!(of(&evidence(resume(), "", "", Exit::Unknown)), Verdict::Unknown);
    assert_eq!(of(&evidence(resume(), &started(), "", Exit::Code(1))), Verdict::Crashed);
}
