//! The sessions of a tree of JSON files: those of 1.1 and before.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use session_core::Usage;

use super::super::open::{Folder, Opened};
use super::super::tree::FILE_LIMIT;
use super::copies;
use super::error::DatabaseError;
use super::record::{Message, Part, cut, value};
use super::rows::helpers_of;
use super::summary::{Session, Summary, Typed, Words};
use crate::transcript::is_session_id;

/// How many files of one folder are read, and how many sessions of one tree.
pub(super) const FILES: usize = 100_000;

/// The sessions of a tree.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Each with the path of its own file.
    pub(super) sessions: Vec<(PathBuf, Summary)>,
    /// Files of sessions that may not be read.
    pub(super) skipped: Vec<PathBuf>,
    pub(super) trouble: Option<DatabaseError>,
}

/// Reads the sessions' own files alone.
pub(super) fn heads(root: &Path, state: Option<&Path>, until: Instant) -> Gathered {
    let mut gathered = Gathered::default();
    gathered.trouble = walk(root, state, until, None, &mut gathered, |_, _| {}).err();
    gathered
}

/// Reads the sessions, or the one that is asked for.
pub(super) fn gather(root: &Path, state: Option<&Path>, until: Instant, only: Option<&str>) -> Gathered {
    let mut gathered = Gathered::default();
    let each = |storage: &Folder, summary: &mut Summary| {
        let id = summary.own.id.clone();
        summary.is_partial = fill(storage, &id, until, summary).is_err();
    };
    gathered.trouble = walk(root, state, until, only, &mut gathered, each).err();
    let (paths, mut summaries): (Vec<_>, Vec<_>) = gathered.sessions.drain(..).unzip();
    let candidates = copies::candidates(&summaries);
    copies::mark(&mut summaries, &candidates);
    gathered.sessions = paths.into_iter().zip(summaries).collect();
    gathered
}

fn walk(
    root: &Path,
    state: Option<&Path>,
    until: Instant,
    only: Option<&str>,
    gathered: &mut Gathered,
    each: impl Fn(&Folder, &mut Summary),
) -> Result<(), DatabaseError> {
    let Some(storage) = storage(root, state)? else { return Ok(()) };
    let sessions = match storage.folder("session")? {
        Opened::There(sessions) => sessions,
        Opened::Nothing => return Ok(()),
        Opened::Unusable => return Err(DatabaseError::Denied),
    };
    for project in sessions.names("", FILES)? {
        // What is no folder is none of the projects.
        let Opened::There(folder) = sessions.folder(&project)? else { continue };
        let names = match only {
            Some(only) => vec![only.to_owned()],
            None => folder.names(".json", FILES)?,
        };
        for name in names.iter().filter(|name| is_session_id(name)) {
            let path = root.join("session").join(&project).join(format!("{name}.json"));
            let data = match folder.read(&format!("{name}.json"), FILE_LIMIT) {
                Ok(Opened::There(data)) => data,
                Ok(Opened::Nothing) => continue,
                Ok(Opened::Unusable) | Err(_) => {
                    gathered.skipped.push(path);
                    continue;
                }
            };
            if Instant::now() >= until || gathered.sessions.len() >= FILES {
                return Err(DatabaseError::TooMuch);
            }
            let mut summary = Summary::new(own(name, &data));
            each(&storage, &mut summary);
            gathered.sessions.push((path, summary));
        }
    }
    Ok(())
}

/// The folder of the tree. `None`: there is none.
pub(super) fn storage(root: &Path, state: Option<&Path>) -> Result<Option<Folder>, DatabaseError> {
    let (trusted, below) = match state {
        // A link to the tree is of the user's making where there is no state dir.
        None => (root, Path::new("")),
        Some(state) => (state, root.strip_prefix(state).map_err(io::Error::other)?),
    };
    match Folder::open(trusted, below)? {
        Opened::Nothing => Ok(None),
        Opened::Unusable => Err(DatabaseError::Denied),
        Opened::There(storage) => Ok(Some(storage)),
    }
}

