//! The agent of a walk, and the catalog of its sessions.

use std::sync::Arc;

use session_core::decide::{Activity, Verdict};
use session_core::error::{AgentError, AgentErrorKind, CatalogError};
use session_core::{
    AgentAdapter, AgentEvent, AgentId, Asked, Conversation, EndedBy, EventSink, Evidence, Exit, Final,
    Folder, IdOnResume, Inspection, Installation, Mend, Mode, NativeId, Observation, Presence, RunId, Said,
    SessionCatalog, SessionQuery, Speaker, Turn, TurnReport, async_trait,
};

use super::host::StillHost;
use super::step::{Act, Deed, Health, Place, Point};
use super::world::{Attempt, Session, Shared, World};

/// The agent: it does what the walk says, and else is honest about what it has.
#[derive(Debug, Clone)]
pub(crate) struct Walker {
    id: AgentId,
    shared: Shared,
    host: Arc<StillHost>,
}

impl Walker {
    pub(crate) fn new(shared: Shared, host: Arc<StillHost>) -> Self {
        Self { id: super::key(0).agent, shared, host }
    }
}

/// Where an attempt is going to be.
struct Course {
    /// The session that it will say it is in.
    own: String,
    conversation: usize,
    /// What that session holds before the turn.
    before: Vec<String>,
    began: Folder,
    place: Place,
}

/// The mailbox of a prompt of a walk: `m0 …`.
pub(crate) fn mailbox_of(prompt: &str) -> usize {
    prompt.strip_prefix('m').and_then(|rest| rest.split(' ').next()).and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn course(world: &mut World, turn: &Turn<'_>, here: &Folder, place: Place) -> Result<Course, Verdict> {
    let (source, chosen) = match turn.mode {
        Mode::Fresh { id } => (None, id),
        Mode::Resume { id } => (Some(id), None),
        Mode::Fork { source, id, .. } => (Some(source), id),
    };
    if let Some(verdict) = source.and_then(|id| world.obstacle(id.as_str(), &turn.cwd.to_string_lossy())) {
        return Err(verdict);
    }
    let source = source.and_then(|id| world.session(id.as_str())).cloned();
    let resumes = matches!(turn.mode, Mode::Resume { .. });
    let copies = world.release().capabilities().id_on_resume == IdOnResume::Replaced;
    let mine = mailbox_of(turn.prompt);
    let foreign = world.sessions.iter().rev().find(|session| session.mailbox != mine).map(|s| s.id.clone());
    let place = match place {
        // Nobody could tell another conversation from a copy where nobody looks.
        Place::Stray | Place::Foreign if resumes && copies && !world.catalog => Place::Own,
        // Nor could anybody tell whose session it is that a new one is said to be, or that a copy is said to be.
        Place::Foreign if !resumes || copies || foreign.is_none() => Place::Stray,
        place => place,
    };
    let (own, before) = match (place, source) {
        (Place::Own, Some(source)) if resumes => {
            let Session { conversation, turns: before, began, id, .. } = source;
            let own = if copies { world.new_id() } else { id };
            return Ok(Course { own, conversation, before, began, place });
        }
        (Place::Own, source) => {
            let own = chosen.map_or_else(|| world.new_id(), NativeId::to_string);
            (own, source.map(|source| source.turns).unwrap_or_default())
        }
        (Place::Stray, _) => (world.new_id(), Vec::new()),
        (Place::Foreign, _) => (foreign.unwrap_or_default(), Vec::new()),
    };
    Ok(Course { own, conversation: world.new_conversation(), before, began: here.clone(), place })
}

/// An attempt that goes on.
struct Going<'a> {
    shared: &'a Shared,
    turn: Turn<'a>,
    index: usize,
    /// Whether it is elsewhere than it was asked to be.
    strays: bool,
    observation: Observation,
    sink: &'a mut dyn EventSink,
}

