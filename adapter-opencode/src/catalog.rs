//! Looks at the stored sessions: the one room that does I/O, behind the feature `catalog`.

#![expect(clippy::disallowed_methods, reason = "this room does I/O, on the pool for blocking work")]

mod branch;
mod connect;
mod database;
mod history;
mod open;
mod place;
mod reading;
mod relocate;
mod seek;
mod tally;
mod tree;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use session_core::error::CatalogError;
use session_core::history::{
    ListQuery, Listing, PageQuery, Restored, Search, SearchQuery, SessionEntry, SessionSource, TranscriptPage,
};
use session_core::{
    Branch, BranchOrder, Branched, Conversation, EnvMap, Foreseen, Inspection, Mend, NativeId, Presence,
    RelocateOrder, Relocated, SessionCatalog, SessionQuery, Version, async_trait,
};

pub use self::history::DatabaseError;
use self::relocate::Journal;
#[cfg(test)]
use self::seek::DATABASES;
use self::seek::{Found, find};
use self::tally::Tally;
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

/// The sessions of opencode, in the data folder of an environment or in a state dir.
#[derive(Debug, Clone)]
pub struct OpencodeCatalog {
    env: EnvMap,
    reading: Duration,
    /// What it relocated.
    moved: Arc<Journal>,
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
    pub fn new(env: EnvMap) -> Self {
        Self { env, reading: READING, moved: Arc::default() }
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
    /// then it is [`Unreadable`](Presence::Unreadable). Below a state dir no link is followed. Nothing is left
    /// beside an idle database; where a log lies there without its index (`-shm`), as in a copy, SQLite makes one.
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

    /// All databases that are there, of every channel, and the tree of files of 1.1: a session in both is that of the
    /// database. One of the tree is [`OlderStore`](session_core::history::Unresumable::OlderStore) where there is a database. A
    /// locked database is waited for two seconds, and read for ten at the most; what was not read is told in the list.
    /// A session of `opencode run` is headless; one that is archived is continued as any other. Tokens are the agent's
    /// own totals, else the sum of finished steps; a fork's are without the replies that it copied, known by their
    /// times, figures and words.
    ///
    /// # Errors
    /// [`CatalogError`] where it is not known where sessions lie.
    ///
    /// # Cancel safety
    /// As [`inspect`](Self::inspect).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn list(&self, query: &ListQuery) -> Result<Listing, CatalogError> {
        let (env, reading, query) = (self.env.clone(), self.reading, query.clone());
        blocking(move || history::list(&env, reading, &query)).await
    }

