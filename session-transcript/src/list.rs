//! Lists sessions: walk, order, read what is needed, leave out what was not asked for.

mod chosen;
mod groups;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use session_core::history::{
    Depth, HistoryBase, ListQuery, Listing, Notice, NoticeKind, Resumability, Scope, SessionEntry,
    SessionKind, SessionRoot, SessionSource, Unresumable,
};
use session_core::{NativeId, Timestamp, TranscriptFormat};

use self::chosen::Chosen;
use self::groups::grouped;
use crate::find::is_absent;
use crate::index::{Fresh, Index};
use crate::parts::{Files, belong_together, tell_apart};
use crate::plain::Plain;
use crate::pool;
use crate::read::{Buffers, Digested, Reader};
use crate::scope::real;
use crate::stamp::Stamp;
use crate::titles::Titles;
use crate::walk::{Seen, Walk, Walked, notice};

/// How a catalog lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lister<'a> {
    pub(crate) format: &'a dyn TranscriptFormat,
    /// How many entries of folders are looked at.
    pub(crate) limit: usize,
    /// Where what was folded is kept, and whose it is.
    pub(crate) index: Option<(&'a Path, &'a str)>,
    /// How many bytes of session files were read.
    pub(crate) count: &'a AtomicU64,
    /// The clock that files are stamped by.
    pub(crate) clock: fn() -> i64,
    /// Folders that a search need not read again.
    pub(crate) plain: &'a Plain,
}

/// What became of a session's files.
#[derive(Debug, Default)]
struct Examined {
    /// In a box, since entries are large, and are handed on and sorted.
    entry: Option<Box<SessionEntry>>,
    /// When its file was written, in milliseconds.
    written: i64,
    /// Which of the files were read, and what an index should know of them.
    fresh: Vec<(PathBuf, Fresh)>,
    notices: Vec<Notice>,
}

/// A record is written after the time that it notes. By so many milliseconds two machines' clocks may differ unnoticed.
const AHEAD: i64 = 60 * 60 * 1000;
/// Fewer are not worth a thread: of files, and of what is indexed.
const GRAIN: usize = 16;
const INDEXED: usize = 512;
/// How many files are read at least before it is looked whether that was enough.
const FIRST: usize = 32;

