//! A launcher that starts the agent's commands, and what it is told to show.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use session_core::decide::Verdict;
use session_core::error::{AgentError, AgentErrorKind, BoxError, Chain};
use session_core::{
    AgentAdapter as _, EndedBy, EnvChange, Exit, Mode, MountPlan, NativeId, NoSink, Program, Purpose,
};
use session_process::error::SandboxError;
use session_process::{Invocation, Launcher};

use crate::support::{END, Heard, Stage, until, write_program};

const FRESH: Mode<'_> = Mode::Fresh { id: None };

/// A shell script in the place of a sandbox: it gets the command as its arguments.
#[derive(Debug, Clone)]
struct Shell {
    program: PathBuf,
    script: &'static str,
    plans: Arc<Mutex<Vec<(Invocation, MountPlan)>>>,
}

impl Shell {
    fn new(script: &'static str) -> Self {
        Self { program: "sh".into(), script, plans: Arc::default() }
    }

    fn plans(&self) -> Vec<(Invocation, MountPlan)> {
        self.plans.lock().unwrap().clone()
    }
}

impl Launcher for Shell {
    fn wrap(&self, command: Invocation, plan: &MountPlan) -> Result<Invocation, BoxError> {
        self.plans.lock().unwrap().push((command.clone(), plan.clone()));
        let mut args =
            vec!["-c".into(), self.script.into(), "sandbox".into(), command.program.into_os_string()];
        args.extend(command.args);
        Ok(Invocation { program: self.program.clone(), args, env: command.env, cwd: command.cwd })
    }
}

/// A stage with a state dir and a work tree; its home is elsewhere.
fn stage(script: &str) -> Stage {
    let mut stage = Stage::new(script);
    for folder in ["work", "home", "store/state/m/a"] {
        fs::create_dir_all(stage.path(folder)).unwrap();
    }
    stage.state_dir = Some(stage.path("store/state/m/a"));
    stage.environment = stage.environment.clone().set("HOME", stage.path("home"));
    stage
}

#[tokio::test]
async fn every_command_of_a_turn_goes_by_the_launcher_and_the_probe_does_not() {
    let mut stage = stage(&format!(
        "case \"$1\" in --version) echo 1.2.3; exit;; prepare) echo \"$BY\" > \"$DIR/prepared\"; exit;; esac
         echo \"{{\\\"text\\\":\\\"$(cat) by $BY of $REJOIN_RUN in $PWD as $TOLD\\\"}}\"; {END}"
    ));
    stage.dialect.preparations = vec!["prepare".into()];
    stage.dialect.args = vec!["go".into(), "a b".into()];
    stage.dialect.env = vec![EnvChange::set("TOLD", "told")];
    let launcher = Shell::new("BY=sandbox exec \"$@\"");
    let agent = stage.agent().launcher(launcher.clone());
    assert_eq!(session_core::AgentAdapter::detect(&agent).await.unwrap().version.unwrap().text, "1.2.3");
    assert!(launcher.plans().is_empty(), "the version is asked outside");

    let mut heard = Heard::default();
    let report = stage.run_by(&agent, FRESH, &mut heard).await.unwrap();
    assert_eq!((report.verdict, report.evidence.exit), (Verdict::Completed, Exit::Code(0)));
    let work = stage.path("work").canonicalize().unwrap();
    let said = format!("hello by sandbox of {} in {} as told", stage.run, work.display());
    assert_eq!(heard.texts, [said]);
    assert_eq!(stage.read("prepared"), "sandbox\n");
    let plans = launcher.plans();
    let args: Vec<_> = plans.iter().map(|(command, _)| command.args.join(" ".as_ref())).collect();
    assert_eq!(args, ["prepare", "go a b"]);
    let planned = session_core::AgentAdapter::mount_plan(&agent, &work, stage.state_dir.as_deref()).await;
    let planned = planned.unwrap();
    assert!(plans.iter().all(|(_, plan)| *plan == planned), "the same as was told before");
    assert!(plans.iter().all(|(command, _)| command.cwd == work && command.env.get("PATH").is_some()));
}

/// What `bwrap --die-with-parent` does: it is asked to end, and everything inside is killed.
const TAKES_ALL_DOWN: &str =
    "exec 3<&0; \"$@\" <&3 & child=$!; trap 'kill -9 $child; exit 143' TERM; wait $child";

#[tokio::test]
async fn an_agent_in_a_sandbox_ends_in_order() {
    let stage = stage(
        "trap 'echo bye > \"$DIR/bye\"; exit 7' TERM; echo '{\"text\":\"ready\"}'; while :; do sleep 0.01; done",
    );
    let agent = stage.agent().launcher(Shell::new(TAKES_ALL_DOWN));
    let mut heard = Heard::cancelling(&stage, "ready");
    let report = stage.run_by(&agent, FRESH, &mut heard).await.unwrap();
    assert_eq!((report.verdict, report.evidence.ended_by), (Verdict::Cancelled, Some(EndedBy::Cancel)));
    assert_eq!(stage.read("bye"), "bye\n", "it was asked, and not killed with its launcher");
    assert_eq!(report.evidence.exit, Exit::Code(7));
    assert_eq!(stage.processes(), [0; 0]);
}

