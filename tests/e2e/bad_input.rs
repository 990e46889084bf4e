//! Bad input: a clear error or a fresh run with a reason, and nothing lost.

use std::error::Error;
use std::os::unix::fs::PermissionsExt as _;

use rejoin::core::Program;
use rejoin::error::{AgentErrorKind, FolderError, RequestError};
use rejoin::{LlmRequest, Route, RunError, SessionRef, Why};

use crate::stage::*;

fn chain(error: &(dyn Error + 'static)) -> String {
    rejoin::error::Chain(error).to_string()
}

#[tokio::test]
async fn a_prompt_of_nothing_is_refused() {
    let stage = Stage::new();
    for prompt in ["", " ", "\n\t"] {
        let refused = stage.lifecycle().run(stage.request(prompt)).await;
        assert!(matches!(refused, Err(RunError::Request(RequestError::EmptyPrompt))));
    }
    assert!(stage.files("store/.agent-sessions/records").is_empty());
}

#[tokio::test]
async fn mailboxes_and_branches_of_every_kind() {
    for (name, good) in [
        ("a/b/../c", true),
        ("..", true),
        ("a\nb", false),
        ("a\0b", false),
        ("😀 e\u{301} é", true),
        ("-x --resume", true),
        ("/clear", true),
    ] {
        let stage = Stage::new();
        let request = |mailbox: &str, branch: &str| {
            LlmRequest::new("x")
                .cwd(stage.path("project"))
                .session(SessionRef::new(mailbox, "claude").named(branch))
        };
        for (mailbox, branch) in [(name, "b"), ("m", name)] {
            match stage.lifecycle().run(request(mailbox, branch)).await {
                Ok(result) => {
                    assert!(good, "{mailbox:?} {branch:?}");
                    assert_eq!(result.name.as_deref(), Some(branch));
                    let again = stage.lifecycle().run(request(mailbox, "another")).await.unwrap();
                    assert_eq!(
                        (again.route, again.name.as_deref()),
                        (Route::Resumed, Some(branch)),
                        "the name stays"
                    );
                }
                Err(RunError::Request(RequestError::Name(_))) => assert!(!good, "{mailbox:?} {branch:?}"),
                Err(other) => panic!("{mailbox:?} {branch:?}: {}", chain(&other)),
            }
        }
        let outside = stage.files("project").len() + stage.files("home").len();
        assert_eq!(outside, 0, "nothing outside of the store");
    }
    let stage = Stage::new();
    let long = LlmRequest::new("x")
        .cwd(stage.path("project"))
        .session(SessionRef::new("y".repeat(10_240), "claude"));
    assert!(matches!(stage.lifecycle().run(long).await, Err(RunError::Request(RequestError::Name(_)))));
}

#[tokio::test]
async fn a_folder_that_cannot_be_worked_in_is_named() {
    let stage = Stage::new();
    let file = stage.path("script.json");
    let missing = stage.path("nowhere");
    for (cwd, expect) in [(&missing, "does not exist"), (&file, "is not a folder")] {
        let error = stage.lifecycle().run(stage.request("x").cwd(cwd)).await.unwrap_err();
        assert!(matches!(
            &error,
            RunError::Request(RequestError::Folder(
                FolderError::Missing { .. } | FolderError::NotAFolder { .. }
            ))
        ));
        let text = chain(&error);
        assert!(text.contains(expect) && text.contains(&cwd.display().to_string()), "{text}");
    }
    assert!(stage.calls().is_empty());
}

#[tokio::test]
async fn a_program_that_is_none_is_named_and_changes_nothing() {
    let stage = Stage::new();
    let first = stage.run("one").await.session_id.unwrap();
    let record = std::fs::read(stage.record_file()).unwrap();
    let text_file = stage.path("text");
    std::fs::write(&text_file, "no program").unwrap();
    let odd = stage.path("odd");
    std::fs::write(&odd, "#!/bin/sh\necho I am something else\n").unwrap();
    std::fs::set_permissions(&odd, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (program, kind) in [
        (stage.path("nowhere"), AgentErrorKind::NotFound),
        ("no-such-program-anywhere".into(), AgentErrorKind::NotFound),
        (text_file, AgentErrorKind::NotExecutable),
        (stage.path("home"), AgentErrorKind::NotExecutable),
        (odd, AgentErrorKind::Probe),
    ] {
        let lifecycle = stage.lifecycle_of(Program::new(&program), stage.environment());
        match lifecycle.run(stage.request("two")).await {
            Err(RunError::Agent(error)) => {
                assert_eq!(error.kind(), kind, "{error}");
                assert!(error.to_string().contains(&program.display().to_string()), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(std::fs::read(stage.record_file()).unwrap(), record, "the state is unchanged");
    assert_eq!(stage.run("two").await.session_id, Some(first));
}

#[tokio::test]
async fn an_id_in_the_store_that_is_none_never_reaches_the_agent() {
    for id in ["nope", "-x", "--resume", "", "ses_1", "11111111-1111-4111-8111-11111111111Z"] {
        let stage = Stage::new();
        let first = stage.run("one").await.session_id.unwrap();
        tamper(&stage, |text| text.replace(first.as_str(), id)).await;
        let second = stage.run("two").await;
        assert_eq!(second.route, Route::FellBack(Why::IdMalformed), "{id:?}");
        let calls = stage.calls();
        assert!(calls.iter().all(|call| !call.argv.contains(&"--resume".to_owned())), "{id:?}");
    }
}

/// Rewrites the record's document through the store.
async fn tamper(stage: &Stage, change: impl Fn(String) -> String) {
    use rejoin::SessionStore as _;
    let store = rejoin::stores::FsStore::open(stage.path("store")).unwrap();
    let stored = store.load(&key()).await.unwrap().unwrap();
    let text = change(String::from_utf8(stored.document.as_bytes().to_vec()).unwrap());
    let document = rejoin::core::Document::new(text.into_bytes());
    let guard = rejoin::core::Guard::Revision(stored.revision);
    assert!(matches!(
        store.save(&key(), &document, &guard, None).await.unwrap(),
        rejoin::core::Saved::Done(_)
    ));
}

#[tokio::test]
async fn a_record_of_a_newer_version_is_left_as_it_is() {
    let stage = Stage::new();
    stage.run("one").await;
    tamper(&stage, |text| text.replacen("\"minor\": 0", "\"minor\": 7", 1)).await;
    let before = std::fs::read(stage.record_file()).unwrap();
    let second = stage.run("two").await;
    assert_eq!(second.route, Route::FellBack(Why::RecordNewer));
    assert!(!second.recorded.is_saved());
    assert_eq!(std::fs::read(stage.record_file()).unwrap(), before);
}

#[tokio::test]
async fn a_record_cut_anywhere_means_a_fresh_run_and_its_bytes_are_kept() {
    for share in [0, 1, 25, 50, 75, 99] {
        let stage = Stage::new();
        stage.run("one").await;
        let file = stage.record_file();
        let whole = std::fs::read(&file).unwrap();
        let length = whole.len() * share / 100;
        let torn = whole[..length].to_vec();
        std::fs::write(&file, &torn).unwrap();
        let second = stage.run("two").await;
        assert_eq!(second.route, Route::FellBack(Why::RecordCorrupt), "cut at {length}");
        assert!(second.recorded.is_saved());
        let kept = stage.files("store/.agent-sessions/quarantine");
        assert_eq!(std::fs::read(&kept[0]).unwrap(), torn);
        assert_eq!(stage.run("three").await.route, Route::Resumed);
    }
}
