//! What cannot be started is said by its right name.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use session_core::error::{AgentError, AgentErrorKind};
use session_core::{AgentAdapter, EnvChange, Link, NoSink};
use session_process::Environment;
use session_process::error::{LaunchError, LocateError};

use crate::support::{END, Stage, write_program};

fn cause<E: Error + 'static>(error: &AgentError) -> &E {
    error.source().expect("a cause").downcast_ref().expect("a cause of this type")
}

#[tokio::test]
async fn a_program_that_is_none_is_named() {
    let mut stage = Stage::new("");
    let text = stage.path("text");
    fs::write(&text, "just text\n").unwrap();
    for (program, kind) in [
        (stage.path("missing"), AgentErrorKind::NotFound),
        (stage.folder.path().to_owned(), AgentErrorKind::NotExecutable),
        (text.clone(), AgentErrorKind::NotExecutable),
        (text.join("below"), AgentErrorKind::NotFound),
    ] {
        stage.dialect.program.program = program.clone();
        let error = stage.agent().detect().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{}", program.display());
        assert!(error.to_string().contains(program.to_str().unwrap()), "{error}");
        // The same when it went away since it was found.
        let error = stage.run(&mut NoSink).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{} at the start", program.display());
    }
    // Executable by its mode, but nothing that the system can execute.
    fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
    stage.dialect.program.program = text.clone();
    let error = stage.agent().detect().await.unwrap_err();
    assert_eq!(error.kind(), AgentErrorKind::NotExecutable);
    write_program(&text, "#!/no/such/interpreter\n");
    let error = stage.agent().detect().await.unwrap_err();
    assert_eq!(error.kind(), AgentErrorKind::NotExecutable);
    assert!(matches!(cause(&error), LaunchError::Interpreter { .. }));
}

#[tokio::test]
async fn a_name_is_looked_up_in_the_path_of_the_child() {
    let mut stage = Stage::new("echo 4.5.6");
    let bin = stage.path("bin");
    fs::create_dir_all(bin.join("tool")).unwrap();
    stage.dialect.program.program = PathBuf::from("agent");
    let path = |folders: &[&Path]| std::env::join_paths(folders).unwrap();
    // A relative entry that would lead to another program of the name: where it leads depends on the folder.
    let decoy = stage.path("decoy");
    fs::create_dir(&decoy).unwrap();
    write_program(&decoy.join("agent"), "#!/bin/sh\necho 9.9.9\n");
    let up = std::env::current_dir().unwrap().ancestors().skip(1).map(|_| "../").collect::<String>();
    let relative = Path::new(&up).join(decoy.strip_prefix("/").unwrap());
    assert!(relative.join("agent").exists());
    stage.environment = stage.environment.clone().set("PATH", path(&[&relative, &bin, stage.folder.path()]));
    let found = stage.agent().detect().await.unwrap();
    assert_eq!(found.program, stage.path("agent"));
    assert_eq!(found.version.unwrap().text, "4.5.6");

    stage.dialect.program.program = PathBuf::from("tool");
    let error = stage.agent().detect().await.unwrap_err();
    assert_eq!(error.kind(), AgentErrorKind::NotExecutable);
    assert_eq!(cause::<LocateError>(&error), &LocateError::Directory);
    assert!(error.to_string().contains(bin.join("tool").to_str().unwrap()));

    stage.dialect.program.program = PathBuf::from("nowhere");
    let error = stage.agent().detect().await.unwrap_err();
    assert_eq!(error.kind(), AgentErrorKind::NotFound);
    assert_eq!(cause::<LocateError>(&error), &LocateError::NotInPath { folders: 3 });
    stage.environment = Environment::bare();
    let error = stage.agent().detect().await.unwrap_err();
    assert_eq!(cause::<LocateError>(&error), &LocateError::NoPath);
}

#[tokio::test]
async fn a_folder_that_is_gone_is_not_taken_for_a_missing_program() {
    let stage = Stage::new(END);
    fs::write(stage.path("file"), "").unwrap();
    for cwd in [stage.path("gone"), stage.path("file")] {
        let error = stage.run_in(&cwd, "hello", &mut NoSink).await.unwrap_err();
        assert_eq!(error.kind(), AgentErrorKind::Spawn);
        assert!(error.to_string().contains(cwd.to_str().unwrap()), "{error}");
        assert!(matches!(cause(&error), LaunchError::Cwd { .. }));
    }
}

#[tokio::test]
async fn arguments_that_the_system_does_not_take_are_told() {
    let mut stage = Stage::new(END);
    stage.dialect.args = vec![OsString::from("a"), OsString::from_vec(b"b\0c".to_vec())];
    let error = stage.run(&mut NoSink).await.unwrap_err();
    assert_eq!(error.kind(), AgentErrorKind::Command);
    assert!(matches!(cause(&error), LaunchError::Nul { what } if what == "argument 2"));

    stage.dialect.args = Vec::new();
    stage.dialect.env = vec![EnvChange::set("NAME", OsString::from_vec(b"\0".to_vec()))];
    let error = stage.run(&mut NoSink).await.unwrap_err();
    assert!(matches!(cause(&error), LaunchError::Nul { what } if what == "the variable NAME"));

    stage.dialect.env = Vec::new();
    stage.dialect.args = vec!["x".repeat(3 << 20).into()];
    let error = stage.run(&mut NoSink).await.unwrap_err();
    assert_eq!(error.kind(), AgentErrorKind::Command);
    assert!(matches!(cause(&error), LaunchError::TooLong { bytes, .. } if *bytes > 3 << 20));
}

