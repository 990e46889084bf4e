//! The files of a branch, in the tree of 1.1: the parts first and the session's own file last, so that whoever is killed
//! before leaves no session.

#![expect(clippy::disallowed_types, reason = "this room does I/O, on the pool for blocking work")]

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use session_core::error::CatalogError;
use session_core::{BranchRefusal, RecordKind};

use super::super::ROWS;
use super::super::open::Folder;
use super::super::tree::FILE_LIMIT;
use super::ids::Ids;
use super::{Job, Made, denied, failed, folder_in, is_missing, opened, sync_folder_of};
use crate::transcript::Message;

/// Fields of a session that do not go with a branch.
const LEFT_OUT: &[&str] = &["parentID", "share", "revert", "summary", "permission"];

/// A message that is kept: its name, and those of its parts.
struct Kept {
    name: String,
    parts: Vec<String>,
}

pub(super) fn branch(job: &Job, root: &Path) -> Result<Made, CatalogError> {
    copy(job, root).map_err(|error| failed(root, error))
}

fn copy(job: &Job, root: &Path) -> io::Result<Made> {
    let state = job.from.state.as_deref().unwrap_or(root);
    let below = root.strip_prefix(state).map_err(io::Error::other)?;
    let Some(storage) = folder_in(state, below)? else { return Ok(Err(BranchRefusal::NotPlain)) };
    let Some((project, session)) = own(&storage, job)? else { return Ok(Err(BranchRefusal::Missing)) };
    let end = session.pointer("/revert/messageID").and_then(Value::as_str);
    let Some(kept) = kept(&storage, job, end)? else { return Ok(Err(BranchRefusal::SpotGone)) };
    let target = tree_of(job);
    let mut writing = Writing { into: &job.into, made: Vec::new(), done: false };
    let folder = |names: &[&str]| names.iter().fold(target.clone(), |path, name| path.join(name));
    // Without it, the agent takes the tree for one of an older version.
    let migration = folder(&["migration"]);
    if migration.symlink_metadata().is_err()
        && let Some(data) = opened(storage.read("migration", FILE_LIMIT)?)
        && !writing.put(&migration, &data)?
    {
        return Ok(Err(BranchRefusal::NotPlain));
    }
    let to = job.to.id.as_str();
    let parts: usize = kept.iter().map(|message| message.parts.len()).sum();
    let mut ids = Ids::before_now(&job.seed, (kept.len() + parts) as u64);
    let mut known = HashMap::new();
    let own_messages = folder_of(&storage, &["message", job.from.id.as_str()])?;
    for message in &kept {
        let new = ids.next("msg");
        let Some(mut data) =
            own_messages.as_ref().map(|from| json(from, &message.name)).transpose()?.flatten()
        else {
            return Ok(Err(BranchRefusal::SpotGone));
        };
        let of_it = folder_of(&storage, &["part", &message.name])?;
        for name in &message.parts {
            let id = ids.next("prt");
            let Some(mut part) = of_it.as_ref().map(|from| json(from, name)).transpose()?.flatten() else {
                return Ok(Err(BranchRefusal::SpotGone));
            };
            for (field, value) in [("id", id.as_str()), ("sessionID", to), ("messageID", &new)] {
                part[field] = value.into();
            }
            if !writing.put(&folder(&["part", &new, &format!("{id}.json")]), part.to_string().as_bytes())? {
                return Ok(Err(BranchRefusal::NotPlain));
            }
        }
        data["id"] = new.as_str().into();
        data["sessionID"] = to.into();
        if let Some(parent) = data.get("parentID").and_then(Value::as_str).and_then(|id| known.get(id)) {
            data["parentID"] = Value::clone(parent);
        }
        known.insert(message.name.clone(), Value::from(new.as_str()));
        if !writing.put(&folder(&["message", to, &format!("{new}.json")]), data.to_string().as_bytes())? {
            return Ok(Err(BranchRefusal::NotPlain));
        }
    }
    let path = folder(&["session", &project, &format!("{to}.json")]);
    if !writing.put(&path, own_file(session, job).to_string().as_bytes())? {
        return Ok(Err(BranchRefusal::NotPlain));
    }
    writing.done = true;
    Ok(Ok(path))
}

fn tree_of(job: &Job) -> PathBuf {
    job.into.join("opencode").join("storage")
}

/// The session's own file, as the branch has it.
fn own_file(mut session: Value, job: &Job) -> Value {
    let denied = session.get("permission").and_then(|rules| denied(rules.to_string().as_bytes()));
    if let Some(fields) = session.as_object_mut() {
        for field in LEFT_OUT {
            fields.remove(*field);
        }
        if let Some(denied) = denied {
            fields.insert("permission".to_owned(), denied);
        }
        let now = job.seed.now.as_millis();
        fields.insert("id".to_owned(), job.to.id.as_str().into());
        fields.insert("time".to_owned(), serde_json::json!({ "created": now, "updated": now }));
    }
    session
}

