#![doc = include_str!("decide/table.md")]

#[macro_use]
mod facts;

mod adopt;
mod count;
mod locate;
mod next;
mod plan;
mod rewind;
mod settle;
mod sweep;
mod tell;
mod why;

pub use adopt::{AdoptFacts, Adoption, adopt};
pub use count::{Count, CountFacts, count};
pub use facts::{
    Activity, Attempt, AttemptFacts, Bound, Consent, Continuity, Extent, History, IdShape, Leftover, Owner,
    Patience, Persisted, PlanFacts, Policy, Reach, RecordFact, Support, Transcript, Unused, Verdict, Workdir,
};
pub use locate::{
    FoundFrom, Given, Hits, Judgement, LocateFacts, Sign, Standing, is_gone, judge, names, proposes, reaches,
    refiled, tells_why_not, tries,
};
pub use next::{Next, next, weigh};
pub use plan::{Plan, plan};
pub use rewind::{
    Changer, Holds, PathFate, Place, Stood, TurnBack, TurnBackFacts, files_plan, path_fate, turn_back,
};
pub use settle::{SettleFacts, Settlement, condemns, settle};
pub use sweep::{Fate, SweepFacts, fate};
pub use tell::{Grown, Telling, holds};
pub use why::Why;
