//! An agent in this process, and what can be wrong with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use session_contract::agent::{AgentFixture, Cannot, Play};
use session_core::decide::Verdict;
use session_core::error::{AgentError, AgentErrorKind};
use session_core::*;
use tokio::sync::Notify;

/// What is wrong with an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    CarriesNothingOut,
    TrimsThePrompt,
    HidesAnEvent,
    IsAnotherEveryTime,
    AcceptsAnything,
    ForgetsOnResume,
    KeepsTheIdThatItClaimsToReplace,
    DropsAChosenId,
    ForksInPlace,
    ClaimsNoForkAndForks,
    StartsAnewWhereNothingIs,
    CompletesWhatIsMissing,
    AdoptsTheIdOfAFailure,
    FindsIdsInProse,
    MakesAnErrorOfADeath,
    HidesWhatWasDone,
    CompletesADeath,
    TellsWhatWasNotDone,
    CompletesSilence,
    JudgesWhatWasNotStarted,
    HasNoLimits,
    IsDeafToCancel,
    StartsWhatWasCancelled,
    LeavesTheDropped,
    LeavesWhatIsLeft,
    ReapsNothing,
    ReapsEverything,
}

#[derive(Debug, Default)]
struct World {
    sessions: BTreeMap<String, Vec<String>>,
    play: Option<Play>,
    ids: u128,
    /// What goes on in the name of which run.
    running: Vec<RunId>,
}

#[derive(Debug, Default)]
struct Inner {
    world: Mutex<World>,
    started: AtomicUsize,
    detected: AtomicUsize,
    stopped: Notify,
}

#[derive(Debug, Clone)]
pub(crate) struct Sample {
    id: AgentId,
    flaw: Flaw,
    copies: bool,
    there: bool,
    inner: Arc<Inner>,
}

impl Sample {
    pub(crate) fn new(flaw: Flaw) -> Self {
        let copies = flaw == Flaw::KeepsTheIdThatItClaimsToReplace;
        Self { id: AgentId::new("sample").unwrap(), flaw, copies, there: true, inner: Arc::default() }
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.inner.world.lock().unwrap()
    }
}

/// Something that goes on until it is ended, as a process does: dropping this ends it.
struct Going<'a>(&'a Sample, RunId);

impl<'a> Going<'a> {
    fn new(sample: &'a Sample, run: RunId) -> Self {
        sample.world().running.push(run);
        Self(sample, run)
    }
}

impl Drop for Going<'_> {
    fn drop(&mut self) {
        if !self.0.is(Flaw::LeavesTheDropped) {
            self.0.world().running.retain(|run| *run != self.1);
        }
    }
}

struct Said<'a, 'b> {
    observation: Observation,
    sink: &'a mut dyn EventSink,
    sample: &'b Sample,
}

impl Said<'_, '_> {
    fn say(&mut self, event: AgentEvent<'_>) {
        self.observation.observe(&event);
        if !(self.sample.is(Flaw::HidesAnEvent) && matches!(event, AgentEvent::Text(_))) {
            self.sink.event(&event);
        }
    }

    fn report(self, asked: Asked, verdict: Verdict, ended_by: Option<EndedBy>, leftovers: u32) -> TurnReport {
        let mut observation = self.observation;
        if self.sample.is(Flaw::HidesWhatWasDone) {
            observation.model_called = false;
        }
        let evidence = Evidence {
            asked,
            version: None,
            exit: Exit::Unknown,
            ended_by,
            stderr_tail: String::new(),
            observation,
            leftovers_ended: leftovers,
        };
        TurnReport { verdict, evidence }
    }
}

#[async_trait]
impl AgentAdapter for Sample {
    fn id(&self) -> &AgentId {
        &self.id
    }

    fn accepts_id(&self, id: &NativeId) -> bool {
        self.is(Flaw::AcceptsAnything)
            || uuid::Uuid::try_parse(id.as_str()).is_ok_and(|u| u.to_string() == id.as_str())
    }

