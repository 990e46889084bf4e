//! What an agent wrote a second time: a compaction may append records anew that it summarised before, as old as they were and
//! under other ids. They are no turns of their own, so a page leaves them out. Whether a message is one is a question to the
//! file before it alone: pages of every size answer it alike. It is looked up by its time, in a bounded number of reads however
//! large the file is; what was read for one message is kept for those beside it.

mod cells;

use std::collections::HashMap;
use std::io;

use session_core::Timestamp;
use session_core::history::{Entry, EntryKind, RecordId};

use self::cells::Cell;
use super::{Forwards, Limits, Line, Transcript};

/// How a file is looked through. All are bytes, but for the count of places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    /// How much is read and kept together; a power of two.
    pub(crate) cell: u64,
    /// At how many places between the beginning and a message the time is asked for, at the most.
    pub(crate) places: u64,
    /// How far before a message everything is looked at, and how far is read on from a place.
    pub(crate) near: u64,
    /// How much is read for all messages of a page; beyond, they are shown.
    pub(crate) most: u64,
}

impl Grid {
    /// In files up to 32 MiB, what is written again once is found wherever it stands.
    pub(crate) const PAGE: Self = Self { cell: 128 << 10, places: 64, near: 1 << 20, most: 64 << 20 };

    /// How far places lie apart: the same for messages that lie near each other.
    fn stride(self, offset: u64) -> u64 {
        (offset / self.places).next_power_of_two().max(self.cell)
    }
}

/// How many cells are kept.
const KEPT: usize = 128;

/// A message in the file, as far as it is compared.
#[derive(Debug, Clone, Copy)]
struct Message {
    offset: u64,
    time: Timestamp,
    print: u64,
    id: Option<RecordId>,
}

impl Message {
    fn of(transcript: Transcript<'_>, offset: u64, text: &[u8]) -> Option<Self> {
        let facts = transcript.format.facts(text)?;
        Some(Self { offset, time: facts.time?.read()?, print: facts.print?, id: facts.id })
    }

    fn of_line(transcript: Transcript<'_>, line: Line<'_>) -> Option<Self> {
        Self::of(transcript, line.offset, line.text?)
    }
}

/// Tells of records, in whatever order, which of them stand in the file before.
pub(super) struct Again<'t> {
    transcript: Transcript<'t>,
    grid: Grid,
    cells: HashMap<u64, Cell>,
    /// The first message behind a place, and its time.
    firsts: HashMap<u64, Option<(u64, Timestamp)>>,
    /// How much may be read yet.
    left: u64,
}

impl<'t> Again<'t> {
    pub(super) fn new(transcript: Transcript<'t>, grid: Grid) -> Self {
        Self { transcript, grid, cells: HashMap::new(), firsts: HashMap::new(), left: grid.most }
    }

    /// Whether the entry, with this text at this place, stands before it.
    pub(super) fn is_again(&mut self, entry: &Entry, offset: u64, text: &[u8]) -> io::Result<bool> {
        if !is_message(entry) {
            return Ok(false);
        }
        let known = self.cell(offset / self.grid.cell)?.at(offset);
        // Behind something else in its line, it is in no cell.
        let Some(message) = known.or_else(|| Message::of(self.transcript, offset, text)) else {
            return Ok(false);
        };
        let (stride, Grid { cell, near, .. }) = (self.grid.stride(offset), self.grid);
        let near_from = offset.saturating_sub((2 * stride).min(near)) / cell * cell;
        let places = (0..).map(|place| place * stride).take_while(|place| *place < near_from);
        for place in places {
            if let Some((from, to)) = self.may_hold(place, stride, message)?
                && self.holds(from, to, message)?
            {
                return Ok(true);
            }
        }
        self.holds(near_from, offset, message)
    }

