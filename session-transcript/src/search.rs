//! Search in what was said: file by file, newest first, each from its end.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use session_core::error::CatalogError;
use session_core::history::{
    FileKind, Hit, HitPlace, Needle, Notice, NoticeKind, Scope, Search, SearchQuery, Searched, SessionKind,
    SessionRoot, SessionSource, Span, Title,
};
use session_core::{Timestamp, TranscriptFormat, async_trait};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::FileCatalog;
use crate::catalog::failed;
use crate::fold::{Buffers, Digest, Filled};
use crate::opened::Opened;
use crate::page::{Backwards, Forwards, Limits, Transcript, read_at};
use crate::parts::{Files, segment, tell_apart};
use crate::scope::Scoped;
use crate::titles::Titles;
use crate::walk::{Seen, Walk, notice};

/// How many hits wait to be asked for.
const WAITING: usize = 64;

/// How much of a beginning is read for the folder that a session began in.
const HEAD: u64 = 1 << 20;

#[derive(Debug)]
struct Running(Receiver<Searched>);

#[async_trait]
impl Search for Running {
    async fn next(&mut self) -> Option<Searched> {
        self.0.recv().await
    }
}

impl<F: TranscriptFormat> FileCatalog<F> {
    pub(crate) fn begin_search(&self, query: &SearchQuery) -> Result<Box<dyn Search>, CatalogError> {
        let refuse = |path: Option<&Path>, why: &str| {
            let path = path.unwrap_or(Path::new(""));
            failed(path, io::Error::new(io::ErrorKind::InvalidInput, why))
        };
        let dir = query.state_dir.as_deref();
        let Some(needle) = Needle::new(&query.words) else {
            return Err(refuse(dir, "there is nothing to search for"));
        };
        let roots = self.format.roots(dir);
        if roots.is_empty() {
            return Err(refuse(dir, "it is not known where sessions lie"));
        }
        let (sender, receiver) = channel(WAITING);
        let (format, limit, mut query) = (Arc::clone(&self.format), self.search_limit, query.clone());
        query.with_sidechains |= query.kinds.contains(&SessionKind::Sidechain);
        tokio::task::spawn_blocking(move || {
            let left = query.limit.unwrap_or(usize::MAX);
            let scoped = Scoped::new(&query.scope);
            let mut searcher =
                Searcher { format: &*format, query: &query, needle: &needle, sender: &sender, scoped, left };
            // It ends early when nobody listens any more, or all were found.
            let _ = searcher.run(&roots, limit);
        });
        Ok(Box::new(Running(receiver)))
    }
}

/// Nobody listens any more, or the limit was reached.
#[derive(Debug)]
struct Over;

struct Searcher<'a> {
    format: &'a dyn TranscriptFormat,
    query: &'a SearchQuery,
    needle: &'a Needle,
    sender: &'a Sender<Searched>,
    scoped: Scoped,
    /// How many hits are still wanted.
    left: usize,
}