#[tokio::test]
async fn an_agent_in_a_sandbox_that_does_not_end_is_killed_with_its_launcher() {
    let mut stage = stage("trap '' TERM; echo '{\"text\":\"ready\"}'; while :; do sleep 0.01; done");
    stage.limits.grace = std::time::Duration::from_millis(50);
    let agent = stage.agent().launcher(Shell::new(TAKES_ALL_DOWN));
    let mut heard = Heard::cancelling(&stage, "ready");
    let report = stage.run_by(&agent, FRESH, &mut heard).await.unwrap();
    assert_eq!(report.verdict, Verdict::Cancelled);
    assert_eq!(stage.processes(), [0; 0]);
}

#[tokio::test]
async fn nothing_runs_where_there_is_no_sandbox() {
    #[derive(Debug)]
    struct Broken(Option<&'static str>);
    impl Launcher for Broken {
        fn wrap(&self, command: Invocation, _: &MountPlan) -> Result<Invocation, BoxError> {
            let program = self.0.ok_or("no sandbox today")?.into();
            Ok(Invocation { program, ..command })
        }
    }
    let mut stage = stage("touch \"$DIR/ran\"");
    let run = async |stage: &Stage, program| {
        let agent = stage.agent().launcher(Broken(program));
        stage.run_by(&agent, FRESH, &mut NoSink).await.unwrap_err()
    };
    assert_eq!(run(&stage, None).await.kind(), AgentErrorKind::Sandbox);
    let error = run(&stage, Some("no-such-sandbox")).await;
    assert_eq!(error.kind(), AgentErrorKind::NotFound);
    assert!(error.to_string().contains("no-such-sandbox"), "{error}");
    stage.state_dir = None;
    assert_eq!(run(&stage, Some("true")).await.kind(), AgentErrorKind::Sandbox);
    assert!(!stage.path("ran").exists());
}

/// What an agent put into its work tree, to be started by the next run.
#[tokio::test]
async fn what_an_agent_wrote_is_not_started_outside() {
    let mut stage = stage(&format!("echo 1.2.3; {END}"));
    let planted = "#!/bin/sh\ntouch \"$0.ran\"\nexec /bin/sh \"$@\"\n";
    let bin = stage.path("work/node_modules/.bin");
    for folder in [&bin, &stage.path("bin"), &stage.path("links"), &stage.path("store/.agent-sessions")] {
        fs::create_dir_all(folder).unwrap();
    }
    for name in ["fake", "sh", "env-sh"] {
        write_program(&bin.join(name), planted);
    }
    let ran = || {
        let ran = |name: &&str| bin.join(format!("{name}.ran")).exists();
        ["fake", "sh", "env-sh"].into_iter().filter(ran).collect::<Vec<_>>()
    };
    let path = |stage: &Stage, folders: &[PathBuf]| {
        let inherited =
            std::env::split_paths(stage.environment.map().get("PATH").unwrap()).collect::<Vec<_>>();
        let path = std::env::join_paths(folders.iter().cloned().chain(inherited)).unwrap();
        stage.environment.clone().set("PATH", path)
    };
    let work = stage.path("work");
    let attempt = async |stage: &Stage| {
        let agent = stage.agent().launcher(Shell::new("exec \"$@\""));
        let found = agent.detect_in(&work).await?;
        let planned = agent.mount_plan(&work, stage.state_dir.as_deref()).await;
        assert_eq!(planned.map(drop).map_err(|e| e.kind()), Ok(()));
        assert_eq!(ran(), [""; 0], "the probe is outside");
        let report = stage.run_by(&agent, FRESH, &mut NoSink).await?;
        assert_eq!(report.verdict, Verdict::Completed);
        Ok::<_, AgentError>(found.program)
    };

    // By PATH, the next one of that name is found, be it the agent, its interpreter, or the launcher.
    let own = stage.path("bin/fake");
    fs::rename(stage.path("agent"), &own).unwrap();
    write_program(&own, &fs::read_to_string(&own).unwrap().replacen("#!/bin/sh", "#!/usr/bin/env sh", 1));
    symlink(&bin, stage.path("alias")).unwrap();
    let good = path(&stage, &[stage.path("bin")]);
    stage.environment = good.clone();
    stage.environment = path(&stage, &[bin.clone(), stage.path("alias"), stage.path("work/../work")]);
    stage.dialect.program = Program::new(&own);
    assert_eq!(attempt(&stage).await.unwrap(), own);
    stage.dialect.program = Program::new("fake");
    stage.installed = Some(own.clone());
    fs::remove_file(bin.join("sh.ran")).unwrap();
    assert_eq!(attempt(&stage).await.unwrap(), own);
    // The agent itself runs in the sandbox, where its own PATH is its own business.
    assert_eq!(ran(), ["sh"], "only the agent's own interpreter, and only inside");
    fs::remove_file(bin.join("sh.ran")).unwrap();

    // By name, or by a link on the way, it is refused before anything is asked of it.
    stage.environment = good;
    symlink(bin.join("fake"), stage.path("links/fake")).unwrap();
    symlink(stage.path("links"), work.join("back")).unwrap();
    symlink(&own, stage.path("links/own")).unwrap();
    write_program(&stage.path("store/state/m/a/fake"), planted);
    let refused = async |stage: &Stage, launcher: Shell| {
        let agent = stage.agent().launcher(launcher);
        let error = stage.run_by(&agent, FRESH, &mut NoSink).await.unwrap_err();
        assert!(matches!(cause(&error), Some(SandboxError::Program { .. })), "{}", Chain(&error));
        let planned = agent.mount_plan(&work, stage.state_dir.as_deref()).await.map(drop);
        (agent.detect_in(&work).await.map(drop).map_err(|e| e.kind()), planned.map_err(|e| e.kind()))
    };
    let sandbox = Err(AgentErrorKind::Sandbox);
    for program in ["work/node_modules/.bin/fake", "links/fake", "work/back/own", "work/../work/back/own"] {
        stage.dialect.program = Program::new(stage.path(program));
        stage.installed = None;
        assert_eq!(refused(&stage, Shell::new("")).await, (sandbox, sandbox), "{program}");
    }
    stage.dialect.program = Program::new("/bin/sh").leading_arg(bin.join("fake"));
    assert_eq!(refused(&stage, Shell::new("")).await, (sandbox, sandbox));
    stage.dialect.program = Program::new(stage.path("store/state/m/a/fake"));
    assert_eq!(refused(&stage, Shell::new("")).await.1, sandbox);
    stage.dialect.program = Program::new(own);
    let launcher = Shell { program: stage.path("links/fake"), ..Shell::new("exec \"$@\"") };
    assert_eq!(refused(&stage, launcher).await, (Ok(()), Ok(())));
    assert_eq!(ran(), [""; 0]);
}

fn cause(error: &AgentError) -> Option<&SandboxError> {
    std::error::Error::source(error)?.downcast_ref()
}

#[tokio::test]
async fn the_original_of_a_fork_is_shown_to_be_read_and_nothing_beside_it() {
    let mut stage = stage(END);
    let theirs = stage.path("store/state/other/a");
    fs::create_dir_all(theirs.join("s-1")).unwrap();
    for file in ["s-1.db", "s-1.db-wal", "s-2.db", "s"] {
        fs::write(theirs.join(file), "").unwrap();
    }
    symlink(stage.path("home"), theirs.join("s-1.link")).unwrap();
    let file = theirs.join("s-1.db");
    let launcher = Shell::new("exec \"$@\"");
    let agent = stage.agent().launcher(launcher.clone());
    let source = NativeId::new("s-1");
    let fork = Mode::Fork { source: &source, transcript: Some(&file), id: None };
    stage.run_by(&agent, fork, &mut NoSink).await.unwrap();
    let plans = launcher.plans();
    let shown = plans[0].1.mounts().iter().filter(|mount| mount.purpose == Purpose::Original);
    let shown: Vec<_> =
        shown.inspect(|mount| assert!(mount.read_only)).map(|mount| mount.path.clone()).collect();
    assert_eq!(shown, ["s-1", "s-1.db", "s-1.db-wal"].map(|name| theirs.join(name)));

    stage.dialect.writes_original = true;
    let agent = stage.agent().launcher(launcher.clone());
    let refused = stage.run_by(&agent, fork, &mut NoSink).await.unwrap_err();
    assert_eq!(refused.kind(), AgentErrorKind::Sandbox);
    assert_eq!(launcher.plans().len(), plans.len(), "nothing is started");
}

/// A launcher may be told to end with its parent, and that is a thread to the system.
#[cfg(target_os = "linux")]
#[test]
fn a_launcher_does_not_end_with_a_thread_of_the_runtime() {
    let script = format!("touch \"$DIR/ready\"; until [ -e \"$DIR/go\" ]; do sleep 0.01; done; {END}");
    let stage = Arc::new(stage(&script));
    let runtime = Arc::new(tokio::runtime::Runtime::new().unwrap());
    let (on, of) = (Arc::clone(&runtime), Arc::clone(&stage));
    let begun = std::thread::spawn(move || {
        let own = Arc::clone(&of);
        let mut run = Box::pin(async move {
            let agent = own.agent().launcher(Shell::new("exec setpriv --pdeathsig KILL \"$@\""));
            own.run_by(&agent, FRESH, &mut NoSink).await.unwrap()
        });
        on.block_on(async {
            tokio::select! {
                report = &mut run => panic!("{report:?}"),
                () = until("the agent runs", || of.path("ready").exists()) => {}
            }
        });
        run
    });
    let run = begun.join().unwrap();
    fs::write(stage.path("go"), "").unwrap();
    assert_eq!(runtime.block_on(run).verdict, Verdict::Completed);
    assert_eq!(stage.processes(), [0; 0]);
}
