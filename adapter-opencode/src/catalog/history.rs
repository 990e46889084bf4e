//! Lists of sessions, pages of their transcripts, what can be restored of them, and the search in them.

mod columns;
mod copies;
mod entries;
mod error;
mod heads;
mod listing;
mod page;
mod record;
mod records;
mod restore;
mod rows;
mod search;
mod stores;
mod summary;
mod trees;

use std::time::Instant;

use session_core::NativeId;
use session_core::error::CatalogError;
use session_core::history::{PageQuery, Restored, SessionSource, TranscriptPage};

pub use self::error::DatabaseError;
pub(super) use self::listing::{find, list};
pub(super) use self::search::search;

pub(super) fn page(
    id: &NativeId,
    source: &SessionSource,
    until: Instant,
    query: &PageQuery,
) -> Result<TranscriptPage, CatalogError> {
    records::with(id.as_str(), source, until, |records| page::page(records, source, query))
        .map_err(|error| error.at(&source.path))
}

pub(super) fn restore(
    id: &NativeId,
    source: &SessionSource,
    until: Instant,
) -> Result<Restored, CatalogError> {
    records::with(id.as_str(), source, until, |records| restore::restore(records, source))
        .map_err(|error| error.at(&source.path))
}
