//! What was folded before, kept in one file: a cache that may be deleted, torn, or of another version. Then lists are slower,
//! and the same.
//!
//! The file: [`MAGIC`]; the checksum and the length of the first part; the first part, which is what every list loads: whose
//! index it is, and the records in the order of their paths, each with what a list shows of the file; the second part, which is
//! what going on with a file needs, each piece with a checksum in its record. Both stay encoded until they are asked for, and
//! are copied as they are when the file is written anew.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use session_core::history::{SessionFile, SessionSource};

use crate::find::options;
use crate::fold::{Digest, Row};
use crate::stamp::Stamp;

/// To be changed with every change of what is written, [`Row`] and [`Digest`] among it.
const MAGIC: [u8; 12] = *b"rejoin-idx\0\x02";
/// Behind it, what the checksum is of begins: the length of the first part, and that part.
const CHECKED: usize = MAGIC.len() + size_of::<u32>();
const HEADER: usize = CHECKED + size_of::<u64>();

/// A larger file is not read, and none is written: that is some hundred thousand sessions.
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

/// A piece of the second part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Piece {
    at: u64,
    length: u64,
    checksum: u32,
}

/// A record as it is written.
#[derive(Serialize, Deserialize)]
struct Written<'a> {
    path: &'a str,
    known: Known,
    rest: Piece,
    row: &'a [u8],
}

/// A record, by where it lies in the buffer.
#[derive(Debug)]
struct Place {
    path: Range<usize>,
    row: Range<usize>,
    rest: Piece,
    known: Known,
}

/// An index that was read.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// The first part, with the header.
    buffer: Vec<u8>,
    places: Vec<Place>,
    /// Hashes of paths, in their order, each with the number of its place.
    hashes: Vec<(u32, u32)>,
    /// For the second part.
    file: Option<Mutex<File>>,
    length: u64,
}

/// What an index knows of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored<'a> {
    pub(crate) known: Known,
    row: &'a [u8],
    rest: Piece,
}

/// A record to be written.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub(crate) known: Known,
    row: Vec<u8>,
    /// The digest, and its memory.
    rest: Vec<u8>,
    /// How many bytes were read for it.
    read: u64,
}

impl Fresh {
    pub(crate) fn new(known: Known, digest: &Digest, file: &SessionFile, read: u64) -> Option<Self> {
        let nowhere = SessionSource { path: PathBuf::new(), state_dir: None };
        let row = postcard::to_allocvec(&Row::of(&digest.entry(file, nowhere), digest)?).ok()?;
        let rest = postcard::to_extend(digest.memory(), postcard::to_allocvec(digest).ok()?).ok()?;
        Some(Self { known, row, rest, read })
    }
}

impl<'a> Stored<'a> {
    /// What a list shows of the file.
    pub(crate) fn row(&self) -> Option<Row<'a>> {
        postcard::from_bytes(self.row).ok()
    }
}

/// What is looked up first.
fn hash(path: &[u8]) -> u32 {
    crc32fast::hash(path)
}

