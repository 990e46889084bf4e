//! Sessions that are trees of JSON files: those of 1.1 and before.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use session_core::error::CatalogError;
use session_core::{Conversation, Inspection, Presence, RecordKind, Said, Speaker};

use super::open::{Folder, Opened};
use super::{Asked, ROWS, Tally, failed, join, unreadable};
use crate::transcript::{Message, Part};

/// The longest file that is read, in bytes: as much as of a line in the files of other agents. It is held in memory.
pub(super) const FILE_LIMIT: u64 = 32 << 20;

/// How many bytes of a session are read: as much as of the files of other agents.
const SESSION_LIMIT: u64 = 1 << 30;

/// A session's own file.
#[derive(Default, Deserialize)]
struct Session {
    directory: String,
    /// What the user took back.
    revert: Option<serde_json::Value>,
}

impl Session {
    /// The first message that the user took back: it and all later ones go before the next prompt.
    fn end(&self) -> Option<&str> {
        self.revert.as_ref()?.get("messageID")?.as_str()
    }
}

/// A session's own file, found.
enum Own {
    Nothing,
    /// A link, or something else that is not read.
    Unusable(PathBuf),
    There(Folder, PathBuf, Vec<u8>),
}

pub(super) fn inspect(root: &Path, asked: &Asked) -> Result<Inspection, CatalogError> {
    inspect_within(root, asked, Budget::whole())
}