impl Going<'_> {
    fn say(&mut self, event: AgentEvent<'_>) {
        self.observation.observe(&event);
        let activity = self.observation.activity();
        let mut world = self.shared.world();
        world.attempts[self.index].activity = activity;
        if let AgentEvent::Session { id } = event {
            world.attempts[self.index].named = Some(id.to_owned());
            world.attempts[self.index].strays = self.strays;
        }
        drop(world);
        self.sink.event(&event);
    }

    fn begin(&mut self, own: &str) {
        self.say(AgentEvent::Session { id: own });
        self.say(AgentEvent::ModelCalled);
    }

    fn keep(&self, course: &Course) {
        if course.place == Place::Foreign {
            return;
        }
        let mut world = self.shared.world();
        let prompt = self.turn.prompt.to_owned();
        match world.session_mut(&course.own) {
            Some(session) => session.turns.push(prompt),
            None => {
                let turns = course.before.iter().cloned().chain([prompt]).collect();
                world.sessions.push(Session {
                    id: course.own.clone(),
                    mailbox: mailbox_of(self.turn.prompt),
                    conversation: course.conversation,
                    turns,
                    health: Health::Sound,
                    began: course.began.clone(),
                });
            }
        }
        world.attempts[self.index].kept_in = Some(course.own.clone());
    }

    /// Waits for the walk; says whether the caller cancelled meanwhile.
    async fn stop(shared: &Shared, turn: Turn<'_>) -> bool {
        if turn.cancel.is_cancelled() {
            return true;
        }
        shared.stopped().notify_one();
        tokio::select! {
            () = turn.cancel.cancelled() => true,
            () = shared.released().notified() => false,
        }
    }

    fn end(self, asked: Asked, verdict: Verdict) -> TurnReport {
        self.shared.world().attempts[self.index].verdict = Some(verdict);
        let evidence = Evidence {
            asked,
            version: None,
            exit: Exit::Code(i32::from(verdict != Verdict::Completed)),
            ended_by: (verdict == Verdict::Cancelled).then_some(EndedBy::Cancel),
            stderr_tail: String::new(),
            observation: self.observation,
            leftovers_ended: 0,
        };
        TurnReport { verdict, evidence }
    }
}

#[async_trait]
impl AgentAdapter for Walker {
    fn id(&self) -> &AgentId {
        &self.id
    }

    fn accepts_id(&self, id: &NativeId) -> bool {
        uuid::Uuid::try_parse(id.as_str()).is_ok_and(|parsed| parsed.to_string() == id.as_str())
    }

    async fn detect(&self) -> Result<Installation, AgentError> {
        let release = self.shared.world().release();
        let (version, capabilities) = (release.version(), release.capabilities());
        Ok(Installation { program: "/bin/walker".into(), version, capabilities })
    }

