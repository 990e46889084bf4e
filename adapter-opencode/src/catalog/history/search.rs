//! Search in what was said: session by session, the one first that was last used, and each from its end.
//!
//! It reads in slices: what was found is handed on when nothing is open, however long that takes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use session_core::error::CatalogError;
use session_core::history::{
    Hit, HitPlace, Needle, Notice, NoticeKind, Scope, Search, SearchQuery, Searched, SessionEntry,
};
use session_core::{EnvMap, Timestamp, async_trait};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::super::reading::read;
use super::super::{READINGS, failed};
use super::error::DatabaseError;
use super::listing::{Folders, heads, kind_of};
use super::records::{From, Records, in_database, with};
use super::stores::Stores;
use super::summary::reasoning_apart;
use super::trees;

/// How many hits wait to be asked for, and how many one slice finds.
const WAITING: usize = 64;

/// How long one slice takes: so long a database with a log cannot take back what is in it.
const SLICE: Duration = Duration::from_millis(250);

/// How much of one message is read, in bytes.
const BYTES: usize = 16 << 20;

/// How many ids are asked for at once.
const IDS: usize = 1024;

#[derive(Debug)]
struct Running(Receiver<Searched>);

#[async_trait]
impl Search for Running {
    async fn next(&mut self) -> Option<Searched> {
        self.0.recv().await
    }
}

pub(in super::super) fn search(
    env: &EnvMap,
    reading: Duration,
    query: SearchQuery,
) -> Result<Box<dyn Search>, CatalogError> {
    let Some(needle) = Needle::new(&query.words) else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "there is nothing to search for");
        return Err(failed(query.state_dir.as_deref().unwrap_or(Path::new("")), source));
    };
    let stores = Stores::of(env, query.state_dir.as_deref())?;
    let (sender, receiver) = channel(WAITING);
    tokio::task::spawn_blocking(move || {
        let mut folders = Folders::default();
        let scope = query.scope.map(|folder| folders.real(folder));
        let left = query.limit.unwrap_or(usize::MAX);
        let time = Time { each: reading, left: reading * READINGS, stores: HashMap::new() };
        let folders = RefCell::new(folders);
        let searcher = Searcher { query: &query, needle: &needle, sender: &sender, scope, folders };
        // It ends early when nobody listens any more, or all were found.
        let _ = searcher.run(stores, reading, left, time);
    });
    Ok(Box::new(Running(receiver)))
}

/// Nobody listens any more, or the limit was reached.
#[derive(Debug)]
struct Over;

/// How long may still be read.
#[derive(Debug)]
struct Time {
    each: Duration,
    left: Duration,
    /// Of each store. Nothing: it is over with it, and that was told.
    stores: HashMap<PathBuf, Option<Duration>>,
}

impl Time {
    /// What is left for a store; zero: it was not told yet that nothing is.
    fn of(&mut self, store: &Path) -> Option<Duration> {
        let left = *self.stores.entry(store.to_owned()).or_insert(Some(self.each));
        left.map(|left| left.min(self.left))
    }

    fn spend(&mut self, store: &Path, time: Duration) {
        self.left = self.left.saturating_sub(time);
        if let Some(Some(left)) = self.stores.get_mut(store) {
            *left = left.saturating_sub(time);
        }
    }

    fn end(&mut self, store: &Path) {
        self.stores.insert(store.to_owned(), None);
    }
}

/// Where a slice begins and ends.
#[derive(Debug, Clone, Default)]
struct Place {
    /// Which session of those of one store that follow each other.
    session: usize,
    titled: bool,
    /// The message that was looked at last.
    before: Option<String>,
}

impl Place {
    fn next_session(&mut self) {
        *self = Self { session: self.session + 1, ..Self::default() };
    }
}

/// What was found in one go.
#[derive(Debug)]
struct Slice {
    place: Place,
    found: Vec<Searched>,
    trouble: Option<DatabaseError>,
    end: Instant,
    /// Messages and sessions that were gone through.
    steps: usize,
}

