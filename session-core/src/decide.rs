#![doc = include_str!("decide/table.md")]

mod facts;
mod next;
mod plan;
mod settle;
mod why;

pub use facts::{
    Activity, Attempt, AttemptFacts, Consent, Continuity, History, IdShape, Patience, PlanFacts, Policy,
    Reach, RecordFact, Support, Transcript, Verdict, Workdir,
};
pub use next::{Next, next};
pub use plan::{Plan, plan};
pub use settle::{Persisted, SettleFacts, Settlement, settle};
pub use why::Why;
