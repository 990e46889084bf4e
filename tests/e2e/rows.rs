//! Rows of failing resumes that the suite on the real CLIs does not bring about, as it runs as root, or as no fixture has
//! them: what the programs were seen to print, played over a whole run. Each says what is told, what stays bound, and that
//! the prompt ran once at the most.

use std::sync::Arc;
use std::time::Duration;

use rejoin::core::decide::condemns;
use rejoin::core::{Lifecycle, MemoryStore, Program};
use rejoin::process::{Environment, SystemHost};
use rejoin::{Limits, LlmRequest, Route, RunError, SessionKey, SessionRef, Why};
use rejoin_test_support::fake_agent::{leading_args, read_calls};
use serde_json::{Value, json};

use crate::replay::adapter_in;

/// How the run comes out whose resume printed that.
#[derive(Debug, Clone, Copy)]
enum Ends {
    FellBack(Why),
    Failed(Why),
}
use Ends::{Failed, FellBack};

/// What a resume printed (`ID` stands for the id asked for), its exit, and how the run comes out.
type Row = (&'static str, &'static str, i32, &'static str, &'static str, Ends);

const MISSING: &str =
    "Error: thread/resume: thread/resume failed: no rollout found for thread id ID (code -32600)\n";

#[rustfmt::skip]
const CODEX: &[Row] = &[
    ("0.171.0", "the folder of sessions unreadable; an id without a turn", 1, "", MISSING, FellBack(Why::SessionMissing)),
    ("0.130.0", "the folder of sessions unreadable", 1, "", MISSING, FellBack(Why::SessionMissing)),
    ("0.171.0", "file of mode 000", 1, "", "Error: thread/resume: thread/resume failed: Permission denied (os error 13) (code -32603)\n", Failed(Why::AgentMisconfigured)),
    ("0.63.0", "file of mode 000", 1, "", "Error: Permission denied (os error 13)\n", Failed(Why::AgentMisconfigured)),
    ("0.98.0", "read-only file or home", 1, "", "Error: Fatal error: Codex cannot access session files at /h/sessions (permission denied). Check it.\n", Failed(Why::AgentMisconfigured)),
    ("0.130.0", "read-only file", 1, "", "Error: thread/resume: thread/resume failed: failed to resume local thread recorder: Permission denied (os error 13)\n", Failed(Why::AgentMisconfigured)),
    ("0.171.0", "read-only home", 1, "", "Error: failed to initialize in-process app-server client: Permission denied (os error 13)\n", Failed(Why::AgentMisconfigured)),
    ("0.130.0", "home that is not there", 1, "", "Error finding codex home: CODEX_HOME points to \"/h\", but that path does not exist\n", Failed(Why::AgentMisconfigured)),
    ("0.171.0", "index of threads locked", 1, "", "Error: thread/resume: thread/resume failed: list_turns is not supported yet (code -32601)\n", FellBack(Why::SessionUnindexed)),
    ("0.171.0", "index of the history locked", 1, "", "Error: thread/resume: thread/resume failed: database is locked (code -32603)\n", FellBack(Why::SessionBusy)),
    ("0.171.0", "index of the history corrupt, in the user's home", 1, "", "Error: thread/resume: thread/resume failed: failed to open thread history database: (code: 26) file is not a database (code -32603)\n", FellBack(Why::SessionUnindexed)),
    ("0.171.0", "file with another id inside", 1, "", "Error: thread/resume: thread/resume failed: thread source changed during resume; retry with the current thread ID or path\n", FellBack(Why::SessionIncompatible)),
    ("0.63.0", "another thread in silence", 0, "{\"type\":\"thread.started\",\"thread_id\":\"0199a213-81c0-7800-8aa1-0000000000ff\"}\n{\"type\":\"turn.started\"}\n{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"agent_message\",\"text\":\"who are you\"}}\n{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1,\"cached_input_tokens\":0,\"output_tokens\":1}}\n", "", FellBack(Why::SessionReplaced)),
];

const STARTED: &str = "{\"type\":\"error\",\"timestamp\":1,\"sessionID\":\"ID\",\"error\":{\"name\":\"UnknownError\",\"data\":{\"message\":\"Unexpected server error\"}}}\n";

#[rustfmt::skip]
const OPENCODE: &[Row] = &[
    ("1.18.33", "damaged pages; snapshots of mode 000; a folder that is gone", 1, STARTED, "", FellBack(Why::ResumeUnrecognisedFailure)),
    ("1.2.1", "damaged pages", 0, "", "SQLiteError: database disk image is malformed\n code: \"SQLITE_CORRUPT\"\n", FellBack(Why::SessionIncompatible)),
    ("1.18.33", "database of mode 000", 1, "", "Error: Unexpected error\n\nunable to open database file\n", Failed(Why::AgentMisconfigured)),
    ("1.18.33", "database of mode 444", 1, "", "Error: Unexpected error\n\nFailed query: insert into \"project\" (\"id\") values (?)\n", Failed(Why::AgentMisconfigured)),
    ("1.18.33", "read-only data folder", 1, "", "Error: Unexpected error\n\nattempt to write a readonly database\n", Failed(Why::AgentMisconfigured)),
    ("1.18.33", "data folder of mode 000, read-only home", 1, "", "EACCES: permission denied, mkdir '/h/.cache'\nBun v1.3\n", Failed(Why::AgentMisconfigured)),
    ("1.18.33", "read-only log folder", 1, "", "Error: PermissionDenied: FileSystem.open (/h/log/opencode.log)\n", Failed(Why::AgentMisconfigured)),
    ("1.18.33", "data folder removed", 1, "", "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found\n", FellBack(Why::SessionMissing)),
    ("1.2.1", "data folder removed", 0, "", "NotFoundError: Session not found: ID\n", FellBack(Why::SessionMissing)),
    ("1.1.65", "malformed id", 0, "", "ZodError: [{\"message\":\"Invalid string: must start with \\\"ses\\\"\"}]\n", FellBack(Why::SessionMissing)),
    ("1.15.13", "another folder, in silence", 0, "", "", Failed(Why::NoResult)),
    ("1.1.65", "killed below its launcher, without a network", 0, "", "ERROR 2026-11-29T21:13:41 +3ms service=models.dev error=Unable to connect\n", Failed(Why::NoResult)),
    ("1.18.33", "an answer of the provider that is none", 1, "{\"type\":\"step_start\",\"sessionID\":\"ID\",\"part\":{}}\n{\"type\":\"error\",\"sessionID\":\"ID\",\"error\":{\"name\":\"UnknownError\",\"data\":{\"message\":\"JSON parsing failed\"}}}\n", "", Failed(Why::UnrecognisedFailure)),
];