    /// What is to be looked at of what begins at a place, as far as the times there and at the next place tell.
    fn may_hold(&mut self, place: u64, stride: u64, message: Message) -> io::Result<Option<(u64, u64)>> {
        let before = |first: Option<(u64, Timestamp)>| first.filter(|(at, _)| *at < message.offset);
        let low = before(self.first(place)?).map(|(_, time)| time);
        if low > Some(message.time) {
            return Ok(None);
        }
        let next = place + stride;
        let here = before(self.first(next)?).map(|(_, time)| time);
        let reaches = here.is_none_or(|here| here >= message.time);
        // Where times fall, what they fall from may reach as far.
        let falls = here.is_some() && here < low;
        if !reaches && !falls {
            return Ok(None);
        }
        let far = stride > self.grid.near;
        let from = if reaches && far { self.closer(place, next, message)? } else { place };
        Ok(Some((from, next.min(from + self.grid.near))))
    }

    /// A place between two from which on it need not be read far.
    fn closer(&mut self, mut low: u64, mut high: u64, message: Message) -> io::Result<u64> {
        while high - low > self.grid.cell {
            let middle = low + (high - low) / 2;
            match self.first(middle)? {
                Some((at, time)) if at < message.offset && time < message.time => low = middle,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Whether the same message begins in these cells, before this one.
    fn holds(&mut self, from: u64, to: u64, message: Message) -> io::Result<bool> {
        for number in from / self.grid.cell..=to / self.grid.cell {
            let cell = self.cell(number)?;
            if cell.has_same(message) {
                return Ok(true);
            }
            if let Some(original) = cell.original(message)
                && self.other_times_between(original, message)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether something of another time stands between an original and what may be written again: if not, times are too coarse
    /// to tell it from another message that says the same.
    fn other_times_between(&mut self, original: u64, message: Message) -> io::Result<bool> {
        let to = message.offset.min(original + self.grid.near);
        for number in original / self.grid.cell..=to / self.grid.cell {
            if self.cell(number)?.has_other_time(original, to, message.time) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn cell(&mut self, number: u64) -> io::Result<&Cell> {
        if !self.cells.contains_key(&number) {
            if self.cells.len() >= KEPT {
                self.cells.clear();
            }
            let cell = if self.may_read(self.grid.cell) {
                Cell::read(self.transcript, number * self.grid.cell, self.grid.cell)?
            } else {
                Cell::default()
            };
            self.cells.insert(number, cell);
        }
        Ok(&self.cells[&number])
    }

    /// The first message that begins at a place or not too far behind it.
    fn first(&mut self, place: u64) -> io::Result<Option<(u64, Timestamp)>> {
        if let Some(known) = self.firsts.get(&place) {
            return Ok(*known);
        }
        let first = self.look_for_first(place)?;
        self.firsts.insert(place, first);
        Ok(first)
    }

    fn look_for_first(&mut self, place: u64) -> io::Result<Option<(u64, Timestamp)>> {
        let (size, mut length) = (self.transcript.opened.size, self.grid.cell / 8);
        while place < size && self.may_read(length) {
            let until = place.saturating_add(length).min(size);
            let mut lines = lines(self.transcript, place.saturating_sub(1), until);
            if place > 0 {
                // What ends there, or before.
                lines.next()?;
            }
            while let Some(line) = lines.next()? {
                if let Some(Message { offset, time, .. }) = Message::of_line(self.transcript, line) {
                    return Ok(Some((offset, time)));
                }
            }
            if until == size || length >= self.grid.near {
                break;
            }
            length *= 8;
        }
        Ok(None)
    }

    fn may_read(&mut self, bytes: u64) -> bool {
        let may = self.left >= bytes;
        self.left = self.left.saturating_sub(bytes);
        may
    }
}

pub(super) const fn is_message(entry: &Entry) -> bool {
    use EntryKind::{CompactSummary, Prompt, Reply, Returned};
    matches!(entry.kind, Prompt(_) | Reply(_) | Returned(_) | CompactSummary(_)) && !entry.sidechain
}

fn lines(transcript: Transcript<'_>, from: u64, to: u64) -> Forwards<'_> {
    Forwards::new(&transcript.opened.file, from, to, Limits::PAGE.line)
}

#[cfg(test)]
#[path = "again_tests.rs"]
mod tests;