impl Index {
    /// Reads an index. One that cannot be used, for whatever reason, is an empty one.
    pub(crate) fn load(path: &Path, owner: &str) -> Self {
        read(path, owner).unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::debug!(path = %path.display(), %error, "an index is not used");
            }
            Self::default()
        })
    }

    fn parse(buffer: Vec<u8>, owner: &str) -> Option<Self> {
        let (checksum, checked) = buffer.get(MAGIC.len()..)?.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*checksum) != crc32fast::hash(checked) {
            return None;
        }
        let (whose, mut rest) = postcard::take_from_bytes::<&str>(buffer.get(HEADER..)?).ok()?;
        if whose != owner {
            return None;
        }
        let mut places: Vec<Place> = Vec::new();
        let mut hashes = Vec::new();
        while !rest.is_empty() {
            let (Written { path, known, rest: piece, row }, behind) = postcard::take_from_bytes(rest).ok()?;
            let end = buffer.len() - behind.len();
            // The path is what the record begins with, behind its length.
            let start = buffer.len() - rest.len() + varint(path.len());
            hashes.push((hash(path.as_bytes()), u32::try_from(places.len()).ok()?));
            places.push(Place {
                path: start..start + path.len(),
                row: end - row.len()..end,
                rest: piece,
                known,
            });
            rest = behind;
        }
        hashes.sort_unstable();
        Some(Self { buffer, places, hashes, ..Self::default() })
    }

    /// What is known of a file.
    pub(crate) fn get(&self, path: &Path) -> Option<Stored<'_>> {
        let path = path.to_str()?.as_bytes();
        let hash = hash(path);
        let first = self.hashes.partition_point(|(other, _)| *other < hash);
        let same = self.hashes[first..].iter().take_while(|(other, _)| *other == hash);
        let Place { known, rest, row, .. } = same
            .map(|(_, at)| &self.places[*at as usize])
            .find(|place| self.buffer[place.path.clone()] == *path)?;
        Some(Stored { known: *known, rest: *rest, row: &self.buffer[row.clone()] })
    }

    /// What going on with the file needs. `None`: it cannot be gone on with.
    pub(crate) fn digest_with_memory(&self, stored: &Stored<'_>) -> Option<Digest> {
        let Piece { at, length, checksum } = stored.rest;
        let start = (self.buffer.len() as u64).checked_add(at)?;
        if start.checked_add(length)? > self.length {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        let mut file = self.file.as_ref()?.lock().ok()?;
        file.seek(SeekFrom::Start(start)).ok()?;
        file.read_exact(&mut bytes).ok()?;
        drop(file);
        if crc32fast::hash(&bytes) != checksum {
            return None;
        }
        let (mut digest, memory): (Digest, _) = postcard::take_from_bytes(&bytes).ok()?;
        digest.remember(postcard::from_bytes(memory).ok()?);
        Some(digest)
    }

    /// Whether reading these files again would cost more than writing all of it anew.
    pub(crate) fn is_worth(&self, fresh: &HashMap<&str, &Fresh>) -> bool {
        const OPENING: u64 = 4096;
        let again: u64 = fresh.values().map(|fresh| fresh.read.saturating_add(OPENING)).sum();
        again > self.length / 4
    }

    /// Writes the index anew: with what is fresh, and without what is gone. Of two writers, the last one's stays.
    pub(crate) fn save(
        &self,
        path: &Path,
        owner: &str,
        fresh: &HashMap<&str, &Fresh>,
        is_gone: impl Fn(&str, &Known) -> bool,
    ) -> io::Result<()> {
        let old = self.second_part().unwrap_or_default();
        let piece = |Piece { at, length, .. }: Piece| {
            let start = usize::try_from(at).ok()?;
            old.get(start..start.checked_add(usize::try_from(length).ok()?)?)
        };
        let mut records: Vec<_> = self
            .places
            .iter()
            .filter_map(|place| {
                let path = std::str::from_utf8(&self.buffer[place.path.clone()]).ok()?;
                let stays = !fresh.contains_key(path) && !is_gone(path, &place.known);
                let rest = piece(place.rest)?;
                let row = &self.buffer[place.row.clone()];
                stays.then_some((path, place.known, row, rest, place.rest.checksum))
            })
            .chain(fresh.iter().map(|(path, fresh)| {
                let checksum = crc32fast::hash(&fresh.rest);
                (*path, fresh.known, fresh.row.as_slice(), fresh.rest.as_slice(), checksum)
            }))
            .collect();
        records.sort_unstable_by_key(|(path, ..)| *path);
        let mut buffer = Vec::with_capacity(self.buffer.len() + 4096);
        buffer.extend_from_slice(&MAGIC);
        buffer.resize(HEADER, 0);
        let mut buffer = postcard::to_extend(owner, buffer).map_err(io::Error::other)?;
        let mut at = 0;
        for (path, known, row, rest, checksum) in &records {
            let rest = Piece { at, length: rest.len() as u64, checksum: *checksum };
            at += rest.length;
            let record = Written { path, known: *known, rest, row };
            buffer = postcard::to_extend(&record, buffer).map_err(io::Error::other)?;
        }
        if buffer.len() as u64 + at > LARGEST {
            return Err(io::Error::other("it would be too large"));
        }
        let length = (buffer.len() - HEADER) as u64;
        buffer[CHECKED..HEADER].copy_from_slice(&length.to_le_bytes());
        let checksum = crc32fast::hash(&buffer[CHECKED..]);
        buffer[MAGIC.len()..CHECKED].copy_from_slice(&checksum.to_le_bytes());
        for (.., rest, _) in &records {
            buffer.extend_from_slice(rest);
        }
        replace(path, &buffer)
    }

    fn second_part(&self) -> Option<Vec<u8>> {
        let mut file = self.file.as_ref()?.lock().ok()?;
        file.seek(SeekFrom::Start(self.buffer.len() as u64)).ok()?;
        let mut bytes = Vec::new();
        Read::by_ref(&mut *file).take(LARGEST).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// How many bytes the encoding takes for a length.
const fn varint(length: usize) -> usize {
    let bits = usize::BITS - length.leading_zeros();
    if bits == 0 { 1 } else { bits.div_ceil(7) as usize }
}

/// Only a file that nobody else can write or read: it holds prompts, and what it says is believed.
fn read(path: &Path, owner: &str) -> io::Result<Index> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut file = options().open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || !is_ours(&metadata) || metadata.len() > LARGEST {
        return Err(io::Error::other("it is somebody else's, or too large"));
    }
    let useless = || io::Error::other("torn, or of another version");
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    let length = header.last_chunk().map(|length| u64::from_le_bytes(*length));
    let length = length.filter(|length| *length <= metadata.len() && header.starts_with(&MAGIC));
    let length = usize::try_from(length.ok_or_else(useless)?).map_err(io::Error::other)?;
    let mut buffer = Vec::with_capacity(HEADER + length);
    buffer.extend_from_slice(&header);
    Read::by_ref(&mut file).take(length as u64).read_to_end(&mut buffer)?;
    let index = Index::parse(buffer, owner).ok_or_else(useless)?;
    Ok(Index { file: Some(Mutex::new(file)), length: metadata.len(), ..index })
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
