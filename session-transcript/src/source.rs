//! Work on a session file that was found before.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use session_core::TranscriptFormat;
use session_core::error::CatalogError;
use session_core::history::{Cursor, SessionSource};

use crate::FileCatalog;
use crate::catalog::{failed, readable};
use crate::find::{Found, open};
use crate::follow::Follow;
use crate::page::Transcript;

impl<F: TranscriptFormat> FileCatalog<F> {
    /// Follows the transcript of a session from a place on, or from its beginning. Nothing is read before the first step.
    #[must_use]
    pub fn follow(&self, source: SessionSource, from: Option<Cursor>) -> Follow {
        Follow::new(Arc::<F>::clone(&self.format), source, from)
    }

    /// Opens the file, and does something with it, on the blocking pool.
    pub(crate) async fn with_source<T: Send + 'static>(
        &self,
        source: &SessionSource,
        work: impl FnOnce(Transcript<'_>) -> io::Result<T> + Send + 'static,
    ) -> Result<T, CatalogError> {
        let (format, source) = (Arc::clone(&self.format), source.clone());
        let path = source.path.clone();
        let done = tokio::task::spawn_blocking(move || {
            let path = source.path;
            let file = open_source(&*format, &path, source.state_dir.as_deref())?;
            let metadata = file.metadata().map_err(|error| failed(&path, error))?;
            let transcript = Transcript { format: &*format, path: &path, file: &file, metadata: &metadata };
            work(transcript).map_err(|error| failed(&path, error))
        });
        done.await.unwrap_or_else(|error| Err(failed(&path, io::Error::other(error))))
    }
}

/// A file that was found before: now it has to be there.
pub(crate) fn open_source(
    format: &dyn TranscriptFormat,
    path: &Path,
    state_dir: Option<&Path>,
) -> Result<File, CatalogError> {
    match readable(format, open(path, state_dir)?)? {
        Found::File(_, file) => Ok(file),
        Found::Nothing => Err(failed(path, io::Error::new(io::ErrorKind::NotFound, "it is not there"))),
        Found::Unusable(_) => {
            Err(failed(path, io::Error::new(io::ErrorKind::PermissionDenied, "it may not be read")))
        }
    }
}