#[tokio::test]
async fn the_environment_is_the_one_given_with_the_changes_of_the_dialect() {
    let mut stage = Stage::new(&format!(r#"env > "$DIR/env"; {END}"#));
    stage.environment = stage.environment.clone().set("NESTED", "1").set("KEPT", "a\nb").remove("HOME");
    stage.dialect.env = vec![EnvChange::remove("NESTED"), EnvChange::set("ADDED", "2")];
    stage.dialect.program = stage.dialect.program.clone().leading_arg("first");
    stage.run(&mut NoSink).await.unwrap();
    let env = stage.read("env");
    assert!(env.contains("ADDED=2\n") && env.contains("KEPT=a\nb\n"), "{env}");
    assert!(!env.contains("NESTED") && !env.contains("HOME="), "{env}");
    assert!(env.contains(&format!("REJOIN_RUN={}\n", stage.run)), "{env}");
    assert!(!env.contains("CARGO"), "nothing of this process's own: {env}");
    assert!(Environment::inherited().map().get("CARGO_MANIFEST_DIR").is_some());
}

#[tokio::test]
async fn links_are_made_where_their_target_is_and_nothing_stands() {
    let mut stage = Stage::new(END);
    for name in ["target", "mine"] {
        fs::write(stage.path(name), name).unwrap();
    }
    let link = |at: &str, target: &str| Link { at: stage.path(at), target: stage.path(target) };
    let links = vec![link("state/link", "target"), link("mine", "target"), link("state/none", "not there")];
    stage.dialect.links = links;
    for _ in 0..2 {
        stage.run(&mut NoSink).await.unwrap();
        assert_eq!(fs::read_link(stage.path("state/link")).unwrap(), stage.path("target"));
        assert_eq!(stage.read("mine"), "mine");
        assert!(stage.path("state/none").symlink_metadata().is_err());
    }
    stage.dialect.links = vec![Link { at: stage.path("mine/below"), target: stage.path("target") }];
    let error = stage.run(&mut NoSink).await.unwrap_err();
    assert_eq!(error.kind(), AgentErrorKind::State);
}

#[tokio::test]
async fn a_link_that_leads_elsewhere_is_made_anew_and_one_that_is_not_wanted_is_taken_away() {
    let mut stage = Stage::new(END);
    for name in ["old", "new", "login"] {
        fs::write(stage.path(name), name).unwrap();
    }
    stage.dialect.links = vec![Link { at: stage.path("link"), target: stage.path("new") }];
    stage.dialect.hidden = vec![stage.path("shown"), stage.path("login"), stage.path("none/at all")];
    symlink(stage.path("old"), stage.path("link")).unwrap();
    symlink(stage.path("old"), stage.path("shown")).unwrap();
    for _ in 0..2 {
        stage.run(&mut NoSink).await.unwrap();
        assert_eq!(fs::read_link(stage.path("link")).unwrap(), stage.path("new"));
        assert!(stage.path("shown").symlink_metadata().is_err());
        assert_eq!((stage.read("old").as_str(), stage.read("login").as_str()), ("old", "login"));
    }
    // A link to what is gone leads nowhere, and is not left for somebody to fill.
    fs::remove_file(stage.path("new")).unwrap();
    fs::remove_file(stage.path("link")).unwrap();
    symlink(stage.path("old"), stage.path("link")).unwrap();
    stage.run(&mut NoSink).await.unwrap();
    assert!(stage.path("link").symlink_metadata().is_err());
}

/// The agent, and whatever it ran, may have made a link of a folder of its state dir.
#[tokio::test]
async fn nothing_is_made_or_taken_away_outside_of_the_state_dir() {
    let mut stage = Stage::new(END);
    let state = stage.path("state");
    stage.state_dir = Some(state.clone());
    fs::create_dir_all(stage.path("elsewhere/scratch")).unwrap();
    fs::create_dir(&state).unwrap();
    fs::write(stage.path("target"), "").unwrap();
    fs::write(stage.path("elsewhere/scratch/precious"), "x").unwrap();
    symlink(stage.path("target"), stage.path("elsewhere/login")).unwrap();
    symlink(stage.path("elsewhere"), state.join("planted")).unwrap();
    symlink(stage.path("not there yet"), state.join("dangling")).unwrap();
    let in_planted = |name: &str| state.join("planted").join(name);
    let cases = [
        (vec![in_planted("link")], vec![], vec![]),
        (vec![], vec![in_planted("login")], vec![]),
        (vec![], vec![], vec![in_planted("scratch")]),
        (vec![state.join("dangling/link")], vec![], vec![]),
        (vec![state.join("../link")], vec![], vec![]),
    ];
    for (links, hidden, scratch) in cases {
        let target = stage.path("target");
        stage.dialect.links = links.into_iter().map(|at| Link { at, target: target.clone() }).collect();
        (stage.dialect.hidden, stage.dialect.scratch) = (hidden, scratch);
        let error = stage.run(&mut NoSink).await.unwrap_err();
        assert_eq!(error.kind(), AgentErrorKind::State);
    }
    assert_eq!(stage.read("elsewhere/scratch/precious"), "x");
    assert!(stage.path("elsewhere/login").is_symlink() && !stage.path("elsewhere/link").exists());
    stage.dialect.links = vec![Link { at: state.join("deep/er/link"), target: stage.path("target") }];
    (stage.dialect.hidden, stage.dialect.scratch) = (vec![state.join("none")], vec![state.join("scratch")]);
    stage.run(&mut NoSink).await.unwrap();
    assert!(state.join("deep/er/link").is_symlink() && state.join("scratch").is_dir());
}