    async fn detect(&self) -> Result<Installation, AgentError> {
        if !self.there && !self.is(Flaw::JudgesWhatWasNotStarted) {
            return Err(AgentError::new(AgentErrorKind::NotFound, self.id.clone(), "sample"));
        }
        let mut capabilities = AgentCapabilities::NONE;
        capabilities.resumable_sessions = true;
        capabilities.headless_resume = true;
        capabilities.caller_chosen_id = true;
        capabilities.id_on_resume = if self.copies { IdOnResume::Replaced } else { IdOnResume::Kept };
        let forks = !self.is(Flaw::ClaimsNoForkAndForks);
        capabilities.fork = if forks { ForkSupport::CallerChoosesId } else { ForkSupport::No };
        let again = self.inner.detected.fetch_add(1, Ordering::SeqCst);
        capabilities.rewind = self.is(Flaw::IsAnotherEveryTime) && again > 0;
        Ok(Installation { program: "/bin/sample".into(), version: Version::parse("1.0.0"), capabilities })
    }

    async fn run(&self, turn: Turn<'_>, sink: &mut dyn EventSink) -> Result<TurnReport, AgentError> {
        let (asked, own, source) = match turn.mode {
            Mode::Fresh { id } => (Asked::Fresh(id.cloned()), id, None),
            Mode::Resume { id } => (Asked::Resume(id.clone()), Some(id), Some(id)),
            Mode::Fork { source, id, .. } => (Asked::Fork(source.clone()), id, Some(source)),
        };
        let mut said = Said { observation: Observation::default(), sink, sample: self };
        if !self.there {
            if self.is(Flaw::JudgesWhatWasNotStarted) {
                return Ok(said.report(asked, Verdict::Unknown, None, 0));
            }
            return Err(AgentError::new(AgentErrorKind::NotFound, self.id.clone(), "sample"));
        }
        if turn.cancel.is_cancelled() && !self.is(Flaw::StartsWhatWasCancelled) {
            return Ok(said.report(asked, Verdict::Cancelled, Some(EndedBy::Cancel), 0));
        }
        self.inner.started.fetch_add(1, Ordering::SeqCst);
        let _going = Going::new(self, turn.run);
        let play = self.world().play.clone().unwrap_or(Play::Works);
        if play == Play::DiesAtOnce {
            if self.is(Flaw::TellsWhatWasNotDone) {
                said.say(AgentEvent::ModelCalled);
            }
            return Ok(said.report(asked, Verdict::Unknown, None, 0));
        }
        if play == Play::EndsInSilence {
            let verdict =
                if self.is(Flaw::CompletesSilence) { Verdict::Completed } else { Verdict::NoResult };
            return Ok(said.report(asked, verdict, None, 0));
        }
        let known = source.and_then(|id| self.world().sessions.get(id.as_str()).cloned());
        let fails = matches!(play, Play::FailsNaming(_)) || (source.is_some() && known.is_none());
        if fails && matches!(asked, Asked::Resume(_)) && !self.is(Flaw::StartsAnewWhereNothingIs) {
            if let (Play::FailsNaming(other), true) = (&play, self.is(Flaw::AdoptsTheIdOfAFailure)) {
                said.say(AgentEvent::Session { id: other.as_str() });
            }
            let missing = !self.is(Flaw::CompletesWhatIsMissing);
            let verdict = if missing { Verdict::Missing } else { Verdict::Completed };
            return Ok(said.report(asked, verdict, None, 0));
        }
        let renames = match turn.mode {
            Mode::Resume { .. } => self.copies && !self.is(Flaw::KeepsTheIdThatItClaimsToReplace),
            Mode::Fork { .. } => own.is_none(),
            Mode::Fresh { .. } => self.is(Flaw::DropsAChosenId) || own.is_none(),
        };
        let session = match (own.filter(|_| !renames), source) {
            (_, Some(source)) if matches!(turn.mode, Mode::Fork { .. }) && self.is(Flaw::ForksInPlace) => {
                source.clone()
            }
            (Some(own), _) => own.clone(),
            (None, _) => {
                let mut world = self.world();
                world.ids += 1;
                NativeId::new(uuid::Uuid::from_u128((0xB << 124) | world.ids).to_string())
            }
        };
        said.say(AgentEvent::Session { id: session.as_str() });
        said.say(AgentEvent::ModelCalled);
        if !self.is(Flaw::CarriesNothingOut) {
            let mut turns = known.filter(|_| !self.is(Flaw::ForgetsOnResume)).unwrap_or_default();
            let prompt = if self.is(Flaw::TrimsThePrompt) { turn.prompt.trim() } else { turn.prompt };
            turns.push(prompt.to_owned());
            self.world().sessions.insert(session.to_string(), turns);
        }
        if play == Play::Dies {
            if self.is(Flaw::MakesAnErrorOfADeath) {
                return Err(AgentError::new(AgentErrorKind::Other, self.id.clone(), "it died"));
            }
            let verdict = if self.is(Flaw::CompletesADeath) { Verdict::Completed } else { Verdict::Crashed };
            return Ok(said.report(asked, verdict, None, 0));
        }
        if play == Play::Stops {
            self.inner.stopped.notify_one();
            let limit = if self.is(Flaw::HasNoLimits) { Duration::from_secs(600) } else { turn.limits.total };
            let deaf = self.is(Flaw::IsDeafToCancel);
            let by = tokio::select! {
                () = turn.cancel.cancelled(), if !deaf => EndedBy::Cancel,
                () = tokio::time::sleep(limit) => EndedBy::TotalLimit,
            };
            let verdict = if by == EndedBy::Cancel { Verdict::Cancelled } else { Verdict::TimedOut };
            return Ok(said.report(asked, verdict, Some(by), 0));
        }
        let text = if let Play::Says(text) = &play { text.as_str() } else { "done" };
        said.say(AgentEvent::Text(text));
        if let (true, Some(id)) = (self.is(Flaw::FindsIdsInProse), text.get(12..48)) {
            said.say(AgentEvent::Session { id });
        }
        said.say(AgentEvent::Finished(&Final { text: text.to_owned(), ..Final::default() }));
        let mut leftovers = 0;
        if play == Play::LeavesSomething {
            self.world().running.push(RunId::new(uuid::Uuid::nil()));
            if !self.is(Flaw::LeavesWhatIsLeft) {
                self.world().running.retain(|run| *run != RunId::new(uuid::Uuid::nil()));
                leftovers = 1;
            }
        }
        Ok(said.report(asked, Verdict::Completed, None, leftovers))
    }

