//! The commands.

pub(crate) mod ends;
pub(crate) mod explain;
pub(crate) mod list;
pub(crate) mod run;
pub(crate) mod show;
