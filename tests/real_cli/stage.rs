//! One trial's world: a throw-away home, a project that is a git repository, a store, a model.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rejoin::checkpoint::FsCheckpoints;
use rejoin::core::{Lifecycle, Program};
use rejoin::process::{Bubblewrap, SystemHost};
use rejoin::stores::FsStore;
use rejoin::{Agent, LlmRequest, LlmResult, NativeId, RunError, SessionKey, SessionRecord, SessionRef};
use rejoin_test_support::ContextReply;
use rejoin_test_support::fake_model::FakeModel;

use crate::agents::{Damage, Place, Rules};
use crate::matrix::{self, Turns};
use crate::pinned::Pinned;

/// How long anything may take here; a trial that waits longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The mailbox of every trial.
const MAILBOX: &str = "issue-42";

/// The folders in which runs leave something.
const KEPT: [&str; 2] = ["home", "store"];

pub(crate) struct Stage {
    pub(crate) cli: Pinned,
    pub(crate) rules: Rules,
    pub(crate) place: Place,
    pub(crate) model: FakeModel,
    /// What keeps the agent in a sandbox.
    pub(crate) launcher: Option<Bubblewrap>,
    /// One for all lifecycles, so that the version is asked for once.
    agent: OnceLock<Agent>,
    _dir: tempfile::TempDir,
}

/// A copy of what a stage kept of its runs.
pub(crate) struct Kept(tempfile::TempDir);

