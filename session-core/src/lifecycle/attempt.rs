//! One attempt: note what is about to start, run it, look what is there afterwards.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use crate::decide::{
    Activity, Attempt, AttemptFacts, Continuity, Patience, Persisted, Policy, SettleFacts, Verdict, Why,
};
use crate::error::{AgentError, RunError};
use crate::{
    AgentEvent, Asked, AttemptNote, EventSink, Evidence, ForkSupport, IdOnResume, Inspection, Mode, NativeId,
    Presence, Recorded, Saved, Turn, TurnReport, Usage, Warning, codec, cost_of_run,
};

use super::Lifecycle;
use super::admit::Job;
use super::ledger::{Ledger, NewSession};
use super::resolve::{Scene, Target};

/// How an attempt goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Course {
    pub(super) attempt: Attempt,
    pub(super) why: Option<Why>,
}

/// An attempt that is over.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) course: Course,
    pub(super) verdict: Verdict,
    pub(super) evidence: Evidence,
    pub(super) continuity: Continuity,
    pub(super) persisted: Persisted,
    pub(super) usage: Usage,
    pub(super) cost_usd: Option<f64>,
    pub(super) policy: Policy,
    /// The session that the attempt ran in: the one that the agent named, else the one asked for.
    pub(super) ran_in: Option<NativeId>,
    is_fork: bool,
}

impl Tried {
    pub(super) const fn activity(&self) -> Activity {
        self.evidence.observation.activity()
    }

    pub(super) const fn facts(&self, patience: Patience) -> AttemptFacts {
        AttemptFacts {
            policy: self.policy,
            attempt: self.course.attempt,
            verdict: self.verdict,
            activity: self.activity(),
            continuity: self.continuity,
            patience,
        }
    }

    pub(super) const fn settle_facts(&self, why: Option<Why>) -> SettleFacts {
        SettleFacts {
            attempt: self.course.attempt,
            verdict: self.verdict,
            activity: self.activity(),
            continuity: self.continuity,
            persisted: self.persisted,
            why,
        }
    }

    pub(super) fn note(&self) -> AttemptNote {
        let evidence = &self.evidence;
        let observation = &evidence.observation;
        let failed = self.verdict != Verdict::Completed;
        let said = [
            observation.end.as_ref().map(|end| end.errors.join("\n")),
            observation.trouble.as_ref().map(|(_, text)| text.clone()),
            observation.end.as_ref().filter(|end| end.is_error).map(|end| end.text.clone()),
            Some(evidence.stderr_tail.trim().to_owned()),
            Some(observation.noise_head.trim().to_owned()),
        ];
        let said = said.into_iter().flatten().find(|text| !text.is_empty()).filter(|_| failed);
        AttemptNote {
            attempt: match (self.course.attempt, self.is_fork) {
                (Attempt::Resume, true) => "fork",
                (Attempt::Resume, false) => "resume",
                (Attempt::Fresh, _) => "fresh",
                (Attempt::Fallback, _) => "fallback",
            }
            .to_owned(),
            asked: match &evidence.asked {
                Asked::Fresh(id) => id.clone(),
                Asked::Resume(id) | Asked::Fork(id) => Some(id.clone()),
            },
            seen: observation.session.clone(),
            verdict: snake(self.verdict.name()),
            activity: snake(self.activity().name()),
            ended_by: evidence.ended_by.map(|by| snake(&format!("{by:?}"))),
            said: said.map(|text| crate::evidence::head(&text, 2048).to_owned()),
        }
    }
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Passes events on, and keeps the last session named so that it can be saved while the run goes on.
struct Watch<'a> {
    sink: &'a mut dyn EventSink,
    named: Arc<Mutex<Option<NativeId>>>,
    known: Option<NativeId>,
}

impl EventSink for Watch<'_> {
    fn event(&mut self, event: &AgentEvent<'_>) {
        if let AgentEvent::Session { id } = event
            && self.known.as_ref().is_none_or(|known| known.as_str() != *id)
        {
            let id = NativeId::new(*id);
            self.known = Some(id.clone());
            *self.named.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(id);
        }
        self.sink.event(event);
    }
}

