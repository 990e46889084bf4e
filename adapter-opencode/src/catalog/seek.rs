//! The search for one session, over all places where it may lie.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use session_core::error::CatalogError;
use session_core::{Inspection, Presence};

use super::{Asked, READINGS, database, failed, is_missing, tree, unreadable};
use crate::transcript::{Places, Store};

/// Databases of one folder that are looked through.
pub(super) const DATABASES: usize = 2_000;

/// A session, found.
pub(super) struct Found {
    pub(super) store: Store,
    pub(super) look: Inspection,
}

/// Finds the session: where the version looks, or a build of another channel, then where it would look if the file had
/// the right name, then where only another version does.
pub(super) fn find(asked: &Asked) -> Result<Option<Found>, CatalogError> {
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

/// The databases in a folder, in the order of their names.
pub(super) fn databases_in(folder: Option<&Path>) -> Result<Vec<PathBuf>, CatalogError> {
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
pub(super) fn is_of_a_channel(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("opencode-"))
}
