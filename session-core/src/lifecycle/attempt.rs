//! One attempt: note what is about to start, run it, look what is there afterwards.

use crate::decide::{
    Activity, Attempt, Bound, Continuity, Persisted, Transcript, Verdict, Why, condemns, weigh,
};
use crate::error::{AgentError, Chain};
use crate::{
    AgentEvent, Counters, EventSink, FigureScope, FigureSource, ForkSupport, IdOnResume, Inspection, Mend,
    Mode, NativeId, Presence, RecipeSeed, Recorded, SessionName, Turn, TurnReport, Usage, Warning,
    cost_of_run, usage_of_run,
};

use super::Lifecycle;
use super::admit::Job;
use super::checkpoint::{Marked, spot_of};
use super::early::{Named, Watch};
use super::ledger::{Ledger, NewSession};
use super::preamble::turn_recipe;
use super::resolve::Scene;
use super::target::{Target, transcript_fact};
use super::tried::Tried;

/// How an attempt goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Course {
    pub(super) attempt: Attempt,
    pub(super) why: Option<Why>,
}

/// Why an attempt was not made.
#[derive(Debug)]
pub(super) enum NotTried {
    /// The record is not what it was when it was read. Nothing was started.
    Raced,
    /// The key is another runner's by now.
    LostLease,
    /// The agent could not be run.
    Agent(AgentError),
}

