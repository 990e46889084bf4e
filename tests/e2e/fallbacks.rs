//! Resumes that fail, each row as the real CLIs do it, and what follows.

use rejoin::{Route, Why};
use rejoin_test_support::ContextReply;
use serde_json::{Value, json};

use crate::stage::*;

/// The agent fails a resume with these steps, and works otherwise.
fn resume_fails(steps: &Value) -> Value {
    json!([{ "when": { "has": ["--resume"] }, "steps": steps }, works()])
}

fn result(subtype: &str, id: &str, more: &Value) -> Value {
    let mut line =
        json!({ "type": "result", "subtype": subtype, "is_error": true, "session_id": id, "num_turns": 0 });
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "line": line })
}

const OTHER: &str = "99999999-9999-4999-8999-999999999999";

/// BR-001: a dead id, an init line with a brand-new one, exit 1. Three runs of the same issue.
#[tokio::test]
async fn the_id_of_a_failed_resume_is_never_kept() {
    let stage = Stage::new().blind();
    let first = stage.run("one").await.session_id.unwrap();
    let dead = first.to_string();
    let lost = json!([
        { "stderr": format!("No conversation found with session ID: {dead}\n") },
        { "line": { "type": "system", "subtype": "init", "session_id": OTHER, "cwd": "/w" } },
        result("error_during_execution", OTHER, &json!({ "errors": [format!("No conversation found with session ID: {dead}")] })),
        { "exit": 1 }
    ]);
    stage.script(&json!([{ "when": { "has": [dead] }, "steps": lost }, works()]));
    let second = stage.run("two").await;
    assert_eq!(second.route, Route::FellBack(Why::SessionMissing));
    assert_eq!(second.attempts.len(), 2, "one retry in the same call");
    let bound = stage.bound().await.unwrap();
    assert_ne!(bound, OTHER);
    for prompt in ["three", "four"] {
        let later = stage.run(prompt).await;
        assert_eq!((later.route, later.session_id.unwrap().to_string()), (Route::Resumed, bound.clone()));
    }
    let text = std::fs::read_to_string(stage.record_file()).unwrap();
    assert!(!text.contains(OTHER), "the id of the throw-away session is nowhere");
}

#[tokio::test]
async fn every_known_way_to_miss_a_session_falls_back_once() {
    let asked = "{{sid}}";
    let message = "No conversation found with session ID: {{sid}}";
    let ways = [
        // 2.1.332 and 2.1.197
        json!([{ "stderr": format!("{message}\n") }, result("error_during_execution", asked, &json!({ "errors": [message] })), { "exit": 1 }]),
        // 2.1.50: stdout only, a random id
        json!([result("error_during_execution", OTHER, &json!({ "errors": [message] })), { "exit": 1 }]),
        // 2.0 and 1.0: stderr only
        json!([{ "stderr": format!("{message}\n") }, { "exit": 1 }]),
    ];
    for steps in ways {
        let stage = Stage::new().blind();
        stage.run("one").await;
        stage.script(&resume_fails(&steps));
        let second = stage.run("two").await;
        assert_eq!(second.route, Route::FellBack(Why::SessionMissing), "{steps}");
        assert_eq!(stage.calls().len(), 3, "{steps}");
    }
}

#[tokio::test]
async fn an_unknown_failure_of_a_resume_is_tried_fresh() {
    for steps in [
        json!([{ "stderr": "something new\n" }, { "exit": 1 }]),
        json!([{ "exit": 0 }]),
        json!([{ "kill_self": "ABRT" }]),
        json!([{ "stdout": "no JSON at all\n" }, { "exit": 2 }]),
    ] {
        let stage = Stage::new().blind();
        stage.run("one").await;
        stage.script(&resume_fails(&steps));
        let second = stage.run("two").await;
        assert_eq!(second.route, Route::FellBack(Why::ResumeUnrecognisedFailure), "{steps}");
        let record = stage.record().await;
        assert!(record.past.iter().all(|former| former.rejoinable), "the old session may still be there");
    }
}

#[tokio::test]
async fn a_session_that_runs_in_the_background_is_busy() {
    let stage = Stage::new();
    let first = stage.run("one").await.session_id.unwrap();
    let text = "Error: That session is running in the background (1a2b3c4d). Run `claude attach 1a2b3c4d` to open it, \
                or `claude stop 1a2b3c4d` first to resume it here. Add --fork-session to branch off a copy instead.\n";
    stage.script(&resume_fails(&json!([{ "stderr": text }, { "exit": 1 }])));
    let mut limits = rejoin::Limits::default();
    limits.busy = std::time::Duration::from_millis(300);
    let second = stage.lifecycle().run(stage.request("two").limits(limits)).await.unwrap();
    assert_eq!(second.route, Route::FellBack(Why::SessionBusy));
    assert!(stage.calls().len() > 3, "it was waited for");
    assert_eq!(stage.bound().await, Some(first.to_string()), "and kept");
    stage.script(&json!([works()]));
    assert_eq!(stage.run("three").await.session_id, Some(first));
}