pub(super) fn inspect_within(root: &Path, asked: &Asked, budget: Budget) -> Result<Inspection, CatalogError> {
    let (storage, path, data) = match own(root, asked)? {
        Own::Nothing => return Ok(Inspection::MISSING),
        Own::Unusable(path) => return Ok(unreadable(&path)),
        Own::There(storage, path, data) => (storage, path, data),
    };
    let Ok(session) = serde_json::from_slice::<Session>(&data) else {
        return Ok(Inspection { presence: Presence::Damaged, path: Some(path), ..Inspection::MISSING });
    };
    let mut tally = Tally { began_in: Some(session.directory.clone().into()), ..Tally::default() };
    match each_message(&storage, asked, &session, budget, &mut |message| tally.message(message)) {
        Ok(true) => Ok(tally.sum_up(&path)),
        Ok(false) => Ok(unreadable(&path)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(unreadable(&path)),
        Err(error) => Err(failed(&path, error)),
    }
}

impl Tally {
    fn message(&mut self, mut stored: Stored<'_>) -> io::Result<()> {
        let Some(data) = stored.data.take() else {
            self.broken += 1;
            return Ok(());
        };
        self.bytes += data.len() as u64;
        let Some(message) = Message::read(&data) else {
            self.broken += 1;
            return Ok(());
        };
        if !message.is_whole() {
            self.holes += 1;
        }
        let mut has_parts = false;
        stored.each_part(&mut |part| {
            has_parts |= part.is_some();
            self.bytes += part.map_or(0, |part| part.len() as u64);
            let is_sound =
                part.is_some_and(|part| serde_json::from_slice::<serde::de::IgnoredAny>(part).is_ok());
            self.broken += u64::from(!is_sound);
        })?;
        match message.kind() {
            Some(RecordKind::Prompt) if has_parts => self.user_turns += 1,
            Some(RecordKind::Answer) if has_parts => self.answers += 1,
            _ => {}
        }
        Ok(())
    }
}

pub(super) fn last_said(root: &Path, asked: &Asked, bytes: usize) -> Result<Conversation, CatalogError> {
    let (storage, path, data) = match own(root, asked)? {
        Own::Nothing => return Ok(Conversation::default()),
        Own::Unusable(path) => return Err(failed(&path, "it may not be read")),
        Own::There(storage, path, data) => (storage, path, data),
    };
    // Where it is damaged, the messages still say what they say.
    let session = serde_json::from_slice::<Session>(&data).unwrap_or_default();
    let mut last = Last { bytes, ..Last::default() };
    match each_message(&storage, asked, &session, Budget::whole(), &mut |message| last.message(message)) {
        Ok(true) => Ok(Conversation { said: last.said.into(), left_out: last.left_out }),
        Ok(false) => Err(failed(&path, "its messages may not be read")),
        Err(error) => Err(failed(&path, error)),
    }
}

/// What was said, gathered from the newest on.
#[derive(Default)]
struct Last {
    said: VecDeque<Said>,
    left_out: u64,
    /// How much is wanted, and how much there is.
    bytes: usize,
    size: usize,
}

impl Last {
    fn message(&mut self, mut stored: Stored<'_>) -> io::Result<()> {
        let message = stored.data.take().and_then(|data| Message::read(&data));
        let by = match message.and_then(|message| message.kind()) {
            Some(RecordKind::Prompt) => Speaker::User,
            Some(RecordKind::Answer) => Speaker::Agent,
            _ => return Ok(()),
        };
        let (limit, mut text) = (self.bytes, String::new());
        stored.each_part(&mut |part| {
            if let Some(words) = part.and_then(Part::words) {
                join(&mut text, &words, limit);
            }
        })?;
        if text.is_empty() {
            return Ok(());
        }
        self.size = self.size.saturating_add(text.len());
        if self.left_out == 0 && (self.size <= limit || self.said.is_empty()) {
            self.said.push_front(Said { by, text });
        } else {
            self.left_out += 1;
        }
        Ok(())
    }
}

/// The session's own file: in the folder of its project, whose name nobody else can tell.
fn own(root: &Path, asked: &Asked) -> Result<Own, CatalogError> {
    let (trusted, below) = match &asked.state {
        // A link to the tree is of the user's making where there is no state dir.
        None => (root, Path::new("")),
        Some(state) => (state.as_path(), root.strip_prefix(state).map_err(|error| failed(root, error))?),
    };
    let name = format!("{}.json", asked.id);
    let look = || {
        let storage = match Folder::open(trusted, below)? {
            Opened::Nothing => return Ok(Own::Nothing),
            Opened::Unusable => return Ok(Own::Unusable(root.to_owned())),
            Opened::There(storage) => storage,
        };
        let sessions = match storage.folder("session")? {
            Opened::Nothing => return Ok(Own::Nothing),
            Opened::Unusable => return Ok(Own::Unusable(root.join("session"))),
            Opened::There(sessions) => sessions,
        };
        let mut unusable = None;
        for project in sessions.names("", rows())?.into_iter().rev() {
            // What is no folder is none of the projects.
            let Opened::There(folder) = sessions.folder(&project)? else { continue };
            let path = root.join("session").join(project).join(&name);
            match folder.read(&name, FILE_LIMIT) {
                Ok(Opened::Nothing) => {}
                Ok(Opened::There(data)) => return Ok(Own::There(storage, path, data)),
                Ok(Opened::Unusable) => unusable = unusable.or(Some(path)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    unusable = unusable.or(Some(path));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(unusable.map_or(Own::Nothing, Own::Unusable))
    };
    look().map_err(|error: io::Error| failed(root, error))
}

fn rows() -> usize {
    usize::try_from(ROWS).unwrap_or(usize::MAX)
}

/// How much of a session may still be read.
pub(super) struct Budget {
    pub(super) bytes: u64,
    pub(super) files: usize,
}

impl Budget {
    fn whole() -> Self {
        Self { bytes: SESSION_LIMIT, files: rows() }
    }

    fn is_spent(&self) -> bool {
        self.bytes == 0 || self.files == 0
    }

    fn read(&mut self, folder: &Folder, name: &str) -> io::Result<Opened<Vec<u8>>> {
        let read = folder.read(&format!("{name}.json"), FILE_LIMIT)?;
        self.files = self.files.saturating_sub(1);
        if let Opened::There(data) = &read {
            self.bytes = self.bytes.saturating_sub(data.len() as u64);
        }
        Ok(read)
    }
}

/// A message, with the way to its parts.
struct Stored<'a> {
    /// `None`: it may not be read.
    data: Option<Vec<u8>>,
    name: &'a str,
    parts: &'a Opened<Folder>,
    budget: &'a mut Budget,
}

impl Stored<'_> {
    /// Hands on the parts, the oldest first. `None`: one that may not be read.
    fn each_part(self, each: &mut dyn FnMut(Option<&[u8]>)) -> io::Result<()> {
        let folder = match self.parts {
            Opened::There(parts) => parts.folder(self.name)?,
            Opened::Nothing => return Ok(()),
            Opened::Unusable => Opened::Unusable,
        };
        let folder = match folder {
            Opened::There(folder) => folder,
            Opened::Nothing => return Ok(()),
            Opened::Unusable => {
                each(None);
                return Ok(());
            }
        };
        for name in folder.names(".json", rows())? {
            if self.budget.is_spent() {
                break;
            }
            match self.budget.read(&folder, &name)? {
                Opened::Nothing => {}
                Opened::Unusable => each(None),
                Opened::There(data) => each(Some(&data)),
            }
        }
        Ok(())
    }
}

/// Hands on the messages of a session, the newest first, as far as they are read. `false`: a link, or something else,
/// stands in the place of their folder.
fn each_message(
    storage: &Folder,
    asked: &Asked,
    session: &Session,
    mut budget: Budget,
    each: &mut dyn FnMut(Stored<'_>) -> io::Result<()>,
) -> io::Result<bool> {
    let messages = match storage.folder("message")? {
        Opened::There(messages) => messages.folder(asked.id.as_str())?,
        other => other,
    };
    let messages = match messages {
        Opened::Nothing => return Ok(true),
        Opened::Unusable => return Ok(false),
        Opened::There(messages) => messages,
    };
    let parts = storage.folder("part")?;
    let names = messages.names(".json", rows())?;
    for name in names.iter().rev().filter(|name| session.end().is_none_or(|end| name.as_str() < end)) {
        if budget.is_spent() {
            break;
        }
        let data = match budget.read(&messages, name)? {
            Opened::Nothing => continue,
            Opened::Unusable => None,
            Opened::There(data) => Some(data),
        };
        each(Stored { data, name, parts: &parts, budget: &mut budget })?;
    }
    Ok(true)
}
