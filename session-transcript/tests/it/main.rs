//! The catalog over a format of its own, which has numbers, an archive and files that go on from others.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod follow;
mod format;
mod hostile;
mod list;
mod list_hostile;
mod mend;
mod packed;
mod pages;
mod said;
mod search;
mod talk;
mod words;