/// BR-039 and the like: the run's own trouble, whatever the exit code.
#[tokio::test]
async fn the_runs_own_trouble_never_costs_the_session() {
    let init =
        json!({ "line": { "type": "system", "subtype": "init", "session_id": "{{sid}}", "cwd": "/w" } });
    let api = |code: &str, status: u16, text: &str| {
        let message = json!({ "model": "<synthetic>", "content": [{ "type": "text", "text": text }] });
        json!([
            init,
            { "line": { "type": "assistant", "session_id": "{{sid}}", "message": message, "error": code, "api_error_status": status } },
            result("success", "{{sid}}", &json!({ "result": text, "api_error_status": status, "num_turns": 1 })),
            { "exit": 1 }
        ])
    };
    let cases = [
        (api("authentication_failed", 401, "Invalid API key · Fix external API key"), Why::Unauthenticated),
        (api("rate_limit", 429, "API Error: 429 rate limited"), Why::RateLimited),
        (api("server_error", 529, "API Error: 529 overloaded_error"), Why::TransientFailure),
        (api("unknown", 413, "Prompt is too long"), Why::ContextOverflow),
        (
            api(
                "invalid_request",
                400,
                "API Error: 400 messages.1.content.0: Invalid signature in thinking block",
            ),
            Why::SessionIncompatible,
        ),
        (
            json!([{ "stderr": "Error: cannot be launched inside another Claude Code session\n" }, { "exit": 1 }]),
            Why::AgentMisconfigured,
        ),
    ];
    for (steps, expected) in cases {
        let stage = Stage::new();
        let first = stage.run("one").await.session_id.unwrap();
        stage.script(&resume_fails(&steps));
        let (why, run) = stage.fails(stage.request("two")).await;
        assert_eq!((why, run.attempts.len()), (expected, 1), "{steps}");
        assert_eq!(run.session_id, Some(first));
    }
}

/// BR-023 and BR-067: a session that the provider refuses for ever is left by the next run.
#[tokio::test]
async fn a_poisoned_session_is_left_by_the_next_run() {
    let stage = Stage::new();
    let first = stage.run("one").await.session_id.unwrap();
    stage.script(&resume_fails(&json!([
        { "line": { "type": "system", "subtype": "init", "session_id": "{{sid}}", "cwd": "/w" } },
        result("success", "{{sid}}", &json!({ "result": "Prompt is too long", "num_turns": 1 })),
        { "exit": 0 }
    ])));
    let (why, _) = stage.fails(stage.request("two")).await;
    assert_eq!(why, Why::ContextOverflow, "is_error with exit 0 is a failure");
    let third = stage.run("three").await;
    assert_eq!(third.route, Route::FellBack(Why::LastRunPoisoned));
    assert!(stage.record().await.past.iter().any(|former| former.native_id == first && former.rejoinable));
}

/// BR-011 (a): the stream ends without a result.
#[tokio::test]
async fn an_end_without_a_result_is_no_success_and_keeps_the_session() {
    let stage = Stage::new();
    stage.script(&json!([{ "steps": [{ "claude": { "stop_after": "assistant" } }] }]));
    let (why, run) = stage.fails(stage.request("one")).await;
    assert_eq!(why, Why::NoResult);
    assert!(!run.partial_text.is_empty(), "what was said is returned");
    stage.script(&json!([works()]));
    assert_eq!(stage.run("two").await.route, Route::Resumed);
}

/// BR-033 (a): a resume that names another id and is then cancelled changes nothing.
#[tokio::test]
async fn another_id_seen_in_a_run_that_came_to_nothing_is_not_bound() {
    let stage = Stage::new();
    let first = stage.run("one").await.session_id.unwrap();
    stage.script(&resume_fails(&json!([
        { "line": { "type": "system", "subtype": "init", "session_id": OTHER, "cwd": "/w" } },
        { "kill_self": "TERM" }
    ])));
    let (_, run) = stage.fails(stage.request("two")).await;
    assert_eq!(run.session_id, Some(first.clone()));
    stage.script(&json!([works()]));
    assert_eq!(stage.run("three").await.session_id, Some(first));
}

#[tokio::test]
async fn a_turn_that_the_agent_did_not_keep_is_told() {
    let stage = Stage::new();
    stage.run("one").await;
    stage.script(&json!([{ "steps": [{ "claude": { "persist": false } }] }]));
    let second = stage.run("two").await;
    assert!(second.warnings.contains(&rejoin::Warning::NotPersisted), "{:?}", second.warnings);
}

