//! Reads session files for lists: what was added, the beginning and the end, or all.

mod over;

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use session_core::TranscriptFormat;
use session_core::history::FileKind;

use crate::find::{is_inside, options};
pub(crate) use crate::fold::Buffers;
use crate::fold::{Digest, FIRST, Filled, Folded, Row};
use crate::index::{Fresh, Index, Known, Stored};
use crate::packed::Content;
use crate::parts::Files;
use crate::stamp::Stamp;
use crate::walk::Seen;

/// How much more it reads of a file that was folded before.
const QUICK_ADDED: u64 = 1 << 20;
/// How many of the folded bytes have to be the same.
const GUARD: usize = 256;

/// What reads of session files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) format: &'a dyn TranscriptFormat,
    pub(crate) index: &'a Index,
    /// The state dir, as a real path.
    pub(crate) state_dir: Option<&'a Path>,
    /// Whether files are read whole where that is needed.
    pub(crate) exact: bool,
    /// How many bytes were read.
    pub(crate) count: &'a AtomicU64,
    /// The clock that files are stamped by.
    pub(crate) clock: fn() -> i64,
    /// Where the files lie that others go on from.
    pub(crate) files: &'a Files<'a>,
}

/// What is known of a file now.
#[derive(Debug)]
pub(crate) struct Digested {
    pub(crate) digest: Digest,
    pub(crate) stamp: Stamp,
    /// What an index should know.
    pub(crate) fresh: Option<Fresh>,
    /// Whether it is packed, and could not be unpacked to its end.
    pub(crate) in_part: bool,
}

impl Digested {
    const fn new(digest: Digest, stamp: Stamp) -> Self {
        Self { digest, stamp, fresh: None, in_part: false }
    }
}

/// Counts what is read.
struct Counted<'a, R> {
    inner: R,
    here: u64,
    all: &'a AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.here += length as u64;
        self.all.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

impl Counted<'_, File> {
    #[cfg(unix)]
    fn read_there(&mut self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        use std::os::unix::fs::FileExt as _;

        let length = self.inner.read_at(buffer, at)?;
        self.here += length as u64;
        self.all.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }

    #[cfg(not(unix))]
    fn read_there(&mut self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.inner.seek(SeekFrom::Start(at))?;
        self.read(buffer)
    }
}

impl Reader<'_> {
    /// What is indexed of a file that did not change since.
    pub(crate) fn row(&self, seen: &Seen) -> Option<Row<'_>> {
        let stored = self.index.get(&seen.path)?;
        (stored.known.trusted && stored.known.stamp == seen.stamp).then(|| stored.row())?
    }

    /// What a file holds, by as little reading as will do.
    pub(crate) fn digest(&self, buffers: &mut Buffers, seen: &Seen) -> io::Result<Digested> {
        let stored = self.index.get(&seen.path);
        let (file, stamp, taken) = self.open(seen)?;
        let mut file = Counted { inner: file, here: 0, all: self.count };
        if seen.file.packed
            && let Content::Packed(content) = Content::of(file.inner.try_clone()?)?
        {
            return self.packed(content, stamp, taken, seen, buffers);
        }
        let went_on = match stored {
            Some(stored) => self.go_on(&mut file, stamp, &stored)?,
            None => None,
        };
        let ends = !self.exact && stamp.size > 2 * FIRST && went_on.is_none();
        let digest = match went_on {
            Some(digest) => digest,
            None if !ends => self.whole(&mut file, stamp)?,
            None => {
                let mut read = |at, length, into: &mut Filled| {
                    let room = into.room(usize::try_from(length).map_err(io::Error::other)?);
                    let read = read_at(&mut file, at, room)?;
                    into.grow(read);
                    Ok(())
                };
                Digest::of_ends(self.format, stamp.size, &mut read, buffers)?
            }
        };
        // No record at all: perhaps it is packed, whatever its name says.
        if digest.records == 0
            && let Content::Packed(content) = Content::of(file.inner.try_clone()?)?
        {
            return self.packed(content, stamp, taken, seen, buffers);
        }
        if ends || (!self.exact && digest.base().is_some()) {
            return Ok(Digested::new(self.begun(digest, buffers)?, stamp));
        }
        let Some(digest) = self.with_base(&mut file, stamp, digest)? else {
            // An index would keep what is missing, and not see that it came back.
            let digest = self.whole(&mut file, stamp)?;
            return Ok(Digested::new(digest, stamp));
        };
        let known = Known {
            stamp,
            trusted: !stamp.is_fresh(taken),
            sidechain: seen.file.kind == FileKind::Sidechain,
            guard: guard(&mut file, digest.folded)?,
        };
        Ok(Digested {
            fresh: Fresh::new(known, &digest, &seen.file, file.here),
            ..Digested::new(digest, stamp)
        })
    }

    fn open(&self, seen: &Seen) -> io::Result<(File, Stamp, i64)> {
        // It was a regular file a moment ago; what took its place must not make us wait.
        let file = options().open(&seen.path)?;
        let taken = (self.clock)();
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        if let Some(dir) = self.state_dir
            && !is_inside(&metadata, &seen.path, dir)?
        {
            return Err(io::Error::other("it leads out of the state dir"));
        }
        Ok((file, Stamp::of(&metadata), taken))
    }

    /// Folds what was added to a file since, if it is the same file and was only added to.
    fn go_on(
        &self,
        file: &mut Counted<'_, File>,
        stamp: Stamp,
        stored: &Stored<'_>,
    ) -> io::Result<Option<Digest>> {
        let known = stored.known;
        let added = stamp.size.saturating_sub(known.stamp.size);
        if added == 0 || !stamp.is_same_file(&known.stamp) || (!self.exact && added > QUICK_ADDED) {
            return Ok(None);
        }
        let Some(mut digest) = self.index.digest_with_memory(stored) else { return Ok(None) };
        if digest.folded > stamp.size || guard(file, digest.folded)? != known.guard {
            return Ok(None);
        }
        let left = stamp.size - digest.folded;
        file.inner.seek(SeekFrom::Start(digest.folded))?;
        Ok(match digest.fold(self.format, Read::by_ref(file).take(left))? {
            Folded::Done => Some(digest),
            Folded::Anew => None,
        })
    }

    fn whole(&self, file: &mut Counted<'_, File>, stamp: Stamp) -> io::Result<Digest> {
        let mut digest = Digest::default();
        file.inner.rewind()?;
        digest.fold(self.format, Read::by_ref(file).take(stamp.size))?;
        Ok(digest)
    }
}

/// Reads from there on, as far as it is there, and says how many bytes.
fn read_at(file: &mut Counted<'_, File>, at: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut end = 0;
    while end < into.len() {
        match file.read_there(&mut into[end..], at + end as u64) {
            Ok(0) => break,
            Ok(read) => end += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(end)
}

/// The checksum of the last bytes before there.
fn guard(file: &mut Counted<'_, File>, end: u64) -> io::Result<u32> {
    let mut bytes = [0; GUARD];
    let length = GUARD.min(usize::try_from(end).unwrap_or(GUARD));
    let read = read_at(file, end - length as u64, &mut bytes[..length])?;
    Ok(crc32fast::hash(&bytes[..read]))
}
