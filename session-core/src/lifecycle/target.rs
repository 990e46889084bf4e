//! Chooses the session to continue, looks at it, and completes the facts.

use std::path::PathBuf;

use crate::decide::{
    AdoptFacts, Adoption, Bound, History, IdShape, Leftover, Plan, PlanFacts, Policy, RecordFact, Support,
    Transcript, Why, Workdir, adopt, plan, refiled,
};
use crate::error::RunError;
use crate::history::SessionSource;
use crate::{
    Binding, Folder, ForkSupport, Former, Inspection, PathText, Phase, Presence, SessionKey, Warning, codec,
};

use super::Lifecycle;
use super::admit::Job;
use super::attempt::holds_more;
use super::ledger::{FAILING, Ledger};
use super::resolve::Scene;

/// The session that a resume would continue, or that a fork would copy.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) binding: Binding,
    pub(super) before: Option<Inspection>,
    /// The original's file, when the target is to be forked out of another key's state dir.
    pub(super) fork_file: Option<PathBuf>,
    pub(super) is_fork: bool,
}

impl Lifecycle {
    pub(super) async fn choose_target(
        &self,
        job: &Job<'_>,
        scene: &mut Scene,
        ledger: &mut Ledger,
    ) -> Result<(), RunError> {
        let unsettled = self.adopt_leftover(job, scene, ledger).await;
        scene.facts.record = ledger.fact;
        if let Some(binding) = ledger.record.binding.clone() {
            scene.facts.record = fact_of(binding.phase);
            self.aim(job, scene, binding, ledger.record.failed_resumes).await;
            self.prefer_session_of_this_folder(job, scene, ledger).await;
        } else if let Some(source) = job.fork_of.as_ref().filter(|_| readable(ledger.fact)) {
            self.aim_at_original(job, scene, source).await?;
        } else if let Some((binding, look)) = unsettled {
            scene.facts.record = RecordFact::Pending;
            scene.facts.transcript = transcript_fact(Some(&look), &binding, scene);
        }
        // Without a session there is nothing to resume, whatever the record says.
        if scene.target.is_none() && matches!(scene.facts.record, RecordFact::Confirmed) {
            scene.facts.record = RecordFact::Absent;
        }
        ledger.sought = scene.target.as_ref().map(|target| target.binding.native_id.clone());
        ledger.faded = scene.target.as_ref().and_then(|target| self.faded(job, scene, &target.binding));
        Ok(())
    }

    /// What to say of a session that is missing, where the agent deletes what nobody used for so long.
    fn faded(&self, job: &Job<'_>, scene: &Scene, binding: &Binding) -> Option<String> {
        let retention = scene.installation.capabilities.retention;
        let after = retention.with_state_dirs(self.state_dirs)?;
        (self.host.now().since(binding.used_at) >= after).then(|| {
            let (agent, used_at, days) = (&job.key.agent, binding.used_at, after.as_secs() / (24 * 60 * 60));
            format!("{agent} deletes sessions that were not used for {days} days, and this one was not since {used_at}: likely that is why it is gone")
        })
    }

    /// Decides about a session that an earlier run started and never settled. What came to nothing is handed
    /// back with the look at it.
    async fn adopt_leftover(
        &self,
        job: &Job<'_>,
        scene: &mut Scene,
        ledger: &mut Ledger,
    ) -> Option<(Binding, Inspection)> {
        let candidate = ledger.record.candidate.clone()?;
        let look = self.inspect(job, scene, &candidate.binding.native_id, scene.state_dir.clone()).await;
        let replaces = match &candidate.instead_of {
            Some(original) if candidate.replaces => {
                let original = self.inspect(job, scene, original, scene.state_dir.clone()).await;
                // Without the original nobody can tell whether this is its copy.
                original.as_ref().is_some_and(|original| original.presence == Presence::Present)
                    && holds_more(original.as_ref(), look.as_ref())
            }
            _ => candidate.replaces,
        };
        let adoption = adopt(AdoptFacts {
            leftover: match transcript_fact(look.as_ref(), &candidate.binding, scene) {
                Transcript::Present | Transcript::Elsewhere => Leftover::Turn,
                Transcript::Missing | Transcript::Empty | Transcript::Damaged => Leftover::Nothing,
                Transcript::Unknown | Transcript::Unreadable | Transcript::OtherHome => Leftover::Unknown,
            },
            replaces,
            bound: if ledger.record.binding.is_some() { Bound::Yes } else { Bound::No },
        });
        ledger.adopt(adoption, self.host.now());
        look.filter(|_| adoption == Adoption::Drop).map(|look| (candidate.binding, look))
    }

