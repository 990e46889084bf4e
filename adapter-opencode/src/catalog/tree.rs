//! Sessions that are trees of JSON files: those of 1.1 and before.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use session_core::error::CatalogError;
use session_core::{Conversation, Inspection, NativeId, Presence, RecordKind, Said, Speaker};

use super::{ROWS, Tally, failed, is_missing, unreadable};
use crate::transcript::{Message, Part};

/// A session's own file.
#[derive(Deserialize)]
struct Session {
    directory: String,
}

pub(super) fn inspect(root: &Path, id: &NativeId) -> Result<Inspection, CatalogError> {
    let Some(path) = file_of(root, id)? else { return Ok(Inspection::MISSING) };
    let read = std::fs::read(&path).and_then(|bytes| Ok((bytes, messages(root, id)?)));
    let (bytes, messages) = match read {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(unreadable(&path)),
        read => read.map_err(|error| failed(&path, error))?,
    };
    let Ok(session) = serde_json::from_slice::<Session>(&bytes) else {
        return Ok(Inspection { presence: Presence::Damaged, path: Some(path), ..Inspection::MISSING });
    };
    let mut tally = Tally { began_in: Some(session.directory.into()), ..Tally::default() };
    for (name, data) in messages {
        tally.bytes += data.len() as u64;
        let Some(message) = Message::read(&data) else {
            tally.broken += 1;
            continue;
        };
        if !message.is_whole() {
            tally.holes += 1;
        }
        let parts = parts(root, &name).map_err(|error| failed(&path, error))?;
        tally.bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        let garbage = |part: &&Vec<u8>| serde_json::from_slice::<serde::de::IgnoredAny>(part).is_err();
        tally.broken += parts.iter().filter(garbage).count() as u64;
        match message.kind() {
            Some(RecordKind::Prompt) if !parts.is_empty() => tally.user_turns += 1,
            Some(RecordKind::Answer) if !parts.is_empty() => tally.answers += 1,
            _ => {}
        }
    }
    Ok(tally.sum_up(&path))
}

pub(super) fn last_said(root: &Path, id: &NativeId, bytes: usize) -> Result<Conversation, CatalogError> {
    let mut conversation = Conversation::default();
    for (name, data) in messages(root, id).map_err(|error| failed(root, error))? {
        let by = match Message::read(&data).and_then(|message| message.kind()) {
            Some(RecordKind::Prompt) => Speaker::User,
            Some(RecordKind::Answer) => Speaker::Agent,
            _ => continue,
        };
        let parts = parts(root, &name).map_err(|error| failed(root, error))?;
        let words: Vec<_> = parts.iter().filter_map(|part| Part::words(part)).collect();
        if !words.is_empty() {
            conversation.push(Said { by, text: words.join("\n") }, bytes);
        }
    }
    Ok(conversation)
}

/// The session's own file: in the folder of its project, whose name nobody else can tell.
fn file_of(root: &Path, id: &NativeId) -> Result<Option<PathBuf>, CatalogError> {
    let sessions = root.join("session");
    let entries = match std::fs::read_dir(&sessions) {
        Err(error) if is_missing(&error) => return Ok(None),
        entries => entries.map_err(|error| failed(&sessions, error))?,
    };
    let mut files: Vec<_> = entries
        .filter_map(Result::ok)
        .map(|project| project.path().join(format!("{id}.json")))
        .filter(|path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()))
        .collect();
    files.sort();
    Ok(files.pop())
}

/// The messages of a session, oldest first: names without their ends, and what is in them.
fn messages(root: &Path, id: &NativeId) -> io::Result<Vec<(String, Vec<u8>)>> {
    files_in(&root.join("message").join(id.as_str()))
}

fn parts(root: &Path, message: &str) -> io::Result<Vec<Vec<u8>>> {
    let parts = files_in(&root.join("part").join(message))?;
    Ok(parts.into_iter().map(|(_, data)| data).collect())
}

fn files_in(folder: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        names.extend(name.to_str().and_then(|name| name.strip_suffix(".json")).map(str::to_owned));
    }
    names.sort();
    let first = names.len().saturating_sub(usize::try_from(ROWS).unwrap_or(usize::MAX));
    let read = |name: String| {
        let data = std::fs::read(folder.join(format!("{name}.json")))?;
        Ok((name, data))
    };
    names.split_off(first).into_iter().map(read).collect()
}
