//! The end of a run: settle the binding, write record and audit event, make the result.

use crate::decide::{Attempt, Verdict, Why, settle};
use crate::error::{AgentError, RunError};
use crate::{AgentEvent, AuditEvent, AuditSeq, Exit, FailedRun, LlmResult, NativeId, Route, Usage, Warning};

use super::Lifecycle;
use super::admit::Job;
use super::attempt::Tried;
use super::ledger::{Ledger, NewSession, Outcome, ResumeOutcome};
use super::resolve::Scene;

/// All attempts of a run, the last one apart.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) earlier: Vec<Tried>,
    pub(super) last: Tried,
}

impl Lifecycle {
    /// Ends a run that the agent carried out, well (`failure` is `None`) or badly.
    pub(super) async fn conclude(
        &self,
        job: &Job<'_>,
        mut scene: Scene,
        mut ledger: Ledger,
        course: Course,
        why: Option<Why>,
        failure: Option<Why>,
    ) -> Result<LlmResult, RunError> {
        let Course { earlier, last } = course;
        let before = ledger.record.binding.as_ref().map(|binding| binding.native_id.clone());
        let now = self.host.now();
        let is_fork =
            scene.target.as_ref().is_some_and(|t| t.is_fork) && last.course.attempt == Attempt::Resume;
        let route = Route::of(why, is_fork);

        let counter = last.evidence.observation.end.as_ref().and_then(|end| end.cost_usd);
        let version = scene.installation.version.as_ref().map(|version| version.text.clone());
        let ran_in = last.ran_in.clone().map(|native_id| NewSession {
            native_id,
            began_in: match scene
                .target
                .as_ref()
                .filter(|_| last.course.attempt == Attempt::Resume && !is_fork)
            {
                Some(target) => target.binding.began_in.clone(),
                None => scene.place.folder.clone(),
            },
            agent_version: version.clone(),
            forked_from: scene.target.as_ref().filter(|_| is_fork).map(|t| t.binding.native_id.clone()),
            why,
        });
        let outcome = Outcome { cost_counter: counter, why: failure.or(why), now };
        ledger.settle(settle(last.settle_facts(why)), ran_in, &outcome);
        ledger.count_resume(resume_outcome(&earlier, &last, why));
        let all = || earlier.iter().chain([&last]);
        let usage = all().fold(Usage::default(), |mut sum, tried| {
            sum += tried.usage;
            sum
        });
        let cost_usd = all().filter_map(|tried| tried.cost_usd).reduce(|sum, cost| sum + cost);
        ledger.record.totals.runs += 1;
        ledger.record.totals.usage += usage;
        ledger.record.totals.cost_usd += cost_usd.unwrap_or(0.0);
        ledger.finish(job.run, route, failure.or(route.why()), failure.is_none(), now);
        self.persist(&mut ledger).await;

        let after = ledger.record.binding.as_ref().map(|binding| binding.native_id.clone());
        let attempts: Vec<_> = all().map(Tried::note).collect();
        let mut event =
            AuditEvent::new(now, job.run, if failure.is_none() { "run_finished" } else { "run_failed" });
        event.route = Some(route.code().to_owned());
        event.why = failure.or(route.why()).map(|why| why.code().to_owned());
        event.before = before;
        event.after = after.clone();
        event.attempts.clone_from(&attempts);
        event.agent_version.clone_from(&version);
        warn_of(&last, &mut scene.warnings);
        let audit_seq = self.write_audit(job, &mut scene, event).await;

        let recorded = ledger.recorded;
        tracing::info!(key = %job.key, run = %job.run, route = route.code(), why = failure.or(route.why()).map(Why::code),
            recorded = recorded.is_saved(), "run ended");
        let observation = &last.evidence.observation;
        if let Some(why) = failure {
            let partial_text = match &observation.end {
                Some(end) if !end.is_error && !end.text.is_empty() => end.text.clone(),
                _ => observation.partial_text.clone(),
            };
            return Err(RunError::Failed {
                why,
                run: Box::new(FailedRun {
                    partial_text,
                    session_id: after,
                    route,
                    usage,
                    cost_usd,
                    recorded,
                    audit_seq,
                    run: job.run,
                    attempts,
                    evidence: last.evidence,
                    warnings: scene.warnings,
                }),
            });
        }
        let text =
            observation.end.as_ref().map_or_else(|| observation.partial_text.clone(), |end| end.text.clone());
        Ok(LlmResult {
            text,
            session_id: session_of(&last, after),
            resumed: route == Route::Resumed,
            resume_fallback: route.why().filter(|why| *why != Why::NoPriorSession),
            route,
            usage,
            cost_usd,
            totals: ledger.record.totals,
            recorded,
            audit_seq,
            run: job.run,
            name: ledger.record.name,
            agent_version: version,
            attempts,
            warnings: scene.warnings,
        })
    }

