//! Lines of a file from a place in it, backwards or forwards, in bounded memory.

use std::fs::File;
use std::io;

use memchr::{memchr, memrchr};

use crate::buffer;

/// How much is read at once: enough for a disk, and little beside what a processor has at hand.
pub(crate) const BLOCK: usize = 128 << 10;

/// A line, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Where it begins.
    pub(crate) offset: u64,
    /// How many bytes it has.
    pub(crate) length: u64,
    /// What stands there; `None`: it is longer than the limit.
    pub(crate) text: Option<&'a [u8]>,
    /// Whether a newline follows.
    pub(crate) ended: bool,
}

impl<'a> Line<'a> {
    /// What stands in it from a place on.
    pub(crate) fn rest(&self, from: u64) -> &'a [u8] {
        let skipped = usize::try_from(from - self.offset).unwrap_or(usize::MAX);
        self.text.and_then(|text| text.get(skipped..)).unwrap_or_default()
    }
}

/// Lines before a place, the last one first.
#[derive(Debug)]
pub(crate) struct Backwards<'a> {
    file: &'a File,
    limit: usize,
    /// What was read and not handed out yet is `buffer[head..tail]`.
    buffer: Vec<u8>,
    head: usize,
    tail: usize,
    /// Where in the file `buffer[head]` lies.
    at: u64,
    /// Whether a newline follows what lies before `tail`.
    ended: bool,
    done: bool,
}

impl<'a> Backwards<'a> {
    /// The lines before `end`; a line longer than `limit` is not handed out.
    pub(crate) fn new(file: &'a File, end: u64, limit: usize) -> Self {
        let buffer = buffer::take();
        let room = buffer.len();
        Self { file, limit, buffer, head: room, tail: room, at: end, ended: false, done: false }
    }

    /// The line before; first of all, what stands behind the last newline, empty or not.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.done {
            return Ok(None);
        }
        // Behind this place, it is known, there is no newline.
        let mut looked = self.tail;
        // Bytes of a line that is too long, which were thrown away.
        let mut dropped = 0_u64;
        loop {
            let newline = memrchr(b'\n', &self.buffer[self.head..looked]);
            if newline.is_none() && self.at > 0 {
                if self.tail - self.head > self.limit {
                    dropped += (self.tail - self.head) as u64;
                    self.tail = self.head;
                }
                let read = self.read_before()?;
                looked = self.head + read;
                continue;
            }
            let begin = newline.map_or(self.head, |at| self.head + at + 1);
            let length = (self.tail - begin) as u64 + dropped;
            let offset = self.at + (begin - self.head) as u64;
            let text = begin..self.tail;
            let ended = self.ended;
            match newline {
                Some(at) => (self.tail, self.ended) = (self.head + at, true),
                None => self.done = true,
            }
            let fits = length <= self.limit as u64;
            return Ok(Some(Line { offset, length, text: fits.then(|| &self.buffer[text]), ended }));
        }
    }

    /// Puts what lies before in front, and says how much it is.
    fn read_before(&mut self) -> io::Result<usize> {
        let read = usize::try_from(self.at).unwrap_or(BLOCK).min(BLOCK);
        if self.head < read {
            let kept = self.tail - self.head;
            if kept + read > self.buffer.len() {
                // Much more each time, since new memory costs more than what it is filled with; the limit and a block always do.
                let room = (4 * self.buffer.len()).min(self.limit + BLOCK).max(2 * BLOCK).max(kept + read);
                let mut larger = vec![0; room];
                larger[room - kept..].copy_from_slice(&self.buffer[self.head..self.tail]);
                self.buffer = larger;
            } else {
                let room = self.buffer.len();
                self.buffer.copy_within(self.head..self.tail, room - kept);
            }
            self.tail = self.buffer.len();
            self.head = self.tail - kept;
        }
        let begin = self.head - read;
        self.at -= read as u64;
        read_at(self.file, &mut self.buffer[begin..self.head], self.at)?;
        self.head = begin;
        Ok(read)
    }
}

impl Drop for Backwards<'_> {
    fn drop(&mut self) {
        buffer::keep(std::mem::take(&mut self.buffer));
    }
}

/// Lines from a place on.
#[derive(Debug)]
pub(crate) struct Forwards<'a> {
    file: &'a File,
    limit: usize,
    /// Where the file ends for this reader.
    end: u64,
    buffer: Vec<u8>,
    head: usize,
    tail: usize,
    /// Where in the file `buffer[head]` lies.
    at: u64,
}

impl<'a> Forwards<'a> {
    /// The lines from `at` to `end`; a line longer than `limit` is not handed out.
    pub(crate) fn new(file: &'a File, at: u64, end: u64, limit: usize) -> Self {
        Self { file, limit, end, buffer: Vec::new(), head: 0, tail: 0, at }
    }

    /// The next line; last of all, what stands behind the last newline, if anything does.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let offset = self.at;
        let mut looked = self.head;
        let mut dropped = 0_u64;
        loop {
            let newline = memchr(b'\n', &self.buffer[looked..self.tail]).map(|at| looked + at);
            let left = self.end.saturating_sub(self.at + (self.tail - self.head) as u64);
            if newline.is_none() && left > 0 {
                if self.tail - self.head > self.limit {
                    dropped += (self.tail - self.head) as u64;
                    self.at += (self.tail - self.head) as u64;
                    self.head = self.tail;
                }
                let kept = self.tail - self.head;
                self.read_behind(left)?;
                looked = self.head + kept;
                continue;
            }
            let text = self.head..newline.unwrap_or(self.tail);
            let length = text.len() as u64 + dropped;
            let next = newline.map_or(self.tail, |at| at + 1);
            if newline.is_none() && length == 0 {
                return Ok(None);
            }
            self.at += (next - self.head) as u64;
            self.head = next;
            let fits = length <= self.limit as u64;
            let text = fits.then(|| &self.buffer[text]);
            return Ok(Some(Line { offset, length, text, ended: newline.is_some() }));
        }
    }

    fn read_behind(&mut self, left: u64) -> io::Result<()> {
        let read = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        let kept = self.tail - self.head;
        if self.tail + read > self.buffer.len() {
            self.buffer.copy_within(self.head..self.tail, 0);
            (self.head, self.tail) = (0, kept);
            if kept == 0 && read > self.buffer.len() {
                self.buffer = vec![0; read];
            } else if kept + read > self.buffer.len() {
                self.buffer.resize((2 * kept).max(kept + BLOCK), 0);
            }
        }
        let at = self.at + kept as u64;
        read_at(self.file, &mut self.buffer[self.tail..self.tail + read], at)?;
        self.tail += read;
        Ok(())
    }
}

/// Fills the buffer from that place of the file.
#[cfg(unix)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

/// The position of the file is of no meaning to us.
#[cfg(not(unix))]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    use std::io::{Read as _, Seek as _};

    let mut file = file;
    file.seek(io::SeekFrom::Start(at))?;
    file.read_exact(buffer)
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