impl Lister<'_> {
    pub(crate) fn list(&self, query: &ListQuery, roots: &[SessionRoot]) -> Listing {
        let state_dir = match real_dir(query.state_dir.as_deref()) {
            Ok(state_dir) => state_dir,
            Err(error) if is_absent(&error) => return Listing::default(),
            Err(error) => {
                let notices = vec![notice(query.state_dir.as_deref().unwrap_or(Path::new("")), &error)];
                return Listing { notices, ..Listing::default() };
            }
        };
        let sidechains = query.kinds.contains(&SessionKind::Sidechain);
        let walk = Walk {
            format: self.format,
            state_dir: state_dir.as_deref(),
            sidechains,
            only: None,
            names: &[],
            limit: self.limit,
            plain: None,
        };
        let Walked { mut files, mut notices } = walk.run(roots);
        let complete = notices.is_empty();
        let index = self.index.map(|(path, owner)| Index::load(path, owner)).unwrap_or_default();
        let titles =
            Titles::read(self.format, query.state_dir.as_deref(), state_dir.as_deref(), &mut notices);
        let places = Files::new(self.format, roots, state_dir.as_deref(), self.limit);
        tell_apart(&places, &mut files);
        let reader = Reader {
            format: self.format,
            index: &index,
            state_dir: state_dir.as_deref(),
            exact: query.depth == Depth::Exact,
            count: self.count,
            files: &places,
            clock: self.clock,
        };
        let mut sessions = grouped(self.format, &mut files);
        groups::sort(&mut sessions, &files);
        let mut chosen = Chosen::new(*self, query, notices);
        let mut fresh = HashMap::new();
        let mut rest = sessions.as_slice();
        let mut step = query.limit.map_or(rest.len(), |limit| limit.max(FIRST));
        while !rest.is_empty() {
            let (now, later) = rest.split_at(step.min(rest.len()));
            let mut unknown = Vec::new();
            let grain = if self.index.is_some() { INDEXED } else { usize::MAX };
            let indexed =
                pool::map(now, grain, || (), |(), copies| listed(&reader, &files[copies.clone()], query));
            for (copies, examined) in now.iter().zip(indexed) {
                match examined {
                    Some(mut examined) => {
                        if let Some(entry) = &mut examined.entry {
                            titles.give(entry);
                        }
                        chosen.add(examined);
                    }
                    None => unknown.push(&files[copies.clone()]),
                }
            }
            let examined = pool::map(&unknown, GRAIN, Buffers::default, |buffers, copies| {
                examine(&reader, buffers, copies, query)
            });
            for mut examined in examined {
                fresh.extend(examined.fresh.drain(..));
                if let Some(entry) = &mut examined.entry {
                    titles.give(entry);
                }
                chosen.add(examined);
            }
            (rest, step) = (later, step.saturating_mul(2));
            if rest.first().is_some_and(|next| chosen.is_full(files[next.start].stamp.modified / 1_000_000)) {
                chosen.cut = true;
                break;
            }
        }
        if let Some((path, owner)) = self.index {
            save(&index, (path, owner), &fresh, roots, complete.then_some(&files), sidechains);
        }
        chosen.listing()
    }

    /// The places for the one folder that is asked for, as far as they are there.
    fn filed_in(&self, query: &ListQuery) -> Vec<PathBuf> {
        let Scope::Exact(folder) = &query.scope else { return Vec::new() };
        let mut places = self.format.filed_in(&real(folder), query.state_dir.as_deref());
        // Older sessions may be filed by the path as it was typed.
        places.extend(self.format.filed_in(folder, query.state_dir.as_deref()));
        let mut there: Vec<PathBuf> = Vec::new();
        for place in places {
            if !there.contains(&place) && place.is_dir() {
                there.push(place);
            }
        }
        there
    }

    /// Every file of a session, newest first.
    pub(crate) fn find(
        &self,
        id: &NativeId,
        state_dir: Option<&Path>,
        roots: &[SessionRoot],
    ) -> io::Result<Vec<SessionEntry>> {
        let query = ListQuery {
            state_dir: state_dir.map(Path::to_owned),
            depth: Depth::Quick,
            ..ListQuery::default()
        };
        let real = match real_dir(state_dir) {
            Ok(real) => real,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let names = self.format.file_names(id);
        let walk = Walk {
            format: self.format,
            state_dir: real.as_deref(),
            sidechains: false,
            only: Some(id),
            names: &names,
            limit: self.limit,
            plain: Some(self.plain).filter(|_| !names.is_empty()),
        };
        let mut walked = walk.search(roots);
        let places = Files::new(self.format, roots, walk.state_dir, self.limit);
        tell_apart(&places, &mut walked.files);
        walked.files.retain(|seen| seen.file.id == *id);
        let titles = if walked.files.is_empty() {
            Titles::default()
        } else {
            Titles::read(self.format, state_dir, walk.state_dir, &mut Vec::new())
        };
        let index = Index::default();
        let reader = Reader {
            format: self.format,
            index: &index,
            state_dir: walk.state_dir,
            exact: false,
            count: self.count,
            files: &places,
            clock: self.clock,
        };
        let last = grouped(self.format, &mut walked.files).pop().unwrap_or_default();
        let mut copies: Vec<_> = walked.files.drain(last).collect();
        if let Some(first) = copies.first().cloned() {
            // Its other parts are no other copies.
            copies.retain(|seen| seen.path == first.path || !belong_together(self.format, &first, seen));
        }
        let mut buffers = Buffers::default();
        let mut entries: Vec<_> = copies
            .into_iter()
            .filter_map(|seen| examine(&reader, &mut buffers, &[seen], &query).entry.map(|entry| *entry))
            .collect();
        entries.iter_mut().for_each(|entry| titles.give(entry));
        match walked.notices.into_iter().next() {
            // What was not looked at may hold it.
            Some(notice) if entries.is_empty() => Err(io::Error::other(match notice.kind {
                NoticeKind::Unreadable(why) => format!("{}: {why}", notice.path.display()),
                _ => format!("{}: there is too much to search", notice.path.display()),
            })),
            _ => Ok(entries),
        }
    }
}

fn real_dir(state_dir: Option<&Path>) -> io::Result<Option<PathBuf>> {
    state_dir.map(Path::canonicalize).transpose()
}

/// What is indexed of a session with one file.
fn listed(reader: &Reader<'_>, copies: &[Seen], query: &ListQuery) -> Option<Examined> {
    let [seen] = copies else { return None };
    let row = reader.row(seen)?;
    let mut examined = Examined::default();
    let base = row.base.map(|id| HistoryBase { id: NativeId::new(id), end: None });
    let entry = Box::new(row.entry(&seen.file, source_of(seen, query)));
    examined.take(reader, seen, entry, base.as_ref(), seen.stamp);
    Some(examined)
}

