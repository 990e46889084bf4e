//! What goes to the agent with a prompt: the text that waits in the record, and what the recipe says.

use std::borrow::Cow;

use crate::decide::{Grown, Telling, Verdict, holds};
use crate::{AgentCapabilities, CheckpointId, Inspection, KeptSeed, NativeId, Recipe, TurnRecipe, Warning};

use super::admit::Job;
use super::ledger::Ledger;
use super::target::Target;

/// How a text that waits in the record stands with the attempts of a run.
#[derive(Debug, Default)]
pub(super) struct Passing {
    /// Prompts in the conversation that the attempt adds the text to, where it does and that is known.
    turns_before: Option<Option<u64>>,
    /// The session that is known to hold it.
    holder: Option<NativeId>,
    /// The code of the text that went before the prompt.
    pub(super) told: Option<String>,
}

impl Ledger {
    /// The prompt of an attempt, with the text before it that waits in the record; not where the session that is continued
    /// holds that already, nor where both are too large. Notes who gets it; that is to be saved before the agent starts.
    pub(super) fn prompt<'a>(
        &mut self,
        prompt: &'a str,
        target: Option<&Target>,
        capabilities: &AgentCapabilities,
        warnings: &mut Vec<Warning>,
    ) -> Cow<'a, str> {
        self.passing = Passing::default();
        let Some(preamble) = &mut self.record.preamble else { return Cow::Borrowed(prompt) };
        let before = match target {
            None => Some(0),
            Some(target) => target.before.as_ref().map(|look| look.user_turns),
        };
        if let Some(target) = target.filter(|target| !target.is_fork) {
            let session = &target.binding.native_id;
            let given = preamble.given_to(session).map(|given| given.turns_before);
            let telling = match given {
                None => Telling::Never,
                Some(Some(0)) => Telling::AtItsBeginning,
                Some(_) => Telling::Later,
            };
            let grown = match (given.flatten(), before) {
                (Some(then), Some(now)) if now > then => Grown::Yes,
                (Some(_), Some(_)) => Grown::No,
                (None, _) | (_, None) => Grown::Unknown,
            };
            if holds(telling, grown) {
                self.passing.holder = Some(session.clone());
                return Cow::Borrowed(prompt);
            }
        }
        let joined = preamble.before(prompt);
        if capabilities.prompt_limit.is_some_and(|limit| joined.len() > limit) {
            if !warnings.contains(&Warning::PreambleHeldBack) {
                warnings.push(Warning::PreambleHeldBack);
            }
            return Cow::Borrowed(prompt);
        }
        if let Some(target) = target.filter(|target| !target.is_fork) {
            preamble.give(&target.binding.native_id, before);
        }
        self.passing.told = Some(preamble.why.clone());
        self.passing.turns_before = Some(before);
        Cow::Owned(joined)
    }

    /// Notes a session that the attempt under way starts, or that the agent named in it.
    pub(super) fn pass_on_to(&mut self, session: &NativeId) {
        if let (Some(before), Some(preamble)) = (self.passing.turns_before, &mut self.record.preamble)
            && preamble.given_to(session).is_none()
        {
            preamble.give(session, before);
        }
    }

    /// Notes what an attempt showed: whether the session that it ran in holds the prompt.
    pub(super) fn heard(&mut self, ran_in: Option<&NativeId>, verdict: Verdict, after: Option<&Inspection>) {
        let Some(before) = self.passing.turns_before else { return };
        let holds = match (before, after) {
            (Some(before), Some(after)) => after.user_turns > before,
            (None, _) | (_, None) => verdict == Verdict::Completed,
        };
        if holds {
            self.passing.holder = ran_in.cloned();
        }
    }

    /// Drops the text once the conversation in force holds it, and can go on.
    pub(super) fn settle_preamble(&mut self) {
        let binding = self.record.binding.as_ref().filter(|binding| binding.poisoned.is_none());
        if binding.is_some_and(|binding| Some(&binding.native_id) == self.passing.holder.as_ref()) {
            self.record.preamble = None;
        }
    }

    /// Notes the checkpoint before a run in the recipe of the key: from there it can be run anew.
    pub(super) fn note_checkpoint(&mut self, checkpoint: Option<CheckpointId>) {
        if let (Some(KeptSeed::Known(seed)), Some(id)) = (&mut self.record.seed, checkpoint) {
            seed.last_checkpoint = Some(id);
        }
    }

    /// What the recipe of the key comes to in a run.
    pub(super) fn recipe(&self, job: &Job<'_>, capabilities: &AgentCapabilities) -> Option<Recipe> {
        let takes = (capabilities.system_prompt, capabilities.tool_lists);
        let seed = self.record.recipe()?;
        Some(Recipe::of(seed, job.request.mode, takes, job.request.model.as_deref()))
    }
}

/// What an adapter gets of a recipe: what its version takes.
pub(super) fn turn_recipe<'a>(
    recipe: Option<&'a Recipe>,
    capabilities: &AgentCapabilities,
) -> TurnRecipe<'a> {
    let Some(Recipe { seed, .. }) = recipe else { return TurnRecipe::default() };
    TurnRecipe {
        system_prompt: seed.system_prompt.as_deref().filter(|_| capabilities.system_prompt),
        tools: seed.tools.as_deref().filter(|_| capabilities.tool_lists),
    }
}
