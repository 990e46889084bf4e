//! A walk: the steps carried out on a lifecycle, and the memory of each mailbox carried along.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use session_core::decide::Why;
use session_core::error::{RequestError, RunError};
use session_core::{
    Agent, Cancel, Document, Folder, Guard, Lifecycle, Limits, LlmRequest, LlmResult, RunId, Saved,
    SessionRef, SessionStore, codec,
};

use super::book::Book;
use super::check;
use super::faults::{Faulty, Hand};
use super::host::StillHost;
use super::invariant::{Invariant, Violation, ensure};
use super::model::Memory;
use super::scene::{Scene, Want};
use super::step::{Fault, Health, MAILBOXES, Run, Setup, Step, VERSIONS_OF_THE_RECORD};
use super::world::{Attempt, Shared, World};
use super::{Glass, Open, Walker, Wrap, key};
use crate::Scratch;

/// What the walk did to a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    Fine,
    Corrupt,
    Newer { bytes: Document, before: Option<Document> },
}

#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Every memory that is right.
    pub(crate) memories: BTreeSet<Memory>,
    pub(crate) record: Record,
    /// A run that died while the agent was at it.
    pub(crate) dead: Option<RunId>,
}

/// How a run ended, as the walk sees it.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done(Box<Result<LlmResult, RunError>>),
    Killed,
}

/// Everything about one run, for the checks.
#[derive(Debug)]
pub(crate) struct Ran<'a> {
    pub(crate) run: &'a Run,
    pub(crate) before: Scene,
    pub(crate) after: Scene,
    pub(crate) attempts: Vec<Attempt>,
    /// The ids that were handed out for it.
    pub(crate) issued: Vec<String>,
    pub(crate) outcome: Outcome,
    pub(crate) record: Record,
}

pub(crate) struct Walk<'a> {
    open: &'a Open,
    pub(super) wrap: Option<Wrap>,
    scratch: Rc<Scratch>,
    pub(super) setup: Setup,
    pub(crate) host: Arc<StillHost>,
    pub(crate) shared: Shared,
    pub(super) hand: Hand,
    pub(crate) inner: Arc<dyn SessionStore>,
    pub(super) lifecycle: Lifecycle,
    pub(crate) mailboxes: Vec<Mailbox>,
    pub(crate) book: Book,
    turns: usize,
}

impl<'a> Walk<'a> {
    pub(crate) async fn new(open: &'a Open, wrap: Option<Wrap>, setup: &Setup) -> Self {
        let scratch = Rc::new(Scratch::new());
        let (host, shared, hand) = (Arc::new(StillHost::new()), Shared::default(), Hand::default());
        {
            let mut world = shared.world();
            (world.version, world.catalog) = (setup.version, setup.catalog);
        }
        let inner = open(scratch.clone()).await;
        let faulty = Faulty::new(inner.clone(), shared.clone(), &hand);
        let lifecycle = lifecycle(Arc::new(faulty), &host, &shared, (setup, wrap));
        let blank = || Mailbox { memories: [Memory::default()].into(), record: Record::Fine, dead: None };
        Self {
            open,
            wrap,
            scratch,
            setup: setup.clone(),
            host,
            shared,
            hand,
            inner,
            lifecycle,
            mailboxes: (0..MAILBOXES).map(|_| blank()).collect(),
            book: Book::default(),
            turns: 0,
        }
    }

    pub(crate) async fn steps(&mut self, steps: &[Step]) -> Result<(), Violation> {
        for step in steps {
            match step {
                Step::Run(run) => {
                    for _ in 0..run.times {
                        self.run(run).await?;
                    }
                }
                Step::Corrupt(mailbox) => self.corrupt(*mailbox).await,
                Step::Upgrade(mailbox) => self.upgrade(*mailbox).await,
                Step::Downgrade(mailbox) => self.downgrade(*mailbox).await,
                Step::Restart => self.restart().await,
                Step::Close(mailbox, fault) => self.close(*mailbox, *fault).await?,
                Step::Move(folder) => {
                    if let Some(Some(path)) =
                        self.host.numbered(*folder).map(|f| f.path.as_path().map(ToOwned::to_owned))
                    {
                        self.host.place(*folder, &format!("{}-moved", path.display()));
                    }
                }
                Step::Remove(folder) => self.host.remove(*folder),
                Step::PutBack(folder) => self.host.put_back(*folder),
                Step::Install(version) => self.shared.world().version = *version,
                Step::Befall(which, health) => {
                    if let Some(session) = self.shared.world().which(*which).filter(|s| !s.health.is_lost()) {
                        session.health = *health;
                    }
                }
                Step::Truncate(which) => {
                    if let Some(session) = self.shared.world().which(*which)
                        && let Some(turn) = session.turns.pop()
                    {
                        self.book.doubt(session.conversation, &turn);
                    }
                }
                Step::HealAll => {
                    for session in self.shared.world().sessions.iter_mut().filter(|s| !s.health.is_lost()) {
                        session.health = Health::Sound;
                    }
                }
            }
        }
        Ok(())
    }

