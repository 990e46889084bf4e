//! The picker without a terminal: keys in, effects and frames out.

mod frames;
mod states;
mod support;
