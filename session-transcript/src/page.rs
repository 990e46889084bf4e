//! A part of a transcript, in time and memory that do not grow with the file.

mod again;
mod backward;
mod cursor;
mod lineage;
mod lines;

use std::io;
use std::path::Path;

use session_core::TranscriptFormat;
use session_core::history::{
    Cursor, Entry, EntryKind, Located, Notice, NoticeKind, PageQuery, Span, TranscriptPage,
};

use self::again::{Again, Grid, is_message};
use self::backward::Backward;
pub(crate) use self::cursor::{Spot, Stale};
pub(crate) use self::lineage::page as page_of;
pub(crate) use self::lines::{Backwards, Forwards, Line, read_at};
use crate::lines::glued;
use crate::opened::Opened;

/// After how many notices a page ends: a file of nothing but damage has one for every line.
const NOTICES: usize = 4096;

/// How many lines before a page are looked at for what it may begin with a second time.
const NEAR: usize = 64;

/// How much a page may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The longest line, in bytes.
    pub(crate) line: usize,
    /// All lines together, in bytes; one line there is in any case.
    pub(crate) bytes: u64,
    /// How what was written again is looked for.
    pub(crate) grid: Grid,
}

impl Limits {
    /// Together with what is read ahead, less than 32 MiB.
    pub(crate) const PAGE: Self = Self { line: 6 << 20, bytes: 8 << 20, grid: Grid::PAGE };
}

/// An open session file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transcript<'a> {
    pub(crate) format: &'a dyn TranscriptFormat,
    pub(crate) path: &'a Path,
    pub(crate) opened: &'a Opened,
}

fn page(transcript: Transcript<'_>, query: &PageQuery, limits: Limits) -> io::Result<TranscriptPage> {
    match query {
        PageQuery::Last { turns } => {
            let mut page = transcript.back(None, *turns, limits)?;
            if transcript.opened.in_part {
                page.notices.push(transcript.notice(transcript.opened.size, NoticeKind::PackedInPart));
            }
            Ok(page)
        }
        PageQuery::Before { cursor, turns } => {
            let spot = transcript.spot(cursor)?;
            transcript.back(Some(spot), *turns, limits)
        }
        PageQuery::After { cursor, records } => {
            let spot = transcript.spot(cursor)?;
            transcript.forth(spot.offset, transcript.opened.size, *records, limits)
        }
    }
}

/// What a line gave.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and most are entries")]
enum Read {
    Entry(u64, u64, Entry),
    /// Nothing stands in it.
    Blank,
    Nothing,
}