impl Lifecycle {
    pub(super) async fn attempt(
        &self,
        job: &Job<'_>,
        scene: &mut Scene,
        ledger: &mut Ledger,
        course: Course,
        sink: &mut dyn EventSink,
    ) -> Result<Tried, RunError> {
        let capabilities = scene.installation.capabilities;
        let target = scene.target.as_ref().filter(|_| course.attempt == Attempt::Resume);
        let is_fork = target.is_some_and(|target| target.is_fork);
        let chosen = match (target, is_fork) {
            (None, _) => capabilities.caller_chosen_id,
            (Some(_), true) => capabilities.fork == ForkSupport::CallerChoosesId,
            (Some(_), false) => false,
        }
        .then(|| NativeId::new(self.host.random_id().to_string()));
        let mode = match target {
            None => Mode::Fresh { id: chosen.as_ref() },
            Some(target) if is_fork => Mode::Fork {
                source: &target.binding.native_id,
                transcript: target.fork_file.as_deref(),
                id: chosen.as_ref(),
            },
            Some(target) => Mode::Resume { id: &target.binding.native_id },
        };
        let session = |native_id: NativeId| NewSession {
            native_id,
            began_in: match target {
                Some(target) if !is_fork => target.binding.began_in.clone(),
                _ => scene.place.folder.clone(),
            },
            agent_version: scene.installation.version.as_ref().map(|version| version.text.clone()),
            forked_from: target.filter(|_| is_fork).map(|target| target.binding.native_id.clone()),
            why: course.why,
        };

        // Pending before the spawn: a kill from here on leaves a binding that is right or absent.
        ledger.begin(job.run, job.name.as_ref().map(crate::SessionName::as_str), self.host.now());
        if let Some(id) = &chosen {
            ledger.propose(session(id.clone()), self.host.now());
        }
        self.persist(ledger).await;
        let mended = self.end_last_line(job, target.filter(|_| !is_fork)).await;

        let named = Arc::new(Mutex::new(None));
        let known =
            chosen.clone().or_else(|| target.filter(|_| !is_fork).map(|t| t.binding.native_id.clone()));
        let mut watch = Watch { sink, named: Arc::clone(&named), known };
        watch.event(&AgentEvent::Started { attempt: course.attempt });
        let name = ledger.record.name.clone().and_then(|name| crate::SessionName::new(name).ok());
        let turn = Turn {
            run: job.run,
            prompt: &job.request.prompt,
            cwd: &scene.place.cwd,
            mode,
            name: name.as_ref(),
            model: job.request.model.as_deref(),
            state_dir: scene.state_dir.as_deref(),
            installation: &scene.installation,
            limits: &job.request.limits,
            cancel: &job.request.cancel,
        };
        let run = job.agent.adapter().run(turn, &mut watch);
        let report = self.run_and_save_early(run, ledger, &named, &session).await.map_err(RunError::Agent)?;

        scene.warnings.extend(mended);
        let seen = report.evidence.observation.session.clone();
        let asked = target.filter(|_| !is_fork).map(|target| target.binding.native_id.clone()).or(chosen);
        let continuity = match (&seen, &asked, target) {
            (None, _, _) => Continuity::Unknown,
            (Some(seen), _, Some(target)) if is_fork && *seen == target.binding.native_id => {
                Continuity::Replaced
            }
            (Some(_), _, Some(_)) if is_fork => Continuity::Renamed,
            (Some(seen), Some(asked), _) if seen == asked => Continuity::Kept,
            (Some(_), _, Some(_)) if capabilities.id_on_resume == IdOnResume::Replaced => Continuity::Renamed,
            (Some(_), _, Some(_)) => Continuity::Replaced,
            (Some(_), _, None) => Continuity::Kept,
        };
        let before = target.filter(|_| !is_fork).and_then(|target| target.before.clone());
        let counter = target.and_then(|target| target.binding.cost_counter);
        let idle =
            report.verdict != Verdict::Completed && report.evidence.observation.activity() == Activity::None;
        let ran_in = seen.or(asked);
        let persisted = match ran_in.as_ref().filter(|_| !(idle && course.attempt == Attempt::Resume)) {
            None => Persisted::No,
            Some(id) => {
                let state_dir = scene.state_dir.clone();
                let after = self.inspect(job, scene, id, state_dir).await;
                persisted(before.as_ref().filter(|_| continuity == Continuity::Kept), after.as_ref())
            }
        };
        let TurnReport { verdict, evidence } = report;
        let end = evidence.observation.end.as_ref();
        Ok(Tried {
            usage: end.map(|end| end.usage).unwrap_or_default(),
            cost_usd: end
                .and_then(|end| end.cost_usd)
                .map(|reported| cost_of_run(capabilities.cost_scope, counter, reported)),
            course,
            verdict,
            evidence,
            continuity,
            persisted,
            policy: scene.facts.policy,
            ran_in,
            is_fork,
        })
    }