/// Reads the first of the files that can be read.
fn examine(reader: &Reader<'_>, buffers: &mut Buffers, copies: &[Seen], query: &ListQuery) -> Examined {
    let mut examined = Examined::default();
    for seen in copies {
        if examined.entry.as_ref().is_some_and(|entry| !is_unreadable(entry)) {
            if !belong_together(reader.format, &copies[0], seen) {
                let kind = NoticeKind::OlderCopy;
                examined.notices.push(Notice { path: seen.path.clone(), offset: None, kind });
            }
            continue;
        }
        if let Some(indexed) = listed(reader, std::slice::from_ref(seen), query) {
            examined = Examined { notices: examined.notices, fresh: examined.fresh, ..indexed };
            continue;
        }
        match reader.digest(buffers, seen) {
            Ok(Digested { digest, stamp, fresh, in_part }) => {
                let entry = Box::new(digest.entry(&seen.file, source_of(seen, query)));
                examined.take(reader, seen, entry, digest.base(), stamp);
                if in_part {
                    let kind = NoticeKind::PackedInPart;
                    examined.notices.push(Notice { path: seen.path.clone(), offset: None, kind });
                }
                examined.fresh.extend(fresh.map(|fresh| (seen.path.clone(), fresh)));
            }
            // It went away meanwhile.
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                examined.notices.push(notice(&seen.path, &error));
                if examined.entry.is_none() {
                    let mut entry = SessionEntry::new(seen.file.id.clone(), source_of(seen, query));
                    entry.bytes = Some(seen.stamp.size);
                    examined.written = seen.stamp.modified / 1_000_000;
                    entry.updated = Some(Timestamp::from_millis(examined.written));
                    entry.resumable = Resumability::No(Unresumable::Unreadable);
                    examined.entry = Some(Box::new(entry));
                }
            }
        }
    }
    examined
}

fn source_of(seen: &Seen, query: &ListQuery) -> SessionSource {
    SessionSource { path: seen.path.clone(), state_dir: query.state_dir.clone() }
}

impl Examined {
    /// Takes what the content of a file says, and adds what its place and its stamp do.
    fn take(
        &mut self,
        reader: &Reader<'_>,
        seen: &Seen,
        mut entry: Box<SessionEntry>,
        base: Option<&HistoryBase>,
        stamp: Stamp,
    ) {
        if base.is_some_and(|base| reader.files.base(base).is_none()) {
            entry.resumable = Resumability::No(Unresumable::BaseMissing);
        }
        entry.bytes = Some(stamp.size);
        self.written = stamp.modified / 1_000_000;
        if entry.updated.is_some_and(|time| time.as_millis().saturating_sub(self.written) > AHEAD) {
            let kind = NoticeKind::TimeAhead;
            self.notices.push(Notice { path: seen.path.clone(), offset: None, kind });
        }
        entry.updated = entry.updated.or(Some(Timestamp::from_millis(self.written)));
        if seen.archived && entry.resumable == Resumability::Yes {
            entry.resumable = Resumability::Archived;
        }
        self.entry = Some(entry);
    }
}

fn is_unreadable(entry: &SessionEntry) -> bool {
    entry.resumable == Resumability::No(Unresumable::Unreadable)
}

/// Keeps what was read, where that is worth it. A failure makes the next list slower, and nothing else.
fn save(
    index: &Index,
    (path, owner): (&Path, &str),
    fresh: &HashMap<PathBuf, Fresh>,
    roots: &[SessionRoot],
    files: Option<&Vec<Seen>>,
    sidechains: bool,
) {
    let fresh: HashMap<&str, &Fresh> =
        fresh.iter().filter_map(|(path, fresh)| Some((path.to_str()?, fresh))).collect();
    if !index.is_worth(&fresh) {
        return;
    }
    // What was not seen is not there, as far as everything was looked at.
    let seen: Option<HashSet<&Path>> =
        files.map(|files| files.iter().map(|seen| seen.path.as_path()).collect());
    let saved = index.save(path, owner, &fresh, |path, known| {
        let path = Path::new(path);
        // Those of other folders are another list's.
        let walked =
            (sidechains || !known.sidechain) && roots.iter().any(|root| path.starts_with(&root.folder));
        walked && seen.as_ref().is_some_and(|seen| !seen.contains(path))
    });
    if let Err(error) = saved {
        tracing::debug!(path = %path.display(), %error, "an index was not written");
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