impl Stage {
    pub(crate) fn new(cli: &Pinned) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let model = FakeModel::start();
        let place = Place { root: dir.path().canonicalize().unwrap(), model: model.url() };
        for folder in ["home", "tmp", "store", "project"] {
            std::fs::create_dir(place.root.join(folder)).unwrap();
        }
        cli.under_test().prepare(&place);
        let rules = cli.under_test().rules(cli);
        let stage =
            Self { cli: cli.clone(), rules, place, model, launcher: None, agent: OnceLock::new(), _dir: dir };
        stage.repository(&stage.place.project());
        stage
    }

    pub(crate) fn git(&self, args: &[&str]) {
        self.git_in(&self.place.project(), args);
    }

    fn git_in(&self, folder: &Path, args: &[&str]) {
        let mut git = Command::new("git");
        git.args(args).current_dir(folder).env("HOME", &self.place.root);
        assert!(git.status().unwrap().success(), "git {args:?}");
    }

    /// Makes a repository of this folder.
    pub(crate) fn repository(&self, folder: &Path) {
        self.git_in(folder, &["init", "-q"]);
        let user = ["-c", "user.name=t", "-c", "user.email=t@t"];
        self.git_in(folder, &[&user[..], &["commit", "-q", "--allow-empty", "-m", "root"]].concat());
    }

    /// The agent with its catalog.
    pub(crate) fn agent(&self) -> Agent {
        self.agent.get_or_init(|| self.agent_anew()).clone()
    }

    /// An agent that has not been asked anything yet.
    pub(crate) fn agent_anew(&self) -> Agent {
        let (cli, place) = (&self.cli, &self.place);
        let Some(launcher) = self.launcher.clone() else { return agent(cli, place) };
        let environment = cli.under_test().environment(place, place.bare(cli));
        cli.under_test().sandboxed(Program::new(&cli.program), environment, launcher)
    }

    /// What takes checkpoints, beside the store.
    pub(crate) fn checkpoints(&self) -> FsCheckpoints {
        checkpoints(&self.place)
    }

    /// The lifecycle with a look and with checkpoints.
    pub(crate) fn checkpointed(&self) -> Lifecycle {
        self.lifecycle(true).checkpointer(Arc::new(self.checkpoints()))
    }

    /// Copies what the runs left, so that several ends can be tried of one beginning.
    pub(crate) fn keep(&self) -> Kept {
        let copy = tempfile::tempdir().unwrap();
        for folder in KEPT {
            copy_into(&self.place.root.join(folder), copy.path());
        }
        Kept(copy)
    }

    /// The same, and what is in the project.
    pub(crate) fn keep_with_project(&self) -> Kept {
        let kept = self.keep();
        copy_into(&self.place.project(), kept.0.path());
        kept
    }

    /// Makes it what it was, at the same paths. The folder of the project stays, as a copy of it is another one, and so does what
    /// is in it, unless that was kept; the model still knows what it was asked.
    pub(crate) fn put_back(&self, kept: &Kept) {
        assert_eq!(self.processes(), [0; 0], "nothing runs in a stage that is put back");
        for folder in KEPT {
            std::fs::remove_dir_all(self.place.root.join(folder)).unwrap();
            copy_into(&kept.0.path().join(folder), &self.place.root);
        }
        let (within, project) = (kept.0.path().join("project"), self.place.project());
        if within.exists() {
            for entry in std::fs::read_dir(&project).unwrap() {
                let path = entry.unwrap().path();
                let is_folder = path.symlink_metadata().unwrap().is_dir();
                if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
            }
            copy_into(&within.join("."), &project);
        }
    }

    pub(crate) fn key(&self) -> SessionKey {
        SessionKey::new(MAILBOX, &*self.cli.agent).unwrap()
    }

    pub(crate) fn store(&self) -> FsStore {
        FsStore::open(self.place.store()).unwrap()
    }

    /// The lifecycle with or without a look at the session's file before and after each run.
    pub(crate) fn lifecycle(&self, look: bool) -> Lifecycle {
        self.lifecycle_of(if look { self.agent() } else { self.agent().without_catalog() })
    }

    /// A lifecycle over the stage's store with this agent in place of the stage's own.
    pub(crate) fn lifecycle_of(&self, agent: Agent) -> Lifecycle {
        Lifecycle::new(Arc::new(self.store()), Arc::new(SystemHost::new())).agent(agent)
    }

    pub(crate) fn request(&self, prompt: &str) -> LlmRequest {
        self.request_in(&self.place.project(), prompt)
    }

    pub(crate) fn request_in(&self, folder: &Path, prompt: &str) -> LlmRequest {
        request(&self.cli, folder, prompt)
    }

    pub(crate) async fn run(&self, prompt: &str) -> Result<LlmResult, RunError> {
        self.lifecycle(true).run(self.request(prompt)).await
    }

    /// Runs a request, notes the outcome as a cell of the matrix with the turns that reached the model, and says it.
    pub(crate) async fn row(
        &self,
        scenario: &str,
        look: bool,
        request: LlmRequest,
    ) -> Result<LlmResult, RunError> {
        self.row_of(&self.lifecycle(look), scenario, request).await
    }

    /// The same with a lifecycle of the trial's own.
    pub(crate) async fn row_of(
        &self,
        lifecycle: &Lifecycle,
        scenario: &str,
        request: LlmRequest,
    ) -> Result<LlmResult, RunError> {
        let before = self.turns();
        let outcome = lifecycle.run(request).await;
        self.note(scenario, &outcome, Turns::Counted(self.turns() - before));
        outcome
    }

    /// Notes an outcome as a cell of the matrix.
    pub(crate) fn note(&self, scenario: &str, outcome: &Result<LlmResult, RunError>, turns: Turns) {
        matrix::note(&self.cli, scenario, outcome, turns);
    }

    /// Turns of a conversation that reached the model, side requests left out.
    pub(crate) fn turns(&self) -> usize {
        self.model.requests().iter().filter(|request| request.is_turn()).count()
    }

    pub(crate) async fn record(&self) -> SessionRecord {
        self.lifecycle(true).record(&self.key()).await.unwrap().unwrap()
    }

    pub(crate) async fn bound(&self) -> NativeId {
        self.record().await.binding.unwrap().native_id
    }

    /// Does this damage to the session.
    pub(crate) fn damage(&self, id: &NativeId, damage: Damage) {
        self.cli.under_test().damage(&self.place, id, damage);
    }

    /// All that the agent keeps of the session.
    pub(crate) fn kept(&self, id: &NativeId) -> Vec<u8> {
        self.cli.under_test().kept(&self.place, id)
    }

    /// Whether a session holds this text.
    pub(crate) fn holds(&self, text: &str) -> bool {
        self.cli.under_test().holds(&self.place, text)
    }

    /// Writes another native id into the record.
    pub(crate) async fn tamper_id(&self, id: &str) {
        use rejoin::SessionStore as _;
        let mut record = self.record().await;
        record.binding.as_mut().unwrap().native_id = NativeId::new(id);
        let document = rejoin::core::codec::encode(&record);
        let saved = self.store().save(&self.key(), &document, &rejoin::core::Guard::Any, None).await.unwrap();
        assert!(matches!(saved, rejoin::core::Saved::Done(_)));
    }

    /// Live processes whose environment names this stage's home.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mark = format!("HOME={}", self.place.home().display());
        let of_stage = |entry: std::fs::DirEntry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let environ = std::fs::read(entry.path().join("environ")).ok()?;
            environ.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes()).then_some(pid)
        };
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| of_stage(entry.unwrap())).collect()
    }

    /// Those of them that are not stopped.
    pub(crate) fn awake(&self) -> Vec<u32> {
        self.processes().into_iter().filter(|pid| !is_frozen(*pid)).collect()
    }

    /// Stops these processes, and those that they start meanwhile.
    pub(crate) async fn freeze(&self) {
        let frozen = async {
            while !self.awake().is_empty() {
                self.signal("STOP");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, frozen).await.unwrap();
    }

    /// Lets them go on.
    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    /// One may go with another before its turn comes.
    pub(crate) fn signal(&self, signal: &str) {
        let pids = self.processes();
        assert!(!pids.is_empty());
        for pid in pids {
            Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).output().unwrap();
        }
    }
}

/// Whether it is stopped, or gone.
fn is_frozen(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
}

/// Copies this folder into that one, links as links, times and modes with it.
fn copy_into(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success(), "cp of {}", from.display());
}

/// What the model said of the context that it got.
pub(crate) fn reply(result: &LlmResult) -> ContextReply {
    ContextReply::parse(&result.text).unwrap_or_else(|| panic!("no context in {:?}", result.text))
}

/// The name of a scenario with or without a look.
pub(crate) fn scenario(name: &str, look: bool) -> String {
    if look { name.to_owned() } else { format!("{name}, nobody looks") }
}

pub(crate) fn request(cli: &Pinned, folder: &Path, prompt: &str) -> LlmRequest {
    LlmRequest::new(prompt)
        .cwd(folder)
        .session(SessionRef::new(MAILBOX, &*cli.agent).named("agent/issue-42-login"))
}

/// What takes checkpoints of the place, beside its store.
pub(crate) fn checkpoints(place: &Place) -> FsCheckpoints {
    FsCheckpoints::new(place.store()).home(place.home())
}

pub(crate) fn agent(cli: &Pinned, place: &Place) -> Agent {
    let under_test = cli.under_test();
    under_test.agent(Program::new(&cli.program), under_test.environment(place, place.bare(cli)))
}