    async fn reap(&self, run: RunId) -> u32 {
        let mut world = self.world();
        let before = world.running.len();
        if !self.is(Flaw::ReapsNothing) {
            world.running.retain(|running| *running != run && !self.is(Flaw::ReapsEverything));
        }
        u32::try_from(before - world.running.len()).unwrap()
    }
}

/// The sample on its stage.
#[derive(Debug)]
pub(crate) struct Fixture {
    sample: Sample,
    folder: PathBuf,
    bare: bool,
}

impl Fixture {
    pub(crate) fn new(flaw: Flaw) -> Self {
        Self { sample: Sample::new(flaw), folder: "/w".into(), bare: false }
    }

    /// A stage for turns that work, and for nothing else.
    pub(crate) fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    pub(crate) fn copying(mut self) -> Self {
        self.sample.copies = true;
        self
    }
}

#[async_trait]
impl AgentFixture for Fixture {
    fn adapter(&self) -> &dyn AgentAdapter {
        &self.sample
    }
    fn without_agent(&self) -> Option<Box<dyn AgentAdapter>> {
        (!self.bare).then(|| Box::new(Sample { there: false, ..self.sample.clone() }) as _)
    }
    fn cwd(&self) -> &Path {
        &self.folder
    }
    fn state_dir(&self) -> Option<&Path> {
        None
    }
    async fn stage(&self, play: &Play) -> Result<(), Cannot> {
        if self.bare && *play != Play::Works {
            return Err(Cannot("it is a bare stage"));
        }
        self.sample.world().play = Some(play.clone());
        Ok(())
    }
    async fn delete(&self, id: &NativeId) -> Result<(), Cannot> {
        if self.bare {
            return Err(Cannot("it is a bare stage"));
        }
        self.sample.world().sessions.remove(id.as_str());
        Ok(())
    }
    async fn stopped(&self) {
        self.sample.inner.stopped.notified().await;
    }
    async fn conversation(&self, id: &NativeId) -> Vec<String> {
        self.sample.world().sessions.get(id.as_str()).cloned().unwrap_or_default()
    }
    async fn started(&self) -> usize {
        self.sample.inner.started.load(Ordering::SeqCst)
    }
    async fn running(&self) -> usize {
        self.sample.world().running.len()
    }
    fn outlives_its_runner(&self) -> bool {
        !self.bare
    }
}
