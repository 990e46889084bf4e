//! What is made before the agent's own command runs: commands of its own, and empty folders.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

use session_core::decide::Verdict;
use session_core::{EndedBy, Exit, NoSink};

use crate::support::{END, Stage};

#[tokio::test]
async fn preparations_run_in_order_before_the_turn() {
    let mut stage = Stage::new(&format!(
        "case \"$1\" in one|two) echo \"$1\" >> \"$DIR/log\"; echo '{{\"session\":\"stray\"}}'; exit 0;; esac
         echo turn >> \"$DIR/log\"; {END}"
    ));
    stage.dialect.preparations = vec!["one".into(), "two".into()];
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!(report.verdict, Verdict::Completed);
    assert_eq!(stage.read("log"), "one\ntwo\nturn\n");
    assert_eq!(report.evidence.observation.session, None, "what a preparation prints is not looked at");
}

#[tokio::test]
async fn a_preparation_that_fails_ends_the_attempt_there() {
    let mut stage =
        Stage::new("case \"$1\" in bad) echo why it failed >&2; exit 7;; esac; echo ran >> \"$DIR/log\"");
    stage.dialect.preparations = vec!["bad".into(), "never".into()];
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!((report.verdict, report.evidence.exit), (Verdict::Crashed, Exit::Code(7)));
    assert_eq!(report.evidence.stderr_tail.trim(), "why it failed");
    assert_eq!(stage.read("log"), "", "neither the next one nor the turn was started");
}

#[tokio::test]
async fn a_preparation_is_under_the_limits_of_the_turn() {
    let mut stage = Stage::new("case \"$1\" in hang) exec sleep 1000;; esac; echo ran >> \"$DIR/log\"");
    stage.dialect.preparations = vec!["hang".into()];
    stage.limits.start = Duration::from_millis(50);
    let report = stage.run(&mut NoSink).await.unwrap();
    assert_eq!((report.verdict, report.evidence.ended_by), (Verdict::TimedOut, Some(EndedBy::StartLimit)));
    assert_eq!(stage.read("log"), "");
}

#[tokio::test]
async fn a_scratch_folder_is_empty_at_every_start_and_no_link_is_followed() {
    let mut stage =
        Stage::new(&format!("ls -A \"$DIR/scratch\" > \"$DIR/seen\"; touch \"$DIR/scratch/made\"; {END}"));
    let (scratch, other) = (stage.path("scratch"), stage.path("other"));
    stage.dialect.scratch = vec![scratch.clone()];
    for _ in 0..2 {
        assert_eq!(stage.run(&mut NoSink).await.unwrap().verdict, Verdict::Completed);
        assert_eq!(stage.read("seen"), "");
        assert!(scratch.join("made").exists());
    }
    fs::create_dir(&other).unwrap();
    fs::write(other.join("precious"), "x").unwrap();
    symlink(&other, scratch.join("inside")).unwrap();
    assert_eq!(stage.run(&mut NoSink).await.unwrap().verdict, Verdict::Completed);
    fs::remove_dir_all(&scratch).unwrap();
    symlink(&other, &scratch).unwrap();
    assert_eq!(stage.run(&mut NoSink).await.unwrap().verdict, Verdict::Completed);
    assert_eq!((stage.read("seen").as_str(), stage.read("other/precious").as_str()), ("", "x"));
    assert!(!other.join("made").exists(), "the link was taken away, not followed");
}

#[tokio::test]
async fn a_scratch_folder_is_emptied_whatever_an_agent_made_in_it() {
    let mut stage = Stage::new(&format!("ls -A \"$DIR/state/scratch\" > \"$DIR/seen\"; {END}"));
    let (state, other) = (stage.path("state"), stage.path("other"));
    let scratch = state.join("scratch");
    (stage.state_dir, stage.dialect.scratch) = (Some(state.clone()), vec![scratch.clone()]);
    fs::create_dir_all(&scratch).unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(other.join("precious"), "x").unwrap();
    fs::create_dir_all(scratch.join("deep/er")).unwrap();
    symlink(&other, scratch.join("deep/er/link")).unwrap();
    for number in 0..300 {
        fs::create_dir(scratch.join(number.to_string())).unwrap();
    }
    let closed = scratch.join("closed/inner");
    fs::create_dir_all(&closed).unwrap();
    fs::set_permissions(closed.parent().unwrap(), fs::Permissions::from_mode(0o000)).unwrap();
    symlink(&scratch, scratch.join("loop")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(scratch.join("pipe")).status().unwrap();
    assert!(pipe.success());

    assert_eq!(stage.run(&mut NoSink).await.unwrap().verdict, Verdict::Completed);
    assert_eq!((stage.read("seen").as_str(), stage.read("other/precious").as_str()), ("", "x"));
    assert_eq!(fs::read_dir(&state).unwrap().count(), 1, "nothing is left beside it");
}
