//! Looks at the stored sessions: the one room that does I/O, behind the feature `catalog`.

#![expect(clippy::disallowed_methods, reason = "this room does I/O, on the pool for blocking work")]

mod connect;
mod database;
mod open;
mod place;
mod tree;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use session_core::error::CatalogError;
use session_core::{
    Conversation, EnvMap, Inspection, Mend, NativeId, Presence, SessionCatalog, SessionQuery, Version,
    async_trait,
};

use crate::state::{DATABASE, data_dir};
use crate::transcript::{Places, Store, places};

/// How many messages and parts of a session are read, newest first. A session larger than this is there, whatever else
/// it holds.
const ROWS: i64 = 100_000;

/// How long one database is read: some hundred megabytes, also from a slow disk. What the agent wrote there could keep
/// SQLite busy without end.
const READING: Duration = Duration::from_secs(10);

/// How many times as long all databases are read that may hold the session.
const READINGS: u32 = 3;
/// Databases of one folder that are looked through.
const DATABASES: usize = 2_000;

/// The sessions of opencode, in the data folder of an environment or in a state dir.
#[derive(Debug, Clone)]
pub struct OpencodeCatalog {
    env: EnvMap,
    reading: Duration,
}

/// A query that can go to another thread.
#[derive(Debug, Clone)]
struct Asked {
    id: NativeId,
    version: Option<Version>,
    /// The state dir: the agent writes all that is below it, and nothing of the way there.
    state: Option<PathBuf>,
    places: Places,
    /// How long one database is read.
    reading: Duration,
}

impl Asked {
    /// When the reading of a database that begins now has to end.
    fn until(&self) -> Instant {
        Instant::now() + self.reading
    }
}

impl OpencodeCatalog {
    /// The sessions as an agent with this environment keeps them.
    #[must_use]
    pub const fn new(env: EnvMap) -> Self {
        Self { env, reading: READING }
    }

    fn asked(&self, query: &SessionQuery<'_>) -> Asked {
        Asked {
            id: query.id.clone(),
            version: query.version.cloned(),
            state: query.state_dir.map(Path::to_owned),
            places: places(&self.env, query),
            reading: self.reading,
        }
    }
}

/// A session, found.
struct Found {
    store: Store,
    look: Inspection,
}

#[async_trait]
impl SessionCatalog for OpencodeCatalog {
    fn home(&self) -> Option<PathBuf> {
        let data = data_dir(&self.env)?;
        // An absolute name takes the place of the folder.
        Some(
            self.env
                .get(DATABASE)
                .filter(|name| !name.is_empty())
                .map_or_else(|| data.clone(), |name| data.join(name)),
        )
    }