impl Lifecycle {
    pub(super) async fn attempt(
        &self,
        job: &Job<'_>,
        scene: &mut Scene,
        ledger: &mut Ledger,
        course: Course,
        sink: &mut dyn EventSink,
    ) -> Result<Tried, NotTried> {
        let capabilities = scene.installation.capabilities;
        let target = scene.target.as_ref().filter(|_| course.attempt == Attempt::Resume);
        let is_fork = target.is_some_and(|target| target.is_fork);
        let resumed = target.filter(|_| !is_fork);
        let chosen = match (target, is_fork) {
            (None, _) => capabilities.caller_chosen_id,
            (Some(_), true) => capabilities.fork == ForkSupport::CallerChoosesId,
            (Some(_), false) => false,
        }
        .then(|| job.agent.adapter().new_id(&self.host.random_id().to_string()));
        let mode = match target {
            None => Mode::Fresh { id: chosen.as_ref() },
            Some(target) if is_fork => Mode::Fork {
                source: &target.binding.native_id,
                transcript: target.fork_file.as_deref(),
                id: chosen.as_ref(),
            },
            Some(target) => Mode::Resume { id: &target.binding.native_id },
        };
        let copies = capabilities.id_on_resume == IdOnResume::Replaced;
        let about_binding = ledger.sought_the_binding();
        let prompt = ledger.prompt(&job.request.prompt, target, &capabilities, &mut scene.warnings);
        let recipe = ledger.recipe(job, &capabilities);
        let session = |native_id: NativeId| {
            scene.new_session(native_id, resumed, is_fork, course.why, copies, about_binding)
        };

        // Pending before the spawn: a kill from here on leaves a binding that is right or absent.
        let first = ledger.record.in_flight.as_ref().is_none_or(|in_flight| in_flight.run != job.run);
        ledger.begin(job.run, job.name.as_ref().map(SessionName::as_str), self.host.now());
        if let (Some(target), true) = (resumed, self.checkpointer.is_some()) {
            ledger.record.mark(job.run, target.binding.counters);
        }
        if let Some(id) = &chosen {
            ledger.propose(session(id.clone()), self.host.now());
        }
        self.persist(ledger).await;
        match ledger.recorded {
            // Somebody else runs the key by now.
            Recorded::LostLease => return Err(NotTried::LostLease),
            Recorded::LostRace if first => return Err(NotTried::Raced),
            _ => {}
        }
        let ailing = match course.attempt {
            Attempt::Resume => resumed,
            Attempt::Fresh | Attempt::Fallback => scene.target.as_ref().filter(|target| !target.is_fork),
        };
        let (mended, looked) = match ailing {
            Some(target) if first => self.mend(job, scene, course.attempt, target).await,
            _ => (Vec::new(), None),
        };

        let stood = target.and_then(|target| {
            spot_of(&target.binding.native_id, looked.as_ref().or(target.before.as_ref()))
        });
        let marked = match first {
            true => self.checkpoint_before(job, scene, ledger, stood.clone()).await,
            false => Marked::default(),
        };

        let named = Named::default();
        let known = chosen.clone().or_else(|| resumed.map(|target| target.binding.native_id.clone()));
        let source = target.map(|target| target.binding.native_id.clone());
        let is_ours = |id: &NativeId| id.is_argument_safe() && job.agent.adapter().accepts_id(id);
        // What a fork may never be is its own original.
        let is_new = |id: &NativeId| is_ours(id) && !(is_fork && Some(id) == source.as_ref());
        let mut watch = Watch { sink, named: named.clone(), known, is_ours: &is_new };
        watch.event(&AgentEvent::Started { attempt: course.attempt });
        let name = ledger.record.name.clone().and_then(|name| SessionName::new(name).ok());
        let of_recipe = recipe.as_ref().map(|recipe| &recipe.seed);
        let turn = Turn {
            run: job.run,
            prompt: &prompt,
            cwd: &scene.place.cwd,
            mode,
            name: name.as_ref(),
            model: job.request.model.as_deref().or_else(|| of_recipe.and_then(RecipeSeed::model)),
            recipe: turn_recipe(recipe.as_ref(), &capabilities),
            state_dir: scene.state_dir.as_deref(),
            installation: &scene.installation,
            limits: &job.request.limits,
            cancel: &job.request.cancel,
        };
        let run = job.agent.adapter().run(turn, &mut watch);
        let report = match self.run_and_save_early(run, ledger, &named, &session).await {
            Ok(report) => report,
            Err(error) => {
                // No attempt before this one did anything.
                self.unmark(&job.key, marked.checkpoint.or(scene.checkpoint)).await;
                return Err(NotTried::Agent(error));
            }
        };

        // A cure makes the file longer, too.
        let before = resumed.and_then(|target| looked.or_else(|| target.before.clone()));
        let counters = target.map(|target| target.binding.counters).unwrap_or_default();
        scene.warnings.extend(mended);
        scene.warnings.extend(marked.warnings);
        scene.checkpoint = marked.checkpoint.or(scene.checkpoint);
        let TurnReport { verdict, evidence } = report;
        let verdict = weighed(job, scene, resumed, verdict).await;
        let named = evidence.observation.session.clone();
        let seen = named.clone().filter(is_new);
        let asked = source.filter(|_| !is_fork).or(chosen);
        // A session that is none, in the place of the one that was to be continued, leaves nothing to look at.
        let strayed = target.is_some() && named.is_some() && seen.is_none();
        let ran_in = seen.clone().or_else(|| asked.clone()).filter(|_| !strayed);
        let did_nothing = verdict != Verdict::Completed && evidence.observation.activity() == Activity::None;
        let looks = ran_in.as_ref().filter(|_| !(did_nothing && course.attempt == Attempt::Resume));
        let after = match looks {
            None => Some(Inspection::MISSING),
            Some(id) => {
                let state_dir = scene.state_dir.clone();
                self.inspect(job, scene, id, state_dir).await
            }
        };
        let spot = looks.map_or(stood, |id| spot_of(id, after.as_ref()));
        ledger.heard(ran_in.as_ref(), verdict, after.as_ref());
        // Equal ids prove nothing where the file that they name is gone, or holds less than before.
        let less = holds_less(before.as_ref(), after.as_ref()) && !did_nothing;
        let continues = course.attempt == Attempt::Resume;
        let continuity = match &seen {
            _ if strayed => Continuity::Replaced,
            Some(_) if is_fork => Continuity::Renamed,
            Some(_) if !continues => Continuity::Kept,
            _ if less => Continuity::Replaced,
            None => Continuity::Unknown,
            Some(seen) if Some(seen) == asked.as_ref() => Continuity::Kept,
            // A copy holds this turn, too: what does not is no copy, however long.
            Some(_) if copies && holds_more(before.as_ref(), after.as_ref()) => Continuity::Renamed,
            Some(_) => Continuity::Replaced,
        };
        let same_file = matches!(continuity, Continuity::Kept | Continuity::Unknown);
        let persisted = persisted(before.as_ref().filter(|_| same_file), after.as_ref());
        let bound = match (&ledger.record.binding, &ran_in) {
            (None, _) => Bound::No,
            (Some(binding), Some(ran_in)) if binding.native_id == *ran_in => Bound::No,
            (Some(_), _) => Bound::Yes,
        };
        // What another conversation counts is all of this run.
        let is_other = continuity == Continuity::Replaced && seen != asked;
        let counters = if is_other { Counters::default() } else { counters };
        let end = evidence.observation.end.as_ref();
        let usage_source = if evidence.observation.activity() == Activity::None
            || end.is_some_and(|end| end.usage != Usage::default())
        {
            FigureSource::Reported
        } else {
            FigureSource::Unknown
        };
        // A failure may show a figure of its own, lower than what the session has come to.
        let is_told = |cost: &f64| {
            verdict == Verdict::Completed || usage_source == FigureSource::Reported || *cost > 0.0
        };
        let reported = end.and_then(|end| end.cost_usd).filter(is_told).filter(|reported| {
            verdict == Verdict::Completed
                || capabilities.cost_scope == FigureScope::Process
                || counters.cost_usd.is_none_or(|counter| *reported >= counter)
        });
        let usage = end.map(|end| end.usage).filter(|reported| {
            verdict == Verdict::Completed
                || capabilities.usage_scope == FigureScope::Process
                || counters.usage.is_none_or(|counter| reported.less(counter).is_some())
        });
        // Where this one waits and is made again, what was mended is no news.
        if let (Attempt::Resume, false, Some(target)) = (course.attempt, is_fork, scene.target.as_mut()) {
            target.before = before;
        }
        Ok(Tried {
            usage_source,
            usage: usage
                .map(|usage| usage_of_run(capabilities.usage_scope, counters.usage, usage))
                .unwrap_or_default(),
            cost_usd: reported
                .map(|reported| cost_of_run(capabilities.cost_scope, counters.cost_usd, reported)),
            // Also where this version starts at zero: the next run may be of one that goes on from there.
            counters: Counters { cost_usd: reported, usage },
            course,
            verdict,
            evidence,
            continuity,
            persisted,
            policy: scene.facts.policy,
            ran_in,
            is_fork,
            bound,
            spot,
        })
    }

