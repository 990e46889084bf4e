//! What is read of whole session files of Claude Code and Codex: pages, totals, and what can be restored.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::needless_pass_by_value, reason = "literals stand there")]

mod branches;
mod chains;
mod costs;
mod damage;
mod desk;
mod lists;
mod room;
mod totals;