    /// Ends a run that never started: the record goes back to what it was, but for the note.
    pub(super) async fn never_started(
        &self,
        job: &Job<'_>,
        mut scene: Scene,
        mut ledger: Ledger,
        kind: &str,
        why: Option<Why>,
        error: Option<&AgentError>,
    ) {
        let touched = ledger.record.in_flight.take().is_some();
        ledger.forget_proposed();
        if touched {
            self.persist(&mut ledger).await;
        }
        let mut event = AuditEvent::new(self.host.now(), job.run, kind);
        event.why = why.map(|why| why.code().to_owned());
        event.before = ledger.record.binding.as_ref().map(|binding| binding.native_id.clone());
        event.after.clone_from(&event.before);
        event.detail = error.map(ToString::to_string);
        self.write_audit(job, &mut scene, event).await;
    }

    /// Writes the events of the run. A log that cannot be written never spoils the run.
    async fn write_audit(&self, job: &Job<'_>, scene: &mut Scene, event: AuditEvent) -> Option<AuditSeq> {
        let mut seq = None;
        for event in scene.events.drain(..).chain([event]) {
            match self.store.append_audit(&job.key, &event).await {
                Ok(written) => seq = Some(written),
                Err(error) => {
                    tracing::error!(key = %job.key, %error, "the audit log could not be written");
                    scene.warnings.push(Warning::AuditFailed(error.to_string()));
                    return None;
                }
            }
        }
        seq
    }
}

/// The conversation that the answer is in: the one named by the agent, else the one bound.
fn session_of(last: &Tried, bound: Option<NativeId>) -> Option<NativeId> {
    last.evidence.observation.session.clone().or(bound)
}

fn resume_outcome(earlier: &[Tried], last: &Tried, why: Option<Why>) -> ResumeOutcome {
    if why == Some(Why::ResumeKeepsFailing) {
        return ResumeOutcome::SkippedForFailing;
    }
    match last.course.attempt {
        Attempt::Resume if last.verdict == Verdict::Completed && why.is_none() => ResumeOutcome::Worked,
        Attempt::Resume => match last.verdict {
            Verdict::Unauthenticated
            | Verdict::RateLimited
            | Verdict::Transient
            | Verdict::TimedOut
            | Verdict::Cancelled
            | Verdict::Misconfigured
            | Verdict::LimitReached
            | Verdict::Busy => ResumeOutcome::NotTried,
            _ => ResumeOutcome::Failed,
        },
        Attempt::Fallback if why == Some(Why::SessionBusy) => ResumeOutcome::NotTried,
        Attempt::Fallback if !earlier.is_empty() => ResumeOutcome::Failed,
        Attempt::Fresh | Attempt::Fallback => ResumeOutcome::NotTried,
    }
}

fn warn_of(last: &Tried, warnings: &mut Vec<Warning>) {
    let evidence = &last.evidence;
    if last.verdict == Verdict::Completed {
        if last.persisted == crate::decide::Persisted::No {
            warnings.push(Warning::NotPersisted);
        }
        match (evidence.ended_by, evidence.exit) {
            (Some(_), _) => warnings.push(Warning::Lingered),
            (None, Exit::Code(0)) => {}
            (None, exit) => warnings.push(Warning::ExitedBadly(format!("{exit:?}"))),
        }
    }
    if evidence.leftovers_ended > 0 {
        warnings.push(Warning::LeftoversEnded(evidence.leftovers_ended));
    }
}

/// An event for the sink that belongs to the orchestration, not to the agent.
pub(super) const fn fell_back(why: Why) -> AgentEvent<'static> {
    AgentEvent::FellBack { why }
}
