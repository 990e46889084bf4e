//! What a plan of mounts shows, and what it never does.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use session_core::error::{AgentError, AgentErrorKind, Chain};
use session_core::{AgentAdapter as _, Content, Mount, MountPlan, Program, Purpose};

use crate::support::{END, Stage, write_program};

/// A stage whose work tree is `work`, whose home is `home`, and whose store is `store`.
fn stage() -> Stage {
    let mut stage = Stage::new(&format!("echo 1.2.3; {END}"));
    for folder in ["work", "home", "store/records", "store/state/m/a", "store/state/other/a", "bin"] {
        fs::create_dir_all(stage.path(folder)).unwrap();
    }
    let program = stage.path("bin/agent");
    fs::rename(stage.path("agent"), &program).unwrap();
    stage.dialect.program = Program::new(program);
    stage.environment =
        stage.environment.clone().set("HOME", stage.path("home")).set("PATH", "/usr/bin:/bin");
    at_store(&mut stage, "store");
    stage
}

fn at_store(stage: &mut Stage, store: &str) {
    let state = stage.path(store).join("state/m/a");
    fs::create_dir_all(&state).unwrap();
    stage.dialect.mounts = vec![Mount::writable(&state, Purpose::StateDir)];
    stage.state_dir = Some(state);
}

fn at_path(stage: &mut Stage, folders: &[&str]) {
    let path = folders.iter().map(|folder| stage.path(folder)).chain(["/usr/bin".into(), "/bin".into()]);
    stage.environment = stage.environment.clone().set("PATH", std::env::join_paths(path).unwrap());
}

async fn plan_in(stage: &Stage, cwd: &Path) -> Result<MountPlan, AgentError> {
    stage.agent().mount_plan(cwd, stage.state_dir.as_deref()).await
}

async fn plan(stage: &Stage) -> MountPlan {
    plan_in(stage, &stage.path("work")).await.unwrap()
}

/// Whether what lies there on the host can be seen.
fn shows(plan: &MountPlan, path: impl AsRef<Path>) -> bool {
    plan.shown_by(path.as_ref()).is_some_and(|mount| mount.content == Content::Host)
}

fn of(plan: &MountPlan, purpose: Purpose) -> Vec<PathBuf> {
    plan.mounts().iter().filter(|mount| mount.purpose == purpose).map(|mount| mount.path.clone()).collect()
}

#[tokio::test]
async fn a_plan_shows_the_state_dir_and_the_work_tree_and_of_the_store_nothing_else() {
    let stage = stage();
    let found = plan(&stage).await;
    let work = stage.path("work").canonicalize().unwrap();
    assert_eq!(found.cwd(), work);
    for shown in [work, stage.path("store/state/m/a/file"), stage.path("bin/agent"), "/usr/bin/env".into()] {
        assert!(shows(&found, &shown), "{}", shown.display());
    }
    for hidden in ["store/records/x", "store/state/other/a", "store/state/m", "home/.ssh", "home", "."] {
        assert!(!shows(&found, stage.path(hidden)), "{hidden}");
    }
    for system in ["/etc/shadow", "/etc/ssl/private/x", "/root", "/var", "/proc/1", "/tmp/x"] {
        assert!(!shows(&found, system), "{system}");
    }
}

#[tokio::test]
async fn a_store_in_the_work_tree_is_covered() {
    let mut stage = stage();
    at_store(&mut stage, "work/.agent-sessions");
    let found = plan(&stage).await;
    assert!(shows(&found, stage.path("work/src")));
    assert!(shows(&found, stage.path("work/.agent-sessions/state/m/a/x")));
    for hidden in ["records/x", "audit", "state/other/a", "state/m/b"] {
        assert!(!shows(&found, stage.path("work/.agent-sessions").join(hidden)), "{hidden}");
    }
    // Reached by a link, it is no less in the work tree.
    symlink(stage.path("work"), stage.path("alias")).unwrap();
    at_store(&mut stage, "alias/.agent-sessions");
    let found = plan(&stage).await;
    assert!(!shows(&found, stage.path("work/.agent-sessions/records")));
    assert!(shows(&found, stage.path("alias/.agent-sessions/state/m/a")));
}

