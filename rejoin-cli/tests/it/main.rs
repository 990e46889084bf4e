//! The built command, in bare environments with throw-away homes.

#![cfg(unix)]

mod commands;
mod documents;
mod ends;
mod finding;
mod hostile;
mod resume;
mod runs;
mod schema;
mod support;
mod terminal;