    async fn run(&self, turn: Turn<'_>, sink: &mut dyn EventSink) -> Result<TurnReport, AgentError> {
        let asked = match turn.mode {
            Mode::Fresh { id } => Asked::Fresh(id.cloned()),
            Mode::Resume { id } => Asked::Resume(id.clone()),
            Mode::Fork { source, .. } => Asked::Fork(source.clone()),
        };
        let here = self.host.at(turn.cwd);
        let (index, planned, deed) = {
            let mut world = self.shared.world();
            let act = world.acts.pop_front().unwrap_or(Act::WORK);
            if act.deed == Deed::CannotStart {
                return Err(AgentError::new(AgentErrorKind::Spawn, self.id.clone(), "/bin/walker"));
            }
            let planned = course(&mut world, &turn, &here, act.place);
            if let Ok(course) = &planned {
                world.begun.entry(course.own.clone()).or_insert_with(|| course.began.clone());
            }
            if let Mode::Fresh { id: Some(id) } | Mode::Fork { id: Some(id), .. } = turn.mode {
                world.begun.insert(id.as_str().to_owned(), here);
            }
            world.attempts.push(Attempt {
                run: turn.run,
                asked: asked.clone(),
                named: None,
                kept_in: None,
                before: planned.as_ref().map(|course| course.before.clone()).unwrap_or_default(),
                strays: false,
                activity: Activity::None,
                verdict: None,
            });
            (world.attempts.len() - 1, planned, act.deed)
        };
        let strays = planned.as_ref().is_ok_and(|course| course.place != Place::Own);
        let observation = Observation::default();
        let mut going = Going { shared: &self.shared, turn, index, strays, observation, sink };
        let course = match planned {
            Ok(course) => course,
            Err(verdict) => return Ok(going.end(asked, verdict)),
        };
        match deed {
            Deed::Fail { verdict, activity, keeps } => {
                if activity != Activity::None {
                    going.begin(&course.own);
                }
                if activity == Activity::Acted {
                    going.say(AgentEvent::ToolStarted { id: "t", name: "Bash" });
                }
                if keeps {
                    going.keep(&course);
                }
                return Ok(going.end(asked, verdict));
            }
            Deed::Stop(point) => {
                if point == Point::Silent && Going::stop(&self.shared, turn).await {
                    return Ok(going.end(asked, Verdict::Cancelled));
                }
                going.begin(&course.own);
                if point == Point::Named && Going::stop(&self.shared, turn).await {
                    return Ok(going.end(asked, Verdict::Cancelled));
                }
                going.keep(&course);
                if point == Point::Kept && Going::stop(&self.shared, turn).await {
                    return Ok(going.end(asked, Verdict::Cancelled));
                }
            }
            Deed::Work => {
                going.begin(&course.own);
                going.keep(&course);
            }
            Deed::Forget | Deed::CannotStart => going.begin(&course.own),
        }
        going.say(AgentEvent::Text("done"));
        going.say(AgentEvent::Finished(&Final {
            kind: "success".to_owned(),
            text: "done".to_owned(),
            ..Final::default()
        }));
        Ok(going.end(asked, Verdict::Completed))
    }

    async fn reap(&self, run: RunId) -> u32 {
        self.shared.world().reaped.push(run);
        1
    }
}

/// Looks into the world.
#[derive(Debug)]
pub(crate) struct Glass(pub(crate) Shared);

#[async_trait]
impl SessionCatalog for Glass {
    async fn inspect(&self, query: SessionQuery<'_>) -> Result<Inspection, CatalogError> {
        let world = self.0.world();
        let Some(session) = world.session(query.id.as_str()) else { return Ok(Inspection::MISSING) };
        let presence = match session.health {
            Health::Gone => return Ok(Inspection::MISSING),
            Health::Empty => Presence::Empty,
            Health::Damaged => Presence::Damaged,
            Health::Locked => Presence::Unreadable,
            _ if session.turns.is_empty() => Presence::Empty,
            _ => Presence::Present,
        };
        let shown = if presence == Presence::Present { session.turns.as_slice() } else { &[] };
        Ok(Inspection {
            presence,
            path: Some(format!("/sessions/{}", session.id).into()),
            user_turns: shown.len() as u64,
            answers: shown.len() as u64,
            bytes: shown.iter().map(|turn| turn.len() as u64 + 1).sum(),
            began_in: session.began.path.as_path().map(Into::into),
            archived: session.health == Health::Archived,
            ..Inspection::MISSING
        })
    }

    async fn last_said(&self, query: SessionQuery<'_>, bytes: usize) -> Result<Conversation, CatalogError> {
        let mut conversation = Conversation::default();
        let world = self.0.world();
        for text in world.session(query.id.as_str()).iter().flat_map(|session| &session.turns) {
            conversation.push(Said { by: Speaker::User, text: text.clone() }, bytes);
        }
        Ok(conversation)
    }

    async fn mend(&self, _: SessionQuery<'_>, _: &Inspection, _: Mend) -> Result<bool, CatalogError> {
        Ok(false)
    }
}
