//! Pairs of figures taken in turn, and their table.

#![expect(clippy::print_stdout, reason = "a benchmark for people at a terminal")]

use std::time::Duration;

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) fn millis(values: &[Duration]) -> f64 {
    median(values.iter().map(|value| value.as_secs_f64() * 1e3).collect())
}

/// What the machine takes, and what we take, one pair after the other.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    bare: Vec<Duration>,
    ours: Vec<Duration>,
}

impl Pairs {
    pub(crate) fn push(&mut self, bare: Duration, ours: Duration) {
        self.bare.push(bare);
        self.ours.push(ours);
    }

    pub(crate) fn heading() {
        println!("| what | bare ms | ours ms | ratio | goal | |\n|---|---|---|---|---|---|");
    }

    /// Prints a row with so many digits; says whether the goal is met.
    pub(crate) fn row(&self, name: &str, goal: Option<f64>, digits: usize) -> bool {
        let ratio =
            self.bare.iter().zip(&self.ours).map(|(bare, ours)| ours.as_secs_f64() / bare.as_secs_f64());
        let ratio = median(ratio.collect());
        let (goal_text, verdict) = match goal {
            None => ("–".to_owned(), ""),
            Some(goal) if ratio <= goal => (format!("{goal:.1}"), "met"),
            Some(goal) => (format!("{goal:.1}"), "MISSED"),
        };
        let (bare, ours) = (millis(&self.bare), millis(&self.ours));
        println!("| {name} | {bare:.digits$} | {ours:.digits$} | {ratio:.2} | {goal_text} | {verdict} |");
        goal.is_none_or(|goal| ratio <= goal)
    }
}
