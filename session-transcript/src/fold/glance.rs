//! The beginning and the end of a file, where the rest is not worth the time: no more of both than tells what a list shows.

use std::io;

use session_core::TranscriptFormat;

use super::part::Part;
use super::{Digest, Memory};

/// How much of the beginning and of the end is read first.
pub(crate) const FIRST: u64 = 8 << 10;
/// How much of both is looked through for a title.
const WINDOW: u64 = 64 << 10;
/// How much of the beginning is read at the most, where the first prompt is longer.
const LONGEST_HEAD: u64 = 16 << 20;
/// How much of the end is read at the most, where the last record is longer.
const LONGEST_TAIL: u64 = 4 << 20;

/// Reads so many bytes from there on, as far as they are there, behind what the buffer holds.
pub(crate) type ReadAt<'a> = dyn FnMut(u64, u64, &mut Vec<u8>) -> io::Result<()> + 'a;

/// Buffers that are used again.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Digest {
    /// Looks at both ends of a file of that size.
    pub(crate) fn of_ends(
        format: &dyn TranscriptFormat,
        size: u64,
        read: &mut ReadAt<'_>,
        Buffers { head, tail }: &mut Buffers,
    ) -> io::Result<Self> {
        head.clear();
        let mut parts = Parts { format, digest: Self::default() };
        let mut begun = 0;
        let mut window = FIRST;
        loop {
            let more = window.min(size).saturating_sub(head.len() as u64);
            read(head.len() as u64, more, head)?;
            let lines = memchr::memrchr(b'\n', &head[begun..]).map_or(0, |end| end + 1);
            parts.take(&head[begun..begun + lines]);
            begun += lines;
            let talk = parts.digest.notes.talk();
            let enough = talk.first_prompt.is_some() || (window >= WINDOW && talk.said);
            if enough || window >= LONGEST_HEAD.min(size) {
                break;
            }
            window = wider(window);
        }
        parts.end(size, begun as u64, head, read, tail)?;
        let mut digest = parts.digest;
        digest.memory = Memory::default();
        (digest.folded, digest.notices, digest.notices_left_out) = (0, Vec::new(), 0);
        Ok(digest)
    }
}

/// From the first piece over one of three to a whole window, and from there on in larger steps.
const fn wider(window: u64) -> u64 {
    if window < WINDOW / 4 {
        window * 3
    } else if window < WINDOW {
        WINDOW
    } else {
        window * 4
    }
}

/// What was read so far, in the order of the file.
struct Parts<'a> {
    format: &'a dyn TranscriptFormat,
    digest: Digest,
}

impl Parts<'_> {
    fn take(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let part = Part::glance(self.format, bytes);
            self.digest.take(part, (0, bytes.len() as u64, false));
        }
    }

    /// Reads the end, but nothing of the first `begun` bytes: back to a whole record, and a title, if one is near.
    fn end(
        &mut self,
        size: u64,
        begun: u64,
        head: &mut Vec<u8>,
        read: &mut ReadAt<'_>,
        tail: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut window = FIRST;
        let (width, part, lines) = loop {
            let start = size.saturating_sub(window).max(begun);
            tail.clear();
            read(start, size - start, tail)?;
            // Where it does not begin with what was read before, the first line may be half of one.
            let whole = if start == begun {
                0
            } else {
                memchr::memchr(b'\n', tail).map_or(tail.len(), |end| end + 1)
            };
            let part = Part::glance(self.format, &tail[whole..]);
            let talk = part.notes.talk();
            let has_time = part.notes.updated.is_some();
            let has_place = talk.cwd.is_some() || self.digest.notes.talk().cwd.is_none();
            if start == begun || (has_time && (has_place || window > FIRST)) || window >= LONGEST_TAIL {
                break (tail.len() - whole, part, start + whole as u64);
            }
            window = wider(window);
        };
        if let Some(mark) = self.format.title_mark()
            && part.notes.given.is_none()
        {
            let finder = memchr::memmem::Finder::new(mark);
            let before = size.saturating_sub(WINDOW).max(begun).min(lines);
            tail.clear();
            read(before, lines - before, tail)?;
            let titled = marked(&finder, tail);
            // The beginning is looked through only where there is no title at all.
            let titles = [&part.notes.made_up, &self.digest.notes.made_up, &self.digest.notes.given];
            if titled.is_empty() && titles.iter().all(|title| title.is_none()) {
                let until = WINDOW.min(before).max(head.len() as u64);
                read(head.len() as u64, until - head.len() as u64, head)?;
                for line in marked(&finder, &head[begun as usize..]) {
                    self.take(line);
                }
            }
            for line in titled {
                self.take(line);
            }
        }
        self.digest.take(part, (0, width as u64, false));
        Ok(())
    }
}

/// The lines that hold the mark, each with its end.
fn marked<'a>(finder: &memchr::memmem::Finder<'_>, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let mut lines = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&bytes[from..]).map(|at| from + at) {
        let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
        // Half a line at the end is none.
        let Some(end) = memchr::memchr(b'\n', &bytes[at..]).map(|end| at + end + 1) else { break };
        lines.push(&bytes[start..end]);
        from = end;
    }
    lines
}