    /// Ends the last line of a file that is about to be continued, where it has no end. A cure that loses nothing;
    /// where it fails, the resume is tried as it is.
    async fn end_last_line(&self, job: &Job<'_>, target: Option<&Target>) -> Option<Warning> {
        let look = target?.before.as_ref().filter(|look| self.mend && look.open_tail)?;
        match job.agent.catalog()?.end_last_line(look.path.as_deref()?).await {
            Ok(ended) => ended.then_some(Warning::LastLineEnded),
            Err(error) => Some(Warning::NotInspected(error.to_string())),
        }
    }

    /// Drives the run; when the agent names a session that is not in the record yet, saves it meanwhile.
    async fn run_and_save_early(
        &self,
        run: impl Future<Output = Result<TurnReport, AgentError>> + Send,
        ledger: &mut Ledger,
        named: &Mutex<Option<NativeId>>,
        session: &(dyn Fn(NativeId) -> NewSession + Sync),
    ) -> Result<TurnReport, AgentError> {
        let mut run = pin!(run);
        loop {
            let take = || named.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            let news = poll_fn(|context| match run.as_mut().poll(context) {
                Poll::Ready(report) => Poll::Ready(Err(report)),
                Poll::Pending => take().map_or(Poll::Pending, |id| Poll::Ready(Ok(id))),
            });
            let id = match news.await {
                Err(report) => return report,
                Ok(id) => id,
            };
            ledger.propose(session(id), self.host.now());
            let mut save: Pin<Box<dyn Future<Output = ()> + Send + '_>> = Box::pin(self.persist(ledger));
            let mut ended = None;
            poll_fn(|context| {
                if ended.is_none()
                    && let Poll::Ready(report) = run.as_mut().poll(context)
                {
                    ended = Some(report);
                }
                save.as_mut().poll(context)
            })
            .await;
            if let Some(report) = ended {
                return report;
            }
        }
    }

    /// Writes the record, if it may be written. A failure is kept for the result and ends the writing.
    pub(super) async fn persist(&self, ledger: &mut Ledger) {
        if !ledger.is_writable() {
            return;
        }
        let document = codec::encode(&ledger.record);
        let key = ledger.record.key.clone();
        match self.store.save(&key, &document, &ledger.guard).await {
            Ok(Saved::Done(revision)) => ledger.guard = crate::Guard::Revision(revision),
            Ok(Saved::Refused { .. }) => ledger.recorded = Recorded::LostRace,
            Err(error) => {
                tracing::error!(%key, %error, "the record could not be written");
                ledger.recorded = Recorded::Failed(error);
            }
        }
    }
}

/// Whether the file shows a turn of this run: it is there, and it grew.
fn persisted(before: Option<&Inspection>, after: Option<&Inspection>) -> Persisted {
    match (before, after) {
        (_, None) => Persisted::Unknown,
        (_, Some(after)) if after.presence != Presence::Present => Persisted::No,
        (None, Some(_)) => Persisted::Yes,
        (Some(before), Some(after)) if after.user_turns > before.user_turns || after.bytes > before.bytes => {
            Persisted::Yes
        }
        (Some(_), Some(_)) => Persisted::No,
    }
}
