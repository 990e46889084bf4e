//! Lists of sessions, pages of their transcripts, and what can be restored of them.

mod copies;
mod listing;
mod reading;
mod record;
mod rows;
mod stores;
mod summary;
mod trees;

pub(super) use self::listing::{find, list};
pub use self::reading::DatabaseError;
