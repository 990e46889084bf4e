//! Session files that can be read at any place, packed or not.

use std::fs::{File, Metadata};
use std::io::{self, Seek as _};
use std::path::Path;

use session_core::error::CatalogError;

use crate::catalog::failed;
use crate::find::{Found, open};
use crate::packed::Content;

/// An open session file. Of a packed one, what it holds was unpacked into a file without a name.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    /// Of the file as it lies there.
    pub(crate) metadata: Metadata,
    /// How many bytes can be read.
    pub(crate) size: u64,
    /// Whether it could not be unpacked to its end.
    pub(crate) in_part: bool,
}

impl Opened {
    /// Opens a file that was found before: now it has to be there.
    pub(crate) fn at(path: &Path, state_dir: Option<&Path>) -> Result<Self, CatalogError> {
        let file = match open(path, state_dir)? {
            Found::File(_, file) => file,
            Found::Nothing => {
                return Err(failed(path, io::Error::new(io::ErrorKind::NotFound, "it is not there")));
            }
            Found::Unusable(_) => {
                let denied = io::Error::new(io::ErrorKind::PermissionDenied, "it may not be read");
                return Err(failed(path, denied));
            }
        };
        Self::of(file).map_err(|error| failed(path, error))
    }

    fn of(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        match Content::of(file)? {
            Content::Plain(file) => Ok(Self { file, size: metadata.len(), metadata, in_part: false }),
            mut content @ Content::Packed(_) => {
                let mut file = tempfile::tempfile()?;
                let size = io::copy(&mut content, &mut file)?;
                file.rewind()?;
                Ok(Self { file, metadata, size, in_part: content.is_in_part() })
            }
        }
    }
}
