//! The catalog: find, scan, sum up.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use session_core::error::CatalogError;
use session_core::history::{
    ListQuery, Listing, PageQuery, Restored, Search, SearchQuery, SessionEntry, SessionRoot, SessionSource,
    TranscriptPage,
};
use session_core::{
    Branch, BranchOrder, Branched, Conversation, Foreseen, Inspection, Mend, NativeId, Places, RelocateOrder,
    Relocated, SessionCatalog, SessionQuery, TranscriptFormat, async_trait,
};

use crate::branch::{self, branch};
use crate::filed::folder_of;
use crate::find::{Found, find};
use crate::inspect::look;
use crate::list::Lister;
use crate::mend::{end_last_line, number_records, stays_in, unarchive};
use crate::opened::Opened;
use crate::packed::{Content, is_packed};
use crate::page::{Limits, Transcript, page_of};
use crate::parts::Files;
use crate::plain::Plain;
use crate::relocate::{Order, foresee, relocate};
use crate::restore::restore;
use crate::scan::{READ_LIMIT, last_said};
use crate::stamp::now;
use crate::unpack::unpack;

/// A catalog of sessions that lie in one file each.
#[derive(Debug, Clone)]
pub struct FileCatalog<F> {
    pub(crate) format: Arc<F>,
    pub(crate) search_limit: usize,
    index: Option<Arc<Path>>,
    plain: Arc<Plain>,
}

/// More entries of folders than the sessions of years.
const SEARCH_LIMIT: usize = 250_000;

impl<F: TranscriptFormat> FileCatalog<F> {
    /// A catalog of files in this format.
    #[must_use]
    pub fn new(format: F) -> Self {
        Self { format: Arc::new(format), search_limit: SEARCH_LIMIT, index: None, plain: Arc::default() }
    }

    /// How many entries of folders one look goes through, where the session is not at the place that its name tells; default
    /// 250,000. A session that was not found till then is not called missing: it may be in what is left.
    #[must_use]
    pub const fn search_limit(mut self, entries: usize) -> Self {
        self.search_limit = entries;
        self
    }

    /// Keeps what lists read in this file, so that the next one reads what was added alone; default: nothing is kept. It is a
    /// cache for one user and one format: whatever happens to it changes how long a list takes, and not what it says. It
    /// holds prompts and titles, and is readable to its owner alone.
    #[must_use]
    pub fn index(mut self, path: impl Into<PathBuf>) -> Self {
        self.index = Some(path.into().into());
        self
    }

    /// Walks the folders of the format, on the blocking pool.
    async fn with_roots<T: Send + 'static>(
        &self,
        state_dir: Option<&Path>,
        work: impl FnOnce(&Lister<'_>, &[SessionRoot]) -> io::Result<T> + Send + 'static,
    ) -> Result<T, CatalogError> {
        let roots = self.format.roots(state_dir);
        let looked_at = match (roots.first(), state_dir) {
            (Some(root), _) => root.folder.clone(),
            (None, dir) => {
                let source = io::Error::other("it is not known where sessions lie").into();
                return Err(CatalogError { path: dir.map(Path::to_owned).unwrap_or_default(), source });
            }
        };
        let (format, limit, index) = (Arc::clone(&self.format), self.search_limit, self.index.clone());
        let plain = Arc::clone(&self.plain);
        let done = tokio::task::spawn_blocking(move || {
            let count = AtomicU64::new(0);
            let owner = owner(&*format);
            let index = index.as_deref().map(|path| (path, owner.as_str()));
            let lister = Lister { format: &*format, limit, index, count: &count, clock: now, plain: &plain };
            let done = work(&lister, &roots);
            tracing::debug!(roots = roots.len(), bytes = count.into_inner(), "looked for sessions");
            done
        });
        done.await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|error| failed(&looked_at, error))
    }

    /// Finds the session's file, and does something with it, on the blocking pool.
    async fn with_file<T: Send + 'static>(
        &self,
        query: SessionQuery<'_>,
        work: impl FnOnce(&F, Found) -> Result<T, CatalogError> + Send + 'static,
    ) -> Result<T, CatalogError> {
        let places = self.format.places(&query);
        if places == Places::default() {
            // A home that is unknown is not a session that is missing.
            let source = io::Error::other("it is not known where its sessions lie").into();
            return Err(CatalogError { path: query.cwd.to_owned(), source });
        }
        let looked_at = root(&places);
        let (format, limit) = (Arc::clone(&self.format), self.search_limit);
        let (id, cwd) = (query.id.clone(), query.cwd.to_owned());
        let (state_dir, version) = (query.state_dir.map(Path::to_owned), query.version.cloned());
        let done = tokio::task::spawn_blocking(move || {
            let query = SessionQuery {
                id: &id,
                cwd: &cwd,
                state_dir: state_dir.as_deref(),
                version: version.as_ref(),
            };
            work(&format, find(&*format, &query, &places, limit)?)
        });
        done.await.unwrap_or_else(|error| {
            Err(CatalogError { path: looked_at, source: io::Error::other(error).into() })
        })
    }
}

