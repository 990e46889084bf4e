//! Runs in a sandbox that shows what the plan of mounts says, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;

use rejoin::core::Exit;
use rejoin::process::Bubblewrap;
use rejoin::{Cancel, LlmRequest, Route, RunError, SessionRef, Why};

use super::kills::wait_for_turn;
use crate::matrix::Turns;
use crate::pinned::Pinned;
use crate::stage::{Stage, reply};

/// What stands in every file that nobody may see.
const SECRET: &str = "of-others-3f2a";
/// What finds it, and not itself.
const SECRET_PATTERN: &str = "of-others-[3]f2a";

/// A command that lists, in the work tree, every file and link there is of the stage, and every file that holds the secret.
fn probe(stage: &Stage) -> String {
    let root = stage.place.root.display();
    format!("find {root} ! -type d > seen; grep -rls '{SECRET_PATTERN}' {root} > told; true")
}

fn lines(stage: &Stage, name: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(stage.place.project().join(name)).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The model saw the earlier turns, and a command that it has the agent run finds the session's own files, the work tree
/// and the user's configuration: no login, no record, no audit log, no lock, nothing of another mailbox.
pub(super) async fn a_conversation_goes_on_and_sees_nothing_of_others(cli: &Pinned) {
    let mut stage = Stage::new(cli);
    stage.launcher = Some(Bubblewrap::new());
    let home = stage.place.home();
    let key = format!(r#"{{"OPENAI_API_KEY":"{SECRET}"}}"#);
    write(&home.join(".codex/auth.json"), &key);
    let key = format!(r#"{{"other":{{"type":"api","key":"{SECRET}"}}}}"#);
    write(&home.join(".local/share/opencode/auth.json"), &key);
    for file in [".claude/.credentials.json", ".local/share/opencode/log/other.log", ".ssh/id_ed25519"] {
        write(&home.join(file), SECRET);
    }
    let other = || SessionRef::new("issue-7", &*cli.agent);
    let request = LlmRequest::new(SECRET).cwd(stage.place.project()).session(other());
    stage.lifecycle(true).run(request).await.unwrap();
    assert!(stage.holds(SECRET), "the other mailbox has a session, and it can be told by this word");

    let first = stage.row("fresh, in a sandbox", true, stage.request("alpha")).await.unwrap();
    assert_eq!(first.route, Route::Fresh(Why::NoPriorSession));
    assert_eq!(first.warnings, []);
    let second = stage.row("resume, in a sandbox", true, stage.request("beta")).await.unwrap();
    let seen = reply(&second);
    assert_eq!((second.route, seen.user_turns, seen.first.as_str()), (Route::Resumed, 2, "alpha"));
    assert_eq!(second.session_id, first.session_id);

    stage.run(&cli.under_test().tool_call(cli, &probe(&stage))).await.unwrap();
    let (seen, told) = (lines(&stage, "seen"), lines(&stage, "told"));
    let base = stage.place.store().join(".agent-sessions");
    let own = base.join("state/issue-42").display().to_string();
    let within = |path: &&String, folder: &Path| Path::new(path).starts_with(folder);
    assert!(seen.iter().any(|path| path.starts_with(&own)), "the probe saw the session: {seen:#?}");
    let of_store: Vec<_> =
        seen.iter().filter(|path| within(path, &base) && !path.starts_with(&own)).collect();
    assert_eq!(of_store, [""; 0], "nothing of the store but the key's own state dir");
    assert_eq!(told, BTreeSet::new(), "no login, and nothing of the other mailbox");

    // What it began in a sandbox goes on without, and the other way round.
    let launcher = stage.launcher.take();
    let outside = stage.lifecycle_of(stage.agent_anew()).run(stage.request("gamma")).await.unwrap();
    assert_eq!((outside.route, &outside.session_id), (Route::Resumed, &first.session_id));
    stage.launcher = launcher;
    let again = stage.lifecycle_of(stage.agent_anew()).run(stage.request("delta")).await.unwrap();
    assert_eq!((again.route, reply(&again).first.as_str()), (Route::Resumed, "alpha"));
    assert_eq!(stage.processes(), [0; 0], "nothing is left");

    if stage.rules.forks {
        let fork = LlmRequest::new("epsilon")
            .cwd(stage.place.project())
            .session(SessionRef::new("issue-42-b", &*cli.agent));
        let fork = fork.fork_of(SessionRef::new("issue-42", &*cli.agent));
        let before = stage.turns();
        match stage.row("fork, in a sandbox", true, fork).await {
            Ok(forked) => assert_eq!((forked.route, reply(&forked).first.as_str()), (Route::Forked, "alpha")),
            // One that would write in the other state dir is refused.
            Err(RunError::Agent(_)) => assert_eq!(stage.turns(), before, "nothing is started"),
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// Who is asked to end is the CLI inside, not what keeps it there: that would take it down in the middle of a word.
pub(super) async fn cancelled_in_mid_turn(cli: &Pinned) {
    let mut stage = Stage::new(cli);
    stage.launcher = Some(Bubblewrap::new());
    let first = stage.run("alpha").await.unwrap();
    let cancel = Cancel::new();
    let (lifecycle, request) =
        (stage.lifecycle(true), stage.request("[[hold turn]] beta").cancel(cancel.clone()));
    let before = stage.turns();
    let running = tokio::spawn(async move { lifecycle.run(request).await });
    wait_for_turn(&stage, "[[hold turn]] beta").await;
    cancel.cancel();
    let outcome = running.await.unwrap();
    stage.note("cancelled in mid-turn, in a sandbox", &outcome, Turns::Counted(stage.turns() - before));
    let Err(RunError::Failed { why: Why::Cancelled, run }) = outcome else { panic!("{outcome:?}") };
    assert!(matches!(run.evidence.exit, Exit::Code(_)), "{:?}", run.evidence.exit);
    assert_eq!(stage.processes(), [0; 0], "nothing is left");
    let next = stage.run("gamma").await.unwrap();
    assert_eq!((next.route, next.session_id), (Route::Resumed, first.session_id));
}
