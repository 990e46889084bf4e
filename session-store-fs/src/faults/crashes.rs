//! Every crash point of a history, and what may be left at each.

use super::act::{Act, What};
use super::after::{self, Left};
use super::disk::{Lying, Points};
use super::model::{Checked, Model};
use super::platter::State;
use super::survivors::{self, Chance, Effort};
use super::world::Visit;

/// What was tried.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tried {
    pub(super) points: u64,
    pub(super) states: u64,
}

pub(super) struct Crashes {
    pub(super) lying: Lying,
    pub(super) effort: Effort,
    /// Whether opening the store is looked at, which every history begins with.
    pub(super) opening: bool,
    pub(super) chance: Chance,
    pub(super) tried: Tried,
}

impl Crashes {
    fn check(&mut self, left: &Left<'_>, model: &Model, act: &Act) -> Checked {
        self.tried.states += 1;
        after::check(left, self.lying, model, Some(act)).map_err(|error| {
            let how = match left {
                Left::Killed(_) => "a kill".to_owned(),
                Left::Crashed(_, keep) => format!("a crash that kept {keep:?}"),
            };
            format!("after {how} in {act:?}: {error}")
        })
    }
}

impl Visit for Crashes {
    fn visit(&mut self, _: &State, points: &Points, model: &Model, act: &Act) -> Checked {
        if !self.opening && matches!(act.what, What::Open) {
            return Ok(());
        }
        self.tried.points += points.number;
        for state in &points.states {
            self.check(&Left::Killed(state), model, act)?;
            for keep in survivors::subsets(state, self.effort, &mut self.chance) {
                self.check(&Left::Crashed(state, &keep), model, act)?;
            }
        }
        Ok(())
    }
}
