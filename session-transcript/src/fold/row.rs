//! What a list shows of a session, as an index keeps it: borrowed from there until it is listed.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use session_core::history::{
    Ancestor, Descent, Resumability, SessionEntry, SessionFile, SessionKind, SessionSource, Title,
    TitleSource,
};
use session_core::{NativeId, Timestamp, Usage};

use super::Digest;

/// All that depends on the content of the file alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row<'a> {
    pub(crate) kind: SessionKind,
    pub(crate) resumable: Resumability,
    title: Option<(&'a str, TitleSource)>,
    first_prompt: Option<&'a str>,
    last_prompt: Option<&'a str>,
    cwd: Option<&'a str>,
    last_cwd: Option<&'a str>,
    branch: Option<&'a str>,
    model: Option<&'a str>,
    began: Option<i64>,
    updated: Option<i64>,
    turns: Option<u64>,
    parent: Option<(&'a str, Descent)>,
    usage: Option<Usage>,
    exact: bool,
    skipped_lines: u64,
    torn_tail: bool,
    /// The file that it goes on from.
    pub(crate) base: Option<&'a str>,
}

impl<'a> Row<'a> {
    /// `None`: it holds a path that is no text.
    pub(crate) fn of(entry: &'a SessionEntry, digest: &'a Digest) -> Option<Self> {
        let text =
            |path: &'a Option<PathBuf>| path.as_deref().map_or(Some(None), |path| path.to_str().map(Some));
        Some(Self {
            kind: entry.kind,
            resumable: entry.resumable,
            title: entry.title.as_ref().map(|title| (title.text.as_str(), title.source)),
            first_prompt: entry.first_prompt.as_deref(),
            last_prompt: entry.last_prompt.as_deref(),
            cwd: text(&entry.cwd)?,
            last_cwd: text(&entry.last_cwd)?,
            branch: entry.branch.as_deref(),
            model: entry.model.as_deref(),
            began: entry.began.map(Timestamp::as_millis),
            updated: entry.updated.map(Timestamp::as_millis),
            turns: entry.turns,
            parent: entry.parent.as_ref().map(|parent| (parent.id.as_str(), parent.descent)),
            usage: entry.usage,
            exact: entry.exact,
            skipped_lines: entry.skipped_lines,
            torn_tail: entry.torn_tail,
            base: digest.base().map(|base| base.id.as_str()),
        })
    }

    /// What a list shows of it.
    pub(crate) fn entry(&self, file: &SessionFile, source: SessionSource) -> SessionEntry {
        let text = |text: Option<&str>| text.map(str::to_owned);
        SessionEntry {
            title: self.title.map(|(text, source)| Title { text: text.to_owned(), source }),
            first_prompt: text(self.first_prompt),
            last_prompt: text(self.last_prompt),
            cwd: self.cwd.map(PathBuf::from),
            last_cwd: self.last_cwd.map(PathBuf::from),
            branch: text(self.branch),
            began: self.began.map(Timestamp::from_millis),
            updated: self.updated.map(Timestamp::from_millis),
            turns: self.turns,
            parent: self.parent.map(|(id, descent)| Ancestor { id: NativeId::new(id), descent }),
            kind: self.kind,
            resumable: self.resumable,
            usage: self.usage,
            model: text(self.model),
            exact: self.exact,
            skipped_lines: self.skipped_lines,
            torn_tail: self.torn_tail,
            ..SessionEntry::new(file.id.clone(), source)
        }
    }
}