impl Searcher<'_> {
    fn run(&mut self, roots: &[SessionRoot], limit: usize) -> Result<(), Over> {
        let state_dir = match self.query.state_dir.as_deref().map(Path::canonicalize).transpose() {
            Ok(dir) => dir,
            // What is not there holds nothing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                let path = self.query.state_dir.clone().unwrap_or_default();
                return self.tell(notice(&path, &error));
            }
        };
        let walk = Walk {
            format: self.format,
            state_dir: state_dir.as_deref(),
            sidechains: self.query.with_sidechains,
            only: None,
            names: &[],
            limit,
            plain: None,
        };
        let mut walked = walk.run(roots);
        for notice in walked.notices {
            self.tell(notice)?;
        }
        walked.files.sort_by(|one, other| {
            (other.stamp.modified, one.file.packed, &one.path).cmp(&(
                one.stamp.modified,
                other.file.packed,
                &other.path,
            ))
        });
        let files = Files::new(self.format, roots, state_dir.as_deref(), limit);
        tell_apart(&files, &mut walked.files);
        let mut notices = Vec::new();
        let titles =
            Titles::read(self.format, self.query.state_dir.as_deref(), state_dir.as_deref(), &mut notices);
        for notice in notices {
            self.tell(notice)?;
        }
        let (mut searched, mut titled) = (HashSet::new(), HashSet::new());
        for seen in &walked.files {
            // Another part of a session is no older copy of it.
            let part = (seen.file.id.clone(), segment(self.format, &seen.path));
            if seen.file.kind == FileKind::Session && !searched.insert(part) {
                self.tell(Notice { path: seen.path.clone(), offset: None, kind: NoticeKind::OlderCopy })?;
                continue;
            }
            let title = titles.get(&seen.file.id).filter(|_| titled.insert(seen.file.id.clone()));
            self.file(seen, title)?;
        }
        Ok(())
    }

    fn tell(&self, notice: Notice) -> Result<(), Over> {
        self.sender.blocking_send(Searched::Notice(notice)).map_err(|_| Over)
    }

    fn file(&mut self, seen: &Seen, title: Option<&Title>) -> Result<(), Over> {
        let path = &seen.path;
        let opened = match Opened::at(path, self.query.state_dir.as_deref()) {
            Ok(opened) => opened,
            Err(error) => return self.tell(notice(path, &error.source)),
        };
        let read = self.transcript(Transcript { format: self.format, path, opened: &opened }, seen, title);
        read.unwrap_or_else(|error| self.tell(notice(path, &error)))
    }

    fn transcript(
        &mut self,
        transcript: Transcript<'_>,
        seen: &Seen,
        title: Option<&Title>,
    ) -> io::Result<Result<(), Over>> {
        let (mut began, mut kind) = (None, None);
        if let Some((excerpt, matched)) = title.and_then(|title| self.needle.find(&title.text))
            && self.is_in_scope(transcript, b"", &mut began)
            && self.is_of_kind(transcript, seen, &mut kind)?
            && let Err(over) = self.found(seen, HitPlace::Title, None, None, (excerpt, matched))
        {
            return Ok(Err(over));
        }
        let mut lines = Backwards::new(&transcript.opened.file, transcript.opened.size, Limits::PAGE.line);
        while let Some(line) = lines.next()? {
            if self.sender.is_closed() {
                return Ok(Err(Over));
            }
            if line.text.is_some_and(|text| !self.needle.may_be_in([text])) {
                continue;
            }
            let mut notices = Vec::new();
            let read = transcript.read_located(line, &mut notices);
            for notice in notices {
                if let Err(over) = self.tell(notice) {
                    return Ok(Err(over));
                }
            }
            let Some(located) = read else { continue };
            if located.entry.sidechain && !self.query.with_sidechains {
                continue;
            }
            let Some((place, excerpt, matched)) = self.needle.find_in(&located.entry.kind) else { continue };
            if !self.is_of_kind(transcript, seen, &mut kind)? {
                break;
            }
            if !self.is_in_scope(transcript, line.text.unwrap_or_default(), &mut began) {
                continue;
            }
            if let Err(over) = self.found(seen, place, located.span, located.entry.time, (excerpt, matched)) {
                return Ok(Err(over));
            }
        }
        Ok(Ok(()))
    }

    fn found(
        &mut self,
        seen: &Seen,
        place: HitPlace,
        span: Option<Span>,
        time: Option<Timestamp>,
        (excerpt, matched): (String, Range<usize>),
    ) -> Result<(), Over> {
        let source = SessionSource { path: seen.path.clone(), state_dir: self.query.state_dir.clone() };
        let hit = Hit { id: seen.file.id.clone(), source, place, span, time, excerpt, matched };
        let sent = self.left > 0 && self.sender.blocking_send(Searched::Hit(Box::new(hit))).is_ok();
        self.left = self.left.saturating_sub(1);
        if sent && self.left > 0 { Ok(()) } else { Err(Over) }
    }

    /// Whether the session began in one of the folders asked for, or was in one when this was said.
    fn is_in_scope(&mut self, transcript: Transcript<'_>, line: &[u8], began: &mut Option<bool>) -> bool {
        if self.query.scope == Scope::All || *began.get_or_insert_with(|| self.began_in_scope(transcript)) {
            return true;
        }
        folder(transcript.format, line).is_some_and(|folder| self.scoped.holds_folder(&folder))
    }

    /// Whether the session is of a kind that was asked for; its beginning tells.
    fn is_of_kind(
        &self,
        transcript: Transcript<'_>,
        seen: &Seen,
        known: &mut Option<SessionKind>,
    ) -> io::Result<bool> {
        if self.query.kinds.is_empty() {
            return Ok(true);
        }
        let kind = match (*known, seen.file.kind) {
            (Some(kind), _) => kind,
            (None, FileKind::Sidechain) => SessionKind::Sidechain,
            (None, FileKind::Session) => {
                let Opened { file, size, .. } = transcript.opened;
                let mut read = |at: u64, length: u64, into: &mut Filled| {
                    let length = usize::try_from(length).map_err(io::Error::other)?;
                    read_at(file, into.room(length), at)?;
                    into.grow(length);
                    Ok(())
                };
                let ends = Digest::of_ends(transcript.format, *size, &mut read, &mut Buffers::default())?;
                ends.notes.kind()
            }
        };
        *known = Some(kind);
        Ok(self.query.kinds.contains(&kind))
    }

    fn began_in_scope(&mut self, transcript: Transcript<'_>) -> bool {
        let end = transcript.opened.size.min(HEAD);
        let mut head = Forwards::new(&transcript.opened.file, 0, end, Limits::PAGE.line);
        let mut first = None;
        while let Ok(Some(line)) = head.next()
            && first.is_none()
        {
            first = line.text.and_then(|text| folder(transcript.format, text));
        }
        first.is_some_and(|folder| self.scoped.holds_folder(&folder))
    }
}

/// The folder that a line notes.
fn folder(format: &dyn TranscriptFormat, line: &[u8]) -> Option<PathBuf> {
    let cwd = format.facts(line)?.cwd?;
    Some(PathBuf::from(&*cwd))
}