/// The tree that a session's own file lies in. `None`: the path is not that of one.
pub(super) fn root_of(path: &Path, id: &str) -> Option<PathBuf> {
    let is_own = path.file_name()?.to_str()? == format!("{id}.json");
    let sessions = path.parent()?.parent()?;
    (is_own && sessions.file_name()? == "session").then(|| sessions.parent().map(Path::to_owned))?
}

/// What a session's own file says.
pub(super) fn own(id: &str, data: &[u8]) -> Session {
    let read = value(data).filter(Value::is_object);
    let is_sound = read.is_some();
    let read = read.unwrap_or_default();
    let text = |field: &Value, limit| field.as_str().map(|text| cut(text, limit));
    let forbids = |rule: &Value| rule["permission"] == "question" && rule["action"] == "deny";
    Session {
        id: id.to_owned(),
        parent: text(&read["parentID"], 1024).filter(|parent| is_session_id(parent)),
        directory: text(&read["directory"], 32768).unwrap_or_default(),
        title: text(&read["title"], 4096).unwrap_or_default(),
        version: text(&read["version"], 256).unwrap_or_default(),
        created: read["time"]["created"].as_f64(),
        updated: read["time"]["updated"].as_f64(),
        end: text(&read["revert"]["messageID"], 1024),
        is_sound,
        is_headless: read["permission"].as_array().is_some_and(|rules| rules.iter().any(forbids)),
        totals: None,
    }
}

/// Reads the messages of a session, and the parts of each.
fn fill(storage: &Folder, id: &str, until: Instant, summary: &mut Summary) -> Result<(), DatabaseError> {
    let messages = match storage.folder("message")? {
        Opened::There(messages) => messages.folder(id)?,
        other => other,
    };
    let messages = match messages {
        Opened::There(messages) => messages,
        Opened::Nothing => return Ok(()),
        Opened::Unusable => return Err(DatabaseError::Denied),
    };
    let all_parts = storage.folder("part")?;
    for name in messages.names(".json", FILES)? {
        if Instant::now() >= until {
            return Err(DatabaseError::TooMuch);
        }
        let data = match messages.read(&format!("{name}.json"), FILE_LIMIT)? {
            Opened::There(data) => Some(data),
            Opened::Nothing => continue,
            Opened::Unusable => None,
        };
        let is_reply = data.as_deref().and_then(Message::read).is_some_and(|message| message.is_assistant());
        let before = summary.replies.len();
        let is_user = summary.add_message(&name, data.as_deref());
        let (mut typed, mut words) = (Typed::default(), Words::default());
        let mut there = false;
        each_part(&all_parts, &name, FILE_LIMIT, &mut |id, data| {
            there = true;
            let part = data.and_then(Part::read);
            if is_reply {
                if let Some(part) = &part {
                    words.add(part);
                    summary.add_step(before, part);
                }
            } else {
                typed.add(id, part.as_ref());
            }
            true
        })?;
        if is_reply && let Some(reply) = summary.replies.get_mut(before) {
            reply.text = Some(words.done());
        }
        if let Some(words) = typed.done().filter(|_| is_user && there) {
            summary.add_prompt(&name, words);
        }
    }
    Ok(())
}

/// The tokens of the sessions that this one began, and of those that they began.
pub(super) fn usage_of_helpers(all: &[Summary], id: &str) -> Usage {
    let mut sum = Usage::default();
    helpers_of(all, id).into_iter().for_each(|place| sum += all[place].usage());
    sum
}

/// Hands on the parts of a message, the oldest first, until one says that it is enough. `None`: one that is too long, or
/// may not be read.
pub(super) fn each_part(
    parts: &Opened<Folder>,
    message: &str,
    longest: u64,
    each: &mut dyn FnMut(&str, Option<&[u8]>) -> bool,
) -> Result<(), DatabaseError> {
    let Opened::There(parts) = parts else { return Ok(()) };
    let Opened::There(folder) = parts.folder(message)? else { return Ok(()) };
    for name in folder.names(".json", FILES)? {
        let goes_on = match folder.read(&format!("{name}.json"), longest)? {
            Opened::Nothing => true,
            Opened::Unusable => each(&name, None),
            Opened::There(data) => each(&name, Some(&data)),
        };
        if !goes_on {
            break;
        }
    }
    Ok(())
}
