//! Packed session files (zstd), read by streaming in bounded memory. What is packed is told by its first bytes, not by
//! its name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::find::options;
use crate::mend::no_links;

/// The most that one file is unpacked to. What comes after it is not read.
pub(crate) const UNPACK_LIMIT: u64 = 4 << 30;

/// The most that a frame may look back, as RFC 8878 asks of every program that writes one: it is the memory that unpacking
/// takes.
const WINDOW: u64 = 8 << 20;

const CHUNK: usize = 64 << 10;

/// What a packed file begins with.
pub(crate) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A session file, packed or not, from its beginning.
#[derive(Debug)]
pub(crate) enum Content<R> {
    Plain(R),
    Packed(Box<Unpack<R>>),
}

impl Content<File> {
    /// Looks at the first bytes of a file, which is read from its beginning then.
    pub(crate) fn of(mut file: File) -> io::Result<Self> {
        let mut first = [0; 4];
        file.seek(SeekFrom::Start(0))?;
        let packed = match file.read_exact(&mut first) {
            Ok(()) => first == MAGIC,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(0))?;
        Ok(if packed { Self::Packed(Box::new(Unpack::new(file))) } else { Self::Plain(file) })
    }
}

/// Whether there is a file that is packed, by its first bytes.
pub(crate) fn is_packed(path: &Path) -> io::Result<bool> {
    if !path.symlink_metadata()?.is_file() {
        return Ok(false);
    }
    Ok(Content::of(no_links(&mut options()).open(path)?)?.is_packed())
}

impl<R: Read> Content<R> {
    pub(crate) const fn is_packed(&self) -> bool {
        matches!(self, Self::Packed(_))
    }

    /// Whether it could not be unpacked to its end; true only once it was read to where it ends.
    pub(crate) fn is_in_part(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Packed(file) => file.is_in_part(),
        }
    }
}

impl<R: Read> Read for Content<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(buffer),
            Self::Packed(file) => file.read(buffer),
        }
    }
}

/// What a packed file holds, as far as it can be unpacked: damage is an end, not an error.
pub(crate) struct Unpack<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    in_frame: bool,
    left: u64,
    in_part: bool,
}

impl<R> std::fmt::Debug for Unpack<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpack")
            .field("left", &self.left)
            .field("in_part", &self.in_part)
            .finish_non_exhaustive()
    }
}

impl<R: Read> Unpack<R> {
    pub(crate) fn new(source: R) -> Self {
        Self::within(source, UNPACK_LIMIT)
    }

    fn within(source: R, limit: u64) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW);
        let source = BufReader::with_capacity(CHUNK, source);
        Self { source, decoder, in_frame: false, left: limit, in_part: false }
    }

    /// Whether it could not be unpacked to its end; true only once it was read to where it ends.
    pub(crate) const fn is_in_part(&self) -> bool {
        self.in_part
    }

    /// Goes to where the next bytes can be had. `false`: there are no more.
    fn advance(&mut self) -> io::Result<bool> {
        loop {
            if self.in_frame && self.decoder.can_collect() > 0 {
                return Ok(true);
            }
            if self.in_frame && !self.decoder.is_finished() {
                self.block()?;
            } else if self.in_part || self.source.fill_buf()?.is_empty() || !self.frame()? {
                return Ok(false);
            }
        }
    }

    fn block(&mut self) -> io::Result<()> {
        /// An empty one, the last of its frame, and the sum that may follow.
        const LAST: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
        let done = self.decoder.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1));
        let Err(error) = done else { return Ok(()) };
        self.damage(&error)?;
        if !self.decoder.is_finished() {
            // What was unpacked so far is held back for the blocks that follow, of which there are none.
            self.decoder
                .decode_blocks(&LAST[..], BlockDecodingStrategy::UptoBlocks(1))
                .map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Begins the next frame. `false`: there is none.
    fn frame(&mut self) -> io::Result<bool> {
        loop {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    if io::copy(&mut self.source.by_ref().take(length), &mut io::sink())? < length {
                        self.in_part = true;
                        return Ok(false);
                    }
                    if self.source.fill_buf()?.is_empty() {
                        return Ok(false);
                    }
                }
                Err(error) => {
                    self.in_frame = false;
                    self.damage(&error)?;
                    return Ok(false);
                }
            }
        }
    }

    /// Damage is an end, but what the system cannot read is an error.
    fn damage(&mut self, error: &FrameDecoderError) -> io::Result<()> {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(inner) = cause {
            if let Some(code) = inner.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
                return Err(io::Error::from_raw_os_error(code));
            }
            cause = inner.source();
        }
        self.in_part = true;
        Ok(())
    }
}

impl<R: Read> Read for Unpack<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || !self.advance()? {
            return Ok(0);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            self.in_part = true;
            return Ok(0);
        }
        let read = self.decoder.read(&mut buffer[..most])?;
        self.left -= read as u64;
        Ok(read)
    }
}

#[cfg(test)]
#[path = "packed_tests.rs"]
mod tests;
