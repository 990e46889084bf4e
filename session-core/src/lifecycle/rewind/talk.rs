//! The conversation's part of a rewind.

use std::path::Path;

use crate::decide::{Bound, Holds, Place, Stood, TurnBack, TurnBackFacts, turn_back};
use crate::error::RewindError;
use crate::{
    Binding, Branch, BranchOrder, Branched, ConversationPlan, Counters, Inspection, Label, Moment, Phase,
    Presence, SessionRecord, Spot,
};

use super::super::Lifecycle;
use super::super::kept::{Kept, present};
use super::super::target::binding_of;
use super::grounds::Grounds;

/// How the conversation goes back, and the session that it goes back to.
#[derive(Debug)]
pub(super) struct Talk {
    pub(super) plan: ConversationPlan,
    /// What is known of that session, and where the conversation stood in it.
    pub(super) of: Option<(Binding, Spot)>,
    /// The agent's running figures there, as far as they were noted.
    pub(super) counters: Counters,
}

impl Talk {
    pub(super) const fn not_asked() -> Self {
        Self {
            plan: ConversationPlan::NotAsked,
            of: None,
            counters: Counters { cost_usd: None, usage: None },
        }
    }

    /// Whether another session than the present one is in force afterwards, or none.
    pub(super) const fn changes(&self) -> bool {
        match self.plan {
            ConversationPlan::Branch { .. } | ConversationPlan::Rebind { .. } | ConversationPlan::Fresh => {
                true
            }
            ConversationPlan::NotAsked | ConversationPlan::Unchanged | ConversationPlan::Unsupported(_) => {
                false
            }
        }
    }
}

impl Lifecycle {
    /// Foresees how a conversation goes back to a spot.
    pub(super) async fn talk(&self, grounds: &Grounds<'_>, kept: &Kept, target: &Label) -> Talk {
        let (record, spot) = (&kept.record, target.spot.as_ref());
        let bound = if self.present_spot(grounds, record).await.is_some() { Bound::Yes } else { Bound::No };
        let Some(spot) = spot else {
            let facts =
                TurnBackFacts { stood: Stood::Nowhere, place: Place::Unlisted, holds: Holds::Unknown, bound };
            let fresh = turn_back(facts) == TurnBack::Fresh;
            let plan = if fresh { ConversationPlan::Fresh } else { ConversationPlan::Unchanged };
            return Talk { plan, ..Talk::not_asked() };
        };
        let (place, binding) = self.session_of(grounds, record, spot);
        let spot = &match binding.native_id == spot.native_id {
            true => spot.clone(),
            false => Spot { native_id: binding.native_id.clone(), turns: spot.turns, bytes: None },
        };
        let look = grounds.look(&binding).await;
        let facts = TurnBackFacts {
            stood: if spot.turns == 0 { Stood::Somewhere } else { Stood::Known },
            place,
            holds: holds(spot, look.as_ref()),
            bound,
        };
        let plan = match turn_back(facts) {
            TurnBack::Unchanged => ConversationPlan::Unchanged,
            TurnBack::Fresh => ConversationPlan::Fresh,
            TurnBack::Rebind => ConversationPlan::Rebind { session: spot.native_id.clone() },
            TurnBack::Branch => ConversationPlan::Branch { of: spot.native_id.clone(), keep: spot.turns },
            TurnBack::Missing => ConversationPlan::Unsupported("its session is not there".to_owned()),
            TurnBack::Gone => {
                ConversationPlan::Unsupported("its session does not hold that point any more".to_owned())
            }
            TurnBack::Unknown => {
                ConversationPlan::Unsupported("nobody can tell what its session held".to_owned())
            }
        };
        let counters = counters_at(record, target, (&binding, spot), look.as_ref());
        Talk { plan, of: Some((binding, spot.clone())), counters }
    }

    /// The session of a spot, as the record knows it.
    pub(in crate::lifecycle) fn session_of(
        &self,
        grounds: &Grounds<'_>,
        record: &SessionRecord,
        spot: &Spot,
    ) -> (Place, Binding) {
        if let Some(binding) = present(record).filter(|binding| binding.native_id == spot.native_id) {
            return (Place::InForce, binding.clone());
        }
        let former = record.past.iter().rev().find(|former| former.native_id == spot.native_id);
        let unknown = || Binding {
            native_id: spot.native_id.clone(),
            phase: Phase::Confirmed,
            began_in: grounds.folder.clone(),
            home: grounds.home(),
            lives_in: None,
            agent_version: None,
            created_at: self.host.now(),
            used_at: self.host.now(),
            counters: Counters::default(),
            forked_from: None,
            poisoned: None,
            extra: serde_json::Map::new(),
        };
        // A run that began as a copy of another key's session: what that held, the copy holds, too. One of this key that was
        // forgotten since is no such session.
        let remembers_all = record.past.len() < SessionRecord::PAST_LIMIT;
        let is_copy = |binding: &&Binding| binding.forked_from.as_ref() == Some(&spot.native_id);
        match (former.map(binding_of), present(record).filter(is_copy)) {
            (None, Some(copy)) if remembers_all => (Place::InForce, copy.clone()),
            (Some(Some(binding)), _) => (Place::Former, binding),
            (Some(None) | None, _) => (Place::Unlisted, unknown()),
        }
    }