/// Whose an index is: what reads by other rules does not believe it.
pub(crate) fn owner<F: TranscriptFormat>(format: &F) -> String {
    format!("{} {} {}", env!("CARGO_PKG_VERSION"), std::any::type_name::<F>(), format.revision())
}

#[async_trait]
impl<F: TranscriptFormat> SessionCatalog for FileCatalog<F> {
    fn home(&self) -> Option<PathBuf> {
        self.format.home()
    }

    /// # Errors
    /// [`CatalogError`] for input/output errors other than "not there" and "not allowed".
    ///
    /// # Cancel safety
    /// Nothing is written. A dropped future leaves a read running to its end on the blocking pool.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn inspect(&self, query: SessionQuery<'_>) -> Result<Inspection, CatalogError> {
        let look = self.with_file(query, |format, found| look(format, found)).await?;
        tracing::debug!(id = %query.id, path = ?look.path, presence = ?look.presence, turns = look.user_turns,
            skipped = look.skipped_lines, torn = look.torn_tail, "looked at a session");
        Ok(look)
    }

    /// # Errors
    /// [`CatalogError`] for input/output errors, also where the file may not be read.
    ///
    /// # Cancel safety
    /// Nothing is written. A dropped future leaves a read running to its end on the blocking pool.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn last_said(&self, query: SessionQuery<'_>, bytes: usize) -> Result<Conversation, CatalogError> {
        let read = move |format: &F, found| match found {
            Found::Nothing => Ok(Conversation::default()),
            Found::Unusable(path) => {
                Err(failed(&path, io::Error::new(io::ErrorKind::PermissionDenied, "it may not be read")))
            }
            Found::File(path, file) => {
                let said = Content::of(file).and_then(|file| last_said(format, file.take(READ_LIMIT), bytes));
                said.map_err(|error| failed(&path, error))
            }
        };
        self.with_file(query, read).await
    }

    /// # Errors
    /// [`CatalogError`] when the file is there and cannot be written to, or is reached through a link.
    ///
    /// # Cancel safety
    /// A dropped future leaves the cure running to its end on the blocking pool: it is done whole, or not at all.
    async fn mend(
        &self,
        query: SessionQuery<'_>,
        look: &Inspection,
        mend: Mend,
    ) -> Result<bool, CatalogError> {
        let Some(path) = look.path.clone() else { return Ok(false) };
        let (format, bytes) = (Arc::clone(&self.format), look.bytes);
        let (place, state_dir) = (path.clone(), query.state_dir.map(Path::to_owned));
        let done = tokio::task::spawn_blocking(move || {
            let home = format.unarchived(&place).filter(|_| mend == Mend::Unarchive);
            if let Some(dir) = &state_dir {
                [Some(&place), home.as_ref()]
                    .into_iter()
                    .flatten()
                    .try_for_each(|path| stays_in(path, dir))?;
            }
            if !matches!(mend, Mend::Unarchive | Mend::Unpack) && is_packed(&place)? {
                // What is appended to a packed file ruins it.
                return Ok(false);
            }
            match (mend, home) {
                (Mend::EndLastLine, _) => end_last_line(&place, bytes),
                (Mend::Unpack, _) => unpack(&*format, &place, bytes),
                (Mend::NumberRecords, _) => number_records(&*format, &place, bytes),
                (Mend::Unarchive, Some(home)) => unarchive(&place, bytes, &home),
                _ => Ok(false),
            }
        });
        let done = done.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        let done = done.map_err(|error| failed(&path, error))?;
        if done {
            tracing::warn!(path = %path.display(), ?mend, "a session's file was mended");
        }
        Ok(done)
    }

    /// # Errors
    /// [`CatalogError`] for input/output errors; what was done by then is undone.
    ///
    /// # Cancel safety
    /// A dropped future leaves the work running to its end on the blocking pool: it is done whole, or not at all.
    async fn relocate(&self, order: RelocateOrder<'_>) -> Result<Relocated, CatalogError> {
        let (format, limit, order) = (Arc::clone(&self.format), self.search_limit, Order::of(&order));
        let path = order.from.clone();
        let done = tokio::task::spawn_blocking(move || relocate(&*format, &order, limit)).await;
        let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
        let done = done.map_err(|error| failed(&path, error))?;
        tracing::info!(path = %path.display(), ?done, "a session was to be relocated");
        Ok(done)
    }

    /// # Errors
    /// [`CatalogError`] for input/output errors.
    ///
    /// # Cancel safety
    /// Nothing is written.
    async fn foresee(&self, order: RelocateOrder<'_>) -> Result<Foreseen, CatalogError> {
        let (format, order) = (Arc::clone(&self.format), Order::of(&order));
        let path = order.from.clone();
        let seen = tokio::task::spawn_blocking(move || foresee(&*format, &order)).await;
        seen.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|error| failed(&path, error))
    }

    /// What lies beside the original, as outputs of tools and what helpers said, is copied whole.
    ///
    /// # Errors
    /// [`CatalogError`] for input/output errors; what was written by then is removed.
    ///
    /// # Cancel safety
    /// A dropped future leaves the work running to its end on the blocking pool: it is done whole, or not at all.
    async fn branch(&self, order: BranchOrder<'_>) -> Result<Branched, CatalogError> {
        let (format, limit, order) = (Arc::clone(&self.format), self.search_limit, branch::Order::of(&order));
        let place = order.place();
        let done = tokio::task::spawn_blocking(move || branch(&*format, &order, limit)).await;
        let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
        let done = done.map_err(|error| failed(&place, error))?;
        tracing::info!(?done, "a session was to be branched");
        Ok(done)
    }

    /// # Errors
    /// [`CatalogError`] when it is still there.
    ///
    /// # Cancel safety
    /// A dropped future leaves the work running to its end on the blocking pool.
    async fn prune(&self, order: BranchOrder<'_>, made: &Branch) -> Result<(), CatalogError> {
        let (format, order, made) = (Arc::clone(&self.format), branch::Order::of(&order), made.clone());
        let path = made.path.clone();
        let done = tokio::task::spawn_blocking(move || branch::prune(&*format, &order, &made)).await;
        done.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|error| failed(&path, error))
    }

    fn is_filed_in(&self, source: &SessionSource, folder: &Path) -> Option<bool> {
        let places = self.format.filed_in(folder, source.state_dir.as_deref());
        let place = source.path.parent();
        (!places.is_empty()).then(|| places.iter().any(|filed| Some(filed.as_path()) == place))
    }

    /// # Cancel safety
    /// Nothing is written. A dropped future leaves a search of bounded length running on the blocking pool.
    async fn folder_of(&self, source: &SessionSource) -> Option<PathBuf> {
        let (format, source) = (Arc::clone(&self.format), source.clone());
        tokio::task::spawn_blocking(move || folder_of(&*format, &source)).await.ok().flatten()
    }

    /// # Errors
    /// [`CatalogError`] when the file is not there or cannot be read, and for a cursor of another file, or of one that was
    /// cut or rewritten since.
    ///
    /// # Cancel safety
    /// Nothing is written. A dropped future leaves a read of at most one page running on the blocking pool.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn page(
        &self,
        _: &NativeId,
        source: &SessionSource,
        query: &PageQuery,
    ) -> Result<TranscriptPage, CatalogError> {
        let query = query.clone();
        let read =
            move |files: &Files<'_>, path: &Path, opened| page_of(files, path, opened, &query, Limits::PAGE);
        self.with_source(source, read).await
    }

    /// # Errors
    /// [`CatalogError`] when the file is not there or cannot be read.
    ///
    /// # Cancel safety
    /// Nothing is written. A dropped future leaves the read running to its end on the blocking pool.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn restore(&self, id: &NativeId, source: &SessionSource) -> Result<Restored, CatalogError> {
        let (id, state_dir) = (id.clone(), source.state_dir.clone());
        let read = move |files: &Files<'_>, path: &Path, opened: Opened| {
            let transcript = Transcript { format: files.format, path, opened: &opened };
            restore(files, &id, transcript, state_dir.as_deref())
        };
        self.with_source(source, read).await
    }

    /// # Errors
    /// [`CatalogError`] when it is not known where sessions lie, or nothing is searched for. What cannot be read is told on
    /// the way.
    ///
    /// # Cancel safety
    /// Nothing is written. Dropping the search ends it at the next line.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn search(&self, query: &SearchQuery) -> Result<Box<dyn Search>, CatalogError> {
        self.begin_search(query)
    }

    /// # Errors
    /// [`CatalogError`] when it is not known where sessions lie. What cannot be read is a notice in the list.
    ///
    /// # Cancel safety
    /// Nothing but the index is written. A dropped future leaves the list running to its end on the blocking pool.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn list(&self, query: &ListQuery) -> Result<Listing, CatalogError> {
        let asked = query.clone();
        self.with_roots(query.state_dir.as_deref(), move |lister, roots| Ok(lister.list(&asked, roots))).await
    }

    /// # Errors
    /// [`CatalogError`] when it is not known where sessions lie, or when it was not found and not everything could be
    /// looked at.
    ///
    /// # Cancel safety
    /// Nothing is written. A dropped future leaves the search running to its end on the blocking pool.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    async fn find(&self, id: &NativeId, state_dir: Option<&Path>) -> Result<Vec<SessionEntry>, CatalogError> {
        let (id, dir) = (id.clone(), state_dir.map(Path::to_owned));
        self.with_roots(state_dir, move |lister, roots| lister.find(&id, dir.as_deref(), roots)).await
    }
}

fn root(places: &Places) -> PathBuf {
    places.exact.first().or(places.below.first().map(|below| &below.folder)).cloned().unwrap_or_default()
}

pub(crate) fn failed(path: &Path, error: io::Error) -> CatalogError {
    CatalogError { path: path.to_owned(), source: error.into() }
}
