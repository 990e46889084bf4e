//! A fixture, and turns on it.

use std::rc::Rc;
use std::time::Duration;

use session_core::decide::Verdict;
use session_core::error::AgentError;
use session_core::{
    AgentCapabilities, AgentEvent, Cancel, Installation, Limits, Mode, NativeId, Observation, RunId, Turn,
    TurnReport,
};

use super::{AgentFixture, Cannot, Play, Subject};
use crate::Scratch;

/// How long a case may take before it has failed, and how long what was ended may take to be gone.
const PATIENCE: Duration = Duration::from_secs(120);
pub(super) const SOON: Duration = Duration::from_secs(15);

/// A fixture, and what turns on it stand on.
pub(super) struct Stage {
    pub(super) fixture: Box<dyn AgentFixture>,
    pub(super) installation: Installation,
}

/// A turn that came to an end.
pub(super) struct Turned {
    pub(super) result: Result<TurnReport, AgentError>,
    /// The fold of the events that the sink was given.
    pub(super) heard: Observation,
}

impl Turned {
    pub(super) fn report(&self) -> &TurnReport {
        match &self.result {
            Ok(report) => report,
            Err(error) => panic!("the agent did something, and there is no verdict: {error}"),
        }
    }

    pub(super) fn verdict(&self) -> Verdict {
        self.report().verdict
    }

    pub(super) fn session(&self) -> Option<&NativeId> {
        self.report().evidence.observation.session.as_ref()
    }
}

impl Subject {
    /// Runs a case on a stage of its own.
    pub(super) fn on_stage(&self, case: impl AsyncFnOnce(&Stage)) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(self.still).build();
        let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
        let scratch = Rc::new(Scratch::new());
        runtime.block_on(async {
            let whole = async {
                let fixture = (self.make)(scratch.clone()).await;
                let installation =
                    fixture.adapter().detect().await.unwrap_or_else(|error| panic!("no agent: {error}"));
                case(&Stage { fixture, installation }).await;
            };
            let ended = tokio::time::timeout(PATIENCE, whole).await;
            assert!(ended.is_ok(), "the case does not come to an end");
        });
    }
}

impl Stage {
    pub(super) const fn capabilities(&self) -> AgentCapabilities {
        self.installation.capabilities
    }

    pub(super) const fn resumes(&self) -> bool {
        self.capabilities().resumable_sessions && self.capabilities().headless_resume
    }

    /// From now on, the agent does this. Without a fixture that works, nothing can be tried.
    pub(super) async fn play(&self, play: Play) -> bool {
        match (self.fixture.stage(&play).await, play) {
            (Ok(()), _) => true,
            (Err(Cannot(reason)), Play::Works) => panic!("a fixture has to be able to work: {reason}"),
            (Err(Cannot(reason)), play) => {
                assert!(!reason.trim().is_empty(), "{play:?} cannot be staged, and nobody says why");
                false
            }
        }
    }

    /// An id that is no session's.
    pub(super) fn new_id(&self, number: u128) -> NativeId {
        let random = uuid::Builder::from_random_bytes(number.to_be_bytes()).into_uuid();
        self.fixture.adapter().new_id(&random.to_string())
    }

    /// The mode of a new session, as the capabilities want it.
    pub(super) fn fresh<'a>(&self, id: &'a NativeId) -> Mode<'a> {
        Mode::Fresh { id: Some(id).filter(|_| self.capabilities().caller_chosen_id) }
    }

    pub(super) fn turn<'a>(
        &'a self,
        mode: Mode<'a>,
        prompt: &'a str,
        limits: &'a Limits,
        cancel: &'a Cancel,
    ) -> Turn<'a> {
        Turn {
            run: RunId::new(uuid::Uuid::new_v4()),
            prompt,
            cwd: self.fixture.cwd(),
            mode,
            name: None,
            model: None,
            recipe: session_core::TurnRecipe::default(),
            state_dir: self.fixture.state_dir(),
            installation: &self.installation,
            limits,
            cancel,
        }
    }

    /// Runs one turn to its end.
    pub(super) async fn run(&self, mode: Mode<'_>, prompt: &str) -> Turned {
        self.run_with(mode, prompt, &limits(), &Cancel::new()).await
    }

    pub(super) async fn run_with(
        &self,
        mode: Mode<'_>,
        prompt: &str,
        limits: &Limits,
        cancel: &Cancel,
    ) -> Turned {
        let mut heard = Observation::default();
        let mut sink = |event: &AgentEvent<'_>| heard.observe(event);
        let result = self.fixture.adapter().run(self.turn(mode, prompt, limits, cancel), &mut sink).await;
        Turned { result, heard }
    }

    /// A session that holds one turn with this prompt.
    pub(super) async fn session(&self, number: u128, prompt: &str) -> NativeId {
        self.play(Play::Works).await;
        let id = self.new_id(number);
        let turned = self.run(self.fresh(&id), prompt).await;
        assert_eq!(turned.verdict(), Verdict::Completed, "a turn that works: {:?}", turned.report());
        let session = turned.session().cloned();
        session.unwrap_or_else(|| panic!("a turn that works names its session"))
    }

    /// Waits until nothing runs any more.
    pub(super) async fn nothing_runs(&self, what: &str) {
        let gone = async {
            while self.fixture.running().await > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let gone = tokio::time::timeout(SOON, gone).await;
        assert!(gone.is_ok(), "{what}, and {} are still running", self.fixture.running().await);
    }
}

/// Limits under which nothing but what a case is about comes to an end.
pub(super) fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.grace = Duration::from_millis(300);
    limits.linger = Duration::from_millis(300);
    limits
}
