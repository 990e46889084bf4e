//! What is listed: what was asked for, in its order.

use session_core::Timestamp;
use session_core::history::{
    ListQuery, Listing, Notice, Resumability, SessionEntry, SessionKind, Unresumable,
};

use super::Examined;
use crate::scope::Scoped;

/// By what a list is ordered: a session was last used when it says so, and not after its file was written; where that is
/// one time for all files, as in an image, what it says decides.
type Rank = (i64, i64, i64);

/// What is listed so far.
pub(super) struct Chosen<'a> {
    query: &'a ListQuery,
    scope: Scoped,
    ranked: Vec<(Rank, Box<SessionEntry>)>,
    empty: u64,
    notices: Vec<Notice>,
    /// Whether something was left out for the limit.
    pub(super) cut: bool,
}

impl<'a> Chosen<'a> {
    pub(super) fn new(query: &'a ListQuery, notices: Vec<Notice>) -> Self {
        Self { query, scope: Scoped::new(&query.scope), ranked: Vec::new(), empty: 0, notices, cut: false }
    }

    pub(super) fn add(&mut self, examined: Examined) {
        self.notices.extend(examined.notices);
        let Some(entry) = examined.entry else { return };
        let wanted = match self.query.kinds.as_slice() {
            [] => entry.kind != SessionKind::Sidechain,
            kinds => kinds.contains(&entry.kind),
        };
        if !wanted || !self.scope.holds(&entry) {
            return;
        }
        if entry.resumable == Resumability::No(Unresumable::Empty) {
            self.empty += 1;
            if !self.query.with_empty {
                return;
            }
        }
        let updated = entry.updated.map_or(examined.written, Timestamp::as_millis);
        self.ranked.push(((updated.min(examined.written), updated, examined.written), entry));
    }

    /// Whether nothing that was written at that time or before can be among what the limit leaves.
    pub(super) fn is_full(&self, next: i64) -> bool {
        let Some(limit) = self.query.limit else { return false };
        limit == 0 || self.ranked.iter().filter(|((used, ..), _)| *used > next).count() >= limit
    }

    pub(super) fn listing(mut self) -> Listing {
        self.ranked.sort_unstable_by(|(one, a), (other, b)| {
            other
                .cmp(one)
                .then_with(|| a.id.as_str().cmp(b.id.as_str()))
                .then_with(|| a.source.path.cmp(&b.source.path))
        });
        if let Some(limit) = self.query.limit {
            self.cut |= self.ranked.len() > limit;
            self.ranked.truncate(limit);
        }
        let sessions = self.ranked.into_iter().map(|(_, entry)| *entry).collect();
        Listing { sessions, empty: self.empty, notices: self.notices, more: self.cut, ..Listing::default() }
    }
}
