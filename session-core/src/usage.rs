//! Tokens and money: of one run, and of a session over all of its runs.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Tokens, in the agent's own counting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens sent and not read from a cache.
    pub input_tokens: u64,
    /// Tokens written by the model.
    pub output_tokens: u64,
    /// Tokens read from the provider's prompt cache.
    pub cache_read_tokens: u64,
    /// Tokens written to the provider's prompt cache.
    pub cache_write_tokens: u64,
}

impl Usage {
    /// What is more than `before`; `None` where something is less.
    pub(crate) fn less(self, before: Self) -> Option<Self> {
        Some(Self {
            input_tokens: self.input_tokens.checked_sub(before.input_tokens)?,
            output_tokens: self.output_tokens.checked_sub(before.output_tokens)?,
            cache_read_tokens: self.cache_read_tokens.checked_sub(before.cache_read_tokens)?,
            cache_write_tokens: self.cache_write_tokens.checked_sub(before.cache_write_tokens)?,
        })
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
    }
}

/// What a figure of an agent counts: its cost, or its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureScope {
    /// Starts at zero in every process.
    Process,
    /// Goes on over the resumes of one session, and is inherited by its forks.
    Session,
}

/// Where the figures of a run come from. Those of [a transcript](crate::history::Restored::usage) are of all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FigureSource {
    /// The agent reported them, or no model was called.
    Reported,
    /// A model was called, and the agent reported nothing of it, or nothing but zeros: it was ended, or failed. What was
    /// spent is more than the figures show; the transcript tells it.
    Unknown,
}

/// The cost of one run, in US dollars, from the agent's figure and the counter it showed at the end of the
/// run before. A figure below the counter means that the counter began anew; the answer is never negative.
#[must_use]
pub fn cost_of_run(scope: FigureScope, before: Option<f64>, reported: f64) -> f64 {
    let reported = if reported.is_finite() { reported.max(0.0) } else { 0.0 };
    match (scope, before) {
        // Figures of a few decimals must not show the noise of their difference.
        (FigureScope::Session, Some(before)) if before <= reported => {
            ((reported - before) * 1e9).round() / 1e9
        }
        _ => reported,
    }
}

/// The tokens of one run, from the agent's figures and the counter they showed at the end of the run before. Where
/// one of them is below its counter, the counter began anew.
#[must_use]
pub fn usage_of_run(scope: FigureScope, before: Option<Usage>, reported: Usage) -> Usage {
    match (scope, before.and_then(|before| reported.less(before))) {
        (FigureScope::Session, Some(of_run)) => of_run,
        _ => reported,
    }
}

/// The running figures of a session at the end of its last run, where the agent counts over its resumes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Cost, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Counters {
    /// Whether nothing was counted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.cost_usd.is_none() && self.usage.is_none()
    }

    /// These figures, and the earlier ones where there is none.
    #[must_use]
    pub fn or(self, earlier: Self) -> Self {
        Self { cost_usd: self.cost_usd.or(earlier.cost_usd), usage: self.usage.or(earlier.usage) }
    }
}

/// What a session cost over all the runs that this library made of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Runs that the agent carried out, failed ones included.
    pub runs: u64,
    /// Sum of the runs' tokens.
    pub usage: Usage,
    /// Sum of the runs' cost in US dollars, as far as the agent says it.
    pub cost_usd: f64,
}

impl Totals {
    /// Adds one run. The sum stays a number, whatever an agent reports.
    pub(crate) fn add_run(&mut self, usage: Usage, cost_usd: Option<f64>) {
        self.runs = self.runs.saturating_add(1);
        self.usage += usage;
        self.cost_usd = (self.cost_usd + cost_usd.unwrap_or(0.0)).clamp(0.0, f64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_total_is_not_added_twice() {
        // Process A ends at 0.28, process B starts a counter of its own at 0.03.
        assert_eq!(cost_of_run(FigureScope::Process, Some(0.28), 0.03), 0.03);
        // The same session counter goes on from 0.28 to 0.31.
        assert!((cost_of_run(FigureScope::Session, Some(0.28), 0.31) - 0.03).abs() < 1e-9);
        // The counter fell: it began anew.
        assert_eq!(cost_of_run(FigureScope::Session, Some(0.28), 0.03), 0.03);
        assert_eq!(cost_of_run(FigureScope::Session, None, f64::NAN), 0.0);
    }

    #[test]
    fn running_tokens_are_not_added_twice() {
        let tokens = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };
        let (before, reported) = (tokens(200, 40), tokens(300, 60));
        assert_eq!(usage_of_run(FigureScope::Session, Some(before), reported), tokens(100, 20));
        assert_eq!(usage_of_run(FigureScope::Process, Some(before), reported), reported);
        assert_eq!(usage_of_run(FigureScope::Session, None, reported), reported);
        // One figure fell: the counter began anew.
        assert_eq!(usage_of_run(FigureScope::Session, Some(before), tokens(300, 20)), tokens(300, 20));
    }
}
