//! Makes branches of sessions of state dirs: copies of a session's rows, or of its files, up to a prompt, under new ids. A
//! session that has a database of its own gets another one. What is read is never written to, but where it is to hold the
//! branch, too.

mod files;
mod ids;
mod rows;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use session_core::error::CatalogError;
use session_core::{
    Branch, BranchOrder, BranchRefusal, Branched, Inspection, NativeId, Presence, Seed, SessionQuery, Spot,
};

use super::connect::{Way, beside, connect};
use super::database::Ailment;
use super::history::DatabaseError;
use super::open::{Folder, Opened};
use super::place::sync_folder_of;
use super::reading::{Stamp, read};
use super::relocate::alone;
use super::{Asked, Found, OpencodeCatalog, failed, find, is_missing};
use crate::state::{Family, database_of};
use crate::transcript::Store;
use rows::{Copied, Copying, copy, keep_alone};

/// Why no session of the user's own is branched from here: others have that database open, too.
const NOT_FROM_HERE: &str = "the user's own sessions of opencode are rows of one database, in which its own program alone \
    makes new ones: `opencode run --session … --fork`";
const NOT_READ: &str = "this version of opencode does not read it where it lies";
const OTHER_TABLES: &str = "the database of the other state dir is one of another version of opencode";
const MOVED_ON: &str = "what was made is not there as it was made: somebody went on with it";

/// An order that lives as long as the work.
pub(super) struct Job {
    /// The original, and the branch.
    from: Asked,
    to: Asked,
    into: PathBuf,
    keep: Spot,
    seed: Seed,
}

impl Job {
    /// What an order comes to before anything is looked at, or the work to do.
    pub(super) fn of(catalog: &OpencodeCatalog, order: &BranchOrder<'_>) -> Result<Self, BranchRefusal> {
        let query = order.query;
        let (Some(_), Some(into)) = (query.state_dir, order.into) else {
            return Err(BranchRefusal::Unsupported(NOT_FROM_HERE.to_owned()));
        };
        let seed = Seed { random: order.seed, now: order.now };
        let id = ids::session(&seed);
        let to = catalog.asked(&SessionQuery { id: &id, state_dir: Some(into), ..query });
        Ok(Self { from: catalog.asked(&query), to, into: into.to_owned(), keep: order.keep.clone(), seed })
    }

    /// The same, for a branch that was made.
    pub(super) fn prune_of(
        catalog: &OpencodeCatalog,
        order: &BranchOrder<'_>,
        branch: &Branch,
    ) -> Option<Self> {
        let mut job = Self::of(catalog, order).ok()?;
        job.to = catalog.asked(&SessionQuery { id: &branch.id, state_dir: order.into, ..order.query });
        Some(job)
    }

    fn copying(&self) -> Copying<'_> {
        Copying { from: &self.from.id, to: &self.to.id, turns: self.keep.turns, seed: &self.seed }
    }
}

fn refused(refusal: BranchRefusal) -> Result<Branched, CatalogError> {
    Ok(Branched::Refused(refusal))
}

fn unsupported(why: &str) -> Result<Branched, CatalogError> {
    refused(BranchRefusal::Unsupported(why.to_owned()))
}

/// Carries out an order. What was made is read back, and removed where that fails.
pub(super) fn branch(job: &Job) -> Result<Branched, CatalogError> {
    let Some(Found { store, look }) = find(&job.from)? else { return refused(BranchRefusal::Missing) };
    match look.presence {
        Presence::Missing => return refused(BranchRefusal::Missing),
        Presence::Unreadable => return unsupported(NOT_READ),
        Presence::Present | Presence::Empty | Presence::Damaged => {}
    }
    let keep = &job.keep;
    if keep.native_id != job.from.id || keep.turns == 0 || keep.turns > look.user_turns {
        return refused(BranchRefusal::SpotGone);
    }
    let done = match (&store, Family::of(job.from.version.as_ref())) {
        (Store::Tree(root), Family::Files) => files::branch(job, root)?,
        (Store::Tree(_), _) | (Store::Database(_), Family::Files) => return unsupported(NOT_READ),
        (Store::Database(path), Family::PerSession) => anew(job, path, &database_of(&job.into, &job.to.id))?,
        (Store::Database(path), Family::Shared) if job.from.state == job.to.state => within(job, path)?,
        (Store::Database(path), Family::Shared) => {
            let target = job.into.join("opencode").join("opencode.db");
            match target.symlink_metadata() {
                Ok(metadata) if metadata.len() > 0 => over(job, path, &target)?,
                _ => anew(job, path, &target)?,
            }
        }
    };
    let path = match done {
        Ok(path) => path,
        Err(refusal) => return refused(refusal),
    };
    match find(&job.to) {
        Ok(Some(found)) if is_as_made(&found.look, keep.turns) => {
            let branch = Branch { id: job.to.id.clone(), path, turns: keep.turns, bytes: None };
            Ok(Branched::Done(branch))
        }
        other => {
            let error = other.err().unwrap_or_else(|| failed(&path, "it was not found as it was made"));
            Err(match remove(job, &path) {
                Ok(()) => error,
                Err(_) => failed(&path, format!("{}; it could not be removed", error.source)),
            })
        }
    }
}