    /// A database is opened for reading only, not waited for longer than two seconds, and not read for longer than ten:
    /// then it is [`Unreadable`](Presence::Unreadable). Below a state dir no link is followed. Its `-shm` and `-wal`
    /// files are made where they are missing: SQLite reads no database with a log without them.
    ///
    /// # Errors
    /// [`CatalogError`] for a database that is locked, and for input/output errors.
    ///
    /// # Cancel safety
    /// Nothing is written. A dropped future leaves a read running to its end on the blocking pool.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn inspect(&self, query: SessionQuery<'_>) -> Result<Inspection, CatalogError> {
        let asked = self.asked(&query);
        let id = query.id.clone();
        let look =
            blocking(move || Ok(find(&asked)?.map_or(Inspection::MISSING, |found| found.look))).await?;
        tracing::debug!(%id, path = ?look.path, presence = ?look.presence, turns = look.user_turns,
            misplaced = look.misplaced, "looked at a session");
        Ok(look)
    }

    /// # Errors
    /// [`CatalogError`] when nobody can look.
    ///
    /// # Cancel safety
    /// As [`inspect`](Self::inspect).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn last_said(&self, query: SessionQuery<'_>, bytes: usize) -> Result<Conversation, CatalogError> {
        let asked = self.asked(&query);
        blocking(move || match find(&asked)? {
            None => Ok(Conversation::default()),
            Some(Found { store: Store::Database(path), .. }) => {
                database::last_said(&path, &asked, asked.until(), bytes)
            }
            Some(Found { store: Store::Tree(root), .. }) => tree::last_said(&root, &asked, bytes),
        })
        .await
    }

    /// # Errors
    /// [`CatalogError`] when the database could not be moved, and is where it was, or was moved and could not be made
    /// durable there.
    ///
    /// # Cancel safety
    /// A dropped future leaves the move running to its end on the blocking pool.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn mend(
        &self,
        query: SessionQuery<'_>,
        look: &Inspection,
        mend: Mend,
    ) -> Result<bool, CatalogError> {
        let (Some(path), Some(state)) = (look.path.clone(), query.state_dir) else { return Ok(false) };
        let to = crate::state::database_of(state, query.id);
        let (asked, bytes) = (self.asked(&query), look.bytes);
        let done = blocking(move || match mend {
            Mend::PutInPlace => place::put(&asked, &path, bytes, &to),
            Mend::SetAside => place::take_away(&asked, &path),
            _ => Ok(false),
        });
        let done = done.await?;
        if done {
            tracing::warn!(id = %query.id, path = ?look.path, ?mend, "a database was moved");
        }
        Ok(done)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CatalogError> + Send + 'static,
) -> Result<T, CatalogError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(failed(Path::new(""), io::Error::other(error))))
}

fn failed(path: &Path, source: impl Into<session_core::error::BoxError>) -> CatalogError {
    CatalogError { path: path.to_owned(), source: source.into() }
}

fn unreadable(path: &Path) -> Inspection {
    Inspection { presence: Presence::Unreadable, path: Some(path.to_owned()), ..Inspection::MISSING }
}

/// Finds the session: where the version looks, or a build of another channel, then where it would look if the file had
/// the right name, then where only another version does.
fn find(asked: &Asked) -> Result<Option<Found>, CatalogError> {
    let places = &asked.places;
    if *places == Places::default() {
        // A home that is unknown is not a session that is missing.
        return Err(failed(Path::new(""), io::Error::other("it is not known where its sessions lie")));
    }
    let end = Instant::now() + asked.reading * READINGS;
    for store in &places.here {
        let mut look = look(asked, store, end)?;
        look.in_the_way &= places.is_shared;
        if look.presence != Presence::Missing {
            return Ok(Some(Found { store: store.clone(), look }));
        }
    }
    let mut unknown = Unknown(None);
    for path in databases_in(places.channels_in.as_deref())?.into_iter().filter(|path| is_of_a_channel(path))
    {
        let candidate = Candidate { store: Store::Database(path), is_own: true };
        let Some(look) = unknown.look(asked, &candidate, end) else { continue };
        if matches!(look.presence, Presence::Present | Presence::Empty) || look.user_turns > 0 {
            return Ok(Some(Found { store: candidate.store, look }));
        }
    }
    let movable = places.movable.iter().cloned().map(Store::Database);
    for candidate in candidates(asked, movable, places.movable_in.as_deref())? {
        let Some(look) = unknown.look(asked, &candidate, end) else { continue };
        // What ails another session's database is no news of this one.
        if matches!(look.presence, Presence::Present | Presence::Empty) || look.user_turns > 0 {
            let look = Inspection { misplaced: true, ..look };
            return Ok(Some(Found { store: candidate.store, look }));
        }
    }
    let elsewhere = places.elsewhere.iter().cloned();
    for candidate in candidates(asked, elsewhere, places.elsewhere_in.as_deref())? {
        let Some(look) = unknown.look(asked, &candidate, end) else { continue };
        if look.presence == Presence::Present {
            let path = look.path.clone().unwrap_or_default();
            return Ok(Some(Found { store: candidate.store, look: unreadable(&path) }));
        }
    }
    unknown.0.transpose()
}

/// Something that may hold the session, though it does not bear its name.
struct Candidate {
    store: Store,
    /// Whether it may: neither its name nor its place says that it is another session's.
    is_own: bool,
}

