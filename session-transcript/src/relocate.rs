//! Moving and copying a session's file with what belongs to it: done whole, read back, or undone.

mod live;
mod steps;

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use session_core::{
    Foreseen, NativeId, Refusal, RelocateOrder, Relocated, SessionQuery, TranscriptFormat, Version, Way,
};

use crate::find::{Found, find, options};
use crate::mend::{create, names, stays_in, sync_folder};
use crate::scan::{READ_LIMIT, scan};
pub(crate) use live::owner;
pub(crate) use steps::{Journal, conflict};

/// An order that lives as long as the work.
#[derive(Debug)]
pub(crate) struct Order {
    id: NativeId,
    cwd: PathBuf,
    state_dir: Option<PathBuf>,
    version: Option<Version>,
    pub(crate) from: PathBuf,
    bytes: u64,
    way: Way,
}

impl Order {
    pub(crate) fn of(order: &RelocateOrder<'_>) -> Self {
        let query = order.query;
        Self {
            id: query.id.clone(),
            cwd: query.cwd.to_owned(),
            state_dir: query.state_dir.map(Path::to_owned),
            version: query.version.cloned(),
            from: order.from.to_owned(),
            bytes: order.bytes,
            way: order.way,
        }
    }

    fn query(&self) -> SessionQuery<'_> {
        SessionQuery {
            id: &self.id,
            cwd: &self.cwd,
            state_dir: self.state_dir.as_deref(),
            version: self.version.as_ref(),
        }
    }
}

/// What an order would come to. Nothing is changed.
pub(crate) fn foresee(format: &dyn TranscriptFormat, order: &Order) -> io::Result<Foreseen> {
    let target = match survey(format, order)? {
        Survey::Ends(Relocated::Already { path }) => return Ok(Foreseen::Already { path }),
        Survey::Ends(Relocated::Refused(refusal)) => return Ok(Foreseen::Refused(refusal)),
        Survey::Ends(_) => return Ok(Foreseen::NothingToDo),
        Survey::Goes(target) => target,
    };
    for (from, to) in belongings(format, order, &target)? {
        if let Some(refusal) = steps::conflict(order.way, &from, &to)? {
            return Ok(Foreseen::Refused(refusal));
        }
    }
    Ok(Foreseen::Done { way: order.way })
}

/// What is found before anything is changed.
enum Survey {
    /// There is nothing to be done, or it is refused.
    Ends(Relocated),
    /// It can be put there.
    Goes(PathBuf),
}

fn survey(format: &dyn TranscriptFormat, order: &Order) -> io::Result<Survey> {
    let (query, from) = (order.query(), order.from.as_path());
    let places = format.places(&query);
    let Some(target) = places.exact.first() else {
        return if places.below.is_empty() {
            Err(io::Error::other("it is not known where its sessions lie"))
        } else {
            // The place of its sessions does not depend on the folder.
            Ok(Survey::Ends(Relocated::NothingToDo))
        };
    };
    if order.way == Way::Nothing || from == target {
        return Ok(Survey::Ends(Relocated::NothingToDo));
    }
    if let Some(refusal) = obstacle(format, order, target)? {
        return Ok(Survey::Ends(Relocated::Refused(refusal)));
    }
    let before = fs::symlink_metadata(from)?;
    let Ok(there) = fs::symlink_metadata(target) else { return Ok(Survey::Goes(target.clone())) };
    let equal = is_same(&before, &there)
        || there.is_file() && there.len() == before.len() && same_bytes(from, target)?;
    Ok(Survey::Ends(match equal {
        true => Relocated::Already { path: target.clone() },
        false => Relocated::Refused(Refusal::TargetDiffers { path: target.clone() }),
    }))
}

/// Carries out an order. The transcript goes last, in one step: whoever is killed before leaves the session at its old
/// place, and the next try goes on.
pub(crate) fn relocate(format: &dyn TranscriptFormat, order: &Order, limit: usize) -> io::Result<Relocated> {
    carry_out(format, order, limit, &mut Journal::default())
}

fn carry_out(
    format: &dyn TranscriptFormat,
    order: &Order,
    limit: usize,
    journal: &mut Journal,
) -> io::Result<Relocated> {
    let from = order.from.as_path();
    let target = match survey(format, order)? {
        Survey::Ends(end) => {
            if let Relocated::Already { path } = &end {
                end_earlier_move(order, path)?;
            }
            return Ok(end);
        }
        Survey::Goes(target) => target,
    };
    let target = target.as_path();
    let before = fs::symlink_metadata(from)?;
    let records = records_in(format, from)?;
    let done = act(format, order, target, journal).and_then(|refusal| match refusal {
        Some(refusal) => Ok(Err(refusal)),
        None => verify(format, order, target, &before, records, limit),
    });
    match done {
        Ok(Ok(())) => {
            let split = order.way == Way::Move && fs::symlink_metadata(from).is_ok();
            let shared = format.shared(from).into_iter();
            let left = shared.filter(|path| path.symlink_metadata().is_ok()).collect();
            let (from, to, way) = (from.to_owned(), target.to_owned(), order.way);
            Ok(Relocated::Done { from, to, way, records, left, split })
        }
        Ok(Err(refusal)) => {
            journal.undo()?;
            Ok(Relocated::Refused(refusal))
        }
        Err(error) => {
            journal.undo().map_err(|undo| io::Error::other(format!("{error}; undoing it failed: {undo}")))?;
            Err(error)
        }
    }
}

