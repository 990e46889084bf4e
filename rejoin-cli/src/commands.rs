//! The commands.

pub(crate) mod branch;
pub(crate) mod checkpoints;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod ends;
pub(crate) mod explain;
pub(crate) mod list;
pub(crate) mod relocate;
pub(crate) mod resume;
pub(crate) mod rewind;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod show;
pub(crate) mod summary;
