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

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
    }
}

/// What an agent's cost figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostScope {
    /// Starts at zero in every process.
    Process,
    /// Goes on over the resumes of one session, and is inherited by its forks.
    Session,
}

/// The cost of one run, in US dollars, from the agent's figure and the counter it showed at the end of the
/// run before. A figure below the counter means that the counter began anew; the answer is never negative.
#[must_use]
pub fn cost_of_run(scope: CostScope, before: Option<f64>, reported: f64) -> f64 {
    let reported = if reported.is_finite() { reported.max(0.0) } else { 0.0 };
    match (scope, before) {
        // Figures of a few decimals must not show the noise of their difference.
        (CostScope::Session, Some(before)) if before <= reported => ((reported - before) * 1e9).round() / 1e9,
        _ => reported,
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
        assert_eq!(cost_of_run(CostScope::Process, Some(0.28), 0.03), 0.03);
        // The same session counter goes on from 0.28 to 0.31.
        assert!((cost_of_run(CostScope::Session, Some(0.28), 0.31) - 0.03).abs() < 1e-9);
        // The counter fell: it began anew.
        assert_eq!(cost_of_run(CostScope::Session, Some(0.28), 0.03), 0.03);
        assert_eq!(cost_of_run(CostScope::Session, None, f64::NAN), 0.0);
    }
}
