//! A host without a clock, an agent that plays a script over a world of sessions, and stores that fail.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use session_core::decide::Verdict;
use session_core::error::*;
use session_core::*;

pub(crate) fn key() -> SessionKey {
    SessionKey::new("issue-42", "scripted").unwrap()
}

pub(crate) fn request(prompt: &str) -> LlmRequest {
    LlmRequest::new(prompt)
        .cwd("/w/demo")
        .session(SessionRef::new("issue-42", "scripted").named("agent/issue-42"))
}

/// Time stands still unless somebody sleeps, which lets others go on; ids count up; folders are what the test says.
#[derive(Debug, Default)]
pub(crate) struct StillHost {
    pub(crate) millis: AtomicU64,
    ids: AtomicU64,
    pub(crate) folders: Mutex<BTreeMap<PathBuf, Folder>>,
}

pub(crate) fn folder(path: &str, inode: u64, repository: &str) -> Folder {
    let id = |inode| Some(FolderId { device: 1, inode, born: 1 });
    let repository = Repository {
        common_dir: PathText::new(Path::new(repository)),
        id: None,
        remote: None,
        roots: Vec::new(),
    };
    Folder { path: PathText::new(Path::new(path)), id: id(inode), repository: Some(repository) }
}

#[async_trait]
impl Host for StillHost {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::SeqCst).cast_signed())
    }
    async fn sleep(&self, duration: Duration) {
        self.millis.fetch_add(u64::try_from(duration.as_millis()).unwrap(), Ordering::SeqCst);
        tokio::task::yield_now().await;
    }
    fn random_id(&self) -> uuid::Uuid {
        uuid::Uuid::from_u128(u128::from(self.ids.fetch_add(1, Ordering::SeqCst)) + 1)
    }
    fn holder(&self) -> Holder {
        Holder { host: "here".to_owned(), pid: 1, since: None }
    }
    async fn folder(&self, path: &Path) -> Result<Folder, FolderError> {
        let folders = self.folders.lock().unwrap();
        folders.get(path).cloned().ok_or_else(|| FolderError::Missing { path: path.to_owned() })
    }
}

