//! The built command, in bare environments with throw-away homes.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod commands;
mod documents;
mod ends;
mod finding;
mod going_back;
mod hostile;
mod large;
mod relocating;
mod resume;
mod runs;
mod schema;
mod schema_back;
mod schema_parts;
mod support;
mod terminal;
mod unreadable;
mod wording;
