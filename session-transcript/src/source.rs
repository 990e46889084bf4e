//! Work on a session file that was found before.

use std::io;
use std::path::Path;
use std::sync::Arc;

use session_core::TranscriptFormat;
use session_core::error::CatalogError;
use session_core::history::{Cursor, SessionSource};

use crate::FileCatalog;
use crate::catalog::failed;
use crate::follow::Follow;
use crate::opened::Opened;
use crate::parts::Files;

impl<F: TranscriptFormat> FileCatalog<F> {
    /// Follows the transcript of a session from a place on, or from its beginning. Nothing is read before the first step.
    #[must_use]
    pub fn follow(&self, source: SessionSource, from: Option<Cursor>) -> Follow {
        Follow::new(Arc::<F>::clone(&self.format), source, from)
    }

    /// Opens a file that was found before, and does something with it, on the blocking pool.
    pub(crate) async fn with_source<T: Send + 'static>(
        &self,
        source: &SessionSource,
        work: impl FnOnce(&Files<'_>, &Path, Opened) -> io::Result<T> + Send + 'static,
    ) -> Result<T, CatalogError> {
        let (format, source, limit) = (Arc::clone(&self.format), source.clone(), self.search_limit);
        let path = source.path.clone();
        let done = tokio::task::spawn_blocking(move || {
            let path = source.path;
            let opened = Opened::at(&path, source.state_dir.as_deref())?;
            let roots = format.roots(source.state_dir.as_deref());
            let real = source.state_dir.as_deref().map(Path::canonicalize).transpose();
            let real = real.map_err(|error| failed(&path, error))?;
            let files = Files::new(&*format, &roots, real.as_deref(), limit);
            work(&files, &path, opened).map_err(|error| failed(&path, error))
        });
        done.await.unwrap_or_else(|error| Err(failed(&path, io::Error::other(error))))
    }
}
