//! The end of a run: settle the binding, write record and audit event, make the result.

use crate::decide::{Attempt, Count, Verdict, Why, condemns, count, settle};
use crate::error::{AgentError, Chain, RunError};
use crate::{
    AuditEvent, AuditSeq, Exit, FailedRun, FigureSource, IdOnResume, LlmResult, NativeId, Route, SessionKey,
    Usage, Warning,
};

use super::Lifecycle;
use super::admit::Job;
use super::ledger::{Ledger, Outcome};
use super::resolve::Scene;
use super::tried::Tried;

/// All attempts of a run, the last one apart.
#[derive(Debug)]
pub(super) struct Runs {
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
        runs: Runs,
        why: Option<Why>,
        failure: Option<Why>,
    ) -> Result<LlmResult, RunError> {
        let Runs { earlier, last } = runs;
        // Before the record: nothing of what is changed from here on is this run's.
        self.checkpoint_after(job, &mut scene, &ledger, &last).await;
        let before = ledger.record.binding.as_ref().map(|binding| binding.native_id.clone());
        let now = self.host.now();
        let is_fork =
            scene.target.as_ref().is_some_and(|t| t.is_fork) && last.course.attempt == Attempt::Resume;
        let route = Route::of(why, is_fork);

        let version = scene.installation.version.as_ref().map(|version| version.text.clone());
        let resumed = scene.target.as_ref().filter(|_| last.course.attempt == Attempt::Resume && !is_fork);
        let copies = scene.installation.capabilities.id_on_resume == IdOnResume::Replaced;
        let about_binding = ledger.sought_the_binding();
        let new = |id| scene.new_session(id, resumed, is_fork, why, copies, about_binding);
        let ran_in = last.ran_in.clone().map(new);
        let outcome = Outcome { counters: last.counters, why: failure.or(why), now };
        // What condemns a session of another folder says nothing of the binding.
        let about = why.filter(|why| about_binding || !condemns(*why));
        ledger.settle(settle(last.settle_facts(about)), ran_in, &outcome);
        ledger.settle_preamble();
        // A fork that failed says nothing of the key's own session.
        if !is_fork {
            ledger.count(count(last.count_facts(failure.or(why))));
        }
        let all = || earlier.iter().chain([&last]);
        let usage = all().fold(Usage::default(), |mut sum, tried| {
            sum += tried.usage;
            sum
        });
        let unknown = all().any(|tried| tried.usage_source == FigureSource::Unknown);
        let usage_source = if unknown { FigureSource::Unknown } else { FigureSource::Reported };
        let cost_usd = all().filter_map(|tried| tried.cost_usd).reduce(|sum, cost| sum + cost);
        ledger.record.totals.add_run(usage, cost_usd);
        ledger.note_checkpoint(scene.checkpoint);
        if let Some(unended) = ledger.record.rewinding.take() {
            scene.warnings.extend(self.tell_unended(&job.key, &unended).await);
        }
        ledger.try_again();
        ledger.finish(job.run, route, failure.or(route.why()), failure.is_none(), now);
        self.persist(&mut ledger).await;

        let after = ledger.record.binding.as_ref().map(|binding| binding.native_id.clone());
        let attempts: Vec<_> = all().map(Tried::note).collect();
        let mut event =
            AuditEvent::new(now, job.run, if failure.is_none() { "run_finished" } else { "run_failed" });
        event.route = Some(route.code().to_owned());
        event.why = failure.or(route.why()).map(|why| why.code().to_owned());
        event.detail = ledger.faded.clone().filter(|_| failure.or(route.why()) == Some(Why::SessionMissing));
        event.before = before;
        event.after = after.clone();
        event.attempts.clone_from(&attempts);
        event.agent_version.clone_from(&version);
        warn_of(&last, &mut scene.warnings);
        let audit_seq = match self.append(&job.key, &event).await {
            Ok(seq) => Some(seq),
            Err(warning) => {
                scene.warnings.push(warning);
                None
            }
        };

        let recipe = ledger.recipe(job, &scene.installation.capabilities);
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
                    usage_source,
                    cost_usd,
                    recorded,
                    audit_seq,
                    run: job.run,
                    checkpoint: scene.checkpoint,
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
            usage_source,
            cost_usd,
            totals: ledger.record.totals,
            recorded,
            audit_seq,
            run: job.run,
            recipe,
            preamble: ledger.passing.told,
            name: ledger.record.name,
            agent_version: version,
            checkpoint: scene.checkpoint,
            attempts,
            warnings: scene.warnings,
        })
    }

    /// Ends a run whose agent could not be run, or that was refused: the record goes back to what it was, but for
    /// the note.
    pub(super) async fn never_started(
        &self,
        job: &Job<'_>,
        mut ledger: Ledger,
        earlier: &[Tried],
        end: &NeverStarted<'_>,
    ) {
        let mut touched = ledger.record.in_flight.take().is_some();
        // Without a session of the key's own it was a fork that was refused.
        if end.why == Some(Why::ResumeKeepsFailing) && ledger.record.binding.is_some() {
            // The next one has its try here, too.
            ledger.count(Count::Skipped);
            touched = true;
        }
        ledger.forget_proposed();
        if touched {
            self.persist(&mut ledger).await;
        }
        let mut event = AuditEvent::new(self.host.now(), job.run, end.kind);
        event.why = end.why.map(|why| why.code().to_owned());
        event.before = ledger.record.binding.as_ref().map(|binding| binding.native_id.clone());
        event.after.clone_from(&event.before);
        event.attempts = earlier.iter().map(Tried::note).collect();
        let faded = ledger.faded.filter(|_| end.why == Some(Why::SessionMissing));
        event.detail = end.error.map(ToString::to_string).or(faded);
        // There is no result that could carry a warning.
        let _ = self.append(&job.key, &event).await;
    }

    /// Writes an event. A log that cannot be written never spoils the run.
    pub(super) async fn append(&self, key: &SessionKey, event: &AuditEvent) -> Result<AuditSeq, Warning> {
        self.store.append_audit(key, event).await.map_err(|error| {
            tracing::error!(%key, %error, "the audit log could not be written");
            Warning::AuditFailed(Chain(&error).to_string())
        })
    }
}

/// Why a run never started.
#[derive(Debug)]
pub(super) struct NeverStarted<'a> {
    pub(super) kind: &'static str,
    pub(super) why: Option<Why>,
    pub(super) error: Option<&'a AgentError>,
}

/// The conversation that the answer is in: the one named by the agent, else the one bound.
fn session_of(last: &Tried, bound: Option<NativeId>) -> Option<NativeId> {
    last.ran_in.clone().or(bound)
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
