//! What can be had back of a session: one pass over its file, and a look at the few lines that it points to.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use session_core::NativeId;
use session_core::history::{
    Block, Boundary, EntryKind, Located, Notice, NoticeKind, OpenCall, Restored, Span,
};

use crate::find::{Found, is_absent, open};
use crate::fold::{Digest, Replies};
use crate::index::Index;
use crate::page::{Limits, Transcript};
use crate::parts::Files;
use crate::read::Reader;
use crate::stamp::now;

/// How many bytes of a summary are kept, and of all of them.
const SUMMARY: usize = 256 << 10;
const SUMMARIES: usize = 8 << 20;

/// How many files of helpers are read.
const HELPERS: usize = 10_000;

pub(crate) fn restore(
    files: &Files<'_>,
    id: &NativeId,
    transcript: Transcript<'_>,
    state_dir: Option<&Path>,
) -> io::Result<Restored> {
    let (digest, is_missing) = read(files, transcript)?;
    let (mut notices, left_out) = digest.notices(transcript.path);
    if is_missing {
        let (path, kind) = (transcript.path.to_owned(), NoticeKind::BaseMissing);
        notices.push(Notice { path, offset: Some(0), kind });
    }
    if left_out > 0 || digest.marks.left_out {
        let path = transcript.path.to_owned();
        notices.push(Notice { path, offset: None, kind: NoticeKind::LimitReached });
    }
    let mut replies = Replies::default();
    replies.take_all(digest.spent());
    helpers(transcript, state_dir, &mut replies, &mut notices);
    let talk = digest.notes.talk();
    Ok(Restored {
        title: digest.title(),
        boundaries: boundaries(transcript, &digest)?,
        turns: digest.turns,
        live_messages: digest.messages,
        all_messages: digest.all_messages,
        usage: digest.running(id),
        usage_with_copied: digest.running_total().unwrap_or(digest.usage),
        usage_of_sidechains: replies.sum(|spent| spent.sidechain),
        cost_usd: digest.marks.cost(),
        open_calls: open_calls(transcript)?,
        model: talk.model.clone(),
        cwd: talk.last_cwd.clone(),
        branch: talk.branch.clone(),
        notices,
    })
}

/// What the file holds with those that it goes on from, and whether one of these is missing.
fn read(files: &Files<'_>, transcript: Transcript<'_>) -> io::Result<(Digest, bool)> {
    let (index, count) = (Index::default(), AtomicU64::new(0));
    let reader = Reader {
        format: transcript.format,
        index: &index,
        state_dir: files.state_dir,
        exact: true,
        count: &count,
        clock: now,
        files,
    };
    reader.lineage(transcript.opened)
}

/// The compactions, each with the summary that follows it. Of those in other files, it is known when they came.
fn boundaries(transcript: Transcript<'_>, digest: &Digest) -> io::Result<Vec<Boundary>> {
    let marks = &digest.marks;
    let mut left = SUMMARIES;
    let before = |turns_before: &u64| Boundary {
        span: None,
        time: None,
        turns_before: *turns_before,
        summary: None,
        anchored: false,
    };
    let mut all: Vec<Boundary> = marks.inherited.iter().map(before).collect();
    for (at, (offset, turns_before)) in marks.boundaries.iter().enumerate() {
        let next = marks.boundaries.get(at + 1).map_or(u64::MAX, |(next, _)| *next);
        let found = transcript.line_at(*offset)?;
        let summary = marks.summaries.iter().find(|summary| (*offset..next).contains(*summary));
        let summary = summary.map(|summary| transcript.line_at(*summary)).transpose()?.flatten();
        let summary = summary.and_then(|(located, _)| match located.entry.kind {
            EntryKind::CompactSummary(text) => Some(cut(text, SUMMARY)),
            _ => None,
        });
        let summary = summary.filter(|text| {
            let fits = text.len() <= left;
            left -= if fits { text.len() } else { 0 };
            fits
        });
        let (span, time, anchored) = found
            .map_or((None, None, false), |(located, anchored)| (located.span, located.entry.time, anchored));
        let span = span.or(Some(Span { offset: *offset, bytes: 0 }));
        all.push(Boundary { span, time, turns_before: *turns_before, summary, anchored });
    }
    Ok(all)
}

fn cut(mut text: String, most: usize) -> String {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
    text
}

/// Calls of the last turn that nothing was returned for.
fn open_calls(transcript: Transcript<'_>) -> io::Result<Vec<OpenCall>> {
    let turn = transcript.back(None, 1, Limits::PAGE)?;
    let mut open: HashMap<String, (usize, String)> = HashMap::new();
    for (at, Located { entry, .. }) in
        turn.entries.into_iter().enumerate().filter(|(_, it)| !it.entry.sidechain)
    {
        let (EntryKind::Reply(blocks) | EntryKind::Returned(blocks)) = entry.kind else { continue };
        for block in blocks {
            match block {
                Block::ToolCall { id, name, .. } => {
                    open.insert(id, (at, name));
                }
                Block::ToolResult { id, .. } => {
                    open.remove(&id);
                }
                _ => {}
            }
        }
    }
    let mut open: Vec<_> = open.into_iter().map(|(id, (at, name))| (at, OpenCall { id, name })).collect();
    open.sort_by(|(at, one), (other_at, other)| (at, &one.id).cmp(&(other_at, &other.id)));
    Ok(open.into_iter().map(|(_, call)| call).collect())
}

/// Adds what the helpers of the session cost.
fn helpers(
    transcript: Transcript<'_>,
    state_dir: Option<&Path>,
    replies: &mut Replies,
    notices: &mut Vec<Notice>,
) {
    let mut note = |path: &Path, why: String| {
        notices.push(Notice { path: path.to_owned(), offset: None, kind: NoticeKind::Unreadable(why) });
    };
    let Some(folder) = transcript.format.helpers(transcript.path) else { return };
    let files = match fs::read_dir(&folder) {
        Ok(files) => files,
        Err(error) if is_absent(&error) => return,
        Err(error) => return note(&folder, error.to_string()),
    };
    let files = files
        .flatten()
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"));
    let mut files: Vec<PathBuf> = files.take(HELPERS + 1).collect();
    if files.len() > HELPERS {
        files.truncate(HELPERS);
        note(&folder, format!("it holds more than {HELPERS} files"));
    }
    for path in files {
        let read = match open(&path, state_dir) {
            Ok(Found::File(_, file)) => {
                let mut digest = Digest::default();
                digest.fold(transcript.format, file).map(|_| replies.take_all(digest.spent()))
            }
            Ok(Found::Nothing) => Ok(()),
            Ok(Found::Unusable(_)) => Err(io::Error::other("it may not be read")),
            Err(error) => Err(io::Error::other(error)),
        };
        if let Err(error) = read {
            note(&path, error.to_string());
        }
    }
}