fn is_as_made(look: &Inspection, turns: u64) -> bool {
    look.presence == Presence::Present && !look.misplaced && look.user_turns == turns
}

type Made = Result<PathBuf, BranchRefusal>;

fn judged(copied: &Copied) -> Option<BranchRefusal> {
    Some(match copied {
        Copied::Done => return None,
        Copied::Missing => BranchRefusal::Missing,
        Copied::SpotGone => BranchRefusal::SpotGone,
        Copied::OtherTables => BranchRefusal::Unsupported(OTHER_TABLES.to_owned()),
    })
}

/// A copy of a database, which is removed if nobody wants it.
struct Copy {
    path: PathBuf,
    wanted: bool,
}

impl Drop for Copy {
    fn drop(&mut self) {
        if !self.wanted {
            for suffix in ["", "-journal", "-wal", "-shm"] {
                let _ = std::fs::remove_file(beside(&self.path, suffix));
            }
        }
    }
}

/// Copies a database as it is in one moment. `None`: somebody wrote to it meanwhile.
fn copied(job: &Job, path: &Path, folder: &Path) -> Result<Option<Copy>, CatalogError> {
    let stamps = || {
        let log = beside(path, "-wal");
        let log =
            log.symlink_metadata().is_ok_and(|metadata| metadata.len() > 0).then(|| Stamp::of_log(&log));
        Ok::<_, Ailment>((Stamp::of(path)?, log.transpose()?))
    };
    let copy = Copy { path: folder.join(format!(".branch-{}", job.to.id)), wanted: false };
    let ailing = |error: DatabaseError| failed(path, error);
    let before = stamps().map_err(|error| ailing(error.into()))?;
    let done = read(path, job.from.state.as_deref(), job.from.until(), |connection| -> Result<(), Ailment> {
        if !connection.is_autocommit() {
            // It has a view of its own.
            connection.execute_batch("COMMIT")?;
        }
        empty_file(&copy.path)?;
        let name = copy.path.to_str().ok_or(Ailment::Denied)?;
        connection.execute("VACUUM INTO ?1", [name])?;
        Ok(())
    });
    if done.map_err(|error| ailing(error.into()))?.is_none() {
        return Err(failed(path, DatabaseError::SessionGone));
    }
    let after = stamps().map_err(|error| ailing(error.into()))?;
    Ok((before == after).then_some(copy))
}

/// A new file that is readable to its owner alone.
fn empty_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if !is_missing(&error) => return Err(error),
        _ => {}
    }
    files::options().open(path).map(drop)
}

/// Opens a copy to change it; whoever is killed then leaves nothing that anybody reads.
fn open_copy(path: &Path, until: Instant) -> Result<Connection, Ailment> {
    // A folder above may be a link of the user's, and SQLite is not to follow any.
    let real = path.canonicalize()?;
    let connection = connect(&real, Way::Writing, until)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    let _mode: String = connection.query_row("PRAGMA journal_mode = MEMORY", [], |row| row.get(0))?;
    Ok(connection)
}