    async fn aim(&self, job: &Job<'_>, scene: &mut Scene, binding: Binding, failed_resumes: u32) {
        let dir = scene.state_dir.clone();
        let look = self.inspect(job, scene, &binding.native_id, dir.clone()).await;
        self.aim_with(job, scene, binding, (dir, look), failed_resumes).await;
    }

    /// Aims at a session, by a look into the state dir that it is in, if it is in one.
    async fn aim_with(
        &self,
        job: &Job<'_>,
        scene: &mut Scene,
        binding: Binding,
        (dir, look): (Option<PathBuf>, Option<Inspection>),
        failed_resumes: u32,
    ) {
        let safe = binding.native_id.is_argument_safe() && job.agent.adapter().accepts_id(&binding.native_id);
        scene.facts.id = if safe { IdShape::WellFormed } else { IdShape::Malformed };
        scene.facts.workdir = self.relation(&scene.place.folder, binding.folder()).await;
        scene.facts.workdir = filed(job, scene, dir, look.as_ref());
        scene.facts.transcript = transcript_fact(look.as_ref(), &binding, scene);
        scene.facts.history = self.history(&binding, look.as_ref(), failed_resumes);
        if let Some(look) = &look {
            let version = scene.installation.version.as_ref();
            // A state dir of the key has no other reader.
            let unpacks = self.mend && scene.state_dir.is_some() && look.suits_unpacked(version);
            if !look.suits(version) && !unpacks {
                scene.facts.support = Support::VersionCannot;
            }
            if look.torn_tail {
                scene.warnings.push(Warning::TornTail);
            }
            let holes = look.skipped_lines.saturating_add(look.missing_records);
            if holes > 0 {
                scene.warnings.push(Warning::Holes(holes));
            }
        }
        scene.target = Some(Target { binding, before: look, fork_file: None, is_fork: false });
    }

    /// Where the binding cannot be continued in this folder, or lies in another home of the agent, a session of the past
    /// that lives here is, if there is one: so a mailbox that goes to and fro has its conversation in each place.
    async fn prefer_session_of_this_folder(&self, job: &Job<'_>, scene: &mut Scene, ledger: &Ledger) {
        let elsewhere = [Why::WorkdirDiffers, Why::WorktreeGone, Why::ProjectDiffers, Why::HomeDiffers];
        // The binding is what was left in its own folder, whatever ails it.
        if scene.facts.workdir == Workdir::Same && scene.facts.transcript != Transcript::OtherHome {
            return;
        }
        // What ails the binding is no matter where it is out of reach anyhow.
        let transcript = match scene.facts.transcript {
            fact @ (Transcript::Elsewhere | Transcript::OtherHome) => fact,
            _ => Transcript::Unknown,
        };
        let sound = PlanFacts { id: IdShape::WellFormed, history: History::Clean, transcript, ..scene.facts };
        let answer = plan(sound);
        if !elsewhere.iter().any(|why| answer == Plan::Fresh(*why) || answer == Plan::Refuse(*why)) {
            return;
        }
        let here = scene.place.folder.clone();
        for former in ledger.formers_of(&here) {
            let Some(binding) = binding_of(former) else { continue };
            let dir = scene.state_dir.clone();
            let look = self.inspect(job, scene, &binding.native_id, dir.clone()).await;
            // One whose file is lost leaves the place to the next. Where nobody can look, the agent will tell.
            let there = [Presence::Present, Presence::Unreadable];
            if look.as_ref().is_none_or(|look| there.contains(&look.presence)) {
                return self.aim_with(job, scene, binding, (dir, look), former.failed_resumes).await;
            }
        }
    }