fn folder_of(storage: &Folder, names: &[&str]) -> io::Result<Option<Folder>> {
    let mut names = names.iter();
    let Some(first) = names.next() else { return Ok(None) };
    let mut folder = opened(storage.folder(first)?);
    for name in names {
        let Some(outer) = folder else { return Ok(None) };
        folder = opened(outer.folder(name)?);
    }
    Ok(folder)
}

fn json(folder: &Folder, name: &str) -> io::Result<Option<Value>> {
    let data = opened(folder.read(&format!("{name}.json"), FILE_LIMIT)?);
    Ok(data.and_then(|data| serde_json::from_slice(&data).ok()).filter(Value::is_object))
}

/// The session's own file, and the project that it is filed under.
fn own(storage: &Folder, job: &Job) -> io::Result<Option<(String, Value)>> {
    let Some(sessions) = opened(storage.folder("session")?) else { return Ok(None) };
    for project in sessions.names("", most())?.into_iter().rev() {
        let Some(folder) = opened(sessions.folder(&project)?) else { continue };
        if let Some(session) = json(&folder, job.from.id.as_str())? {
            return Ok(Some((project, session)));
        }
    }
    Ok(None)
}

/// The messages that are kept, oldest first. `None`: it does not hold so many turns.
fn kept(storage: &Folder, job: &Job, end: Option<&str>) -> io::Result<Option<Vec<Kept>>> {
    let Some(messages) = folder_of(storage, &["message", job.from.id.as_str()])? else { return Ok(None) };
    let names = messages.names(".json", most())?;
    let (mut kept, mut turns) = (Vec::new(), 0);
    for name in names.into_iter().filter(|name| end.is_none_or(|end| name.as_str() < end)) {
        let parts = match folder_of(storage, &["part", &name])? {
            Some(folder) => folder.names(".json", most())?,
            None => Vec::new(),
        };
        let data = opened(messages.read(&format!("{name}.json"), FILE_LIMIT)?);
        let kind = data.and_then(|data| Message::read(&data)).and_then(|message| message.kind());
        if kind == Some(RecordKind::Prompt) && !parts.is_empty() {
            turns += 1;
            if turns > job.keep.turns {
                return Ok(Some(kept));
            }
        }
        kept.push(Kept { name, parts });
    }
    Ok((turns == job.keep.turns).then_some(kept))
}

fn most() -> usize {
    usize::try_from(ROWS).unwrap_or(usize::MAX)
}

/// Files that are written, and removed again if not all are.
struct Writing<'a> {
    into: &'a Path,
    made: Vec<PathBuf>,
    done: bool,
}

impl Writing<'_> {
    /// Writes a file whole. `false`: something else than a folder is on the way.
    fn put(&mut self, path: &Path, data: &[u8]) -> io::Result<bool> {
        let folder = path.parent().unwrap_or(self.into);
        if !make_folder(self.into, folder)? {
            return Ok(false);
        }
        let draft = folder.join(".branch");
        match std::fs::remove_file(&draft) {
            Err(error) if !is_missing(&error) => return Err(error),
            _ => {}
        }
        let mut file = options().open(&draft)?;
        file.write_all(data)?;
        file.sync_all()?;
        std::fs::rename(&draft, path)?;
        self.made.push(path.to_owned());
        sync_folder_of(path)?;
        Ok(true)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if !self.done {
            for path in self.made.iter().rev() {
                let _ = std::fs::remove_file(path);
                // What others put something into stays.
                let _ = path.parent().map(std::fs::remove_dir);
            }
        }
    }
}

/// Removes the files of the branch: its own first, so that it is none any more.
pub(super) fn remove(job: &Job) -> io::Result<()> {
    let (target, id) = (tree_of(job), job.to.id.as_str());
    let Some(storage) = folder_in(&job.into, Path::new("opencode/storage"))? else { return Ok(()) };
    if let Some(sessions) = opened(storage.folder("session")?) {
        for project in sessions.names("", most())? {
            if opened(sessions.folder(&project)?).is_some() {
                gone(std::fs::remove_file(target.join("session").join(project).join(format!("{id}.json"))))?;
            }
        }
    }
    let Some(messages) = folder_of(&storage, &["message", id])? else { return Ok(()) };
    for name in messages.names(".json", most())? {
        if folder_of(&storage, &["part", &name])?.is_some() {
            gone(std::fs::remove_dir_all(target.join("part").join(name)))?;
        }
    }
    gone(std::fs::remove_dir_all(target.join("message").join(id)))
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Makes a folder of the state dir, where it is missing. `false`: a link, or something else, is on the way.
pub(super) fn make_folder(into: &Path, folder: &Path) -> io::Result<bool> {
    let below = folder.strip_prefix(into).map_err(io::Error::other)?;
    make(into)?;
    let mut path = into.to_owned();
    for name in below {
        path.push(name);
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Ok(false),
            Err(error) if is_missing(&error) => make(&path)?,
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

#[cfg(unix)]
fn make(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;

    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// Of a new file, which is readable to its owner alone.
#[cfg(unix)]
pub(super) fn options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    options
}

#[cfg(not(unix))]
pub(super) fn options() -> OpenOptions {
    let mut options = File::options();
    options.write(true).create_new(true);
    options
}

pub(super) fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