/// What an attempt does.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Carries the turn out and keeps it.
    Work,
    /// Carries the turn out and keeps nothing.
    Forget,
    /// Carries the turn out in another conversation.
    Elsewhere(&'static str),
    /// Fails like this, after that much activity.
    Fail(Verdict, session_core::decide::Activity),
    /// After the model was called, with a result of zeros.
    FailAtZeros(Verdict),
    /// Fails like this after the turn was kept.
    FailAfterKeeping(Verdict),
    /// Crashes after the turn was kept, without a word.
    KeepInSilence,
    /// Fails like this after the turn was kept, without a word.
    FailInSilence(Verdict),
    /// Cannot be started.
    CannotStart,
    /// Names its session, keeps the prompt, and then never ends.
    Hang,
    /// Names another session, keeps the prompt there, and then never ends.
    HangElsewhere(&'static str),
    /// Fails like this in another session, after it kept the turn there.
    FailElsewhere(Verdict, &'static str),
    /// Says something without a word of its session, and crashes.
    TextThenCrash,
    /// Fails like this, with this cost figure.
    FailAtCost(Verdict, f64),
}

#[derive(Debug, Default)]
pub(crate) struct World {
    /// Prompts kept, by native id.
    pub(crate) sessions: BTreeMap<String, Vec<String>>,
    /// What the next attempts do; beyond the end, they work.
    pub(crate) acts: VecDeque<Act>,
    /// Every attempt: what it was asked, and the prompt.
    pub(crate) calls: Vec<(Asked, String)>,
    /// What of a recipe came with each.
    pub(crate) recipes: Vec<(Option<String>, Option<Vec<String>>)>,
    pub(crate) reaped: Vec<RunId>,
    /// The folders in which it was looked for.
    pub(crate) detected_in: Vec<PathBuf>,
    /// What was mended.
    pub(crate) mended: Vec<Mend>,
    /// How an id of this agent looks.
    pub(crate) shape: Option<fn(&str) -> NativeId>,
    pub(crate) counter: f64,
    /// Why nothing is branched.
    pub(crate) no_branch: Option<BranchRefusal>,
    /// A branch lacks the last prompt.
    pub(crate) branches_short: bool,
    /// The agent's own place, where the test has more than one.
    pub(crate) home: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub(crate) struct Scripted {
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) capabilities: AgentCapabilities,
    id: AgentId,
}

impl Scripted {
    pub(crate) fn new() -> Self {
        Self::named("scripted")
    }
    pub(crate) fn named(id: &str) -> Self {
        let mut capabilities = AgentCapabilities::NONE;
        capabilities.resumable_sessions = true;
        capabilities.headless_resume = true;
        capabilities.resume_reach = ReachCapability::Repository;
        capabilities.caller_chosen_id = true;
        capabilities.fork = ForkSupport::CallerChoosesId;
        capabilities.cost_scope = FigureScope::Session;
        capabilities.verified = true;
        Self { world: Arc::default(), capabilities, id: AgentId::new(id).unwrap() }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    pub(crate) fn will(&self, acts: impl IntoIterator<Item = Act>) {
        self.world().acts.extend(acts);
    }

    pub(crate) fn calls(&self) -> Vec<Asked> {
        self.world().calls.iter().map(|(asked, _)| asked.clone()).collect()
    }
}

#[async_trait]
impl AgentAdapter for Scripted {
    fn id(&self) -> &AgentId {
        &self.id
    }
    fn accepts_id(&self, id: &NativeId) -> bool {
        id.as_str().len() == 36
    }
    fn new_id(&self, random: &str) -> NativeId {
        self.world().shape.map_or_else(|| NativeId::new(random), |shape| shape(random))
    }
    async fn detect(&self) -> Result<Installation, AgentError> {
        let version = Version::parse("1.2.3");
        Ok(Installation { program: "/bin/scripted".into(), version, capabilities: self.capabilities })
    }
    async fn detect_in(&self, cwd: &Path) -> Result<Installation, AgentError> {
        self.world().detected_in.push(cwd.to_owned());
        self.detect().await
    }
    async fn run(&self, turn: Turn<'_>, sink: &mut dyn EventSink) -> Result<TurnReport, AgentError> {
        let asked = match turn.mode {
            Mode::Fresh { id } => Asked::Fresh(id.cloned()),
            Mode::Resume { id } => Asked::Resume(id.clone()),
            Mode::Fork { source, .. } => Asked::Fork(source.clone()),
        };
        let act = {
            let mut world = self.world();
            world.calls.push((asked.clone(), turn.prompt.to_owned()));
            let TurnRecipe { system_prompt, tools } = turn.recipe;
            world.recipes.push((system_prompt.map(str::to_owned), tools.map(<[_]>::to_vec)));
            world.acts.pop_front()
        };
        // Without a script the agent is honest about what it has.
        let known = |id: &NativeId| self.world().sessions.contains_key(id.as_str());
        let act = act.unwrap_or_else(|| match &asked {
            Asked::Resume(id) | Asked::Fork(id) if !known(id) => {
                Act::Fail(Verdict::Missing, session_core::decide::Activity::None)
            }
            _ => Act::Work,
        });
        let mut observation = Observation::default();
        let mut say = |event: AgentEvent<'_>| {
            observation.observe(&event);
            sink.event(&event);
        };
        let count = self.world().calls.len();
        let own = match (&turn.mode, self.capabilities.id_on_resume) {
            (Mode::Fresh { id: Some(id) } | Mode::Fork { id: Some(id), .. }, _) => id.to_string(),
            (Mode::Resume { id }, IdOnResume::Kept) => id.to_string(),
            _ => uuid::Uuid::from_u128(0xA000 + count as u128).to_string(),
        };
        let copied = match &asked {
            Asked::Fresh(_) => Vec::new(),
            Asked::Resume(id) | Asked::Fork(id) => {
                self.world().sessions.get(id.as_str()).cloned().unwrap_or_default()
            }
        };
        let mut verdict = Verdict::Completed;
        let keep = |id: &str, mut turns: Vec<String>| {
            turns.push(turn.prompt.to_owned());
            self.world().sessions.insert(id.to_owned(), turns);
        };
        match act {
            Act::CannotStart => {
                return Err(AgentError::new(AgentErrorKind::Spawn, self.id.clone(), "/bin/scripted"));
            }
            Act::HangElsewhere(id) => {
                say(AgentEvent::Session { id });
                say(AgentEvent::ModelCalled);
                keep(id, Vec::new());
                std::future::pending::<()>().await;
            }
            Act::FailElsewhere(failure, id) => {
                verdict = failure;
                say(AgentEvent::Session { id });
                say(AgentEvent::ModelCalled);
                keep(id, Vec::new());
            }
            Act::TextThenCrash => {
                verdict = Verdict::Crashed;
                say(AgentEvent::Text("I pushed the commit"));
            }
            Act::FailAtZeros(failure) => {
                verdict = failure;
                say(AgentEvent::Session { id: &own });
                say(AgentEvent::ModelCalled);
                let end = Final { is_error: true, cost_usd: Some(0.0), ..Final::default() };
                say(AgentEvent::Finished(&end));
            }
            Act::FailAtCost(failure, cost) => {
                verdict = failure;
                let end = Final { is_error: true, cost_usd: Some(cost), ..Final::default() };
                say(AgentEvent::Finished(&end));
            }
            Act::Hang => {
                say(AgentEvent::Session { id: &own });
                say(AgentEvent::ModelCalled);
                keep(&own, copied);
                std::future::pending::<()>().await;
            }
            Act::Fail(failure, activity) => {
                verdict = failure;
                if activity != session_core::decide::Activity::None {
                    say(AgentEvent::Session { id: &own });
                    say(AgentEvent::ModelCalled);
                }
                if activity == session_core::decide::Activity::Acted {
                    say(AgentEvent::ToolStarted { id: "t", name: "Bash" });
                }
            }
            Act::KeepInSilence => {
                verdict = Verdict::Crashed;
                keep(&own, copied);
            }
            Act::FailInSilence(failure) => {
                verdict = failure;
                keep(&own, copied);
            }
            Act::FailAfterKeeping(failure) => {
                verdict = failure;
                say(AgentEvent::Session { id: &own });
                say(AgentEvent::ModelCalled);
                keep(&own, copied);
            }
            Act::Work | Act::Forget | Act::Elsewhere(_) => {
                let id = if let Act::Elsewhere(other) = act { other.to_owned() } else { own };
                say(AgentEvent::Session { id: &id });
                say(AgentEvent::ModelCalled);
                let turns = copied.len() + 1;
                match act {
                    Act::Forget => {}
                    Act::Elsewhere(_) => keep(&id, Vec::new()),
                    _ => keep(&id, copied),
                }
                let cost = {
                    let mut world = self.world();
                    world.counter += 0.5;
                    world.counter
                };
                let counted = match self.capabilities.usage_scope {
                    FigureScope::Process => 1,
                    FigureScope::Session => turns as u64,
                };
                let usage = Usage { input_tokens: 10 * counted, output_tokens: counted, ..Usage::default() };
                let end = Final {
                    kind: "success".to_owned(),
                    text: turns.to_string(),
                    usage,
                    cost_usd: Some(cost),
                    ..Final::default()
                };
                say(AgentEvent::Finished(&end));
            }
        }
        let exit = Exit::Code(i32::from(verdict != Verdict::Completed));
        let evidence = Evidence {
            asked,
            version: None,
            exit,
            ended_by: None,
            stderr_tail: String::new(),
            observation,
            leftovers_ended: 0,
        };
        Ok(TurnReport { verdict, evidence })
    }
    async fn reap(&self, run: RunId) -> u32 {
        self.world().reaped.push(run);
        1
    }
}

/// Looks into the world.
#[derive(Debug)]
pub(crate) struct Glass(pub(crate) Scripted);

#[async_trait]
impl SessionCatalog for Glass {
    fn home(&self) -> Option<PathBuf> {
        self.0.world().home.clone()
    }
    async fn inspect(&self, query: SessionQuery<'_>) -> Result<Inspection, CatalogError> {
        Ok(match self.0.world().sessions.get(query.id.as_str()) {
            None => Inspection::MISSING,
            Some(turns) => Inspection {
                presence: if turns.is_empty() { Presence::Empty } else { Presence::Present },
                user_turns: turns.len() as u64,
                bytes: turns.iter().map(|turn| turn.len() as u64 + 1).sum(),
                ..Inspection::MISSING
            },
        })
    }
    async fn last_said(&self, query: SessionQuery<'_>, bytes: usize) -> Result<Conversation, CatalogError> {
        let mut conversation = Conversation::default();
        for text in self.0.world().sessions.get(query.id.as_str()).into_iter().flatten() {
            conversation.push(Said { by: Speaker::User, text: text.clone() }, bytes);
        }
        Ok(conversation)
    }
    async fn mend(&self, _: SessionQuery<'_>, _: &Inspection, _: Mend) -> Result<bool, CatalogError> {
        Ok(false)
    }
    async fn branch(&self, order: BranchOrder<'_>) -> Result<Branched, CatalogError> {
        let mut world = self.0.world();
        if let Some(refusal) = world.no_branch.clone() {
            return Ok(Branched::Refused(refusal));
        }
        let Some(turns) = world.sessions.get(order.query.id.as_str()) else {
            return Ok(Branched::Refused(BranchRefusal::Missing));
        };
        let held = usize::try_from(order.keep.turns).unwrap() - usize::from(world.branches_short);
        let Some(kept) = turns.get(..held).map(<[_]>::to_vec) else {
            return Ok(Branched::Refused(BranchRefusal::SpotGone));
        };
        let id = NativeId::new(order.seed.to_string());
        world.sessions.insert(id.to_string(), kept);
        Ok(Branched::Done(Branch { id, path: PathBuf::new(), turns: held as u64, bytes: None }))
    }
    async fn prune(&self, _: BranchOrder<'_>, branch: &Branch) -> Result<(), CatalogError> {
        self.0.world().sessions.remove(branch.id.as_str());
        Ok(())
    }
}
