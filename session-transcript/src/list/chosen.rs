//! What is listed: what was asked for, in its order.

use std::path::PathBuf;

use session_core::history::{ListQuery, Listing, Notice, Resumability, Scope, SessionEntry, Unresumable};
use session_core::{Timestamp, TranscriptFormat};

use super::{Examined, Lister};
use crate::scope::{Scoped, real};

/// What is listed so far.
pub(super) struct Chosen<'a> {
    query: &'a ListQuery,
    scope: Scoped,
    format: &'a dyn TranscriptFormat,
    /// The places of the one folder that is asked for.
    filed_in: Vec<PathBuf>,
    /// With when each was last used, in milliseconds.
    ranked: Vec<(i64, Box<SessionEntry>)>,
    empty: u64,
    notices: Vec<Notice>,
    /// Whether something was left out for the limit.
    pub(super) cut: bool,
}

impl<'a> Chosen<'a> {
    pub(super) fn new(lister: Lister<'a>, query: &'a ListQuery, notices: Vec<Notice>) -> Self {
        Self {
            query,
            scope: Scoped::new(&query.scope),
            format: lister.format,
            filed_in: lister.filed_in(query),
            ranked: Vec::new(),
            empty: 0,
            notices,
            cut: false,
        }
    }

    pub(super) fn add(&mut self, examined: Examined) {
        self.notices.extend(examined.notices);
        let Some(mut entry) = examined.entry else { return };
        if !self.query.takes(entry.kind) || !(self.scope.holds(&entry) || self.was_moved_here(&mut entry)) {
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

    /// Whether the session was relocated to the one folder that is asked for: it is filed there, which none of the folders
    /// that it tells of would be. It is in that one, then.
    fn was_moved_here(&self, entry: &mut SessionEntry) -> bool {
        let (Scope::Exact(here), Some(place)) = (&self.query.scope, entry.source.path.parent()) else {
            return false;
        };
        if !self.filed_in.iter().any(|filed| filed == place) || entry.cwd.is_none() {
            return false;
        }
        let state_dir = self.query.state_dir.as_deref();
        let of =
            |folder: &PathBuf| self.format.filed_in(folder, state_dir).iter().any(|filed| filed == place);
        let moved = !entry.cwd.iter().chain(&entry.last_cwd).any(of);
        if moved {
            entry.last_cwd = Some(real(here));
        }
        moved
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
        let (empty, notices, filed_in) = (self.empty, self.notices, self.filed_in);
        Listing { sessions, empty, notices, more: self.cut, filed_in }
    }
}