/// The agent's folder, two ids of its own, and a turn that works in a session.
type Agent = (&'static str, &'static str, &'static str, fn(&str) -> Value);

const CODEX_AGENT: Agent =
    ("adapter-codex", "0199a213-81c0-7800-8aa1-000000000001", "0199a213-81c0-7800-8aa1-000000000002", |id| {
        json!([
            {"line": {"type": "thread.started", "thread_id": id}},
            {"line": {"type": "turn.started"}},
            {"line": {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "ok"}}},
            {"line": {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}},
        ])
    });

const OPENCODE_AGENT: Agent = (
    "adapter-opencode",
    "ses_00000000000000000000000000000001",
    "ses_00000000000000000000000000000002",
    |id| {
        json!([
            {"line": {"type": "step_start", "sessionID": id, "part": {}}},
            {"line": {"type": "text", "sessionID": id, "part": {"text": "ok"}}},
            {"line": {"type": "step_finish", "sessionID": id, "part": {"reason": "stop"}}},
        ])
    },
);

async fn play((folder, old, new, works): Agent, (version, name, exit, stdout, stderr, ends): &Row) {
    let what = format!("{folder} {version}, {name}");
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for folder in ["home", "project"] {
        std::fs::create_dir(path(folder)).unwrap();
    }
    let adapter = adapter_in(folder);
    let printed = json!([
        {"stdout": stdout.replace("ID", old)}, {"stderr": stderr.replace("ID", old)}, {"exit": exit},
    ]);
    let script = json!({
        "version": (adapter.version)(version),
        "log": path("calls"),
        "cases": [
            {"when": {"has": ["import"]}, "steps": []},
            {"when": {"prompt": "one"}, "steps": works(old)},
            {"when": {"has": [old]}, "steps": printed},
            {"steps": works(new)},
        ],
    });
    std::fs::write(path("script.json"), script.to_string()).unwrap();
    let program = leading_args(&path("script.json"))
        .into_iter()
        .fold(Program::new(env!("CARGO_BIN_EXE_fake-agent")), Program::leading_arg);
    let environment = Environment::bare().pass(&["PATH"]).set("HOME", path("home"));
    let agent = (adapter.make)(program, environment).without_catalog();
    let id = agent.adapter().id().clone();
    let lifecycle = Lifecycle::new(Arc::new(MemoryStore::new()), Arc::new(SystemHost::new())).agent(agent);
    let key = SessionKey::new("issue-42", id.as_str()).unwrap();
    let request = |prompt: &str| {
        let mut limits = Limits::default();
        limits.busy = Duration::ZERO;
        let session = SessionRef::new("issue-42", id.as_str());
        LlmRequest::new(prompt).cwd(path("project")).session(session).limits(limits)
    };
    let first = lifecycle.run(request("one")).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    assert_eq!(first.session_id.unwrap().as_str(), old, "{what}");

    let outcome = lifecycle.run(request("two")).await;
    let record = lifecycle.record(&key).await.unwrap().unwrap();
    let bound = record.binding.unwrap().native_id;
    let (attempts, binds) = match (&outcome, *ends) {
        (Ok(result), FellBack(expected)) => {
            assert_eq!(result.route, Route::FellBack(expected), "{what}: {:?}", result.attempts);
            assert!(!result.resumed, "{what}");
            (&result.attempts, if condemns(expected) { new } else { old })
        }
        (Err(RunError::Failed { why, run }), Failed(expected)) => {
            assert_eq!(*why, expected, "{what}: {:?}", run.evidence);
            (&run.attempts, old)
        }
        _ => panic!("{what}: {outcome:?}, and {ends:?} was expected"),
    };
    // A session that stands aside for reasons of the agent's words alone takes the place, as nobody saw the old one.
    let binds = if matches!(ends, FellBack(Why::ResumeUnrecognisedFailure)) { new } else { binds };
    assert_eq!(bound.as_str(), binds, "{what}: what is bound");
    let began = attempts.iter().filter(|attempt| attempt.activity != "none").count();
    assert!(began <= 1, "{what}: the prompt ran twice: {attempts:?}");
    let turns =
        read_calls(&path("calls")).unwrap().into_iter().filter(|call| call.stdin.contains("two")).count();
    assert_eq!(turns, attempts.len(), "{what}: each attempt is one call, and one fallback at the most");
    assert!(turns <= 2, "{what}");
}

#[tokio::test]
async fn every_row_of_codex_comes_out_as_it_must() {
    for row in CODEX {
        play(CODEX_AGENT, row).await;
    }
}

#[tokio::test]
async fn every_row_of_opencode_comes_out_as_it_must() {
    for row in OPENCODE {
        play(OPENCODE_AGENT, row).await;
    }
}
