//! Looks at the stored sessions: the one room that does I/O, behind the feature `catalog`.

#![expect(clippy::disallowed_methods, reason = "this room does I/O, on the pool for blocking work")]

mod database;
mod place;
mod tree;

use std::io;
use std::path::{Path, PathBuf};

use session_core::error::CatalogError;
use session_core::{
    Conversation, EnvMap, Inspection, Mend, NativeId, Presence, SessionCatalog, SessionQuery, Version,
    async_trait,
};

use crate::transcript::{Places, Store, places};

/// How many messages and parts of a session are read, newest first. A session larger than this is there, whatever else
/// it holds.
const ROWS: i64 = 100_000;

/// The sessions of opencode, in the data folder of an environment or in a state dir.
#[derive(Debug, Clone)]
pub struct OpencodeCatalog {
    env: EnvMap,
}

/// A query that can go to another thread.
#[derive(Debug, Clone)]
struct Asked {
    id: NativeId,
    version: Option<Version>,
    places: Places,
}

impl OpencodeCatalog {
    /// The sessions as an agent with this environment keeps them.
    #[must_use]
    pub const fn new(env: EnvMap) -> Self {
        Self { env }
    }

    fn asked(&self, query: &SessionQuery<'_>) -> Asked {
        Asked { id: query.id.clone(), version: query.version.cloned(), places: places(&self.env, query) }
    }
}

/// A session, found.
struct Found {
    store: Store,
    look: Inspection,
    /// Whether the version looks there.
    is_here: bool,
}

#[async_trait]
impl SessionCatalog for OpencodeCatalog {
    /// A database is opened for reading only, and not waited for longer than two seconds. Its `-shm` and `-wal` files are
    /// made where they are missing: SQLite reads no database with a log without them.
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
            Some(Found { store: Store::Database(path), .. }) => database::last_said(&path, &asked.id, bytes),
            Some(Found { store: Store::Tree(root), .. }) => tree::last_said(&root, &asked.id, bytes),
        })
        .await
    }

    /// # Errors
    /// [`CatalogError`] when the database could not be moved; then it is where it was.
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
    for store in &places.here {
        let mut look = look(asked, store)?;
        look.in_the_way &= places.is_shared;
        if look.presence != Presence::Missing {
            return Ok(Some(Found { store: store.clone(), look, is_here: true }));
        }
    }
    for path in databases_in(places.channels_in.as_deref())?.into_iter().filter(|path| is_of_a_channel(path))
    {
        let store = Store::Database(path);
        let look = look(asked, &store)?;
        if matches!(look.presence, Presence::Present | Presence::Empty) || look.user_turns > 0 {
            return Ok(Some(Found { store, look, is_here: true }));
        }
    }
    for path in places.movable.iter().cloned().chain(databases_in(places.movable_in.as_deref())?) {
        let store = Store::Database(path);
        let look = look(asked, &store)?;
        // What ails another session's database is no news of this one.
        if matches!(look.presence, Presence::Present | Presence::Empty) || look.user_turns > 0 {
            let look = Inspection { misplaced: true, ..look };
            return Ok(Some(Found { store, look, is_here: false }));
        }
    }
    let more = databases_in(places.elsewhere_in.as_deref())?.into_iter().map(Store::Database);
    for store in places.elsewhere.iter().cloned().chain(more) {
        let look = look(asked, &store)?;
        if look.presence == Presence::Present {
            let path = look.path.clone().unwrap_or_default();
            return Ok(Some(Found { store, look: unreadable(&path), is_here: false }));
        }
    }
    Ok(None)
}

fn look(asked: &Asked, store: &Store) -> Result<Inspection, CatalogError> {
    match store {
        Store::Database(path) => database::inspect(path, &asked.id, asked.version.as_ref()),
        Store::Tree(root) => tree::inspect(root, &asked.id),
    }
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
        .collect();
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
