//! The tests of the core, in one binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "the purity rules are for the core, not for its tests")]

mod altered;
mod bench;
mod closing;
mod codec;
mod decide_invariants;
mod decide_oracle;
mod decide_table;
mod elsewhere;
mod errors;
mod explain;
mod faulty;
mod folders;
mod forking;
mod formers;
mod hand_over;
mod keeping;
mod leases;
mod lifecycle;
mod lifecycle_limits;
mod listing;
mod locating;
mod mending;
mod passing_on;
mod product;
mod reach;
mod recipes;
mod relocating;
mod rewind_decision;
mod rewind_walk;
mod rewinding;
mod scripted;
mod shelf;
mod summaries;
mod sweeping;
mod telling;
