//! What replies cost, each once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::{Deserialize, Serialize};
use session_core::Usage;
use session_core::history::RecordId;

use super::chain::Secret;

/// What a reply cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent {
    /// Its tokens.
    pub(crate) usage: Usage,
    /// Whether all of its lines were copied from another session.
    pub(crate) copied: bool,
    /// Whether it is a helper's.
    pub(crate) sidechain: bool,
}

impl Spent {
    /// Takes what was copied, or written in another file: the largest output is the last word.
    fn merge(&mut self, other: Self) {
        if other.usage.output_tokens >= self.usage.output_tokens {
            self.usage = other.usage;
        }
        self.flags(other);
    }

    /// Takes the next line of the same reply: that is the last word.
    pub(super) fn follow(&mut self, next: Self) {
        self.usage = next.usage;
        self.flags(next);
    }

    const fn flags(&mut self, other: Self) {
        self.copied &= other.copied;
        self.sidechain &= other.sidechain;
    }
}

/// Replies, and what each cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Replies {
    all: HashMap<u128, Spent, Secret>,
    /// The reply of the last lines, and what was known of it before them.
    last: Option<(u128, Option<Spent>)>,
}

impl Replies {
    /// Takes what lines say that follow each other.
    pub(super) fn take(&mut self, reply: RecordId, spent: Spent) {
        let known = self.all.entry(reply.0);
        let before = match self.last {
            Some((last, before)) if last == reply.0 => before,
            _ => match &known {
                Entry::Occupied(known) => Some(*known.get()),
                Entry::Vacant(_) => None,
            },
        };
        self.last = Some((reply.0, before));
        let spent = before.map_or(spent, |mut before| {
            before.merge(spent);
            before
        });
        known
            .and_modify(|known| {
                known.follow(spent);
            })
            .or_insert(spent);
    }

    /// Takes all of another file.
    pub(crate) fn take_all(&mut self, other: &Self) {
        for (reply, spent) in &other.all {
            self.all.entry(*reply).and_modify(|known| known.merge(*spent)).or_insert(*spent);
        }
    }

    /// How many there are in the main conversation.
    pub(crate) fn count(&self) -> u64 {
        self.all.values().filter(|spent| !spent.sidechain).count() as u64
    }

    /// All tokens of those that are wanted.
    pub(crate) fn sum(&self, wanted: impl Fn(&Spent) -> bool) -> Usage {
        self.all.values().filter(|spent| wanted(spent)).fold(Usage::default(), |mut sum, spent| {
            sum += spent.usage;
            sum
        })
    }
}
