//! A record file: a header line, then the document's bytes as they are. Pure.

use serde::{Deserialize, Serialize};
use session_core::{Revision, SessionKey};
use sha2::{Digest, Sha256};

use crate::layout::hex;

/// The format of the store that this version writes and reads.
pub(crate) const STORE_FORMAT: u64 = 1;

/// No number of a grant is greater: nobody counts so far, so one that is was damaged, and stands for nothing.
pub(crate) const HIGHEST_GRANT: u64 = 1 << 62;

/// A header is shorter than this: a mailbox has at most 1,024 bytes, and escaping at most doubles them.
pub(crate) const MAX_HEADER: usize = 8 * 1024;

/// The part of a header that every version has.
#[derive(Deserialize)]
struct Versioned {
    store: u64,
}

/// The first line of a record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    store: u64,
    pub(crate) revision: Revision,
    pub(crate) key: SessionKey,
    /// The number of the grant that wrote last; zero before there was one.
    #[serde(default)]
    pub(crate) fence: u64,
    sha256: String,
    length: u64,
}

/// Why a record cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("it was written in format {0}; this version knows format 1")]
    Newer(u64),
    #[error("its first line is not a header: {0}")]
    Header(String),
    #[error("it is of {0}")]
    OtherKey(String),
    #[error("{found} bytes follow the header, which promises {promised}")]
    Length { promised: u64, found: u64 },
    #[error("its content does not have the hash that its header promises")]
    Hash,
}

/// A whole record: its revision and its document.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) revision: Revision,
    /// The highest number of a grant under which it was ever written.
    pub(crate) fence: u64,
    pub(crate) document: Vec<u8>,
}

/// Writes a record.
pub(crate) fn encode(key: &SessionKey, revision: &Revision, fence: u64, document: &[u8]) -> Vec<u8> {
    let header = Header {
        store: STORE_FORMAT,
        revision: revision.clone(),
        key: key.clone(),
        fence,
        sha256: hex(&Sha256::digest(document)),
        length: document.len() as u64,
    };
    let mut bytes = serde_json::to_vec(&header).expect("a header has only text keys and no failing part");
    bytes.push(b'\n');
    bytes.extend_from_slice(document);
    bytes
}

/// Reads the header from the beginning of a record, and says how long it is, line end included.
pub(crate) fn header(start: &[u8]) -> Result<(Header, usize), Unreadable> {
    let bounded = &start[..start.len().min(MAX_HEADER)];
    let Some(end) = bounded.iter().position(|b| *b == b'\n') else {
        return Err(Unreadable::Header("no end of line".to_owned()));
    };
    let line = &bounded[..end];
    let mut header = match serde_json::from_slice::<Header>(line) {
        Ok(header) if header.store == STORE_FORMAT => header,
        read => return Err(not_ours(line, read.err())),
    };
    if header.fence > HIGHEST_GRANT {
        header.fence = 0;
    }
    match counter(&header.revision) {
        Some(_) => Ok((header, end + 1)),
        None => Err(Unreadable::Header("the revision is malformed".to_owned())),
    }
}

/// The format decides: how a newer header goes on is not known here.
fn not_ours(line: &[u8], error: Option<serde_json::Error>) -> Unreadable {
    match (serde_json::from_slice::<Versioned>(line), error) {
        (Ok(Versioned { store }), _) if store > STORE_FORMAT => Unreadable::Newer(store),
        (Ok(Versioned { store }), _) if store < STORE_FORMAT => {
            Unreadable::Header(format!("format {store} is not known"))
        }
        (Ok(_), Some(error)) | (Err(error), _) => Unreadable::Header(error.to_string()),
        (Ok(Versioned { store }), None) => Unreadable::Header(format!("format {store} is told twice")),
    }
}

impl Header {
    /// Whether so many bytes are what the header promises.
    pub(crate) fn check_length(&self, found: u64) -> Result<(), Unreadable> {
        let promised = self.length;
        if promised == found { Ok(()) } else { Err(Unreadable::Length { promised, found }) }
    }

    /// The record, of this key and with what follows the header.
    pub(crate) fn with(self, document: Vec<u8>, key: &SessionKey) -> Result<Record, Unreadable> {
        if self.key != *key {
            return Err(Unreadable::OtherKey(self.key.to_string()));
        }
        self.check_length(document.len() as u64)?;
        if hex(&Sha256::digest(&document)) != self.sha256 {
            return Err(Unreadable::Hash);
        }
        Ok(Record { revision: self.revision, fence: self.fence, document })
    }
}