    async fn restart(&mut self) {
        if !self.inner.capabilities().durable {
            return;
        }
        self.inner = (self.open)(self.scratch.clone()).await;
        let faulty = Faulty::new(self.inner.clone(), self.shared.clone(), &self.hand);
        self.lifecycle = lifecycle(Arc::new(faulty), &self.host, &self.shared, (&self.setup, self.wrap));
    }

    pub(super) async fn stored(&self, mailbox: usize) -> Option<Document> {
        match self.inner.load(&key(mailbox)).await {
            Ok(stored) => stored.map(|stored| stored.document),
            Err(error) => panic!("the store cannot be read: {error}"),
        }
    }

    async fn put(&self, mailbox: usize, document: &Document) {
        let saved = self.inner.save(&key(mailbox), document, &Guard::Any, None).await;
        assert!(matches!(saved, Ok(Saved::Done(_))), "the store cannot be written: {saved:?}");
    }

    async fn corrupt(&mut self, mailbox: usize) {
        if self.mailboxes[mailbox].record != Record::Fine || self.stored(mailbox).await.is_none() {
            return;
        }
        self.put(
            mailbox,
            &Document::new(b"{\"format\":{\"major\":1,\"minor\":0},\"record\":{\"key\"".to_vec()),
        )
        .await;
        let own = &mut self.mailboxes[mailbox];
        (own.record, own.memories, own.dead) = (Record::Corrupt, [Memory::default()].into(), None);
    }

    async fn upgrade(&mut self, mailbox: usize) {
        if self.mailboxes[mailbox].record != Record::Fine {
            return;
        }
        let before = self.stored(mailbox).await;
        let bytes =
            Document::new(format!("{{\"format\":{VERSIONS_OF_THE_RECORD},\"news\":true}}").into_bytes());
        self.put(mailbox, &bytes).await;
        self.mailboxes[mailbox].record = Record::Newer { bytes, before };
    }

    async fn downgrade(&mut self, mailbox: usize) {
        let Record::Newer { before, .. } = self.mailboxes[mailbox].record.clone() else { return };
        match before {
            Some(document) => self.put(mailbox, &document).await,
            None => {
                let removed = self.inner.remove(&key(mailbox), &Guard::Any).await;
                assert!(removed.is_ok(), "{removed:?}");
            }
        }
        self.mailboxes[mailbox].record = Record::Fine;
    }

    pub(super) fn request(&mut self, run: &Run, path: &std::path::Path, cancel: &Cancel) -> LlmRequest {
        self.turns += 1;
        let mut limits = Limits::default();
        limits.busy = Duration::from_millis(500);
        let session = |mailbox: usize| {
            let key = key(mailbox);
            SessionRef::new(key.mailbox.as_str(), key.agent.as_str())
        };
        let request = LlmRequest::new(format!("m{} t{}", run.mailbox, self.turns))
            .cwd(path)
            .session(session(run.mailbox))
            .resume(run.policy)
            .enter_other_project(run.consent)
            .limits(limits)
            .cancel(cancel.clone());
        if run.fork { request.fork_of(session(1 - run.mailbox)) } else { request }
    }

    fn scene(&self, run: &Run, here: &Folder) -> Scene {
        let world: World = self.shared.world().clone();
        Scene {
            world,
            folders: self.host.snapshot(),
            catalog: self.setup.catalog,
            here: here.clone(),
            policy: run.policy,
            consent: run.consent,
        }
    }

