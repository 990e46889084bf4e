//! Pages of a transcript: a message with its parts is one entry.

use std::path::Path;

use session_core::history::{Cursor, Located, Notice, NoticeKind, PageQuery, SessionSource, TranscriptPage};

use super::entries::Stored;
use super::error::DatabaseError;
use super::records::{From, Records};
use super::summary::reasoning_apart;

/// How much is read for a page: bytes and messages. A turn that is larger goes on in the next page.
const BYTES: usize = 16 << 20;
const MESSAGES: usize = 2_000;

/// How many ids are asked for at once.
const IDS: usize = 256;

/// What a cursor begins with; another version of it gets another number.
const MARK: &str = "opencode1";

/// A place behind a message, in a session that is still the same.
fn cursor(records: &dyn Records, message: &str) -> Cursor {
    let own = records.session();
    let made = own.created.map_or(0, f64::to_bits);
    Cursor(format!("{MARK}:{}:{made:x}:{message}", own.id))
}

/// The message that a cursor names; nothing: it is the place before all.
fn message_of<'a>(records: &dyn Records, cursor: &'a Cursor) -> Result<&'a str, DatabaseError> {
    let place = cursor.0.len() - cursor.0.rsplit_once(':').map_or(0, |(_, message)| message.len());
    let message = &cursor.0[place..];
    if self::cursor(records, message) != *cursor {
        return Err(DatabaseError::PlaceGone);
    }
    if !message.is_empty() && records.message(message, 0)?.is_none() {
        return Err(DatabaseError::PlaceGone);
    }
    Ok(message)
}

pub(super) fn page(
    records: &dyn Records,
    source: &SessionSource,
    query: &PageQuery,
) -> Result<TranscriptPage, DatabaseError> {
    match query {
        PageQuery::Last { turns } => backwards(records, &source.path, None, *turns),
        PageQuery::Before { cursor, turns } => {
            let end = message_of(records, cursor)?;
            backwards(records, &source.path, Some(end), *turns)
        }
        PageQuery::After { cursor: from, records: most } => {
            let start = message_of(records, from)?;
            let page = forwards(records, &source.path, start, *most)?;
            Ok(TranscriptPage { after: page.after.or_else(|| Some(from.clone())), ..page })
        }
    }
}

/// Reads from a place towards the beginning, until so many turns are whole.
fn backwards(
    records: &dyn Records,
    path: &Path,
    end: Option<&str>,
    turns: usize,
) -> Result<TranscriptPage, DatabaseError> {
    let mut page = Page::new(records, path);
    let (mut found, mut from) = (0, end.map(str::to_owned));
    let mut is_whole = false;
    'pages: while found < turns {
        let ids = records.ids(from.as_deref().map_or(From::End, From::Before), IDS)?;
        if ids.is_empty() {
            is_whole = true;
            break;
        }
        for id in ids {
            if page.is_full() {
                break 'pages;
            }
            from = Some(id.clone());
            let Some(stored) = page.read(&id)? else { continue };
            found += usize::from(stored.is_prompt());
            page.add(&stored);
            if found >= turns {
                break 'pages;
            }
        }
    }
    page.page.entries.reverse();
    page.page.notices.reverse();
    if !is_whole && let Some(first) = from.as_deref() {
        // What was looked at last is where the page begins.
        let is_first = records.ids(From::Before(first), 1)?.is_empty();
        page.page.before = (!is_first).then(|| cursor(records, first));
    }
    page.page.after = Some(match (&page.newest, end) {
        // A reply that is still being made is told once more when it is whole.
        (Some((_, false)), None) => {
            let last = page.newest.as_ref().map_or("", |(id, _)| id.as_str());
            let before = records.ids(From::Before(last), 1)?;
            cursor(records, before.first().map_or("", String::as_str))
        }
        (Some((id, _)), _) => cursor(records, id),
        (None, end) => match end {
            Some(end) => {
                let before = records.ids(From::Before(end), 1)?;
                cursor(records, before.first().map_or("", String::as_str))
            }
            None => cursor(records, records.ids(From::End, 1)?.first().map_or("", String::as_str)),
        },
    });
    Ok(page.page)
}

/// Reads what was added behind a place. The last reply is only told when it is whole, or others follow.
fn forwards(
    records: &dyn Records,
    path: &Path,
    start: &str,
    most: usize,
) -> Result<TranscriptPage, DatabaseError> {
    let mut page = Page::new(records, path);
    let ids = records.ids(From::Behind(start), most.min(MESSAGES).saturating_add(1))?;
    let mut last = None;
    for (n, id) in ids.iter().enumerate().take(most) {
        if page.is_full() {
            break;
        }
        let Some(stored) = page.read(id)? else { continue };
        if n + 1 == ids.len() && !is_whole(&stored) {
            break;
        }
        page.add(&stored);
        last = Some(cursor(records, id));
    }
    page.page.before = last.is_some().then(|| cursor(records, ids.first().map_or("", String::as_str)));
    if start.is_empty() {
        page.page.before = None;
    }
    page.page.after = last;
    Ok(page.page)
}

/// Whether nothing is added to it any more.
fn is_whole(stored: &Stored) -> bool {
    stored.message().is_none_or(|message| match message.is_user() {
        true => !stored.parts.is_empty(),
        false => message.is_complete(),
    })
}

/// A page that is being read.
struct Page<'a> {
    records: &'a dyn Records,
    path: &'a Path,
    page: TranscriptPage,
    bytes: usize,
    read: usize,
    /// The newest message, and whether it is whole.
    newest: Option<(String, bool)>,
}

impl<'a> Page<'a> {
    fn new(records: &'a dyn Records, path: &'a Path) -> Self {
        let page = TranscriptPage { entries: Vec::new(), before: None, after: None, notices: Vec::new() };
        Self { records, path, page, bytes: BYTES, read: 0, newest: None }
    }

    fn is_full(&self) -> bool {
        self.read > 0 && (self.bytes == 0 || self.read >= MESSAGES)
    }

    fn read(&mut self, id: &str) -> Result<Option<Stored>, DatabaseError> {
        let stored = self.records.message(id, BYTES)?;
        self.read += 1;
        if let Some(stored) = &stored {
            let parts: usize = stored.parts.iter().filter_map(|(_, data)| data.as_ref()).map(Vec::len).sum();
            let size = parts + stored.data.as_ref().map_or(0, Vec::len);
            self.bytes = self.bytes.saturating_sub(size);
            let is_newer = self.newest.as_ref().is_none_or(|(newest, _)| stored.id > *newest);
            if is_newer {
                self.newest = Some((stored.id.clone(), is_whole(stored)));
            }
        }
        Ok(stored)
    }

    fn add(&mut self, stored: &Stored) {
        let own = self.records.session();
        let told = stored.entry(own.parent.is_some(), reasoning_apart(own));
        let skipped = told.as_ref().map_or(1, |(_, skipped)| *skipped);
        let mut notice =
            |kind| self.page.notices.push(Notice { path: self.path.to_owned(), offset: None, kind });
        (0..skipped).for_each(|_| notice(NoticeKind::SkippedLine));
        if stored.is_cut {
            notice(NoticeKind::LimitReached);
        }
        if let Some((entry, _)) = told {
            self.page.entries.push(Located { entry, path: self.path.to_owned(), span: None, line: None });
        }
    }
}
