//! Making a branch of a session's file: the lines up to a spot, under another id, in a file of their own; read back, or removed.

mod cut;

use std::fs::{self, Metadata};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use session_core::{
    Branch, BranchOrder, BranchRefusal, Branched, Heir, NativeId, Presence, Refusal, Seed, SessionQuery,
    Spot, TranscriptFormat, Version, Way,
};

use crate::find::{Found, find, open, options};
use crate::inspect::look;
use crate::mend::{create, names, stays_in, sync_folder};
use crate::packed::is_packed;
use crate::parts::header;
use crate::relocate::{Journal, conflict, is_same, owner};
use crate::scan::{READ_LIMIT, scan};
use cut::{copy, end_of};

/// What is told where a file goes on from another one that would not be beside it.
const OF_ANOTHER: &str = "its history begins in a file that the other state dir does not hold";

/// An order that lives as long as the work.
#[derive(Debug)]
pub(crate) struct Order {
    id: NativeId,
    cwd: PathBuf,
    state_dir: Option<PathBuf>,
    version: Option<Version>,
    keep: Spot,
    into: Option<PathBuf>,
    seed: Seed,
}

impl Order {
    pub(crate) fn of(order: &BranchOrder<'_>) -> Self {
        let query = order.query;
        Self {
            id: query.id.clone(),
            cwd: query.cwd.to_owned(),
            state_dir: query.state_dir.map(Path::to_owned),
            version: query.version.cloned(),
            keep: order.keep.clone(),
            into: order.into.map(Path::to_owned),
            seed: Seed { random: order.seed, now: order.now },
        }
    }

    /// Where it is worked, for errors.
    pub(crate) fn place(&self) -> PathBuf {
        self.into.clone().unwrap_or_else(|| self.cwd.clone())
    }

    fn query<'a>(&'a self, id: &'a NativeId, state_dir: Option<&'a Path>) -> SessionQuery<'a> {
        SessionQuery { id, cwd: &self.cwd, state_dir, version: self.version.as_ref() }
    }

    fn original(&self) -> SessionQuery<'_> {
        self.query(&self.id, self.state_dir.as_deref())
    }

    fn branch<'a>(&'a self, id: &'a NativeId) -> SessionQuery<'a> {
        self.query(id, self.into.as_deref())
    }
}

/// What is found before anything is written.
struct Plan {
    /// Where the original lies, how it looked, and up to where it is kept.
    from: PathBuf,
    before: Metadata,
    end: u64,
    /// What the branch is called, and where it goes.
    id: NativeId,
    to: PathBuf,
}

/// Carries out an order. The transcript comes last, in one step: whoever is killed before leaves no session.
pub(crate) fn branch(format: &dyn TranscriptFormat, order: &Order, limit: usize) -> io::Result<Branched> {
    carry_out(format, order, limit, &mut Journal::default())
}

fn carry_out(
    format: &dyn TranscriptFormat,
    order: &Order,
    limit: usize,
    journal: &mut Journal,
) -> io::Result<Branched> {
    let plan = match survey(format, order, limit)? {
        Err(refusal) => return Ok(Branched::Refused(refusal)),
        Ok(plan) => plan,
    };
    let done = write(format, order, &plan, journal).and_then(|refusal| match refusal {
        Some(refusal) => Ok(Err(refusal)),
        None if !is_unchanged(&plan.before, &fs::symlink_metadata(&plan.from)?) => {
            Ok(Err(BranchRefusal::Growing))
        }
        None => verify(format, order, &plan, limit).map(Ok),
    });
    match done {
        Ok(Ok(bytes)) => {
            let turns = order.keep.turns;
            Ok(Branched::Done(Branch { id: plan.id, path: plan.to, turns, bytes: Some(bytes) }))
        }
        Ok(Err(refusal)) => {
            journal.undo()?;
            Ok(Branched::Refused(refusal))
        }
        Err(error) => {
            journal.undo().map_err(|undo| io::Error::other(format!("{error}; undoing it failed: {undo}")))?;
            Err(error)
        }
    }
}

fn survey(
    format: &dyn TranscriptFormat,
    order: &Order,
    limit: usize,
) -> io::Result<Result<Plan, BranchRefusal>> {
    let refused = |refusal| Ok(Err(refusal));
    let unsupported = |why: &str| refused(BranchRefusal::Unsupported(why.to_owned()));
    let (query, keep) = (order.original(), &order.keep);
    let places = format.places(&query);
    if places.exact.is_empty() && places.below.is_empty() {
        return Err(io::Error::other("it is not known where its sessions lie"));
    }
    let found = find(format, &query, &places, limit).map_err(|error| io::Error::other(error.source))?;
    let (from, file) = match found {
        Found::Nothing => return refused(BranchRefusal::Missing),
        Found::Unusable(_) => return refused(BranchRefusal::NotPlain),
        Found::File(path, file) => (path, file),
    };
    let before = fs::symlink_metadata(&from)?;
    let name = from.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let leads_out = order.state_dir.as_ref().is_some_and(|dir| stays_in(&from, dir).is_err());
    if !before.is_file() || names(&before) > 1 || leads_out || format.is_packed(name) || is_packed(&from)? {
        return refused(BranchRefusal::NotPlain);
    }
    if let Some(pid) = owner(format, order.state_dir.as_deref(), &order.id) {
        return refused(BranchRefusal::Live { pid: Some(pid) });
    }
    let end = if keep.native_id == order.id { end_of(format, &file, keep)? } else { None };
    let Some(end) = end else { return refused(BranchRefusal::SpotGone) };
    if order.into != order.state_dir {
        let header = header(&from, order.state_dir.as_deref())?;
        if header.is_some_and(|header| format.base(&header).is_some()) {
            return unsupported(OF_ANOTHER);
        }
    }
    let id = format.new_id(&order.seed);
    let to = id.as_ref().and_then(|id| format.new_path(&order.branch(id), &order.seed));
    let (Some(id), Some(to)) = (id, to) else {
        return unsupported("its sessions cannot be branched from here");
    };
    Ok(Ok(Plan { from, before, end, id, to }))
}

