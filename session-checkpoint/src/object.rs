//! What is kept once under its hash: pieces of content, lists of pieces, folders.

use rusqlite::{Connection, OptionalExtension as _, params};
use sha2::{Digest as _, Sha256};

use crate::node::What;
use crate::trouble::{Outcome, Trouble};

/// The largest piece of content: 1 MiB.
pub(crate) const PIECE: usize = 1 << 20;

/// What an object is. A part of what is hashed, so that no content can pass for a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A piece of content: a whole file where it is no longer than [`PIECE`], or a link's target.
    Piece,
    /// The hashes of a longer file's pieces, one after the other.
    Pieces,
    /// A folder: see [`Folder`](crate::node::Folder).
    Folder,
}

impl Kind {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Piece => 0,
            Self::Pieces => 1,
            Self::Folder => 2,
        }
    }
}

/// The hash of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct Hash(pub(crate) [u8; 32]);

impl Hash {
    pub(crate) fn of(kind: Kind, data: &[u8]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update([kind.code()]);
        hasher.update(data);
        Self(hasher.finalize().into())
    }

    fn from_row(bytes: &[u8]) -> Outcome<Self> {
        let bytes = bytes.try_into().map_err(|_| Trouble::Damaged("a hash of another length".to_owned()))?;
        Ok(Self(bytes))
    }
}

/// The hashes in a list of pieces.
pub(crate) fn pieces_in(list: &[u8]) -> Outcome<Vec<Hash>> {
    list.chunks(32).map(Hash::from_row).collect()
}

/// Puts an object, unless it is there, and says whether it was put. To be called in a transaction.
pub(crate) fn put(db: &Connection, kind: Kind, hash: Hash, data: &[u8]) -> Outcome<bool> {
    let mut insert = db.prepare_cached(
        "INSERT INTO object (hash, kind, data) VALUES (?1, ?2, ?3) ON CONFLICT (hash) DO NOTHING",
    )?;
    Ok(insert.execute(params![hash.0.as_slice(), kind.code(), data])? > 0)
}

/// Reads an object, and checks it against its hash.
pub(crate) fn get(db: &Connection, kind: Kind, hash: Hash) -> Outcome<Vec<u8>> {
    let mut select = db.prepare_cached("SELECT data FROM object WHERE hash = ?1")?;
    let data: Option<Vec<u8>> = select.query_row(params![hash.0.as_slice()], |row| row.get(0)).optional()?;
    let data = data.ok_or_else(|| Trouble::Damaged("a part of it is missing".to_owned()))?;
    if Hash::of(kind, &data) != hash {
        return Err(Trouble::Damaged("a part of it is not what it was".to_owned()));
    }
    Ok(data)
}

/// Gives a file's content to `take`, piece by piece.
pub(crate) fn content(
    db: &Connection,
    hash: Hash,
    bytes: u64,
    mut take: impl FnMut(&[u8]) -> Outcome<()>,
) -> Outcome<()> {
    if bytes <= PIECE as u64 {
        return take(&get(db, Kind::Piece, hash)?);
    }
    for piece in pieces_in(&get(db, Kind::Pieces, hash)?)? {
        take(&get(db, Kind::Piece, piece)?)?;
    }
    Ok(())
}

/// The beginning of what a file holds, or of where a link leads. `None`: it is a folder.
pub(crate) fn head(db: &Connection, what: What, limit: u64) -> Outcome<Option<Vec<u8>>> {
    let (hash, bytes) = match what {
        What::File { bytes, content, .. } => (content, bytes),
        What::Link { bytes, target } => (target, bytes),
        What::Folder { .. } => return Ok(None),
    };
    let mut head = Vec::new();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    content(db, hash, bytes, |piece| {
        head.extend_from_slice(&piece[..piece.len().min(limit - head.len())]);
        Ok(())
    })?;
    Ok(Some(head))
}