/// Makes a database that holds the branch alone.
fn anew(job: &Job, path: &Path, target: &Path) -> Result<Made, CatalogError> {
    let folder = target.parent().unwrap_or(&job.into);
    if !files::make_folder(&job.into, folder).map_err(|error| failed(folder, error))? {
        return Ok(Err(BranchRefusal::NotPlain));
    }
    let Some(mut made) = copied(job, path, folder)? else { return Ok(Err(BranchRefusal::Growing)) };
    let fill = || -> Result<Option<BranchRefusal>, Ailment> {
        let connection = open_copy(&made.path, job.to.until())?;
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Exclusive)?;
        if let Some(refusal) = judged(&copy(&connection, &connection, &job.copying())?) {
            return Ok(Some(refusal));
        }
        keep_alone(&connection, &job.to.id)?;
        transaction.commit()?;
        // What was taken out is not to lie in free pages.
        connection.execute_batch("VACUUM")?;
        Ok(None)
    };
    if let Some(refusal) = fill().map_err(|error| failed(&made.path, DatabaseError::from(error)))? {
        return Ok(Err(refusal));
    }
    let put = || -> io::Result<()> {
        files::sync(&made.path)?;
        if target.symlink_metadata().is_ok_and(|metadata| metadata.len() > 0) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        std::fs::rename(&made.path, target)?;
        sync_folder_of(target)
    };
    put().map_err(|error| failed(target, error))?;
    made.wanted = true;
    Ok(Ok(target.to_owned()))
}

/// Adds the branch to the database of the original, where nobody else has that open.
fn within(job: &Job, path: &Path) -> Result<Made, CatalogError> {
    add(job, path, |target| copy(target, target, &job.copying()))
}

/// Adds the branch to another database, which others of the state dir lie in.
fn over(job: &Job, path: &Path, target: &Path) -> Result<Made, CatalogError> {
    let folder = target.parent().unwrap_or(&job.into);
    if !files::make_folder(&job.into, folder).map_err(|error| failed(folder, error))? {
        return Ok(Err(BranchRefusal::NotPlain));
    }
    let Some(made) = copied(job, path, folder)? else { return Ok(Err(BranchRefusal::Growing)) };
    let source = open_copy(&made.path, job.from.until());
    let source = source.map_err(|error| failed(&made.path, DatabaseError::from(error)))?;
    add(job, target, |target| copy(&source, target, &job.copying()))
}

fn add(
    job: &Job,
    path: &Path,
    work: impl FnOnce(&Connection) -> Result<Copied, Ailment>,
) -> Result<Made, CatalogError> {
    let done = alone(&job.to, path, |connection| {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Exclusive)?;
        let refusal = judged(&work(connection)?);
        if refusal.is_none() {
            transaction.commit()?;
        }
        Ok(refusal)
    })?;
    Ok(match done {
        None => Err(BranchRefusal::Live { pid: None }),
        Some(Some(refusal)) => Err(refusal),
        Some(None) => Ok(path.to_owned()),
    })
}

/// Removes a branch that is as it was made.
pub(super) fn prune(job: &Job, branch: &Branch) -> Result<(), CatalogError> {
    let Some(found) = find(&job.to)? else { return Ok(()) };
    match found.look {
        look if look.presence == Presence::Missing => Ok(()),
        look if is_as_made(&look, branch.turns) => remove(job, &branch.path),
        _ => Err(failed(&branch.path, MOVED_ON)),
    }
}

fn remove(job: &Job, path: &Path) -> Result<(), CatalogError> {
    let id: &NativeId = &job.to.id;
    if Family::of(job.to.version.as_ref()) == Family::Files {
        return files::remove(job).map_err(|error| failed(path, error));
    }
    let removed = alone(&job.to, path, |connection| {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Exclusive)?;
        rows::remove(connection, id)?;
        Ok(transaction.commit()?)
    })?;
    if removed.is_none() {
        return Err(failed(path, DatabaseError::Busy));
    }
    if path == database_of(&job.into, id) {
        for suffix in ["-wal", "-shm", ""] {
            match std::fs::remove_file(beside(path, suffix)) {
                Err(error) if !is_missing(&error) => return Err(failed(path, error)),
                _ => {}
            }
        }
        sync_folder_of(path).map_err(|error| failed(path, error))?;
    }
    Ok(())
}

/// The rules that deny something. What was granted stays behind.
fn denied(rules: &[u8]) -> Option<serde_json::Value> {
    let mut rules: Vec<serde_json::Value> = serde_json::from_slice(rules).ok()?;
    rules.retain(|rule| rule.get("action").and_then(|action| action.as_str()) == Some("deny"));
    (!rules.is_empty()).then(|| rules.into())
}

fn opened<T>(opened: Opened<T>) -> Option<T> {
    match opened {
        Opened::There(there) => Some(there),
        Opened::Nothing | Opened::Unusable => None,
    }
}

/// A folder below the state dir, with no link on the way.
fn folder_in(into: &Path, below: &Path) -> io::Result<Option<Folder>> {
    Folder::open(into, below).map(opened)
}