/// An earlier move was killed between two names of one file: it is to have the new one alone.
fn end_earlier_move(order: &Order, target: &Path) -> io::Result<()> {
    let (before, there) = (fs::symlink_metadata(&order.from)?, fs::symlink_metadata(target)?);
    let is_one = is_same(&before, &there) && order.way == Way::Move && names(&before) > 1;
    if is_one && !is_one_name(&order.from, target)? { fs::remove_file(&order.from) } else { Ok(()) }
}

/// What goes with the file, and where to.
fn belongings(
    format: &dyn TranscriptFormat,
    order: &Order,
    target: &Path,
) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let folder = target.parent().ok_or_else(|| io::Error::other("a file without a folder"))?;
    let there = format.belongings(&order.from).into_iter().filter(|path| path.symlink_metadata().is_ok());
    let beside = |path: PathBuf| {
        let to = folder.join(path.file_name()?);
        Some((path, to))
    };
    Ok(there.filter_map(beside).collect())
}

/// What stands against it, before anything was changed.
fn obstacle(format: &dyn TranscriptFormat, order: &Order, target: &Path) -> io::Result<Option<Refusal>> {
    let from = order.from.as_path();
    let name = from.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if format.is_packed(name) {
        return Ok(Some(Refusal::Packed));
    }
    let before = fs::symlink_metadata(from)?;
    if !before.is_file()
        || names(&before) > 1 && !fs::symlink_metadata(target).is_ok_and(|t| is_same(&before, &t))
    {
        return Ok(Some(Refusal::NotPlain));
    }
    if let Some(dir) = &order.state_dir {
        for path in [from, target] {
            if stays_in(path, dir).is_err() {
                return Ok(Some(Refusal::NotPlain));
            }
        }
    }
    if let Some(pid) = owner(format, order.state_dir.as_deref(), &order.id) {
        return Ok(Some(Refusal::Live { pid }));
    }
    Ok((before.len() != order.bytes).then_some(Refusal::Growing))
}

/// Does it. What is refused was not touched.
fn act(
    format: &dyn TranscriptFormat,
    order: &Order,
    target: &Path,
    journal: &mut Journal,
) -> io::Result<Option<Refusal>> {
    let folder = target.parent().ok_or_else(|| io::Error::other("a file without a folder"))?;
    let belongings = belongings(format, order, target)?;
    for (from, to) in &belongings {
        if let Some(refusal) = steps::conflict(order.way, from, to)? {
            return Ok(Some(refusal));
        }
    }
    if !folder.is_dir() {
        create(folder)?;
        journal.made_folder(folder)?;
    }
    for (from, to) in &belongings {
        match order.way {
            Way::Copy => journal.copy_tree(from, to)?,
            _ => journal.move_tree(from, to)?,
        }
    }
    match order.way {
        Way::Copy => journal.copy_file(&order.from, target)?,
        _ => journal.rename(&order.from, target)?,
    }
    sync_folder(folder)?;
    Ok(None)
}

/// Reads back what was done.
fn verify(
    format: &dyn TranscriptFormat,
    order: &Order,
    target: &Path,
    before: &Metadata,
    records: u64,
    limit: usize,
) -> io::Result<Result<(), Refusal>> {
    let after = fs::symlink_metadata(target)?;
    if after.len() != before.len() {
        return Ok(Err(Refusal::Growing));
    }
    let same = match order.way {
        // The file itself, under another name.
        Way::Move => is_same(before, &after),
        _ => same_bytes(&order.from, target)?,
    };
    if !same || records_in(format, target)? != records {
        return Err(io::Error::other("what is there is not what was relocated"));
    }
    let query = order.query();
    let found = find(format, &query, &format.places(&query), limit);
    match found.map_err(|error| io::Error::other(error.source))? {
        Found::File(path, _) if path == target => Ok(Ok(())),
        _ => Err(io::Error::other("it is not found where it was put")),
    }
}

/// Whether both paths lead to one entry of one folder, as through a link to a folder: then there is no second name to
/// remove, and nothing left of the file without it.
fn is_one_name(one: &Path, other: &Path) -> io::Result<bool> {
    let folder = |path: &Path| path.parent().map(Path::canonicalize).transpose();
    Ok(one.file_name() == other.file_name() && folder(one)? == folder(other)?)
}

fn records_in(format: &dyn TranscriptFormat, path: &Path) -> io::Result<u64> {
    Ok(scan(format, options().open(path)?.take(READ_LIMIT))?.records)
}

fn same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    same(&mut options().open(one)?, &mut options().open(other)?)
}

/// Whether both hold the same from here to their ends.
pub(crate) fn same(one: &mut impl Read, other: &mut impl Read) -> io::Result<bool> {
    let (mut here, mut there) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let count = fill(one, &mut here)?;
        if fill(other, &mut there)? != count || here[..count] != there[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
    }
}

fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

#[cfg(unix)]
pub(crate) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// There is no number to compare.
#[cfg(not(unix))]
pub(crate) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.len() == other.len() && one.modified().ok() == other.modified().ok()
}

#[cfg(test)]
#[path = "relocate_tests.rs"]
mod tests;