impl Transcript<'_> {
    fn spot(self, cursor: &Cursor) -> io::Result<Spot> {
        let spot = Spot::parse(cursor).ok_or_else(|| Stale::Foreign.error())?;
        spot.check(&self.opened.file, &self.opened.metadata, self.opened.size)?.map_err(Stale::error)?;
        Ok(spot)
    }

    fn place(self, offset: u64) -> io::Result<Spot> {
        Spot::at(&self.opened.file, &self.opened.metadata, offset)
    }

    fn cursor(self, offset: u64) -> io::Result<Cursor> {
        Ok(self.place(offset)?.cursor())
    }

    fn notice(self, offset: u64, kind: NoticeKind) -> Notice {
        Notice { path: self.path.to_owned(), offset: Some(offset), kind }
    }

    /// What a line is, and what there is to say of it.
    fn read(self, line: Line<'_>, notices: &mut Vec<Notice>) -> Read {
        let Some(text) = line.text else {
            notices.push(self.notice(line.offset, NoticeKind::LineTooLong));
            return Read::Nothing;
        };
        if text.trim_ascii().is_empty() {
            return Read::Blank;
        }
        if let Some(entry) = self.format.entry(text) {
            let length = text.strip_suffix(b"\r").unwrap_or(text).len();
            return Read::Entry(line.offset, length as u64, entry);
        }
        let whole = |rest| Some((rest, self.format.entry(rest).filter(counts)?));
        if let Some((rest, entry)) = glued(text, whole) {
            notices.push(self.notice(line.offset, NoticeKind::Recovered));
            let at = line.offset + (text.len() - rest.len()) as u64;
            let length = rest.strip_suffix(b"\r").unwrap_or(rest).len();
            return Read::Entry(at, length as u64, entry);
        }
        let kind = if line.ended { NoticeKind::SkippedLine } else { NoticeKind::TornTail };
        notices.push(self.notice(line.offset, kind));
        Read::Nothing
    }

    fn located(self, offset: u64, bytes: u64, entry: Entry) -> Located {
        Located { entry, path: self.path.to_owned(), span: Some(Span { offset, bytes }), line: None }
    }

    /// What a line holds, where it lies, and what there is to say of it.
    pub(crate) fn read_located(self, line: Line<'_>, notices: &mut Vec<Notice>) -> Option<Located> {
        match self.read(line, notices) {
            Read::Entry(offset, length, entry) => Some(self.located(offset, length, entry)),
            Read::Blank | Read::Nothing => None,
        }
    }

    /// The record of the line that begins there, and whether it is a boundary that says what was kept.
    pub(crate) fn line_at(self, offset: u64) -> io::Result<Option<(Located, bool)>> {
        let mut lines = Forwards::new(&self.opened.file, offset, self.opened.size, Limits::PAGE.line);
        let Some(line) = lines.next()? else { return Ok(None) };
        let text = line.text.unwrap_or_default();
        Ok(match self.read(line, &mut Vec::new()) {
            Read::Entry(at, length, entry) => {
                let skipped = usize::try_from(at - offset).unwrap_or_default();
                let facts = self.format.facts(&text[skipped..]);
                Some((self.located(at, length, entry), facts.is_some_and(|facts| facts.anchored)))
            }
            Read::Blank | Read::Nothing => None,
        })
    }

    /// So many turns before a place; `None`: before the end.
    pub(crate) fn back(self, end: Option<Spot>, turns: usize, limits: Limits) -> io::Result<TranscriptPage> {
        let size = self.opened.size;
        // Only a compaction writes much again, and says so behind it.
        let mut plain = end.is_none_or(|end| end.plain);
        let end = end.map(|end| end.offset);
        let mut lines = Backwards::new(&self.opened.file, end.unwrap_or(size), limits.line);
        let (mut records, mut notices) = (Backward::default(), Vec::new());
        let (mut bytes, mut any) = (0, false);
        let mut again = Again::new(self, limits.grid);
        let mut begin = end.unwrap_or(size);
        // What is not a whole record yet lies behind the place from which to go on.
        let mut after = None;
        while let Some(line) = lines.next()? {
            let open = after.is_none();
            if !open && records.turns() >= turns && !records.is_twin_of(self.message_before(begin)?.as_ref())
            {
                break;
            }
            bytes += line.text.map_or(0, |text| text.len() as u64);
            if bytes > limits.bytes && any || notices.len() >= NOTICES {
                notices.push(self.notice(begin, NoticeKind::LimitReached));
                break;
            }
            let (offset, ends) = (line.offset, line.offset + line.length);
            let read = self.read(line, &mut notices);
            if open {
                after = Some(if matches!(read, Read::Nothing) { offset } else { ends });
            }
            if let Read::Entry(at, length, entry) = read {
                any = true;
                plain &= !is_compaction(&entry);
                if plain || !again.is_again(&entry, at, line.rest(at))? {
                    records.push(self.located(at, length, entry));
                } else {
                    records.pass(&entry);
                }
            }
            begin = offset;
        }
        drop(lines);
        if let Some(before) = self.message_before(begin)? {
            // It is shown by the page before.
            records.leave_out_twin_of(&before);
        }
        notices.reverse();
        let after = self.cursor(end.or(after).unwrap_or(begin))?;
        let before = match begin {
            0 => None,
            begin => Some(self.place(begin)?.plain(plain).cursor()),
        };
        Ok(TranscriptPage { entries: records.into_entries(), before, after: Some(after), notices })
    }

    /// The message that stands last before a place, if it is near.
    fn message_before(self, place: u64) -> io::Result<Option<Entry>> {
        let mut lines = Backwards::new(&self.opened.file, place, Limits::PAGE.line);
        for _ in 0..NEAR {
            let Some(line) = lines.next()? else { break };
            if let Read::Entry(.., entry) = self.read(line, &mut Vec::new())
                && is_message(&entry)
            {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// So many records from a place on.
    pub(crate) fn forth(
        self,
        begin: u64,
        end: u64,
        records: usize,
        limits: Limits,
    ) -> io::Result<TranscriptPage> {
        let mut lines = Forwards::new(&self.opened.file, begin, end, limits.line);
        let (mut entries, mut notices) = (Vec::new(), Vec::new());
        let (mut bytes, mut end) = (0, begin);
        let (mut again, mut any) = (Again::new(self, limits.grid), false);
        while entries.len() < records {
            let Some(line) = lines.next()? else { break };
            bytes += line.text.map_or(0, |text| text.len() as u64);
            if bytes > limits.bytes && any || notices.len() >= NOTICES {
                notices.push(self.notice(end, NoticeKind::LimitReached));
                break;
            }
            let (open, too_long) = (!line.ended, line.text.is_none());
            let next = line.offset + line.length + u64::from(line.ended);
            match self.read(line, &mut notices) {
                Read::Entry(offset, length, entry) => {
                    any = true;
                    if !again.is_again(&entry, offset, line.rest(offset))? {
                        entries.push(self.located(offset, length, entry));
                    }
                }
                // It may be completed. One that is too long is left out in any case.
                Read::Nothing if open && !too_long => break,
                Read::Nothing | Read::Blank => {}
            }
            end = next;
        }
        let before = (begin > 0).then(|| self.cursor(begin)).transpose()?;
        Ok(TranscriptPage { entries, before, after: Some(self.cursor(end)?), notices })
    }
}

const fn is_compaction(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::Boundary | EntryKind::CompactSummary(_))
}

/// Whether what was found behind something else is a record of its own: what does not count could be a part of that.
fn counts(entry: &Entry) -> bool {
    !matches!(entry.kind, EntryKind::Note(_) | EntryKind::Unknown { .. } | EntryKind::Title { .. })
}
