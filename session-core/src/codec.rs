//! Records as documents: versioned, with unknown fields kept, newer ones left alone.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Document, SessionKey, SessionRecord};

/// The version of the format that this library writes.
pub const FORMAT: Format = Format { major: 1, minor: 0 };

/// A version of the record format. A minor version adds fields; a major version changes their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Format {
    /// Changes when old readers would misunderstand.
    pub major: u32,
    /// Changes when old writers would lose something.
    pub minor: u32,
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[derive(Deserialize)]
struct Head {
    format: Format,
}

#[derive(Serialize)]
struct Envelope<'a> {
    format: Format,
    record: &'a SessionRecord,
}

#[derive(Deserialize)]
struct Opened<'a> {
    #[serde(borrow)]
    record: &'a RawValue,
}

/// What a document turned out to be.
#[derive(Debug)]
pub enum Decoded {
    /// A record.
    Record(Box<SessionRecord>),
    /// A record of a newer version: not to be overwritten.
    Newer(Format),
    /// No record of this key.
    Corrupt(String),
}

/// Writes a record.
#[must_use]
pub fn encode(record: &SessionRecord) -> Document {
    let envelope = Envelope { format: FORMAT, record };
    Document::new(
        serde_json::to_vec_pretty(&envelope).expect("a record has only text keys and no failing part"),
    )
}

/// Reads a document. The version is read first: what a newer one looks like is nobody's business here.
#[must_use]
pub fn decode(document: &Document, key: &SessionKey) -> Decoded {
    let bytes = document.as_bytes();
    match serde_json::from_slice::<Head>(bytes) {
        Err(error) => return Decoded::Corrupt(error.to_string()),
        Ok(head) if head.format > FORMAT => return Decoded::Newer(head.format),
        Ok(head) if head.format.major != FORMAT.major => {
            return Decoded::Corrupt(format!("format {} is not known", head.format));
        }
        Ok(_) => {}
    }
    let record = serde_json::from_slice::<Opened<'_>>(bytes)
        .and_then(|opened| serde_json::from_str::<SessionRecord>(opened.record.get()));
    match record {
        Err(error) => Decoded::Corrupt(error.to_string()),
        Ok(record) if record.key != *key => Decoded::Corrupt(format!("the record is of {}", record.key)),
        Ok(record) => Decoded::Record(Box::new(record)),
    }
}