    /// # Errors
    /// [`CatalogError`] where it is not known where sessions lie, or it is nowhere, and something could not be read.
    ///
    /// # Cancel safety
    /// As [`inspect`](Self::inspect).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn find(&self, id: &NativeId, state_dir: Option<&Path>) -> Result<Vec<SessionEntry>, CatalogError> {
        let (env, reading, id) = (self.env.clone(), self.reading, id.clone());
        let state = state_dir.map(Path::to_owned);
        blocking(move || history::find(&env, state.as_deref(), reading, &id)).await
    }

    /// An entry is a message with its parts; its tokens are those of its finished steps. A turn of more than some
    /// megabytes goes on in the next page. A reply that is still being made is among the last turns, and is told by
    /// [`After`](PageQuery::After) once more, with the same id, when it is whole or others follow.
    ///
    /// # Errors
    /// [`CatalogError`] with a [`DatabaseError`] as its cause: when it cannot be read, or the cursor is of another
    /// session or of a message that is gone.
    ///
    /// # Cancel safety
    /// As [`inspect`](Self::inspect).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn page(
        &self,
        id: &NativeId,
        source: &SessionSource,
        query: &PageQuery,
    ) -> Result<TranscriptPage, CatalogError> {
        let (id, source, query, reading) = (id.clone(), source.clone(), query.clone(), self.reading);
        blocking(move || history::page(&id, &source, Instant::now() + reading, &query)).await
    }

    /// In a state dir, the folder in the session's row is put to the new one, where nobody has its database open: the file
    /// stays where it is. In the agent's own place, and of the tree of 1.1, that is left to its own program.
    ///
    /// # Errors
    /// [`CatalogError`] when it could not be done; the folder is then what it was.
    ///
    /// # Cancel safety
    /// A dropped future leaves the work running to its end on the blocking pool.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn relocate(&self, order: RelocateOrder<'_>) -> Result<Relocated, CatalogError> {
        match relocate::foreseen(&order) {
            Foreseen::Refused(refusal) => return Ok(Relocated::Refused(refusal)),
            Foreseen::Done { .. } => {}
            _ => return Ok(Relocated::NothingToDo),
        }
        let (asked, bytes) = (self.asked(&order.query), order.bytes);
        let (from, to) = (order.from.to_owned(), order.query.cwd.to_owned());
        let journal = Arc::clone(&self.moved);
        blocking(move || relocate::relocate(&journal, &asked, &from, bytes, &to)).await
    }

    /// The rows that went along get what stood in them before. Helpers that were in the new folder before stay there.
    ///
    /// # Errors
    /// As [`relocate`](Self::relocate).
    ///
    /// # Cancel safety
    /// As [`relocate`](Self::relocate).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn put_back(&self, order: RelocateOrder<'_>) -> Result<Relocated, CatalogError> {
        let (asked, from) = (self.asked(&order.query), order.from.to_owned());
        let journal = Arc::clone(&self.moved);
        match blocking(move || relocate::put_back(&journal, &asked, &from).transpose()).await? {
            Some(done) => Ok(done),
            // It was another catalog that relocated it.
            None => self.relocate(order).await,
        }
    }

    async fn foresee(&self, order: RelocateOrder<'_>) -> Result<Foreseen, CatalogError> {
        Ok(relocate::foreseen(&order))
    }

    /// Of a session of a state dir, in a state dir: up to before a prompt its messages are copied with their parts, under new
    /// ids. Helpers and lists of things to do stay behind, and so do rules that grant something; those that deny go along.
    ///
    /// # Errors
    /// [`CatalogError`] when it could not be made; nothing is left of it.
    ///
    /// # Cancel safety
    /// A dropped future leaves the work running to its end on the blocking pool.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn branch(&self, order: BranchOrder<'_>) -> Result<Branched, CatalogError> {
        match branch::Job::of(self, &order) {
            Ok(job) => blocking(move || branch::branch(&job)).await,
            Err(refusal) => Ok(Branched::Refused(refusal)),
        }
    }

    /// # Errors
    /// [`CatalogError`] when it is still there.
    ///
    /// # Cancel safety
    /// As [`branch`](Self::branch).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn prune(&self, order: BranchOrder<'_>, made: &Branch) -> Result<(), CatalogError> {
        let Some(job) = branch::Job::prune_of(self, &order, made) else { return Ok(()) };
        let made = made.clone();
        blocking(move || branch::prune(&job, &made)).await
    }

    /// Of a turn that was cut, the calls of tools without a result; where the reply itself was cut, that, under the name
    /// `reply` with the id of its message.
    ///
    /// # Errors
    /// [`CatalogError`] with a [`DatabaseError`] as its cause.
    ///
    /// # Cancel safety
    /// As [`inspect`](Self::inspect).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn restore(&self, id: &NativeId, source: &SessionSource) -> Result<Restored, CatalogError> {
        let (id, source, until) = (id.clone(), source.clone(), Instant::now() + self.reading * READINGS);
        blocking(move || history::restore(&id, &source, until)).await
    }

    /// The sessions of [`list`](Self::list), the one first that was last used, and the last message of each first. A message
    /// with its parts is one record. Sessions of helpers are searched if what they said is asked for. Reading ends as that
    /// of a list does, hits that nobody asks for do not count; no database is kept open while they wait.
    ///
    /// # Errors
    /// [`CatalogError`] where it is not known where sessions lie, or there is nothing to search for.
    ///
    /// # Cancel safety
    /// Nothing is written. A search that is dropped ends with the message that it is at.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn search(&self, query: &SearchQuery) -> Result<Box<dyn Search>, CatalogError> {
        let (env, reading, query) = (self.env.clone(), self.reading, query.clone());
        blocking(move || history::search(&env, reading, query)).await
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

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
