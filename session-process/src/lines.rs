//! Bytes in, whole lines out: split at line feeds only, in bounded memory, copying only what a read cut apart.

use memchr::memchr;

/// What one read asks for at most, once the stream has shown that it is a busy one.
const CHUNK: usize = 256 * 1024;
/// What the first read asks for.
const FIRST: usize = 32 * 1024;
/// A buffer that a long line made larger than this is given back after the line.
const KEEP: usize = 1024 * 1024;
/// How much of a line above the limit is shown.
const HEAD: usize = 256;

/// A piece of output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A line, without its end (LF or CR LF).
    Line(&'a [u8]),
    /// The beginning of a line above the limit; the rest of it is left out.
    Cut(&'a [u8]),
}

/// The buffer between reads.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// Where the unfinished line begins.
    start: usize,
    /// Up to where it holds no line feed.
    scanned: usize,
    /// Up to where the buffer is filled.
    end: usize,
    limit: usize,
    skipping: bool,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: vec![0; FIRST], start: 0, scanned: 0, end: 0, limit, skipping: false }
    }

    /// Room for the next read; never empty.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.scanned, self.end) = (0, 0, 0);
            if self.buffer.len() > KEEP {
                self.buffer.truncate(CHUNK);
                self.buffer.shrink_to_fit();
            }
        }
        if self.buffer.len() - self.end < self.buffer.len() / 4 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.scanned -= self.start;
            self.end -= self.start;
            self.start = 0;
            if self.buffer.len() - self.end < self.buffer.len() / 4 {
                // The unfinished line is at most two bytes above the limit, so that room is left even here.
                let most = self.limit.saturating_add(CHUNK).max(self.buffer.len());
                self.buffer.resize((self.buffer.len() * 2).min(most), 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// Takes note of `count` bytes read into the room.
    pub(crate) fn filled(&mut self, count: usize, each: &mut dyn FnMut(Piece<'_>)) {
        let busy = self.end + count == self.buffer.len();
        self.end += count;
        while let Some(at) = memchr(b'\n', &self.buffer[self.scanned..self.end]) {
            let feed = self.scanned + at;
            self.line(feed, each);
            self.start = feed + 1;
            self.scanned = self.start;
        }
        self.scanned = self.end;
        if self.skipping {
            self.start = self.end;
        } else if self.end - self.start > self.limit.saturating_add(1) {
            // One above the limit may be the CR of the line's end, two cannot.
            each(Piece::Cut(head(&self.buffer[self.start..self.end], self.limit)));
            self.skipping = true;
            self.start = self.end;
        }
        if busy && self.buffer.len() < CHUNK {
            self.buffer.resize(CHUNK, 0);
        }
    }

    /// The stream is at its end: a line without an end is one all the same.
    pub(crate) fn finish(&mut self, each: &mut dyn FnMut(Piece<'_>)) {
        if self.end > self.start {
            self.line(self.end, each);
        }
        (self.start, self.scanned, self.end, self.skipping) = (0, 0, 0, false);
    }

    fn line(&mut self, feed: usize, each: &mut dyn FnMut(Piece<'_>)) {
        if std::mem::take(&mut self.skipping) {
            return;
        }
        let line = &self.buffer[self.start..feed];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        each(if line.len() > self.limit { Piece::Cut(head(line, self.limit)) } else { Piece::Line(line) });
    }
}

/// The same however much of the line was read when it was found to be too long.
fn head(line: &[u8], limit: usize) -> &[u8] {
    &line[..line.len().min(HEAD).min(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(bytes: &[u8], limit: usize, chunk: usize) -> Vec<(bool, Vec<u8>)> {
        let mut lines = Lines::new(limit);
        let mut out = Vec::new();
        let mut each = |piece: Piece<'_>| {
            out.push(match piece {
                Piece::Line(line) => (true, line.to_vec()),
                Piece::Cut(head) => (false, head.to_vec()),
            });
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = lines.room();
            assert!(!room.is_empty(), "there is always room");
            let count = room.len().min(chunk).min(rest.len());
            room[..count].copy_from_slice(&rest[..count]);
            lines.filled(count, &mut each);
            rest = &rest[count..];
        }
        lines.finish(&mut each);
        out
    }

    #[test]
    fn how_the_stream_is_chunked_cannot_matter() {
        let mut text = Vec::new();
        for i in 0..300_usize {
            text.extend(std::iter::repeat_n(b'a' + u8::try_from(i % 26).unwrap(), i * i % 997));
            text.extend_from_slice(if i % 3 == 0 { b"\r\n" } else { b"\n" });
        }
        text.extend_from_slice("\u{2028}é no end".as_bytes());
        for limit in [0, 1, 10, 300, 1 << 20] {
            let whole = split(&text, limit, usize::MAX);
            for chunk in [1, 2, 3, 7, 64, 1000, 32 * 1024] {
                assert!(split(&text, limit, chunk) == whole, "limit {limit}, chunk {chunk}");
            }
        }
    }

    #[test]
    fn only_a_line_feed_ends_a_line_and_one_cr_goes_with_it() {
        let lines = split(b"a\rb\r\r\n\n\x0b\x0c\nend\r", 100, 1);
        let lines: Vec<&[u8]> = lines.iter().map(|(_, line)| line.as_slice()).collect();
        assert_eq!(lines, [b"a\rb\r".as_slice(), b"", b"\x0b\x0c", b"end"]);
    }

    #[test]
    fn a_line_above_the_limit_is_cut_and_the_next_one_is_whole() {
        let text = [vec![b'x'; 3_000_000], b"\nnext\n".to_vec()].concat();
        let lines = split(&text, 1_000_000, 65536);
        assert_eq!(lines, [(false, vec![b'x'; HEAD]), (true, b"next".to_vec())]);
        // At the limit it is a line, with or without CR.
        assert_eq!(
            split(b"12345\r\n123456\r\n", 5, 1).iter().map(|l| l.0).collect::<Vec<_>>(),
            [true, false]
        );
    }

    #[test]
    fn a_long_line_does_not_keep_its_memory() {
        let mut lines = Lines::new(64 << 20);
        let mut count = 0;
        for _ in 0..6 {
            let room = lines.room();
            let n = room.len();
            room.fill(b'x');
            lines.filled(n, &mut |_| count += 1);
        }
        assert!(lines.buffer.len() > KEEP);
        lines.room()[0] = b'\n';
        lines.filled(1, &mut |_| count += 1);
        lines.room();
        assert!(lines.buffer.capacity() <= CHUNK);
    }
}
