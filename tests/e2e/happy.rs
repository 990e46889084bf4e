//! Runs that go well.

use rejoin::{Cancel, Route, Why};
use rejoin_test_support::ContextReply;
use serde_json::json;

use crate::stage::*;

#[tokio::test]
async fn the_second_run_continues_the_first_and_the_prompt_never_is_an_argument() {
    let stage = Stage::new();
    let first = stage.run("alpha secret").await;
    let second = stage.run("--help beta secret").await;
    assert_eq!((first.route, second.route), (Route::Fresh(Why::NoPriorSession), Route::Resumed));
    let seen = ContextReply::parse(&second.text).unwrap();
    assert_eq!((seen.user_turns, seen.last.as_str()), (2, "--help beta secret"));
    for call in stage.calls() {
        assert!(call.argv.iter().all(|arg| !arg.contains("secret")), "{:?}", call.argv);
    }
    let id = first.session_id.unwrap().to_string();
    let calls = stage.calls();
    assert!(calls[0].argv.windows(2).any(|pair| pair == ["--session-id", id.as_str()]));
    assert!(calls[1].argv.windows(2).any(|pair| pair == ["--resume", id.as_str()]));
    assert!(!calls[1].argv.contains(&"--session-id".to_owned()));
}

#[tokio::test]
async fn each_mailbox_has_a_state_dir_of_its_own() {
    let stage = Stage::new();
    for mailbox in ["a", "A", "a/b", "../a", "e\u{301}", "é", "😀", "a.", "con", " "] {
        let request = rejoin::LlmRequest::new("x")
            .cwd(stage.path("project"))
            .session(rejoin::SessionRef::new(mailbox, "claude").named(mailbox));
        match (mailbox, stage.lifecycle().run(request).await) {
            (" ", Err(rejoin::RunError::Request(_))) => {}
            (_, result) => {
                assert_eq!(result.unwrap().route, Route::Fresh(Why::NoPriorSession), "{mailbox:?}")
            }
        }
    }
    assert_eq!(stage.transcripts().len(), 9);
    let dirs: std::collections::BTreeSet<_> =
        stage.calls().iter().map(|call| call.env["CLAUDE_CONFIG_DIR"].to_lowercase()).collect();
    assert_eq!(dirs.len(), 9, "apart on any file system");
    assert!(
        dirs.iter().all(|dir| dir.starts_with(&stage.path("store").display().to_string().to_lowercase()))
    );
}

#[tokio::test]
async fn a_megabyte_arrives_whole() {
    let stage = Stage::new();
    let prompt = format!("{}\nend", "wörd ".repeat((1 << 20) / 6));
    stage.run(&prompt).await;
    assert!(stage.calls()[0].stdin.contains("end"));
    let kept: String = std::fs::read_to_string(&stage.transcripts()[0]).unwrap();
    let has = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line)
            .is_ok_and(|record| record["message"]["content"] == json!(prompt))
    };
    assert!(kept.lines().any(has), "verbatim");
}

#[tokio::test]
async fn nesting_markers_do_not_reach_the_agent_and_credentials_do() {
    let stage = Stage::new();
    let environment = stage
        .environment()
        .set("CLAUDECODE", "1")
        .set("CLAUDE_CODE_ENTRYPOINT", "cli")
        .set("ANTHROPIC_API_KEY", "key")
        .set("CLAUDE_CODE_OAUTH_TOKEN", "token");
    stage.lifecycle_of(stage.program(), environment).run(stage.request("x")).await.unwrap();
    let env = &stage.calls()[0].env;
    assert!(!env.contains_key("CLAUDECODE") && !env.contains_key("CLAUDE_CODE_ENTRYPOINT"), "{env:?}");
    assert_eq!(
        (env["ANTHROPIC_API_KEY"].as_str(), env["CLAUDE_CODE_OAUTH_TOKEN"].as_str()),
        ("key", "token")
    );
}

#[tokio::test]
async fn a_result_stands_whatever_the_process_does_afterwards() {
    for (steps, note) in [
        (json!([{ "claude": {} }, { "exit": 1 }]), "a bad exit"),
        (json!([{ "claude": {} }, { "kill_self": "TERM" }]), "a signal"),
    ] {
        let stage = Stage::new();
        stage.script(&json!([{ "steps": steps }]));
        let result = stage.run("x").await;
        assert!(
            matches!(result.warnings[..], [rejoin::Warning::ExitedBadly(_)]),
            "{note}: {:?}",
            result.warnings
        );
        assert_eq!(stage.run("y").await.route, Route::Resumed, "{note}");
    }
}

#[tokio::test]
async fn an_older_version_that_copies_on_resume_is_followed() {
    let stage = Stage::new();
    let script = json!({
        "version": "1.0.65 (Claude Code)",
        "log": stage.path("calls.jsonl"),
        "cases": [{ "steps": [{ "claude": { "replace_id": true } }] }]
    });
    std::fs::write(stage.path("script.json"), script.to_string()).unwrap();
    let first = stage.run("one").await;
    let second = stage.run("two").await;
    let third = stage.run("three").await;
    assert_eq!((second.route, third.route), (Route::Resumed, Route::Resumed));
    assert_eq!(
        ContextReply::parse(&third.text).unwrap().user_turns,
        3,
        "the third run knows the second turn"
    );
    assert_eq!(stage.bound().await, third.session_id.map(|id| id.to_string()));
    let past: Vec<_> = stage.record().await.past.into_iter().map(|former| Some(former.native_id)).collect();
    assert_eq!(past, [first.session_id, second.session_id]);
}

#[tokio::test]
async fn a_cancelled_handle_starts_nothing() {
    let stage = Stage::new();
    let cancel = Cancel::new();
    cancel.cancel();
    let cancelled = stage.lifecycle().run(stage.request("x").cancel(cancel)).await;
    assert!(matches!(cancelled, Err(rejoin::RunError::Cancelled)), "{cancelled:?}");
    assert!(stage.calls().is_empty());
    assert!(stage.run("y").await.session_id.is_some());
}

#[tokio::test]
async fn nothing_that_is_shown_for_debugging_holds_a_secret() {
    let stage = Stage::new();
    let environment = stage.environment().set("ANTHROPIC_API_KEY", "k3y");
    let request = stage.request("pr0mpt");
    let lifecycle = stage.lifecycle_of(stage.program(), environment.clone());
    let shown = format!("{lifecycle:?} {environment:?} {request:?}");
    assert!(shown.contains("ANTHROPIC_API_KEY"), "{shown}");
    assert!(!shown.contains("k3y") && !shown.contains("pr0mpt"), "{shown}");
}