impl Slice {
    const fn new(place: Place, end: Instant) -> Self {
        Self { place, found: Vec::new(), trouble: None, end, steps: 0 }
    }

    /// Whether something was read, and enough.
    fn is_full(&self) -> bool {
        self.found.len() >= WAITING || self.steps > 0 && Instant::now() >= self.end
    }

    fn notice(&mut self, session: &SessionEntry, kind: NoticeKind) {
        self.found.push(Searched::Notice(Notice { path: session.source.path.clone(), offset: None, kind }));
    }
}

struct Searcher<'a> {
    query: &'a SearchQuery,
    needle: &'a Needle,
    sender: &'a Sender<Searched>,
    /// As real paths.
    scope: Scope,
    folders: RefCell<Folders>,
}

impl Searcher<'_> {
    fn run(&self, stores: Stores, reading: Duration, mut left: usize, mut time: Time) -> Result<(), Over> {
        let found = heads(stores, self.query.state_dir.as_deref(), reading);
        let (mut sessions, notices) = found.newest_first();
        notices.into_iter().try_for_each(|notice| self.send(Searched::Notice(notice)))?;
        sessions.retain(|session| self.query.takes(session.kind));
        let of_one_store = |one: &SessionEntry, other: &SessionEntry| one.source == other.source;
        for group in sessions.chunk_by(of_one_store) {
            self.group(group, &mut left, &mut time)?;
        }
        Ok(())
    }

    fn send(&self, searched: Searched) -> Result<(), Over> {
        self.sender.blocking_send(searched).map_err(|_| Over)
    }

    /// Searches sessions that follow each other in one store: some of a database, or one of the tree.
    fn group(&self, group: &[SessionEntry], left: &mut usize, time: &mut Time) -> Result<(), Over> {
        let Some(first) = group.first() else { return Ok(()) };
        let path = &first.source.path;
        let root = trees::root_of(path, first.id.as_str());
        let store = root.as_deref().unwrap_or(path);
        let tell = |kind| self.send(Searched::Notice(Notice { path: path.clone(), offset: None, kind }));
        let mut place = Place::default();
        while place.session < group.len() {
            let Some(for_it) = time.of(store) else { return Ok(()) };
            if for_it.is_zero() {
                time.end(store);
                return tell(NoticeKind::LimitReached);
            }
            let begin = Instant::now();
            let start = || Slice::new(place.clone(), begin + SLICE.min(for_it));
            let done = match root {
                Some(_) => self.slice_of_tree(&group[0], begin + for_it, start),
                None => self.slice_of_database(group, begin + for_it, start),
            };
            time.spend(store, begin.elapsed());
            let slice = match done {
                Ok(slice) => slice,
                Err(DatabaseError::SessionGone) => return Ok(()),
                Err(trouble) => {
                    // What is wrong with a session of the tree says nothing of the others.
                    if root.is_none() {
                        time.end(store);
                    }
                    return tell(kind_of(&trouble));
                }
            };
            for searched in slice.found {
                if matches!(searched, Searched::Hit(_)) {
                    *left = left.checked_sub(1).ok_or(Over)?;
                }
                self.send(searched)?;
                if *left == 0 {
                    return Err(Over);
                }
            }
            place = slice.place;
            if let Some(trouble) = slice.trouble {
                if matches!(trouble, DatabaseError::TooMuch) {
                    time.end(store);
                }
                tell(kind_of(&trouble))?;
            }
            if self.sender.is_closed() {
                return Err(Over);
            }
        }
        Ok(())
    }

    fn slice_of_tree(
        &self,
        session: &SessionEntry,
        until: Instant,
        start: impl Fn() -> Slice,
    ) -> Result<Slice, DatabaseError> {
        with(session.id.as_str(), &session.source, until, |records| {
            let mut slice = start();
            let done = self.session(records, session, &mut slice);
            slice.conclude(done);
            Ok(slice)
        })
    }

    fn slice_of_database(
        &self,
        group: &[SessionEntry],
        until: Instant,
        start: impl Fn() -> Slice,
    ) -> Result<Slice, DatabaseError> {
        let source = &group[0].source;
        let done = read(&source.path, source.state_dir.as_deref(), until, |connection| {
            let mut slice = start();
            while let Some(session) = group.get(slice.place.session)
                && slice.trouble.is_none()
                && !slice.is_full()
                && !self.sender.is_closed()
            {
                let id = session.id.as_str();
                let done = in_database(id, connection, |records| self.session(records, session, &mut slice));
                slice.conclude(done);
            }
            Ok::<_, DatabaseError>(slice)
        })?;
        done.ok_or(DatabaseError::SessionGone)
    }

    /// Searches a session as far as the slice goes, and says whether to its end.
    fn session(
        &self,
        records: &dyn Records,
        session: &SessionEntry,
        slice: &mut Slice,
    ) -> Result<bool, DatabaseError> {
        let holds = |folder: &Path| {
            self.scope == Scope::All || self.scope.holds(&self.folders.borrow_mut().real(folder))
        };
        let began_in_scope = self.scope == Scope::All || session.cwd.as_deref().is_some_and(holds);
        if !slice.place.titled
            && began_in_scope
            && let Some((excerpt, matched)) =
                session.title.as_ref().and_then(|title| self.needle.find(&title.text))
        {
            slice.found.push(hit(session, HitPlace::Title, None, excerpt, matched));
        }
        slice.place.titled = true;
        loop {
            let before = slice.place.before.clone();
            let ids = records.ids(before.as_deref().map_or(From::End, From::Before), IDS)?;
            if ids.is_empty() {
                return Ok(true);
            }
            for id in ids {
                if slice.is_full() || self.sender.is_closed() {
                    return Ok(false);
                }
                self.message(records, session, &id, slice, &|folder| {
                    began_in_scope || folder.is_some_and(holds)
                })?;
                slice.steps += 1;
                slice.place.before = Some(id);
            }
        }
    }

    fn message(
        &self,
        records: &dyn Records,
        session: &SessionEntry,
        id: &str,
        slice: &mut Slice,
        is_in_scope: &dyn Fn(Option<&Path>) -> bool,
    ) -> Result<(), DatabaseError> {
        let Some(stored) = records.message(id, BYTES)? else { return Ok(()) };
        if stored.is_cut {
            slice.notice(session, NoticeKind::LimitReached);
        }
        let pieces = stored.parts.iter().filter_map(|(_, data)| data.as_deref());
        let is_whole = stored.parts.iter().all(|(_, data)| data.is_some());
        if is_whole && !self.needle.may_be_in(pieces) {
            return Ok(());
        }
        let own = records.session();
        let Some((entry, skipped)) = stored.entry(own.parent.is_some(), reasoning_apart(own)) else {
            slice.notice(session, NoticeKind::SkippedLine);
            return Ok(());
        };
        if skipped > 0 {
            slice.notice(session, NoticeKind::SkippedLine);
        }
        let Some((place, excerpt, matched)) = self.needle.find_in(&entry.kind) else { return Ok(()) };
        let said_in = stored.message().and_then(|message| message.path?.cwd);
        if is_in_scope(said_in.as_deref().map(Path::new)) {
            slice.found.push(hit(session, place, entry.time, excerpt, matched));
        }
        Ok(())
    }
}

impl Slice {
    /// Goes on to the next session where one was searched to its end, or cannot be.
    fn conclude(&mut self, done: Result<bool, DatabaseError>) {
        match done {
            Ok(false) => return,
            // It was removed meanwhile.
            Ok(true) | Err(DatabaseError::SessionGone) => {}
            Err(trouble) => self.trouble = Some(trouble),
        }
        self.steps += 1;
        self.place.next_session();
    }
}

fn hit(
    session: &SessionEntry,
    place: HitPlace,
    time: Option<Timestamp>,
    excerpt: String,
    matched: std::ops::Range<usize>,
) -> Searched {
    let (id, source) = (session.id.clone(), session.source.clone());
    Searched::Hit(Box::new(Hit { id, source, place, span: None, time, excerpt, matched }))
}
