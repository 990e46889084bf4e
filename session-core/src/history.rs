//! What session files hold, in words that are the same for every agent: lists, pages, what can be restored.

mod days;
mod entry;
mod facts;
mod lineage;
mod listing;
mod needle;
mod overview;
mod page;
mod restored;
mod search;

pub use days::usage_by_day;
pub use entry::{Block, Entry, EntryKind};
pub use facts::{
    FileKind, FolderKind, HistoryBase, LineFacts, LineRole, RawTime, RecordId, SessionFile, SessionRoot,
};
pub use lineage::Lineage;
pub(crate) use lineage::Lines;
pub use listing::{
    Ancestor, Depth, Descent, ListQuery, Listing, Notice, NoticeKind, Resumability, Scope, SessionEntry,
    SessionKind, SessionSource, Title, TitleSource, Unresumable,
};
pub use needle::Needle;
pub use overview::{Family, ListedSession, SessionsListing, SessionsQuery, Unlisted};
pub use page::{Cursor, Located, PageQuery, Span, TranscriptPage};
pub use restored::{Boundary, OpenCall, Restored};
pub use search::{Hit, HitPlace, Search, SearchQuery, Searched};