#[tokio::test]
async fn damaged_files_are_seen_before_the_run() {
    type Damage = fn(&std::path::Path);
    let cases: [(Damage, Why); 4] = [
        (|path| std::fs::remove_file(path).unwrap(), Why::SessionMissing),
        (|path| std::fs::write(path, "").unwrap(), Why::SessionEmpty),
        (|path| std::fs::write(path, "\0\0\0 no record\n").unwrap(), Why::SessionDamaged),
        (
            // Records without a turn: 2.1.332 would silently begin anew under the old id.
            |path| {
                std::fs::write(
                    path,
                    "{\"type\":\"custom-title\",\"customTitle\":\"x\",\"sessionId\":\"y\"}\n",
                )
                .unwrap()
            },
            Why::SessionEmpty,
        ),
    ];
    for (damage, why) in cases {
        let stage = Stage::new();
        stage.run("one").await;
        damage(&stage.transcripts()[0]);
        let second = stage.run("two").await;
        assert_eq!((second.route, stage.calls().len()), (Route::FellBack(why), 2));
    }
}

/// BR-103 and BR-009: damage in the middle or at the end does not cost the session.
#[tokio::test]
async fn a_file_with_damage_and_turns_is_resumed() {
    for tail in ["\0\0\0\0", "{\"type\":\"user\",\"mess", "garbage\n", "{\"half\":{\"type\":\"user\"}\n"] {
        let stage = Stage::new();
        stage.run("one").await;
        let path = &stage.transcripts()[0];
        let text = std::fs::read_to_string(path).unwrap();
        std::fs::write(path, format!("{text}{tail}")).unwrap();
        let second = stage.run("two").await;
        assert_eq!(second.route, Route::Resumed, "{tail:?}");
        let ended = second.warnings.contains(&rejoin::Warning::Mended(rejoin::core::Mend::EndLastLine));
        assert_eq!(ended, !tail.ends_with('\n'), "{tail:?}: {:?}", second.warnings);
        let third = ContextReply::parse(&stage.run("three").await.text).unwrap();
        assert_eq!(third.user_turns, 3, "{tail:?}: the turn after the damage was kept");
    }
}

/// A longer conversation under another id is not this one, whatever it holds: it may be another mailbox's.
#[tokio::test]
async fn another_conversation_is_never_taken_for_a_copy() {
    let stage = Stage::new();
    for prompt in ["a", "b", "c"] {
        stage.run(prompt).await;
    }
    let long = stage.bound().await.unwrap();
    let short =
        stage.lifecycle().run(stage.request("new").resume(rejoin::ResumePolicy::Never)).await.unwrap();
    stage.script(&resume_fails(&json!([
        { "line": { "type": "system", "subtype": "init", "session_id": long, "cwd": "/w" } },
        { "line": { "type": "result", "subtype": "success", "is_error": false, "session_id": long, "result": "x", "num_turns": 1 } }
    ])));
    let next = stage.run("next").await;
    assert_eq!((next.resumed, next.route), (false, Route::FellBack(Why::SessionReplaced)));
    assert_eq!(stage.bound().await, short.session_id.map(|id| id.to_string()));
}

/// Equal ids prove nothing where the file behind them is gone or holds less.
#[tokio::test]
async fn a_session_that_lost_its_file_meanwhile_was_not_resumed() {
    for damage in [
        json!({ "remove": "{{transcript}}" }),
        json!({ "create": { "path": "{{transcript}}", "text": "{}\n" } }),
    ] {
        let stage = Stage::new();
        stage.run("one").await;
        stage.run("two").await;
        stage.script(&resume_fails(&json!([
            damage,
            { "line": { "type": "system", "subtype": "init", "session_id": "{{sid}}", "cwd": "/w" } },
            { "line": { "type": "result", "subtype": "success", "is_error": false, "session_id": "{{sid}}", "result": "x", "num_turns": 1 } }
        ])));
        let third = stage.run("three").await;
        assert_eq!((third.resumed, third.route), (false, Route::FellBack(Why::SessionReplaced)), "{damage}");
    }
}

#[tokio::test]
async fn an_id_that_is_none_of_the_agents_is_never_bound() {
    for id in ["garbage".to_owned(), "--resume".to_owned(), "x".repeat(1 << 20)] {
        let stage = Stage::new();
        let line = json!({ "type": "system", "subtype": "init", "session_id": id, "cwd": "/w" });
        stage.script(&json!([{ "steps": [{ "line": line }, { "claude": {} }] }]));
        let first = stage.run("one").await;
        assert_ne!(first.session_id.as_ref().map(rejoin::NativeId::as_str), Some(id.as_str()));
        let kept = std::fs::metadata(stage.record_file()).unwrap().len();
        assert!(kept < 10_000, "{kept} bytes");
        stage.script(&json!([works()]));
        assert_eq!(stage.run("two").await.route, Route::Resumed);
    }
}