/// The candidate that nobody could look into. If the session is nowhere else, nobody can tell that it is missing.
struct Unknown(Option<Result<Found, CatalogError>>);

impl Unknown {
    /// What a look shows, if it shows something.
    fn look(&mut self, asked: &Asked, candidate: &Candidate, end: Instant) -> Option<Inspection> {
        let Candidate { store, is_own } = candidate;
        let looked = if Instant::now() < end {
            look(asked, store, end)
        } else if path_of(store).symlink_metadata().is_err() {
            return None;
        } else {
            Ok(unreadable(path_of(store)))
        };
        match looked {
            Ok(look) if look.presence != Presence::Unreadable => return Some(look),
            looked if *is_own && self.0.is_none() => {
                let found = looked.map(|look| Found { store: store.clone(), look });
                self.0 = Some(found);
            }
            Ok(look) => {
                tracing::debug!(path = ?look.path, "a database that is not the session's is left out")
            }
            Err(error) => tracing::debug!(%error, "a database that is not the session's is left out"),
        }
        None
    }
}

fn candidates(
    asked: &Asked,
    known: impl Iterator<Item = Store>,
    folder: Option<&Path>,
) -> Result<Vec<Candidate>, CatalogError> {
    // A session that the agent named lies in a database that nobody named.
    let may_be_own = |path: &Path| {
        let name = path.file_stem().unwrap_or_default();
        name == asked.id.as_str() || name.as_encoded_bytes().starts_with(b"new-")
    };
    let known = known.map(|store| Candidate { store, is_own: true });
    let others = databases_in(folder)?.into_iter().map(|path| {
        let is_own = may_be_own(&path);
        Candidate { store: Store::Database(path), is_own }
    });
    Ok(known.chain(others).collect())
}

fn look(asked: &Asked, store: &Store, end: Instant) -> Result<Inspection, CatalogError> {
    match store {
        Store::Database(path) => database::inspect(path, asked, asked.until().min(end)),
        Store::Tree(root) => tree::inspect(root, asked),
    }
}

fn path_of(store: &Store) -> &Path {
    let (Store::Database(path) | Store::Tree(path)) = store;
    path
}

/// Adds the words of a part to those of the parts before it. Of what is longer than is wanted, the beginning will do.
fn join(said: &mut String, words: &str, limit: usize) {
    if said.len() > limit {
        return;
    }
    if !said.is_empty() {
        said.push('\n');
    }
    said.push_str(words);
}

/// The databases in a folder, in the order of their names.
fn databases_in(folder: Option<&Path>) -> Result<Vec<PathBuf>, CatalogError> {
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        entries => entries.map_err(|error| failed(folder, error))?,
    };
    let mut paths: Vec<_> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "db"))
        .take(DATABASES + 1)
        .collect();
    if paths.len() > DATABASES {
        let source = io::Error::other("it holds more databases than one mailbox has sessions");
        return Err(failed(folder, source));
    }
    paths.sort();
    Ok(paths)
}

/// Whether it is the database of a build of another channel than the common one: `opencode-<channel>.db`.
fn is_of_a_channel(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("opencode-"))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What the records of a session add up to.
#[derive(Debug, Default)]
struct Tally {
    user_turns: u64,
    answers: u64,
    bytes: u64,
    /// Records that the agent cannot read, and needs.
    broken: u64,
    /// Records that the agent leaves out in silence.
    holes: u64,
    began_in: Option<PathBuf>,
}

impl Tally {
    fn sum_up(self, path: &Path) -> Inspection {
        let presence = if self.broken > 0 {
            Presence::Damaged
        } else if self.user_turns + self.answers > 0 {
            Presence::Present
        } else {
            Presence::Empty
        };
        Inspection {
            presence,
            path: Some(path.to_owned()),
            user_turns: self.user_turns,
            answers: self.answers,
            bytes: self.bytes,
            began_in: self.began_in,
            skipped_lines: if self.broken > 0 { 0 } else { self.holes },
            ..Inspection::MISSING
        }
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
