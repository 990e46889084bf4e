//! Session files that are packed, and those that go on from others.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::Path;

use session_core::history::{FileKind, HistoryBase};

use super::{Buffers, Counted, Digested, Reader};
use crate::find::{Found, open};
use crate::fold::{Digest, Filled};
use crate::index::{Fresh, Known};
use crate::opened::Opened;
use crate::packed::{Content, Unpack};
use crate::parts::{DEEPEST, header};
use crate::stamp::Stamp;
use crate::walk::Seen;

/// How much of what a file begins with a quick look unpacks, and how much at the most, where there is no prompt in that.
const FIRST: usize = 64 << 10;
const LONGEST: usize = 16 << 20;

/// A file that another one goes on from, and how much of it.
type Part<'a> = (&'a Path, Option<u64>);

impl Reader<'_> {
    /// Of a packed file, what it begins with is all that a quick look reads.
    pub(super) fn packed(
        &self,
        content: Box<Unpack<File>>,
        stamp: Stamp,
        taken: i64,
        seen: &Seen,
        buffers: &mut Buffers,
    ) -> io::Result<Digested> {
        let mut content = Counted { inner: content, here: 0, all: self.count };
        if !self.exact {
            let mut head = Vec::new();
            loop {
                let more = head.len().max(FIRST) as u64;
                let ended = Read::by_ref(&mut content).take(more).read_to_end(&mut head)? == 0;
                let mut digest = self.beginning(&head, buffers)?;
                if ended || head.len() >= LONGEST || digest.has_prompt() {
                    digest.whole = false;
                    return Ok(Digested::new(self.begun(digest, buffers)?, stamp));
                }
            }
        }
        let mut digest = Digest::default();
        digest.fold(self.format, &mut content)?;
        let in_part = content.inner.is_in_part();
        let sidechain = seen.file.kind == FileKind::Sidechain;
        // Never gone on with: it is packed anew.
        let known = Known { stamp, trusted: !stamp.is_fresh(taken), sidechain, guard: 0 };
        let fresh = if in_part { None } else { Fresh::new(known, &digest, &seen.file, content.here) };
        Ok(Digested { fresh, in_part, ..Digested::new(digest, stamp) })
    }

    fn beginning(&self, head: &[u8], buffers: &mut Buffers) -> io::Result<Digest> {
        let mut read = |at: u64, length: u64, into: &mut Filled| {
            let bytes = usize::try_from(at).ok().and_then(|at| head.get(at..)).unwrap_or_default();
            let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len());
            into.room(length).copy_from_slice(&bytes[..length]);
            into.grow(length);
            Ok(())
        };
        Digest::of_ends(self.format, head.len() as u64, &mut read, buffers)
    }

    /// The files that one goes on from, the nearest one first, and how much of each. `None`: one of them is missing.
    fn bases(&self, base: &HistoryBase) -> io::Result<Option<Vec<Part<'_>>>> {
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
    pub(super) fn begun(&self, mut digest: Digest, buffers: &mut Buffers) -> io::Result<Digest> {
        let Some(base) = digest.base() else { return Ok(digest) };
        let root = self.bases(base)?.and_then(|mut parts| parts.pop());
        if let Some((path, _)) = root
            && let Ok(Found::File(_, file)) = open(path, self.state_dir)
        {
            let mut head = Vec::new();
            Content::of(file)?.take(FIRST as u64).read_to_end(&mut head)?;
            digest.begins_with(&self.beginning(&head, buffers)?);
        }
        digest.whole = false;
        Ok(digest)
    }

    /// What an open file holds with those that it goes on from, and whether one of these is missing.
    pub(crate) fn lineage(&self, opened: &Opened) -> io::Result<(Digest, bool)> {
        let mut file = Counted { inner: opened.file.try_clone()?, here: 0, all: self.count };
        let stamp = Stamp { size: opened.size, ..Stamp::default() };
        let digest = self.whole(&mut file, stamp)?;
        match self.with_base(&mut file, stamp, digest)? {
            Some(digest) => Ok((digest, false)),
            None => Ok((self.whole(&mut file, stamp)?, true)),
        }
    }

    /// What a file that goes on from others holds with them. `None`: one of them is missing.
    pub(super) fn with_base(
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
}
