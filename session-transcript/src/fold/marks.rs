//! What a fold keeps for restoring, beside its counts: where compactions lie, and what the agent says it cost.

use session_core::history::{LineFacts, LineRole};

/// How many compactions are kept.
const MOST: usize = 4096;

/// What a line adds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mark {
    /// A summary of what was compacted lies here.
    Summary(u64),
    /// The agent's counter shows so much.
    Cost(f64),
}

impl Mark {
    pub(super) fn of(facts: &LineFacts<'_>, offset: u64) -> Option<Self> {
        match facts.running_cost {
            Some(cost) if cost.is_finite() && cost >= 0.0 => Some(Self::Cost(cost)),
            _ if facts.role == LineRole::CompactSummary && !facts.sidechain => Some(Self::Summary(offset)),
            _ => None,
        }
    }
}

/// What lines added up to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Marks {
    /// Where compactions lie, and how many turns are before each.
    pub(crate) boundaries: Vec<(u64, u64)>,
    /// How many turns are before each compaction in the files that it goes on from.
    pub(crate) inherited: Vec<u64>,
    /// Where summaries lie.
    pub(crate) summaries: Vec<u64>,
    /// Whether there are more than were kept.
    pub(crate) left_out: bool,
    /// What counters showed before they began anew, and what the last one shows.
    cost: Option<(f64, f64)>,
}

impl Marks {
    pub(super) fn take(&mut self, mark: Mark) {
        match mark {
            Mark::Summary(offset) if self.summaries.len() < MOST => self.summaries.push(offset),
            Mark::Summary(_) => self.left_out = true,
            Mark::Cost(shown) => {
                let (before, last) = self.cost.unwrap_or_default();
                // A counter does not go back: it is another one.
                self.cost = Some((if shown < last { before + last } else { before }, shown));
            }
        }
    }

    pub(super) fn boundary(&mut self, offset: u64, turns: u64) {
        if self.boundaries.len() < MOST {
            self.boundaries.push((offset, turns));
        } else {
            self.left_out = true;
        }
    }

    /// Goes on with the beginning of another file: places in the one before are none in it.
    pub(super) fn go_over(&mut self) {
        let turns = self.boundaries.drain(..).map(|(_, turns)| turns);
        self.inherited.extend(turns);
        self.left_out |= self.inherited.len() > MOST;
        self.inherited.truncate(MOST);
        self.summaries.clear();
    }

    /// What it cost in all.
    pub(crate) fn cost(&self) -> Option<f64> {
        // Figures of a few decimals must not show the noise of their sum.
        self.cost.map(|(before, last)| ((before + last) * 1e9).round() / 1e9)
    }
}