/// The revision after this one. The count is for people; the random part alone keeps a revision from being
/// used twice when a key is removed and written anew.
pub(crate) fn next_revision(current: Option<&Revision>, nonce: &str) -> Revision {
    let count = current.and_then(counter).unwrap_or(0).saturating_add(1);
    Revision::new(format!("{count}-{nonce}"))
}

fn counter(revision: &Revision) -> Option<u64> {
    let (count, nonce) = revision.as_str().split_once('-')?;
    let is_hex = !nonce.is_empty() && nonce.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex { count.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a whole record of this key.
    fn decode(mut bytes: Vec<u8>, key: &SessionKey) -> Result<Record, Unreadable> {
        let (header, length) = header(&bytes)?;
        header.with(bytes.split_off(length), key)
    }

    fn key() -> SessionKey {
        SessionKey::new("issue/42 \"x\\y\"", "claude").unwrap()
    }

    fn revision() -> Revision {
        Revision::new("17-9f3a2c")
    }

    #[test]
    fn a_header_is_one_line_that_people_can_check() {
        let bytes = encode(&key(), &revision(), 7, b"hello");
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(
            text,
            "{\"store\":1,\"revision\":\"17-9f3a2c\",\"key\":{\"mailbox\":\"issue/42 \\\"x\\\\y\\\"\",\"agent\":\"claude\"},\
             \"fence\":7,\"sha256\":\"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\",\"length\":5}\nhello"
        );
    }

    #[test]
    fn the_longest_header_is_within_the_bound() {
        let key = SessionKey::new("\"".repeat(1024), "a".repeat(64)).unwrap();
        let revision = Revision::new(format!("{}-{}", u64::MAX, "f".repeat(32)));
        let bytes = encode(&key, &revision, 7, b"");
        assert!(bytes.len() < MAX_HEADER / 2, "{}", bytes.len());
        assert_eq!(decode(bytes, &key).unwrap().revision, revision);
    }

    #[test]
    fn a_record_of_another_key_or_format_is_told_apart() {
        let bytes = encode(&key(), &revision(), 7, b"hello");
        let other = SessionKey::new("issue/43", "claude").unwrap();
        assert!(matches!(decode(bytes.clone(), &other), Err(Unreadable::OtherKey(_))));
        let newer = b"{\"store\":2,\"anything\":[]}\n\x00\xff".to_vec();
        assert_eq!(decode(newer, &key()).unwrap_err(), Unreadable::Newer(2));
        let zero = b"{\"store\":0}\n".to_vec();
        assert!(matches!(decode(zero, &key()), Err(Unreadable::Header(_))));
        let revision = Revision::new("not a revision");
        assert!(matches!(decode(encode(&key(), &revision, 7, b""), &key()), Err(Unreadable::Header(_))));
    }

    #[test]
    fn revisions_count_and_never_overflow() {
        let next = next_revision(Some(&revision()), "ab");
        assert_eq!(next.as_str(), "18-ab");
        assert_eq!(next_revision(None, "ab").as_str(), "1-ab");
        let last = Revision::new(format!("{}-ab", u64::MAX));
        assert_eq!(next_revision(Some(&last), "cd").as_str(), format!("{}-cd", u64::MAX));
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(document in prop::collection::vec(any::<u8>(), 0..300)) {
            let bytes = encode(&key(), &revision(), 7, &document);
            let record = decode(bytes, &key()).unwrap();
            prop_assert_eq!(record.document, document);
            prop_assert_eq!(record.revision, revision());
        }

        /// Whatever happened to the bytes: the document that was written, or none.
        #[test]
        fn damage_never_yields_another_document(
            document in prop::collection::vec(any::<u8>(), 0..100),
            cut in any::<prop::sample::Index>(), flip in any::<prop::sample::Index>(), mask in 1u8..,
            tail in prop::collection::vec(any::<u8>(), 0..4),
        ) {
            let whole = encode(&key(), &revision(), 7, &document);
            let mut damaged = whole[..=cut.index(whole.len())].to_vec();
            damaged.extend(&tail);
            let at = flip.index(damaged.len());
            damaged[at] ^= mask;
            if let Ok(record) = decode(damaged, &key()) {
                prop_assert_eq!(record.document, document);
            }
        }

        #[test]
        fn garbage_is_never_a_record(garbage in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(decode(garbage, &key()).is_err());
        }
    }
}
