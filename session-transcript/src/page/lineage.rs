//! A transcript that goes on from another file, which may go on from a third one.

use std::io;
use std::path::{Path, PathBuf};

use session_core::history::{Notice, NoticeKind, PageQuery, TranscriptPage};

use super::{Limits, Spot, Stale, Transcript};
use crate::opened::Opened;
use crate::parts::{DEEPEST, Files, base_of};

/// A file of the lineage, as far as it belongs to it.
struct Part {
    path: PathBuf,
    opened: Opened,
    end: u64,
}

/// The files of a transcript, the newest one first, opened as they are needed.
struct Lineage<'a> {
    files: &'a Files<'a>,
    parts: Vec<Part>,
    /// The base that is not there.
    missing: Option<Notice>,
}

/// Reads a page of a transcript that may begin in other files.
pub(crate) fn page(
    files: &Files<'_>,
    path: &Path,
    opened: Opened,
    query: &PageQuery,
    limits: Limits,
) -> io::Result<TranscriptPage> {
    let end = opened.size;
    let mut lineage =
        Lineage { files, parts: vec![Part { path: path.to_owned(), opened, end }], missing: None };
    match query {
        PageQuery::Last { turns } => {
            let page = super::page(lineage.transcript(0), query, limits)?;
            lineage.back(0, page, *turns, limits)
        }
        PageQuery::Before { cursor, turns } => {
            let (at, spot) = lineage.spot(Spot::parse(cursor).ok_or_else(|| Stale::Foreign.error())?)?;
            let page = lineage.transcript(at).back(Some(spot), *turns, limits)?;
            lineage.back(at, page, *turns, limits)
        }
        PageQuery::After { cursor, records } => {
            let (mut at, spot) = lineage.spot(Spot::parse(cursor).ok_or_else(|| Stale::Foreign.error())?)?;
            let mut page = lineage.forth(at, spot.offset, *records, limits)?;
            while at > 0 && page.entries.len() < *records && page.notices.is_empty() {
                at -= 1;
                let more = lineage.forth(at, 0, *records - page.entries.len(), limits)?;
                page.entries.extend(more.entries);
                page.notices.extend(more.notices);
                page.after = more.after;
            }
            Ok(page)
        }
    }
}

impl Lineage<'_> {
    fn transcript(&self, at: usize) -> Transcript<'_> {
        let Part { path, opened, .. } = &self.parts[at];
        Transcript { format: self.files.format, path, opened }
    }

    /// Opens the file that this one goes on from.
    fn opens_before(&mut self, at: usize) -> io::Result<bool> {
        if at + 1 < self.parts.len() {
            return Ok(true);
        }
        let part = &self.parts[at];
        let Some(base) = base_of(self.files.format, &part.opened)? else { return Ok(false) };
        let circle = self.parts.len() >= DEEPEST;
        let found = if circle { None } else { self.files.base(&base) };
        let Some(path) = found.filter(|path| self.parts.iter().all(|part| part.path != **path)) else {
            let kind = NoticeKind::BaseMissing;
            self.missing = Some(Notice { path: part.path.clone(), offset: Some(0), kind });
            return Ok(false);
        };
        let (path, opened) =
            (path.to_owned(), Opened::at(path, self.files.state_dir).map_err(io::Error::other)?);
        let end = base.end.unwrap_or(u64::MAX).min(opened.size);
        self.parts.push(Part { path, opened, end });
        Ok(true)
    }

    /// Which of the files a place lies in.
    fn spot(&mut self, spot: Spot) -> io::Result<(usize, Spot)> {
        let mut at = 0;
        loop {
            let Opened { file, metadata, size, .. } = &self.parts[at].opened;
            match spot.check(file, metadata, *size)? {
                Ok(()) => return Ok((at, spot)),
                Err(Stale::Replaced) if self.opens_before(at)? => at += 1,
                Err(stale) => return Err(stale.error()),
            }
        }
    }

    /// Puts before a page what is missing of its turns.
    fn back(
        &mut self,
        mut at: usize,
        mut page: TranscriptPage,
        turns: usize,
        limits: Limits,
    ) -> io::Result<TranscriptPage> {
        while page.before.is_none() && self.opens_before(at)? {
            at += 1;
            let (transcript, end) = (self.transcript(at), self.parts[at].end);
            let seen = page.entries.iter().filter(|entry| entry.entry.begins_turn()).count();
            if seen >= turns {
                page.before = Some(transcript.cursor(end)?);
                break;
            }
            let mut before = transcript.back(Some(transcript.place(end)?), turns - seen, limits)?;
            before.entries.append(&mut page.entries);
            before.notices.append(&mut page.notices);
            page = TranscriptPage { after: page.after, ..before };
        }
        if let Some(missing) = self.missing.take() {
            page.notices.insert(0, missing);
        }
        Ok(page)
    }

    fn forth(&self, at: usize, begin: u64, records: usize, limits: Limits) -> io::Result<TranscriptPage> {
        let (transcript, end) = (self.transcript(at), self.parts[at].end);
        let mut page = transcript.forth(begin, end, records, limits)?;
        page.before = page.before.or(match self.parts.get(at + 1) {
            Some(before) => Some(self.transcript(at + 1).cursor(before.end)?),
            None => None,
        });
        Ok(page)
    }
}
