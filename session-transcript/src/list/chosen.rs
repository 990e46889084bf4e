//! What is listed: what was asked for, in its order.

use session_core::Timestamp;
use session_core::history::{
    ListQuery, Listing, Notice, Resumability, SessionEntry, Unresumable,
};

use super::Examined;
use crate::scope::Scoped;

/// What is listed so far.
pub(super) struct Chosen<'a> {
    query: &'a ListQuery,
    scope: Scoped,
    /// With when each was last used, in milliseconds.
    ranked: Vec<(i64, Box<SessionEntry>)>,
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
        let Some(mut entry) = examined.entry else { return };
        if !self.query.takes(entry.kind) || !self.scope.holds(&entry) {
            return;
        }
        if entry.resumable == Resumability::No(Unresumable::Empty) {
            self.empty += 1;
            if !self.query.with_empty {
                return;
            }
        }
        // It was last used when it says so, and not after its file was written.
        let used = entry.updated.map_or(i64::MAX, Timestamp::as_millis).min(examined.written);
        entry.used = Some(Timestamp::from_millis(used)).filter(|used| entry.updated != Some(*used));
        self.ranked.push((used, entry));
    }

    /// Whether nothing that was written at that time or before can be among what the limit leaves.
    pub(super) fn is_full(&self, next: i64) -> bool {
        let Some(limit) = self.query.limit else { return false };
        limit == 0 || self.ranked.iter().filter(|(used, _)| *used > next).count() >= limit
    }

    pub(super) fn listing(mut self) -> Listing {
        self.ranked.sort_unstable_by(|(_, one), (_, other)| one.newest_first(other));
        if let Some(limit) = self.query.limit {
            self.cut |= self.ranked.len() > limit;
            self.ranked.truncate(limit);
        }
        let sessions = self.ranked.into_iter().map(|(_, entry)| *entry).collect();
        Listing { sessions, empty: self.empty, notices: self.notices, more: self.cut, ..Listing::default() }
    }
}
