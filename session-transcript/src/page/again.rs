//! What an agent wrote a second time: a compaction may append records anew that it summarised before, as old as they were and
//! under other ids. They are no turns of their own, so a page leaves them out. Whether one stands earlier in the file is looked
//! up by its time, in a bounded number of reads however large the file is: of files up to some 64 MB, each is found.

use std::io;
use std::ops::Range;

use session_core::Timestamp;
use session_core::history::{Entry, EntryKind, Located, Span};

use super::{Forwards, Limits, Transcript};

/// At how many places between the beginning and a message the time is asked for, and how far they lie apart at least.
const PLACES: u64 = 64;
const APART: u64 = 64 << 10;

/// How much is read at once for a time, and where it is given up.
const GLANCE: u64 = 16 << 10;
const GLANCES: u64 = 1 << 20;

/// How many lines after the last one that was found the next one is looked for.
const NEXT: usize = 8;

/// How much is read on from a place.
const ON: u64 = 1 << 20;

/// How many messages are looked for in vain, where clocks went back, and how many in all.
const IN_VAIN: usize = 4;
const LOOKS: usize = 64;

/// A message in the file, as far as it is compared.
#[derive(Debug, Clone, Copy)]
struct Message {
    offset: u64,
    time: Timestamp,
    print: u64,
}

/// Tells of records, one after the other in the order of the file, which of them stand in it before.
pub(super) struct Again<'t> {
    transcript: Transcript<'t>,
    /// Whether also anything before the first one is looked at.
    looks: bool,
    latest: Option<Timestamp>,
    again: bool,
    ahead: Option<Forwards<'t>>,
    in_vain: usize,
    looked: usize,
}

impl<'t> Again<'t> {
    pub(super) const fn new(transcript: Transcript<'t>, looks: bool) -> Self {
        // Of the first one, it is not known what came before it.
        Self { transcript, looks, latest: None, again: looks, ahead: None, in_vain: 0, looked: 0 }
    }

    /// Whether it stands before; `previous`: the message that came before it.
    pub(super) fn is_again(&mut self, previous: Option<&Entry>, located: &Located) -> io::Result<bool> {
        let Located { entry, span, .. } = located;
        let (Some(time), Some(span), true) = (entry.time, span, is_message(entry)) else { return Ok(false) };
        // A line that was written twice.
        if previous.is_some_and(|it| it.id.is_some() && it == entry) {
            return Ok(true);
        }
        if self.looks && (self.again || self.latest > Some(time)) {
            self.again = match message(self.transcript, *span)? {
                Some(message) => {
                    is_next(self.transcript, message, self.ahead.as_mut())? || self.is_earlier(message)?
                }
                None => false,
            };
        }
        if !self.again {
            self.latest = Some(time);
        }
        Ok(self.again)
    }

    fn is_earlier(&mut self, message: Message) -> io::Result<bool> {
        if self.in_vain >= IN_VAIN || self.looked >= LOOKS {
            return Ok(false);
        }
        self.looked += 1;
        let mut original = earlier(self.transcript, message)?;
        if let Some(it) = original
            && !other_times_between(self.transcript, it, message)?
        {
            original = None;
        }
        self.ahead = original.map(|it| lines(self.transcript, it + 1, self.transcript.opened.size));
        self.in_vain += usize::from(original.is_none());
        Ok(original.is_some())
    }
}

/// Which of these records, in the order of the file, stand in it before; `looks`: also anywhere before the first one.
pub(super) fn repeats<'e>(
    transcript: Transcript<'_>,
    looks: bool,
    entries: impl Iterator<Item = &'e Located>,
) -> io::Result<Vec<bool>> {
    let (mut again, mut previous) = (Again::new(transcript, looks), None);
    entries
        .map(|located| {
            let is_again = again.is_again(previous, located)?;
            if is_message(&located.entry) {
                previous = Some(&located.entry);
            }
            Ok(is_again)
        })
        .collect()
}

pub(super) const fn is_message(entry: &Entry) -> bool {
    use EntryKind::{CompactSummary, Prompt, Reply, Returned};
    matches!(entry.kind, Prompt(_) | Reply(_) | Returned(_) | CompactSummary(_)) && !entry.sidechain
}