#[tokio::test]
async fn a_home_is_never_shown() {
    let stage = stage();
    let refused = |error: AgentError| {
        assert_eq!(error.kind(), AgentErrorKind::Sandbox, "{}", Chain(&error));
    };
    refused(plan_in(&stage, &stage.path("home")).await.unwrap_err());
    symlink(stage.path("home"), stage.path("to-home")).unwrap();
    refused(plan_in(&stage, &stage.path("to-home")).await.unwrap_err());
    refused(plan_in(&stage, Path::new("/")).await.unwrap_err());
    // Around it, it is covered, whatever it is called.
    let outside = tempfile::tempdir().unwrap();
    let mut stage = stage;
    fs::rename(stage.path("bin/agent"), outside.path().join("agent")).unwrap();
    stage.dialect.program = Program::new(outside.path().join("agent"));
    let around = plan_in(&stage, stage.folder.path()).await.unwrap();
    assert!(shows(&around, stage.path("work")) && !shows(&around, stage.path("home/.ssh")));
    let to_home = outside.path().join("to-home");
    symlink(stage.path("home"), &to_home).unwrap();
    stage.environment = stage.environment.clone().set("HOME", &to_home);
    let around = plan_in(&stage, stage.folder.path()).await.unwrap();
    assert!(!shows(&around, stage.path("home/.ssh")) && !shows(&around, to_home.join(".ssh")));
    // A folder that leads to it could be renamed, and the home be found there by the next run.
    fs::create_dir_all(stage.path("people/me")).unwrap();
    stage.environment = stage.environment.clone().set("HOME", stage.path("people/me"));
    let around = plan_in(&stage, stage.folder.path()).await.unwrap();
    assert_eq!(around.shown_by(&stage.path("people/x")).unwrap().purpose, Purpose::Cover);
    fs::rename(stage.path("people"), stage.path("renamed")).unwrap();
    refused(plan_in(&stage, stage.folder.path()).await.unwrap_err());
    // So could a link be led elsewhere.
    stage.environment = stage.environment.clone().set("HOME", stage.path("to-home"));
    refused(plan_in(&stage, stage.folder.path()).await.unwrap_err());
    // Elsewhere, a home that is missing is no home.
    stage.environment = stage.environment.clone().set("HOME", outside.path().join("none"));
    assert!(plan_in(&stage, stage.folder.path()).await.is_ok());
}

/// A link of a `PATH` or of a work tree does not decide what is seen.
#[tokio::test]
async fn a_folder_is_what_it_leads_to_and_not_what_it_is_called() {
    let mut stage = stage();
    for folder in ["home/.agent", "home/bin", "work/bin", "base/.agent-sessions/records", "home/real"] {
        fs::create_dir_all(stage.path(folder)).unwrap();
    }
    let login = stage.path("home/.agent/login");
    fs::write(&login, "secret").unwrap();
    stage.dialect.mounts.push(Mount::writable(&login, Purpose::Login).optional());
    at_path(&mut stage, &["home/bin"]);
    let found = plan(&stage).await;
    assert_eq!(of(&found, Purpose::Program), [stage.path("bin"), stage.path("home/bin")]);
    let astray = [
        ("tools", "home/.agent"),
        ("tools-at-home", "home"),
        ("home/tools", "home/.agent"),
        ("records", "base/.agent-sessions/records"),
        ("agents", "work/bin"),
        ("work/bin/of-home", "home/.agent"),
        ("own-state", "store/state/m/a"),
    ];
    for (link, target) in astray {
        symlink(stage.path(target), stage.path(link)).unwrap();
        at_path(&mut stage, &[link]);
        let found = plan(&stage).await;
        assert_eq!(of(&found, Purpose::Program), [stage.path("bin")], "{link}");
        // Neither is it the folder around a program.
        let program = stage.path(link).join("program");
        if !["work/bin", "store/state/m/a"].contains(&target) && !link.starts_with("work") {
            write_program(&program, "#!/bin/sh\necho 1.2.3\n");
            let before = std::mem::replace(&mut stage.dialect.program, Program::new(&program));
            match plan_in(&stage, &stage.path("work")).await {
                Ok(found) => assert!(!shows(&found, stage.path(link).join("login")), "{link}"),
                Err(error) => assert_eq!(error.kind(), AgentErrorKind::Sandbox),
            }
            stage.dialect.program = before;
        }
    }
    at_path(&mut stage, &["base/.agent-sessions/records"]);
    assert_eq!(of(&plan(&stage).await, Purpose::Program), [stage.path("bin")]);
    // A login that is shown under another name is shown.
    symlink(stage.path("home/.agent"), stage.path("config")).unwrap();
    stage.dialect.mounts.push(Mount::read_only(stage.path("config"), Purpose::Config));
    let refused = plan_in(&stage, &stage.path("work")).await.unwrap_err();
    assert_eq!(refused.kind(), AgentErrorKind::Sandbox);
    // A work tree that is reached by a link is where that leads.
    symlink(stage.path("home/real"), stage.path("to-real")).unwrap();
    stage.dialect.mounts.pop();
    let found = plan_in(&stage, &stage.path("to-real")).await.unwrap();
    assert_eq!(of(&found, Purpose::WorkTree), [stage.path("home/real").canonicalize().unwrap()]);
}

