//! What was folded before, kept in one file: a cache that may be deleted, torn, or of another version. Then lists are slower,
//! and the same.
//!
//! The file: [`MAGIC`], the checksum of all that follows, whose index it is, and the records in the order of their paths.
//! Digests stay encoded until they are asked for, and are copied as they are when the file is written anew.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::find::options;
use crate::fold::Digest;
use crate::stamp::Stamp;

/// To be changed with every change of what is written, [`Digest`] among it.
const MAGIC: [u8; 12] = *b"rejoin-idx\0\x01";
const HEADER: usize = MAGIC.len() + size_of::<u32>();

/// A larger file is not read, and none is written: that is a million sessions.
const LARGEST: u64 = 512 << 20;

/// What is known of a file beside its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// As it was when it was folded.
    pub(crate) stamp: Stamp,
    /// Whether the stamp alone tells that nothing was changed.
    pub(crate) trusted: bool,
    /// Whether the file is a helper's.
    pub(crate) sidechain: bool,
    /// The checksum of the last bytes that were folded.
    pub(crate) guard: u32,
}

/// A record as it is written.
#[derive(Serialize, Deserialize)]
struct Written<'a> {
    path: &'a str,
    known: Known,
    digest: &'a [u8],
}

/// A record, by where it lies in the buffer.
#[derive(Debug)]
struct Place {
    path: Range<usize>,
    digest: Range<usize>,
    known: Known,
}

/// An index that was read.
#[derive(Debug, Default)]
pub(crate) struct Index {
    buffer: Vec<u8>,
    places: Vec<Place>,
}

/// A digest to be written.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub(crate) known: Known,
    digest: Vec<u8>,
    /// How many bytes were read for it.
    pub(crate) read: u64,
}

impl Fresh {
    pub(crate) fn new(known: Known, digest: &Digest, read: u64) -> Option<Self> {
        Some(Self { known, digest: postcard::to_allocvec(digest).ok()?, read })
    }
}

impl Index {
    /// Reads an index. One that cannot be used, for whatever reason, is an empty one.
    pub(crate) fn load(path: &Path, owner: &str) -> Self {
        let loaded = read(path).and_then(|buffer| {
            Self::parse(buffer, owner).ok_or_else(|| io::Error::other("torn, or of another version"))
        });
        loaded.unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::debug!(path = %path.display(), %error, "an index is not used");
            }
            Self::default()
        })
    }

    fn parse(buffer: Vec<u8>, owner: &str) -> Option<Self> {
        let (magic, rest) = buffer.split_first_chunk::<{ MAGIC.len() }>()?;
        let (checksum, body) = rest.split_first_chunk::<4>()?;
        if *magic != MAGIC || u32::from_le_bytes(*checksum) != crc32fast::hash(body) {
            return None;
        }
        let (whose, mut rest) = postcard::take_from_bytes::<&str>(body).ok()?;
        if whose != owner {
            return None;
        }
        let mut places = Vec::new();
        while !rest.is_empty() {
            let (Written { path, known, digest }, behind) = postcard::take_from_bytes(rest).ok()?;
            let digest = buffer.len() - behind.len() - digest.len()..buffer.len() - behind.len();
            // The path is what the record begins with, behind its length.
            let start = buffer.len() - rest.len();
            let name = start + varint(path.len())..start + varint(path.len()) + path.len();
            places.push(Place { path: name, digest, known });
            rest = behind;
        }
        Some(Self { buffer, places })
    }

    /// What is known of a file.
    pub(crate) fn get(&self, path: &Path) -> Option<(Known, &[u8])> {
        let path = path.to_str()?.as_bytes();
        let at = self.places.binary_search_by(|place| self.buffer[place.path.clone()].cmp(path)).ok()?;
        let place = &self.places[at];
        Some((place.known, &self.buffer[place.digest.clone()]))
    }

    pub(crate) fn digest(encoded: &[u8]) -> Option<Digest> {
        postcard::from_bytes(encoded).ok()
    }

    /// Whether reading these files again would cost more than writing all of it anew.
    pub(crate) fn is_worth(&self, fresh: &HashMap<&str, &Fresh>) -> bool {
        const OPENING: u64 = 4096;
        let again: u64 = fresh.values().map(|fresh| fresh.read.saturating_add(OPENING)).sum();
        again > self.buffer.len() as u64 / 4
    }

    /// Writes the index anew: with what is fresh, and without what is gone. Of two writers, the last one's stays.
    pub(crate) fn save(
        &self,
        path: &Path,
        owner: &str,
        fresh: &HashMap<&str, &Fresh>,
        is_gone: impl Fn(&str, &Known) -> bool,
    ) -> io::Result<()> {
        let mut records: Vec<_> = self
            .places
            .iter()
            .filter_map(|place| {
                let path = std::str::from_utf8(&self.buffer[place.path.clone()]).ok()?;
                let stays = !fresh.contains_key(path) && !is_gone(path, &place.known);
                let digest = &self.buffer[place.digest.clone()];
                stays.then_some(Written { path, known: place.known, digest })
            })
            .chain(fresh.iter().map(|(path, fresh)| Written {
                path,
                known: fresh.known,
                digest: &fresh.digest,
            }))
            .collect();
        records.sort_unstable_by_key(|record| record.path);
        let mut buffer = Vec::with_capacity(self.buffer.len() + 4096);
        buffer.extend_from_slice(&MAGIC);
        buffer.extend_from_slice(&[0; 4]);
        let mut buffer = postcard::to_extend(owner, buffer).map_err(io::Error::other)?;
        for record in &records {
            buffer = postcard::to_extend(record, buffer).map_err(io::Error::other)?;
        }
        if buffer.len() as u64 > LARGEST {
            return Err(io::Error::other("it would be too large"));
        }
        let checksum = crc32fast::hash(&buffer[HEADER..]);
        buffer[MAGIC.len()..HEADER].copy_from_slice(&checksum.to_le_bytes());
        replace(path, &buffer)
    }
}

/// How many bytes the encoding takes for a length.
const fn varint(length: usize) -> usize {
    let bits = usize::BITS - length.leading_zeros();
    if bits == 0 { 1 } else { bits.div_ceil(7) as usize }
}

/// Only a file that nobody else can write or read: it holds prompts, and what it says is believed.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut file = options().open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || !is_ours(&metadata) || metadata.len() > LARGEST {
        return Err(io::Error::other("it is somebody else's, or too large"));
    }
    let mut buffer = Vec::with_capacity(usize::try_from(metadata.len()).map_err(io::Error::other)?);
    Read::by_ref(&mut file).take(LARGEST).read_to_end(&mut buffer)?;
    Ok(buffer)
}

#[cfg(unix)]
fn is_ours(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 == 0
}

#[cfg(not(unix))]
const fn is_ours(_: &fs::Metadata) -> bool {
    true
}

/// Not made durable: after a crash it is torn at the worst.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        create(folder)?;
    }
    // Nobody else may read it, nor what it is renamed to.
    let mut file = tempfile::Builder::new().prefix(".index-").tempfile_in(folder)?;
    file.write_all(content)?;
    file.persist(path).map(drop::<File>).map_err(|error| error.error)
}

#[cfg(unix)]
fn create(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;

    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}
