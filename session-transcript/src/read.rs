//! Reads session files for lists: what was added, the beginning and the end, or all.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use session_core::TranscriptFormat;
use session_core::history::{FileKind, HistoryBase, SessionSource};

use crate::find::{Found, is_inside, open, options};
use crate::fold::{Digest, Folded};
use crate::index::{Fresh, Index, Known};
use crate::packed::{Content, MAGIC, Unpack};
use crate::parts::{DEEPEST, Files, header};
use crate::stamp::{Stamp, now};
use crate::walk::Seen;

/// How much of a file's beginning and of its end a quick look reads.
pub(crate) const WINDOW: usize = 64 << 10;
/// How much of a beginning it reads at the most, where the first prompt is longer.
const LONGEST_HEAD: usize = 16 << 20;
/// How much more it reads of a file that was folded before.
const QUICK_ADDED: u64 = 1 << 20;
/// How many of the folded bytes have to be the same.
const GUARD: u64 = 256;

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
    /// Where the files lie that others go on from.
    pub(crate) files: &'a Files<'a>,
}

/// Buffers of a thread.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    head: Vec<u8>,
    tail: Vec<u8>,
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

impl Reader<'_> {
    /// What a file holds, by as little reading as will do.
    pub(crate) fn digest(&self, buffers: &mut Buffers, seen: &Seen) -> io::Result<Digested> {
        let known = self.index.get(&seen.path);
        if let Some((known, encoded)) = known
            && known.trusted
            && known.stamp == seen.stamp
            && let Some(digest) = Index::digest(encoded)
        {
            return Ok(Digested::new(digest, seen.stamp));
        }
        let (file, stamp, taken) = self.open(seen)?;
        let mut file = Counted { inner: file, here: 0, all: self.count };
        if seen.file.packed || self.exact {
            if let Content::Packed(content) = Content::of(file.inner.try_clone()?)? {
                return self.packed(content, stamp, taken, seen);
            }
        }
        let went_on = match known {
            Some((known, encoded)) => self.go_on(&mut file, stamp, known, encoded)?,
            None => None,
        };
        let digest = match went_on {
            Some(digest) => digest,
            None if self.exact || stamp.size <= 2 * WINDOW as u64 => self.whole(&mut file, stamp)?,
            None => {
                let Some(digest) = self.glance(&mut file, stamp, seen, buffers)? else {
                    let content = Unpack::new(file.inner.try_clone()?);
                    return self.packed(content, stamp, taken, seen);
                };
                return Ok(Digested::new(self.begun(digest)?, stamp));
            }
        };
        if !self.exact && digest.base().is_some() {
            return Ok(Digested::new(self.begun(digest)?, stamp));
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
        Ok(Digested { fresh: Fresh::new(known, &digest, file.here), ..Digested::new(digest, stamp) })
    }

    fn open(&self, seen: &Seen) -> io::Result<(File, Stamp, i64)> {
        // It was a regular file a moment ago; what took its place must not make us wait.
        let file = options().open(&seen.path)?;
        let taken = now();
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
        known: Known,
        encoded: &[u8],
    ) -> io::Result<Option<Digest>> {
        let added = stamp.size.saturating_sub(known.stamp.size);
        if added == 0 || !stamp.is_same_file(&known.stamp) || (!self.exact && added > QUICK_ADDED) {
            return Ok(None);
        }
        let Some(mut digest) = Index::digest(encoded) else { return Ok(None) };
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

    /// Of a packed file, what it begins with is all that a quick look reads.
    fn packed(&self, content: Unpack<File>, stamp: Stamp, taken: i64, seen: &Seen) -> io::Result<Digested> {
        let mut content = Counted { inner: content, here: 0, all: self.count };
        if !self.exact {
            let mut head = Vec::new();
            loop {
                let more = head.len().max(WINDOW) as u64;
                let ended = Read::by_ref(&mut content).take(more).read_to_end(&mut head)? == 0;
                let digest = Digest::glance(self.format, &head, &[]);
                if ended || head.len() >= LONGEST_HEAD || has_prompt(&digest, seen) {
                    return Ok(Digested::new(digest, stamp));
                }
            }
        }
        let mut digest = Digest::default();
        digest.fold(self.format, &mut content)?;
        let in_part = content.inner.is_in_part();
        let sidechain = seen.file.kind == FileKind::Sidechain;
        // Never gone on with: it is packed anew.
        let known = Known { stamp, trusted: !stamp.is_fresh(taken), sidechain, guard: 0 };
        let fresh = if in_part { None } else { Fresh::new(known, &digest, content.here) };
        Ok(Digested { digest, stamp, fresh, in_part })
    }

    /// The files that one goes on from, the nearest one first, and how much of each. `None`: one of them is missing.
    fn bases(&self, base: &HistoryBase) -> io::Result<Option<Vec<(&Path, Option<u64>)>>> {
        let mut parts = Vec::new();
        let mut next = Some(base.clone());
        while let Some(base) = next {
            let found = self.files.base(&base).filter(|path| parts.iter().all(|(known, _)| known != path));
            let Some(path) = found.filter(|_| parts.len() < DEEPEST) else { return Ok(None) };
            next = header(path, self.state_dir)?.and_then(|header| self.format.base(&header));
            parts.push((path, base.end));
        }
        Ok(Some(parts))
    }

    /// Gives a quick look at a file that goes on from another one the prompt that began it all.
    fn begun(&self, mut digest: Digest) -> io::Result<Digest> {
        let Some(base) = digest.base() else { return Ok(digest) };
        let root = self.bases(base)?.and_then(|mut parts| parts.pop());
        if let Some((path, _)) = root
            && let Ok(Found::File(_, file)) = open(path, self.state_dir)
        {
            let mut head = Vec::new();
            Content::of(file)?.take(WINDOW as u64).read_to_end(&mut head)?;
            digest.begins_with(&Digest::glance(self.format, &head, &[]));
        }
        digest.whole = false;
        Ok(digest)
    }

    /// What a file that goes on from others holds with them. `None`: one of them is missing.
    fn with_base(
        &self,
        file: &mut Counted<'_, File>,
        stamp: Stamp,
        digest: Digest,
    ) -> io::Result<Option<Digest>> {
        let Some(base) = digest.base() else { return Ok(Some(digest)) };
        let Some(parts) = self.bases(base)? else { return Ok(None) };
        let mut digest = Digest::default();
        for (path, end) in parts.into_iter().rev() {
            let Found::File(_, part) =
                open(path, self.state_dir).map_err(|error| io::Error::other(error.source))?
            else {
                return Ok(None);
            };
            let part = Counted { inner: Content::of(part)?, here: 0, all: self.count };
            digest.fold(self.format, part.take(end.unwrap_or(u64::MAX)))?;
            digest.go_over();
        }
        file.inner.rewind()?;
        digest.fold(self.format, Read::by_ref(file).take(stamp.size))?;
        Ok(Some(digest))
    }

    /// `None`: it is packed.
    fn glance(
        &self,
        file: &mut Counted<'_, File>,
        stamp: Stamp,
        seen: &Seen,
        buffers: &mut Buffers,
    ) -> io::Result<Option<Digest>> {
        let Buffers { head, tail } = buffers;
        let mut window = WINDOW;
        read_at(file, stamp.size.saturating_sub(WINDOW as u64), WINDOW, tail)?;
        loop {
            read_at(file, 0, window, head)?;
            if head.starts_with(&MAGIC) {
                return Ok(None);
            }
            let digest = Digest::glance(self.format, head, tail);
            if has_prompt(&digest, seen) || window >= LONGEST_HEAD || window as u64 >= stamp.size {
                return Ok(Some(digest));
            }
            window *= 4;
        }
    }
}

fn has_prompt(digest: &Digest, seen: &Seen) -> bool {
    let source = SessionSource { path: PathBuf::new(), state_dir: None };
    digest.entry(&seen.file, source).first_prompt.is_some()
}

/// Reads so many bytes from there on, as far as they are there.
fn read_at(file: &mut Counted<'_, File>, at: u64, length: usize, into: &mut Vec<u8>) -> io::Result<()> {
    into.clear();
    file.inner.seek(SeekFrom::Start(at))?;
    Read::by_ref(file).take(length as u64).read_to_end(into)?;
    Ok(())
}

/// The checksum of the last bytes before there.
fn guard(file: &mut Counted<'_, File>, end: u64) -> io::Result<u32> {
    let mut bytes = Vec::with_capacity(GUARD as usize);
    let length = end.min(GUARD);
    read_at(file, end - length, length as usize, &mut bytes)?;
    Ok(crc32fast::hash(&bytes))
}
