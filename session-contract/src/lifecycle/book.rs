//! The book of all turns: what each conversation has to hold.

use std::collections::BTreeMap;

use session_core::Recorded;

use super::walk::{Outcome, Ran};
use super::world::World;

/// A turn, and whether somebody was told that it is kept.
#[derive(Debug, Clone)]
struct Entry {
    turn: String,
    sure: bool,
}

/// The turns of each conversation, in order.
#[derive(Debug, Default)]
pub(crate) struct Book(BTreeMap<usize, Vec<Entry>>);

impl Book {
    /// Somebody took a turn out of a session.
    pub(crate) fn doubt(&mut self, conversation: usize, turn: &str) {
        for entry in self.0.entry(conversation).or_default().iter_mut().filter(|entry| entry.turn == turn) {
            entry.sure = false;
        }
    }

    /// Enters what a run has added.
    pub(crate) fn enter(&mut self, ran: &Ran<'_>) {
        let last = ran.attempts.len().wrapping_sub(1);
        for (at, attempt) in ran.attempts.iter().enumerate() {
            let Some(session) = attempt.kept_in.as_deref().and_then(|id| ran.after.world.session(id)) else {
                continue;
            };
            let told = match &ran.outcome {
                Outcome::Done(result) => {
                    matches!(&**result, Ok(result) if matches!(result.recorded, Recorded::Saved))
                }
                Outcome::Killed => false,
            };
            let entries = self.0.entry(session.conversation).or_default();
            if entries.is_empty() {
                // A fork begins with what its original held.
                entries.extend(attempt.before.iter().map(|turn| Entry { turn: turn.clone(), sure: true }));
            }
            let turn = session.turns.last().cloned().unwrap_or_default();
            entries.push(Entry { turn, sure: told && at == last });
        }
    }

    /// What is wrong with a session as the conversation that it is to be, if anything is.
    pub(crate) fn fault(&self, world: &World, conversation: usize, turns: &[String]) -> Option<String> {
        let entries = self.0.get(&conversation).map(Vec::as_slice).unwrap_or_default();
        let mut rest = turns.iter();
        for entry in entries.iter() {
            if entry.sure && !rest.clone().any(|turn| *turn == entry.turn) {
                return Some(format!("it lacks {:?}", entry.turn));
            }
            if rest.clone().next() == Some(&entry.turn) {
                rest.next();
            }
        }
        let strange: Vec<_> = rest.collect();
        let sessions = world.sessions.len();
        (!strange.is_empty())
            .then(|| format!("it holds {strange:?}, which is not of it (of {sessions} sessions)"))
    }
}
