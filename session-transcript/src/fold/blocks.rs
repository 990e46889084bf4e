//! A file in blocks of whole lines.

use std::io::{self, Read};

use crate::lines::LINE_LIMIT;

/// Some whole lines.
#[derive(Debug)]
pub(super) struct Block {
    /// Where it begins in the file.
    pub(super) start: u64,
    buffer: Vec<u8>,
    from: usize,
    length: usize,
    /// The length of a line that is left out, because it is too long, in place of lines; and whether it ended.
    pub(super) too_long: Option<(u64, bool)>,
}

impl Block {
    /// The lines, each with its end. Of the last block, the last line may have none.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.from..self.length]
    }

    /// Leaves its first bytes out.
    pub(super) fn start_at(&mut self, bytes: usize) {
        self.from += bytes;
        self.start += bytes as u64;
    }

    /// How many bytes of the file it stands for.
    pub(super) fn width(&self) -> u64 {
        self.too_long.map_or((self.length - self.from) as u64, |(length, _)| length)
    }

    /// Its buffer, for another block.
    pub(super) fn recycle(self) -> Vec<u8> {
        self.buffer
    }
}

/// Cuts a file into blocks.
#[derive(Debug)]
pub(super) struct Blocks<R> {
    input: R,
    /// The start of the line that the last block ended in.
    carried: Vec<u8>,
    at: u64,
    size: usize,
    limit: usize,
    ended: bool,
}

impl<R: Read> Blocks<R> {
    /// Blocks of about `size` bytes; the first one begins at `at`.
    pub(super) const fn new(input: R, at: u64, size: usize) -> Self {
        Self { input, carried: Vec::new(), at, size, limit: LINE_LIMIT, ended: false }
    }

    #[cfg(test)]
    pub(super) const fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Whether there is none any more.
    pub(super) const fn is_ended(&self) -> bool {
        self.ended
    }

    /// The next one, in a buffer that was used before.
    pub(super) fn next(&mut self, mut buffer: Vec<u8>) -> io::Result<Option<Block>> {
        if self.ended {
            return Ok(None);
        }
        let mut length = self.carried.len();
        grow(&mut buffer, self.size.max(length));
        buffer[..length].copy_from_slice(&self.carried);
        self.carried.clear();
        loop {
            if length == buffer.len() {
                // Not one line fitted in.
                if length > self.limit {
                    return self.too_long(buffer, length as u64).map(Some);
                }
                let double = (2 * length).min(self.limit + 1);
                grow(&mut buffer, double);
            }
            let read = self.read(&mut buffer[length..])?;
            let new = length..length + read;
            length = new.end;
            self.ended = read == 0;
            let full = length == buffer.len();
            let end = if self.ended {
                Some(length)
            } else if full {
                memchr::memrchr(b'\n', &buffer[..length]).map(|at| at + 1)
            } else {
                None
            };
            if let Some(end) = end {
                self.carried.extend_from_slice(&buffer[end..length]);
                return Ok(self.block(buffer, end, None));
            }
        }
    }

    fn block(&mut self, buffer: Vec<u8>, length: usize, too_long: Option<(u64, bool)>) -> Option<Block> {
        let block = Block { start: self.at, buffer, from: 0, length, too_long };
        self.at += block.width();
        (block.width() > 0).then_some(block)
    }

    /// Steps over the rest of a line.
    fn too_long(&mut self, mut buffer: Vec<u8>, mut bytes: u64) -> io::Result<Block> {
        let (start, ended) = (
            self.at,
            loop {
                let read = self.read(&mut buffer)?;
                if read == 0 {
                    self.ended = true;
                    break false;
                }
                if let Some(end) = memchr::memchr(b'\n', &buffer[..read]) {
                    bytes += end as u64 + 1;
                    self.carried.extend_from_slice(&buffer[end + 1..read]);
                    break true;
                }
                bytes += read as u64;
            },
        );
        self.at += bytes;
        Ok(Block { start, buffer, from: 0, length: 0, too_long: Some((bytes, ended)) })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.input.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

/// Makes it so long. What is already there is not written again: that would cost as much as reading.
fn grow(buffer: &mut Vec<u8>, length: usize) {
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
}