#[tokio::test]
async fn a_work_tree_in_a_store_is_refused_and_a_store_in_one_covered() {
    let mut stage = stage();
    at_store(&mut stage, "base/.agent-sessions");
    for folder in ["records", "state/other/a", "audit"] {
        fs::create_dir_all(stage.path("base/.agent-sessions").join(folder)).unwrap();
    }
    symlink(stage.path("base/.agent-sessions/records"), stage.path("alias")).unwrap();
    let within = ["", "/records", "/state", "/state/other", "/state/other/a", "/state/m/a"];
    let within = within.map(|folder| format!("base/.agent-sessions{folder}"));
    for cwd in within.iter().map(String::as_str).chain(["alias"]) {
        let refused = plan_in(&stage, &stage.path(cwd)).await.unwrap_err();
        assert_eq!(refused.kind(), AgentErrorKind::Sandbox, "{cwd}");
    }
    assert!(!shows(&plan_in(&stage, &stage.path("base")).await.unwrap(), stage.path(&within[1])));
    // One that is not the run's own.
    fs::create_dir_all(stage.path("work/.agent-sessions/records")).unwrap();
    let found = plan(&stage).await;
    assert!(
        !shows(&found, stage.path("work/.agent-sessions/records")) && shows(&found, stage.path("work/x"))
    );
}

#[tokio::test]
async fn a_folder_that_shows_what_it_must_not_is_refused() {
    let mut stage = stage();
    let kind = async |stage: &Stage, cwd: &str| plan_in(stage, &stage.path(cwd)).await.map_err(|e| e.kind());
    assert_eq!(kind(&stage, "store/state/m/a").await, Err(AgentErrorKind::Sandbox));
    // A login in the work tree: its own path, or where that leads.
    let login = stage.path("work/login");
    fs::write(&login, "secret").unwrap();
    stage.dialect.mounts.push(Mount::writable(&login, Purpose::Login).optional());
    assert_eq!(kind(&stage, "work").await, Err(AgentErrorKind::Sandbox));
    symlink(&login, stage.path("home/login")).unwrap();
    stage.dialect.mounts.last_mut().unwrap().path = stage.path("home/login");
    assert_eq!(kind(&stage, "work").await, Err(AgentErrorKind::Sandbox));
    fs::remove_file(&login).unwrap();
    let found = plan(&stage).await;
    assert_eq!(found.withheld().len(), 1);
    assert!(
        !shows(&found, stage.path("home/login")) && shows(&found.with_logins(), stage.path("home/login"))
    );
    stage.state_dir = None;
    assert_eq!(kind(&stage, "work").await, Err(AgentErrorKind::Sandbox));
}

