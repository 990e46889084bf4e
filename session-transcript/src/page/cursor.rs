//! Places in a file that are known again later, and only in the same file.

use std::fs::{File, Metadata};
use std::io;

use session_core::history::Cursor;

use super::lines::read_at;

/// Which bytes before the place are compared: enough that two records do not end alike.
const COMPARED: u64 = 4096;

/// What a plain one ends with.
const PLAIN: &str = ".p";

/// A place: which file, where, and what stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    device: u64,
    inode: u64,
    pub(crate) offset: u64,
    before: u64,
    /// Whether all behind it was read, and none of it was compacted: then nothing before it was written again for that.
    pub(crate) plain: bool,
}

/// Why a place is none any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stale {
    /// It is no place that was given out.
    Foreign,
    /// There is another file now.
    Replaced,
    /// The file is shorter now.
    Cut,
    /// Something else stands there.
    Rewritten,
}

impl Stale {
    pub(crate) fn error(self) -> io::Error {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            match self {
                Self::Foreign => "the cursor is none of this catalog",
                Self::Replaced => "the cursor is of another file",
                Self::Cut => "the cursor lies behind the end of the file, which was cut",
                Self::Rewritten => "the cursor is of what the file held before it was rewritten",
            },
        )
    }
}

impl Spot {
    /// This place of this file.
    pub(crate) fn at(file: &File, metadata: &Metadata, offset: u64) -> io::Result<Self> {
        let (device, inode) = identity(metadata);
        Ok(Self { device, inode, offset, before: hash_before(file, offset)?, plain: false })
    }

    pub(crate) const fn plain(self, plain: bool) -> Self {
        Self { plain, ..self }
    }

    pub(crate) fn cursor(self) -> Cursor {
        let Self { device, inode, offset, before, plain } = self;
        let plain = if plain { PLAIN } else { "" };
        Cursor(format!("f1.{device:x}.{inode:x}.{offset:x}.{before:016x}{plain}"))
    }

    pub(crate) fn parse(cursor: &Cursor) -> Option<Self> {
        let text = cursor.0.strip_prefix("f1.")?;
        let (text, plain) = text.strip_suffix(PLAIN).map_or((text, false), |text| (text, true));
        let mut parts = text.split('.').map(|part| u64::from_str_radix(part, 16).ok());
        let mut next = || parts.next().flatten();
        let spot = Self { device: next()?, inode: next()?, offset: next()?, before: next()?, plain };
        // There is one way to write it.
        (spot.cursor() == *cursor).then_some(spot)
    }

    /// Whether it is still that place.
    pub(crate) fn check(self, file: &File, metadata: &Metadata, size: u64) -> io::Result<Result<(), Stale>> {
        if identity(metadata) != (self.device, self.inode) {
            return Ok(Err(Stale::Replaced));
        }
        if self.offset > size {
            return Ok(Err(Stale::Cut));
        }
        let same = hash_before(file, self.offset)? == self.before;
        Ok(if same { Ok(()) } else { Err(Stale::Rewritten) })
    }
}

/// FNV-1a: it has to be the same in every version of this crate.
fn hash_before(file: &File, offset: u64) -> io::Result<u64> {
    let begin = offset.saturating_sub(COMPARED);
    let mut bytes = vec![0; usize::try_from(offset - begin).unwrap_or_default()];
    read_at(file, &mut bytes, begin)?;
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    Ok(bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix))
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;

    (metadata.dev(), metadata.ino())
}

/// There is no number to compare: the bytes have to do.
#[cfg(not(unix))]
const fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}