    /// The branch that was ordered, as the binding that takes the place of its original. What it was found to fail by is in what the
    /// branch lacks, as far as anybody knows.
    pub(in crate::lifecycle) fn branch_binding(
        &self,
        grounds: &Grounds<'_>,
        of: &Binding,
        (branch, counters): (&Branch, Counters),
    ) -> Binding {
        let now = self.host.now();
        Binding {
            native_id: branch.id.clone(),
            phase: Phase::Confirmed,
            began_in: of.began_in.clone(),
            home: grounds.home().or_else(|| of.home.clone()),
            lives_in: of.lives_in.clone(),
            agent_version: grounds.version.as_ref().map(|version| version.text.clone()),
            created_at: now,
            used_at: now,
            counters,
            forked_from: Some(of.native_id.clone()),
            poisoned: None,
            extra: serde_json::Map::new(),
        }
    }

    /// Makes a branch of a session.
    pub(in crate::lifecycle) async fn branch(
        &self,
        grounds: &Grounds<'_>,
        order: BranchOrder<'_>,
    ) -> Result<Branch, RewindError> {
        let Some(catalog) = grounds.agent.catalog() else {
            return Err(RewindError::Unsupported { why: "nobody can look at its sessions".to_owned() });
        };
        let branch = match catalog.branch(order).await.map_err(RewindError::Catalog)? {
            Branched::Done(branch) => branch,
            Branched::Refused(refusal) => return Err(RewindError::Unsupported { why: refusal.to_string() }),
        };
        let fits = branch.turns == order.keep.turns
            && branch.id != *order.query.id
            && branch.id.is_argument_safe()
            && grounds.agent.adapter().accepts_id(&branch.id);
        if !fits {
            self.prune(grounds, order, &branch).await;
            let why = format!("its branch holds {} prompts, not {}", branch.turns, order.keep.turns);
            return Err(RewindError::Unsupported { why });
        }
        Ok(branch)
    }

    /// Removes a branch that cannot be noted.
    pub(in crate::lifecycle) async fn prune(
        &self,
        grounds: &Grounds<'_>,
        order: BranchOrder<'_>,
        branch: &Branch,
    ) {
        let Some(catalog) = grounds.agent.catalog() else { return };
        if let Err(error) = catalog.prune(order, branch).await {
            tracing::error!(session = %branch.id, %error, "a branch that nobody needs could not be removed");
        }
    }

    /// An order for a branch that is made beside its original, from the folder that this is in.
    pub(in crate::lifecycle) fn branch_order<'a>(
        &self,
        grounds: &'a Grounds<'_>,
        of: &'a Binding,
        keep: &'a Spot,
    ) -> BranchOrder<'a> {
        let cwd: &Path = of.folder().path.as_path().unwrap_or_else(|| grounds.folder_path());
        BranchOrder {
            query: grounds.query(&of.native_id, cwd),
            keep,
            into: grounds.state_dir.as_deref(),
            seed: self.host.random_id(),
            now: self.host.now(),
        }
    }
}

/// The running figures of a session at a spot: those that the run after it began with; else those of its end, where that is it.
pub(in crate::lifecycle) fn counters_at(
    record: &SessionRecord,
    target: &Label,
    (of, spot): (&Binding, &Spot),
    look: Option<&Inspection>,
) -> Counters {
    let is_end = look.is_some_and(|look| look.user_turns == spot.turns);
    let noted = record.counters_before(target.step).filter(|_| target.moment == Moment::BeforeRun);
    noted.or(is_end.then_some(of.counters)).unwrap_or_default()
}

pub(in crate::lifecycle) fn holds(spot: &Spot, look: Option<&Inspection>) -> Holds {
    let Some(look) = look else { return Holds::Unknown };
    match look.presence {
        Presence::Unreadable => return Holds::Unknown,
        Presence::Missing => return Holds::Nothing,
        Presence::Empty | Presence::Damaged => return Holds::Less,
        Presence::Present => {}
    }
    if look.user_turns < spot.turns {
        return Holds::Less;
    }
    let as_long = match (spot.bytes, look.unpacked_since) {
        (Some(bytes), None) => look.bytes == bytes,
        _ => true,
    };
    if look.user_turns == spot.turns && as_long { Holds::Same } else { Holds::More }
}