/// Writes what goes beside it, then the branch. What is refused was not touched.
fn write(
    format: &dyn TranscriptFormat,
    order: &Order,
    plan: &Plan,
    journal: &mut Journal,
) -> io::Result<Option<BranchRefusal>> {
    let (from, to) = (plan.from.as_path(), plan.to.as_path());
    if let Some(into) = &order.into {
        make(into, journal)?;
        stays_in(to, into)?;
    }
    let heirlooms: Vec<_> =
        format.heirlooms(from, to).into_iter().filter(|(from, _)| from.symlink_metadata().is_ok()).collect();
    for (from, to) in &heirlooms {
        let leads_out =
            |path: &Path, dir: &Option<PathBuf>| dir.as_ref().is_some_and(|dir| stays_in(path, dir).is_err());
        if leads_out(from, &order.state_dir) || leads_out(to, &order.into) {
            return Ok(Some(BranchRefusal::NotPlain));
        }
        match conflict(Way::Copy, from, to)? {
            None => {}
            Some(Refusal::NotPlain) => return Ok(Some(BranchRefusal::NotPlain)),
            Some(_) => return Err(io::Error::other("something stands where its belongings go")),
        }
    }
    for (from, to) in &heirlooms {
        make(folder_of(to)?, journal)?;
        journal.copy_tree(from, to)?;
    }
    let folder = folder_of(to)?;
    make(folder, journal)?;
    // It is readable to its owner alone.
    let mut file = tempfile::Builder::new().prefix(".branch-").tempfile_in(folder)?;
    let mut out = BufWriter::new(file.as_file_mut());
    let original = options().open(from)?;
    copy(format, original.take(plan.end), &mut out, &Heir { from: &order.id, to: &plan.id })?;
    out.flush()?;
    drop(out);
    file.as_file().sync_all()?;
    journal.put(file, to)?;
    sync_folder(folder)?;
    Ok(None)
}

/// Reads back what was made, and says how large it is.
fn verify(format: &dyn TranscriptFormat, order: &Order, plan: &Plan, limit: usize) -> io::Result<u64> {
    let query = order.branch(&plan.id);
    let found = find(format, &query, &format.places(&query), limit);
    let look = found.and_then(|found| look(format, found)).map_err(|error| io::Error::other(error.source))?;
    if look.path.as_ref() != Some(&plan.to) {
        return Err(io::Error::other("it is not found where it was put"));
    }
    if look.presence != Presence::Present || look.user_turns != order.keep.turns {
        return Err(io::Error::other("what is there is not what was to be kept"));
    }
    Ok(look.bytes)
}

/// Removes a branch that is as it was made.
pub(crate) fn prune(format: &dyn TranscriptFormat, order: &Order, branch: &Branch) -> io::Result<()> {
    let path = branch.path.as_path();
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if let Some(dir) = &order.into {
        stays_in(path, dir)?;
    }
    let looks_so = metadata.is_file() && names(&metadata) == 1 && Some(metadata.len()) == branch.bytes;
    let turns = match open(path, order.into.as_deref()) {
        Ok(Found::File(_, file)) if looks_so => Some(scan(format, file.take(READ_LIMIT))?.user_turns),
        _ => None,
    };
    if turns != Some(branch.turns) {
        return Err(io::Error::other("it is not as it was made: somebody went on with it"));
    }
    fs::remove_file(path)?;
    sync_folder(folder_of(path)?)?;
    for (_, beside) in format.heirlooms(path, path) {
        match fs::symlink_metadata(&beside) {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&beside)?,
            Ok(_) => fs::remove_file(&beside)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::other("a file without a folder"))
}

/// Makes a folder, and those above it that are missing.
fn make(folder: &Path, journal: &mut Journal) -> io::Result<()> {
    let missing: Vec<_> = folder.ancestors().take_while(|folder| !folder.is_dir()).collect();
    for folder in missing.into_iter().rev() {
        create(folder)?;
        journal.made_folder(folder)?;
    }
    Ok(())
}

/// Whether nobody wrote to it, as far as the system tells.
fn is_unchanged(before: &Metadata, after: &Metadata) -> bool {
    is_same(before, after) && before.len() == after.len() && before.modified().ok() == after.modified().ok()
}

#[cfg(test)]
#[path = "branch_tests.rs"]
mod tests;
