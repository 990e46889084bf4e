//! Where a branch ends in the lines of its original, and the lines as it gets them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom, Write};
use std::ops::ControlFlow;

use session_core::{Carried, Heir, RecordFacts, RecordKind, Seam, Spot, TranscriptFormat};

use crate::lines::{LINE_LIMIT, glued};
use crate::scan::scan;

const CHUNK: usize = 128 << 10;

/// How many bytes of the file are kept. `None`: it does not hold the spot.
pub(super) fn end_of(format: &dyn TranscriptFormat, file: &File, keep: &Spot) -> io::Result<Option<u64>> {
    if keep.turns == 0 {
        return Ok(None);
    }
    if let Some(bytes) = keep.bytes
        && is_at(format, file, bytes, keep.turns)?
    {
        return Ok(Some(bytes));
    }
    let mut file = file;
    file.seek(SeekFrom::Start(0))?;
    end_of_turns(format, BufReader::with_capacity(CHUNK, file), keep.turns)
}

/// Whether so many bytes end with a line, and hold so many prompts.
fn is_at(format: &dyn TranscriptFormat, mut file: &File, bytes: u64, turns: u64) -> io::Result<bool> {
    if bytes == 0 || file.metadata()?.len() < bytes {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(bytes - 1))?;
    file.read_exact(&mut last)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(last == *b"\n" && scan(format, file.take(bytes))?.user_turns == turns)
}

/// What stands between two turns so far.
#[derive(Debug, Default)]
struct Gap {
    /// Where what goes with the next prompt begins.
    lead: Option<u64>,
    /// Whether a turn was begun there.
    opened: bool,
}

impl Gap {
    fn pass(&mut self, seam: Seam, at: u64) {
        match seam {
            Seam::Opens => {
                self.lead.get_or_insert(at);
                self.opened = true;
            }
            Seam::Leads => {
                self.lead.get_or_insert(at);
            }
            Seam::Within if self.opened => {}
            Seam::Within | Seam::Closes => *self = Self::default(),
        }
    }
}

/// The end of that turn: where what belongs to the next prompt begins, or the end of the last whole line.
fn end_of_turns(format: &dyn TranscriptFormat, file: impl BufRead, turns: u64) -> io::Result<Option<u64>> {
    let (mut at, mut seen, mut gap, mut end) = (0, 0, Gap::default(), None);
    each_piece(file, LINE_LIMIT, &mut |piece| {
        let (line, length) = match piece {
            Piece::Line(line) => (line, line.len() as u64),
            Piece::Long(part) => {
                // Nobody knows what it is; a look leaves it out, too.
                gap = Gap::default();
                at += part.len() as u64;
                return Ok(ControlFlow::Continue(()));
            }
        };
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        match kind_of(format, text) {
            Some(RecordKind::Prompt) if seen == turns => {
                end = Some(gap.lead.unwrap_or(at));
                return Ok(ControlFlow::Break(()));
            }
            Some(RecordKind::Prompt) => {
                seen += 1;
                gap = Gap::default();
            }
            // What is being written, or was cut, is left out.
            None if text.len() == line.len() => return Ok(ControlFlow::Continue(())),
            _ if text.trim_ascii().is_empty() => {}
            _ => gap.pass(format.seam(text), at),
        }
        at += length;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(end.or((seen == turns).then_some(at)))
}

/// What a line counts as, by the same rule as a look has.
fn kind_of(format: &dyn TranscriptFormat, line: &[u8]) -> Option<RecordKind> {
    let counts = |facts: &RecordFacts| facts.kind != RecordKind::Other;
    let facts = format.record(line).or_else(|| glued(line, |rest| format.record(rest).filter(counts)));
    facts.map(|facts| facts.kind)
}

/// Copies the lines as the branch gets them. The last one gets its end.
pub(super) fn copy(
    format: &dyn TranscriptFormat,
    file: impl Read,
    out: &mut impl Write,
    heir: &Heir<'_>,
) -> io::Result<()> {
    each_piece(BufReader::with_capacity(CHUNK, file), LINE_LIMIT, &mut |piece| {
        match piece {
            Piece::Long(part) => out.write_all(part)?,
            Piece::Line(line) => {
                let text = line.strip_suffix(b"\n").unwrap_or(line);
                match format.carried(text, heir) {
                    Carried::AsItIs => out.write_all(text)?,
                    Carried::Anew(anew) => out.write_all(&anew)?,
                    Carried::LeftOut => return Ok(ControlFlow::Continue(())),
                }
                out.write_all(b"\n")?;
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// A line with its end, if it has one; or a part of one that is too long.
enum Piece<'a> {
    Line(&'a [u8]),
    Long(&'a [u8]),
}

/// Hands on every line, in bounded memory.
fn each_piece(
    mut file: impl BufRead,
    limit: usize,
    each: &mut dyn FnMut(Piece<'_>) -> io::Result<ControlFlow<()>>,
) -> io::Result<()> {
    let (mut carried, mut is_long) = (Vec::new(), false);
    loop {
        let chunk = match file.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            if !carried.is_empty() {
                let _last = each(Piece::Line(&carried))?;
            }
            return Ok(());
        }
        let end = memchr::memchr(b'\n', chunk).map(|at| at + 1);
        let piece = &chunk[..end.unwrap_or(chunk.len())];
        let length = piece.len();
        let mut flow = ControlFlow::Continue(());
        if is_long || carried.len() + length > limit + 1 {
            if !carried.is_empty() {
                flow = each(Piece::Long(&carried))?;
                carried.clear();
            }
            if flow.is_continue() {
                flow = each(Piece::Long(piece))?;
            }
            is_long = end.is_none();
        } else if end.is_some() && carried.is_empty() {
            flow = each(Piece::Line(piece))?;
        } else {
            carried.extend_from_slice(piece);
            if end.is_some() {
                flow = each(Piece::Line(&carried))?;
                carried.clear();
            }
        }
        if flow.is_break() {
            return Ok(());
        }
        file.consume(length);
    }
}