    /// Mends a file that is about to be continued, or takes away what is in the way of a new one, where it did not change
    /// since it was looked at, by cures that lose nothing, and looks again. Where one fails, the attempt is made as it is.
    async fn mend(
        &self,
        job: &Job<'_>,
        scene: &Scene,
        attempt: Attempt,
        target: &Target,
    ) -> (Vec<Warning>, Option<Inspection>) {
        let mut warnings = Vec::new();
        let (Some(catalog), true) = (job.agent.catalog(), self.mend) else { return (warnings, None) };
        let id = &target.binding.native_id;
        let Some(mut look) = target.before.clone() else { return (warnings, None) };
        let continues = attempt == Attempt::Resume;
        let packed = look.is_to_be_unpacked(scene.installation.version.as_ref());
        let mends = packed.then_some(Mend::Unpack).into_iter().chain(look.mends());
        let mends: Vec<_> = mends.filter(|mend| (*mend != Mend::SetAside) == continues).collect();
        for mend in mends {
            if mend.needs_own_dir() && scene.state_dir.is_none() {
                continue;
            }
            match catalog.mend(scene.query(id, scene.state_dir.as_deref()), &look, mend).await {
                Ok(true) => warnings.push(Warning::Mended(mend)),
                Ok(false) => {}
                Err(error) => {
                    warnings.push(Warning::NotInspected(Chain(&error).to_string()));
                    break;
                }
            }
            // What was mended has another size, or another place.
            match catalog.inspect(scene.query(id, scene.state_dir.as_deref())).await {
                Ok(again) => look = again,
                Err(_) => break,
            }
        }
        (warnings, Some(look))
    }
}

/// What a resume that found no session means, where its file can be looked at.
async fn weighed(job: &Job<'_>, scene: &Scene, resumed: Option<&Target>, verdict: Verdict) -> Verdict {
    let (Some(target), Some(catalog), Verdict::Missing) = (resumed, job.agent.catalog(), verdict) else {
        return verdict;
    };
    let binding = &target.binding;
    let look = catalog.inspect(scene.query(&binding.native_id, scene.state_dir.as_deref())).await;
    // What is there and cannot be looked at may be there as ever.
    let transcript = look.map_or(Transcript::Unreadable, |look| transcript_fact(Some(&look), binding, scene));
    weigh(verdict, transcript)
}

impl Scene {
    /// A session that this attempt starts, or that the agent just named in it.
    pub(super) fn new_session(
        &self,
        native_id: NativeId,
        resumed: Option<&Target>,
        is_fork: bool,
        why: Option<Why>,
        copies: bool,
        about_binding: bool,
    ) -> NewSession {
        let source = self.target.as_ref().filter(|_| is_fork);
        NewSession {
            began_in: resumed.map_or(&self.place.folder, |target| &target.binding.began_in).clone(),
            lives_in: resumed.and_then(|target| target.binding.lives_in.clone()),
            home: self.home.clone(),
            agent_version: self.installation.version.as_ref().map(|version| version.text.clone()),
            forked_from: source.map(|target| target.binding.native_id.clone()),
            // Out of a resume, only the copy that such a version makes takes the place of the original.
            replaces: match (resumed, why) {
                (Some(target), _) => copies || target.binding.native_id == native_id,
                (None, Some(why)) => condemns(why) && about_binding,
                (None, None) => false,
            },
            why,
            instead_of: resumed.map(|target| target.binding.native_id.clone()).filter(|id| *id != native_id),
            native_id,
        }
    }
}

/// Whether the conversation holds less after the run than the one asked for held before it, as far as anybody could
/// look.
fn holds_less(before: Option<&Inspection>, after: Option<&Inspection>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) if before.presence == Presence::Present => {
            after.presence != Presence::Present || after.user_turns < before.user_turns
        }
        _ => false,
    }
}

/// Whether a session holds more than the one that it was made from, as far as anybody could look.
pub(super) fn holds_more(original: Option<&Inspection>, copy: Option<&Inspection>) -> bool {
    match (original, copy) {
        (Some(original), Some(copy)) if original.presence == Presence::Present => {
            copy.presence == Presence::Present && copy.user_turns > original.user_turns
        }
        _ => true,
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