fn lines(transcript: Transcript<'_>, from: u64, to: u64) -> Forwards<'_> {
    Forwards::new(&transcript.opened.file, from, to, Limits::PAGE.line)
}

fn message(transcript: Transcript<'_>, span: Span) -> io::Result<Option<Message>> {
    let mut lines = lines(transcript, span.offset, span.offset + span.bytes);
    Ok(lines.next()?.and_then(|line| of_line(transcript, line)))
}

fn of_line(transcript: Transcript<'_>, line: super::Line<'_>) -> Option<Message> {
    let facts = transcript.format.facts(line.text?)?;
    Some(Message { offset: line.offset, time: facts.time?.read()?, print: facts.print? })
}

/// Whether it follows the one that was found last.
fn is_next(
    transcript: Transcript<'_>,
    message: Message,
    ahead: Option<&mut Forwards<'_>>,
) -> io::Result<bool> {
    let Some(ahead) = ahead else { return Ok(false) };
    for _ in 0..NEXT {
        let Some(line) = ahead.next()?.filter(|line| line.offset < message.offset) else { break };
        if of_line(transcript, line).is_some_and(|it| it.print == message.print) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where the same message stands before.
fn earlier(transcript: Transcript<'_>, message: Message) -> io::Result<Option<u64>> {
    let mut low = Some((0, None));
    let apart = (message.offset / PLACES).max(APART);
    let places = (1..).map(|place| place * apart).take_while(|place| *place < message.offset);
    for place in places.chain([message.offset]) {
        let here = time_at(transcript, place, message.offset)?;
        if let Some((offset, before)) = low {
            let reaches = here.is_none_or(|here| here.time >= message.time);
            // Where times fall, what they fall from may reach as far.
            let falls = here.is_some_and(|here| Some(here.time) < before);
            if reaches || falls {
                let (from, to) = if reaches {
                    (closer(transcript, offset, place, message)?, message.offset)
                } else {
                    (offset, place)
                };
                if let Some(found) = read_on(transcript, from..to, message)? {
                    return Ok(Some(found));
                }
            }
        }
        low = here.filter(|here| here.time < message.time).map(|here| (here.offset, Some(here.time)));
    }
    Ok(None)
}

/// The first message behind a place.
fn time_at(transcript: Transcript<'_>, place: u64, end: u64) -> io::Result<Option<Message>> {
    let mut length = GLANCE;
    loop {
        let until = place.saturating_add(length).min(end);
        let mut lines = lines(transcript, place, until);
        // Half a line, most likely.
        lines.next()?;
        while let Some(line) = lines.next()? {
            if let Some(message) = of_line(transcript, line) {
                return Ok(Some(message));
            }
        }
        if until == end || length >= GLANCES {
            return Ok(None);
        }
        length *= 8;
    }
}

/// A place between two from which on it need not be read far.
fn closer(transcript: Transcript<'_>, mut low: u64, mut high: u64, message: Message) -> io::Result<u64> {
    while high - low > APART {
        let middle = low + (high - low) / 2;
        match time_at(transcript, middle, high)? {
            Some(here) if here.time < message.time => low = here.offset,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// Reads on until it is found, or a line begins too far from the first one, or times are past it or fall: from there on, only
/// as far as places lie apart, between which something may have been written again.
fn read_on(transcript: Transcript<'_>, range: Range<u64>, message: Message) -> io::Result<Option<u64>> {
    let farthest = range.start + ON;
    // So far that what begins before can be read to its end.
    let to = range.end.min(farthest + Limits::PAGE.line as u64);
    let (mut lines, mut before, mut past) = (lines(transcript, range.start, to), None, None);
    while let Some(line) = lines.next()?.filter(|line| line.offset <= farthest) {
        let Some(here) = of_line(transcript, line) else { continue };
        if here.time == message.time && here.print == message.print {
            return Ok(Some(here.offset));
        }
        if here.time > message.time || before > Some(here.time) {
            past.get_or_insert(here.offset);
        }
        if past.is_some_and(|past| here.offset - past > APART) {
            break;
        }
        before = Some(here.time);
    }
    Ok(None)
}

/// Whether something of another time stands between an original and what may be written again: if not, times are too coarse
/// to tell it from another message that says the same.
fn other_times_between(transcript: Transcript<'_>, original: u64, message: Message) -> io::Result<bool> {
    let mut lines = lines(transcript, original, message.offset);
    while let Some(line) = lines.next()? {
        if line.offset - original > ON {
            break;
        }
        if of_line(transcript, line).is_some_and(|it| it.time != message.time) {
            return Ok(true);
        }
    }
    Ok(false)
}