#[tokio::test]
async fn a_repository_is_shown_only_if_it_says_that_the_work_tree_is_its_own() {
    let stage = stage();
    let repository = stage.path("repository");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]).args(args);
        assert!(git.current_dir(stage.folder.path()).status().unwrap().success(), "git {args:?}");
    };
    git(&["init", "-q", "repository"]);
    git(&["-C", "repository", "commit", "-q", "--allow-empty", "-m", "root"]);
    git(&["-C", "repository", "worktree", "add", "-q", "../linked"]);
    let linked = plan_in(&stage, &stage.path("linked")).await.unwrap();
    assert_eq!(of(&linked, Purpose::Repository), [repository.join(".git").canonicalize().unwrap()]);
    assert!(!shows(&linked, repository.join("file")), "its other work trees are not");
    let mount = linked.shown_by(&repository.join(".git").canonicalize().unwrap().join("HEAD")).unwrap();
    assert!(mount.read_only);

    // One that is the home itself, as some keep their settings, is not shown.
    let mut at_home = self::stage();
    at_home.environment = at_home.environment.clone().set("HOME", repository.join(".git"));
    let found = plan_in(&at_home, &stage.path("linked")).await.unwrap();
    assert!(!shows(&found, repository.join(".git/HEAD")));

    // What an agent wrote into its work tree decides nothing.
    let linked_git = fs::read_to_string(stage.path("linked/.git")).unwrap();
    let home = format!("gitdir: {}\n", stage.path("home").display());
    let fake = stage.path("work/fake/worktrees/x");
    for (folder, text) in [(fake.as_path(), ""), (&stage.path("home"), "")] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("commondir"), stage.path("home").to_str().unwrap()).unwrap();
        fs::write(folder.join("HEAD"), text).unwrap();
    }
    let back = format!("{}\n", stage.path("work").canonicalize().unwrap().join(".git").display());
    fs::write(fake.join("gitdir"), back).unwrap();
    for forged in [linked_git, home, format!("gitdir: {}\n", fake.display()), "gitdir: /\n".to_owned()] {
        fs::write(stage.path("work/.git"), &forged).unwrap();
        let found = plan(&stage).await;
        assert!(of(&found, Purpose::Repository).is_empty(), "{forged}");
    }
}

#[tokio::test]
async fn a_program_is_shown_with_its_package_and_never_with_what_lies_around_it() {
    let mut stage = stage();
    let package = stage.path("lib/node_modules/agent");
    fs::create_dir_all(&package).unwrap();
    write_program(&package.join("cli"), "#!/bin/sh\necho 1.2.3\n");
    symlink("../lib/node_modules/agent/cli", stage.path("bin/linked")).unwrap();
    stage.dialect.program = Program::new(stage.path("bin/linked"));
    let found = plan(&stage).await;
    let programs = of(&found, Purpose::Program);
    assert_eq!(programs, [stage.path("bin"), stage.path("lib/node_modules")]);

    // Beside the home and the store, only the file itself; likewise of the folders of PATH.
    write_program(&stage.path("alone"), "#!/bin/sh\necho 1.2.3\n");
    stage.dialect.program = Program::new(stage.path("alone"));
    let path = [
        stage.path("bin"),
        stage.path("home"),
        stage.folder.path().to_owned(),
        "relative".into(),
        "/usr/bin".into(),
    ];
    stage.environment = stage.environment.clone().set("PATH", std::env::join_paths(path).unwrap());
    let found = plan(&stage).await;
    assert_eq!(of(&found, Purpose::Program), [stage.path("alone"), stage.path("bin")]);
    // What is a part of the work tree stays as writable as that.
    fs::rename(stage.path("bin"), stage.path("work/bin")).unwrap();
    let path = [stage.path("work/bin"), "/bin".into()];
    stage.environment = stage.environment.clone().set("PATH", std::env::join_paths(path).unwrap());
    let found = plan(&stage).await;
    assert_eq!(of(&found, Purpose::Program), [stage.path("alone")]);
}
