//! The picker: a pure state machine (keys and findings in, effects and frames out) and what drives it on a terminal.

mod drive;
mod fuzzy;
mod keys;
mod row;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use drive::{Start, pick};
