//! The messages that begin in a piece of a file.

use std::collections::HashMap;
use std::io;

use memchr::memchr;
use session_core::Timestamp;
use session_core::history::RecordId;

use super::{Limits, Message, Transcript, lines};
use crate::page::read_at;

/// Messages in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Cell {
    messages: Vec<Message>,
    /// Which of them are of another time than the one before.
    changes: Vec<usize>,
    /// Where a message begins first that has this print; and where, among those, one with this id.
    firsts: HashMap<(u64, Option<RecordId>), u64>,
}

impl Cell {
    /// Of a place on, so many bytes; the last line may end behind them.
    pub(super) fn read(transcript: Transcript<'_>, begin: u64, bytes: u64) -> io::Result<Self> {
        let (size, mut cell) = (transcript.opened.size, Self::default());
        let (from, end) = (begin.saturating_sub(1), begin.saturating_add(bytes).min(size));
        if begin >= end {
            return Ok(cell);
        }
        let mut buffer = vec![0; usize::try_from(end - from).unwrap_or_default()];
        read_at(&transcript.opened.file, &mut buffer, from)?;
        // What begins before belongs to the piece before.
        let mut at = if begin == 0 { Some(0) } else { memchr(b'\n', &buffer).map(|newline| newline + 1) };
        while let Some(line) = at.filter(|line| *line < buffer.len()) {
            let (offset, text) = (from + line as u64, &buffer[line..]);
            let newline = memchr(b'\n', text);
            if let Some(newline) = newline {
                cell.take(Message::of(transcript, offset, &text[..newline]));
            } else {
                let to = size.min(offset + Limits::PAGE.line as u64);
                let line =
                    lines(transcript, offset, to).next()?.and_then(|it| Message::of_line(transcript, it));
                cell.take(line);
            }
            at = newline.map(|newline| line + newline + 1);
        }
        Ok(cell)
    }

    fn take(&mut self, message: Option<Message>) {
        let Some(message) = message else { return };
        let Message { offset, time, print, id } = message;
        if self.messages.last().is_some_and(|before| before.time != time) {
            self.changes.push(self.messages.len());
        }
        self.messages.push(message);
        self.firsts.entry((print, None)).or_insert(offset);
        if id.is_some() {
            self.firsts.entry((print, id)).or_insert(offset);
        }
    }

    /// The message that begins there.
    pub(super) fn at(&self, offset: u64) -> Option<Message> {
        let at = self.messages.binary_search_by_key(&offset, |it| it.offset).ok()?;
        Some(self.messages[at])
    }

    /// Whether the very record stands in it, before itself.
    pub(super) fn has_same(&self, message: Message) -> bool {
        let first = message.id.and_then(|id| self.firsts.get(&(message.print, Some(id))));
        first.is_some_and(|first| *first < message.offset)
    }

    /// Where a message that is like it begins first, before it.
    pub(super) fn original(&self, message: Message) -> Option<u64> {
        let first = *self.firsts.get(&(message.print, None))?;
        (first < message.offset && self.at(first)?.time == message.time).then_some(first)
    }

    /// Whether a message of another time begins behind the one place and before the other.
    pub(super) fn has_other_time(&self, behind: u64, before: u64, time: Timestamp) -> bool {
        let next = self.messages.partition_point(|it| it.offset <= behind);
        let change = self.changes.partition_point(|change| *change <= next);
        let other = match self.messages.get(next) {
            Some(it) if it.time != time => Some(it.offset),
            _ => self.changes.get(change).map(|change| self.messages[*change].offset),
        };
        other.is_some_and(|offset| offset < before)
    }
}