    /// Aims at the session of another key, to be copied. There is no fallback from a fork.
    async fn aim_at_original(
        &self,
        job: &Job<'_>,
        scene: &mut Scene,
        source: &SessionKey,
    ) -> Result<(), RunError> {
        if job.policy == Policy::Prefer {
            scene.facts.policy = Policy::Require;
        }
        scene.facts.record = RecordFact::Absent;
        let record = match self.store.load(source).await.map_err(RunError::Store)? {
            None => return Ok(()),
            Some(stored) => match codec::decode(&stored.document, source) {
                codec::Decoded::Record(record) => record,
                codec::Decoded::Newer(_) => {
                    scene.facts.record = RecordFact::Newer;
                    return Ok(());
                }
                codec::Decoded::Corrupt(_) => {
                    scene.facts.record = RecordFact::Corrupt;
                    return Ok(());
                }
            },
        };
        let Some(binding) = record.binding else { return Ok(()) };
        let dir =
            if self.state_dirs { self.store.state_dir(source).await.map_err(RunError::Store)? } else { None };
        scene.facts.record = fact_of(binding.phase);
        if scene.installation.capabilities.fork == ForkSupport::No {
            scene.facts.support = Support::VersionCannot;
        }
        let look = self.inspect(job, scene, &binding.native_id, dir.clone()).await;
        let file = look.as_ref().and_then(|look| look.path.clone()).filter(|_| dir != scene.state_dir);
        self.aim_with(job, scene, binding, (dir, look), record.failed_resumes).await;
        if let Some(target) = &mut scene.target {
            target.fork_file = file;
            target.is_fork = true;
        }
        Ok(())
    }

    fn history(&self, binding: &Binding, look: Option<&Inspection>, failed_resumes: u32) -> History {
        let age = self.host.now().since(binding.used_at);
        if binding.poisoned.is_some() {
            History::Poisoned
        } else if failed_resumes >= FAILING {
            History::KeepsFailing
        } else if self.max_age.is_some_and(|limit| age > limit) {
            History::Expired
        } else if let (Some(limit), Some(look)) = (self.max_bytes, look)
            && look.bytes > limit
        {
            History::TooLarge
        } else {
            History::Clean
        }
    }

    async fn relation(&self, here: &Folder, began: &Folder) -> Workdir {
        let is_there = match began.path.as_path() {
            _ if here.path == began.path => true,
            Some(path) => self.host.folder(path).await.is_ok_and(|folder| folder.id == began.id),
            None => false,
        };
        here.relation_to(began, is_there)
    }
}

/// How the folders relate, the place of the file included.
fn filed(job: &Job<'_>, scene: &Scene, state_dir: Option<PathBuf>, look: Option<&Inspection>) -> Workdir {
    let here = scene.place.folder.path.as_path().unwrap_or(&scene.place.cwd);
    let is_filed_here = look.and_then(|look| {
        let source = SessionSource { path: look.path.clone()?, state_dir };
        job.agent.catalog()?.is_filed_in(&source, here)
    });
    refiled(scene.facts.reach, scene.facts.workdir, is_filed_here)
}

/// Whether both are known, and are not one.
pub(super) fn homes_differ(one: Option<&PathText>, other: Option<&PathText>) -> bool {
    one.is_some() && other.is_some() && one != other
}

/// Whether it is known that the key has no record any more, or what it says.
const fn readable(fact: RecordFact) -> bool {
    !matches!(fact, RecordFact::Newer | RecordFact::Unavailable)
}

pub(super) fn binding_of(former: &Former) -> Option<Binding> {
    Some(Binding {
        native_id: former.native_id.clone(),
        phase: Phase::Confirmed,
        began_in: former.began_in.clone()?,
        home: former.home.clone(),
        lives_in: former.lives_in.clone(),
        agent_version: None,
        created_at: former.created_at.unwrap_or(former.at),
        used_at: former.used_at.unwrap_or(former.at),
        counters: former.counters,
        forked_from: former.forked_from.clone(),
        poisoned: former.poisoned.clone(),
        extra: serde_json::Map::new(),
    })
}

pub(super) const fn fact_of(phase: Phase) -> RecordFact {
    match phase {
        Phase::Pending => RecordFact::Pending,
        Phase::Confirmed => RecordFact::Confirmed,
        Phase::Closed => RecordFact::Closed,
    }
}

/// In a state dir all files are the key's own. In the agent's own place, a file that began in another folder
/// than recorded is another session under the same id; and one that is not there may lie in the place of before.
pub(super) fn transcript_fact(look: Option<&Inspection>, binding: &Binding, scene: &Scene) -> Transcript {
    let Some(look) = look else { return Transcript::Unknown };
    match look.presence {
        Presence::Missing if homes_differ(binding.home.as_ref(), scene.home.as_ref()) => {
            Transcript::OtherHome
        }
        Presence::Missing => Transcript::Missing,
        Presence::Empty => Transcript::Empty,
        Presence::Damaged => Transcript::Damaged,
        Presence::Unreadable => Transcript::Unreadable,
        Presence::Present => match (&scene.state_dir, &look.began_in, binding.began_in.path.as_path()) {
            (None, Some(found), Some(recorded)) if found != recorded => Transcript::Elsewhere,
            _ => Transcript::Present,
        },
    }
}