    async fn run(&mut self, run: &Run) -> Result<(), Violation> {
        let cancel = Cancel::new();
        let Some(here) = self.host.numbered(run.folder) else {
            let request = self.request(run, std::path::Path::new("/w/nowhere"), &cancel);
            let result = self.lifecycle.run(request).await;
            let refused = matches!(result, Err(RunError::Request(RequestError::Folder(_))));
            return ensure(refused, Invariant::EveryReasonIsTrue, || format!("without a folder: {result:?}"));
        };
        let path = here.path.as_path().map(ToOwned::to_owned).unwrap_or_default();
        let before = self.scene(run, &here);
        let (_, ids) = self.host.issued(0);
        let request = self.request(run, &path, &cancel);
        self.shared.world().acts = run.acts.iter().cloned().collect();
        self.hand.set(run.fault);
        let outcome = self.drive(run, request, &cancel, &path).await?;
        self.hand.set(None);
        self.shared.world().acts.clear();
        self.host.wait(Duration::from_secs(60));
        let (issued, _) = self.host.issued(ids);
        for id in &issued {
            self.shared.world().begun.entry(id.clone()).or_insert_with(|| here.clone());
        }
        let after = self.scene(run, &here);
        let attempts = after.world.attempts[before.world.attempts.len()..].to_vec();
        let record = self.mailboxes[run.mailbox].record.clone();
        let ran = Ran { run, before, after, attempts, issued, outcome, record };
        check::attempts(&ran)?;
        check::result(&ran, &self.book)?;
        self.remember(&ran).await?;
        check::stored(self, &ran).await?;
        self.book.enter(&ran);
        Ok(())
    }

    /// Sorts out the memories that what was seen tells to be wrong, and carries the others on.
    async fn remember(&mut self, ran: &Ran<'_>) -> Result<(), Violation> {
        let mailbox = ran.run.mailbox;
        let others: Vec<_> = self.mailboxes[1 - mailbox].memories.iter().cloned().collect();
        let own = &self.mailboxes[mailbox];
        let mut wants: Vec<Want> = Vec::new();
        let mut next = BTreeSet::new();
        for memory in &own.memories {
            let (settled, want) = check::expectation(ran, memory);
            if check::explains(ran, &settled, &want, &others) {
                next.extend(check::carried_on(ran, memory, &settled, &want));
            }
            wants.push(want);
        }
        if next.is_empty() {
            return Err(check::unexplained(ran, &wants));
        }
        let memories = next;
        if own.record == Record::Corrupt {
            let still = self.stored(mailbox).await.is_some_and(|document| {
                matches!(codec::decode(&document, &key(mailbox)), codec::Decoded::Corrupt(_))
            });
            self.mailboxes[mailbox].record = if still { Record::Corrupt } else { Record::Fine };
        }
        let own = &mut self.mailboxes[mailbox];
        own.memories = memories;
        let reaped = &ran.after.world.reaped;
        let undisturbed = matches!(ran.run.fault, None | Some(Fault::Audit)) && ran.record == Record::Fine;
        if let (Some(dead), false, true) = (own.dead, ran.attempts.is_empty(), undisturbed) {
            ensure(reaped.contains(&dead), Invariant::WhatADeadRunnerLeftIsEnded, || {
                format!("{dead} was not reaped")
            })?;
            own.dead = None;
        }
        let noted = matches!(ran.run.fault, None | Some(Fault::Audit | Fault::Death { .. }))
            && ran.record == Record::Fine;
        if let (Outcome::Killed, Some(last), true) = (&ran.outcome, ran.attempts.last(), noted)
            && last.verdict.is_none()
        {
            own.dead = Some(last.run);
        }
        Ok(())
    }
}

pub(super) fn lifecycle(
    store: Arc<dyn SessionStore>,
    host: &Arc<StillHost>,
    shared: &Shared,
    (setup, wrap): (&Setup, Option<Wrap>),
) -> Lifecycle {
    let walker = Walker::new(shared.clone(), host.clone());
    let agent = match wrap {
        None => Agent::new(walker),
        Some(wrap) => wrap(Arc::new(walker)),
    };
    let agent = if setup.catalog { agent.with_catalog(Glass(shared.clone())) } else { agent };
    Lifecycle::new(store, host.clone()).agent(agent)
}

/// Why the store alone leaves nothing to resume, in this run.
pub(crate) fn store_obstacle(ran: &Ran<'_>) -> Option<Why> {
    match (ran.run.fault, &ran.record) {
        (Some(Fault::Lease | Fault::Load), _) => Some(Why::StoreUnavailable),
        (_, Record::Newer { .. }) => Some(Why::RecordNewer),
        (_, Record::Corrupt) => Some(Why::RecordCorrupt),
        (_, Record::Fine) => None,
    }
}
