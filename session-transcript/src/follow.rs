//! What is added to a transcript while somebody looks.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use session_core::TranscriptFormat;
use session_core::error::CatalogError;
use session_core::history::{Cursor, Located, Notice, NoticeKind, SessionSource};

use crate::catalog::failed;
use crate::find::is_absent;
use crate::opened::Opened;
use crate::page::{Limits, Spot, Transcript};

/// How long to wait for more: twice as long each time that nothing came, up to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// The most records of one step.
const RECORDS: usize = 1000;

/// What happened to a transcript.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Followed {
    /// Records were added.
    Added {
        /// The records, oldest first; empty where what was added is none.
        entries: Vec<Located>,
        /// What was left out or put right.
        notices: Vec<Notice>,
    },
    /// The file was cut, rewritten, or another one took its place: what follows are its records from the beginning.
    Anew,
    /// The file is not there any more. The next step waits for it to come back.
    Gone,
}

/// Follows a transcript: every record once, when it is whole.
///
/// It looks again and again, at first after 50 ms and, while nothing comes, up to every second. It comes from
/// [`FileCatalog::follow`](crate::FileCatalog::follow).
pub struct Follow {
    format: Arc<dyn TranscriptFormat>,
    source: SessionSource,
    at: At,
    pause: Duration,
}

/// Up to where it was read.
#[derive(Debug, Clone)]
enum At {
    /// The cursor of the last look.
    Cursor(Cursor),
    Beginning,
    /// There is no file.
    Gone,
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, at, .. } = self;
        f.debug_struct("Follow").field("source", source).field("at", at).finish_non_exhaustive()
    }
}

impl Follow {
    pub(crate) fn new(
        format: Arc<dyn TranscriptFormat>,
        source: SessionSource,
        from: Option<Cursor>,
    ) -> Self {
        let at = from.map_or(At::Beginning, At::Cursor);
        Self { format, source, at, pause: PAUSES.0 }
    }

    /// Waits for the next thing to happen.
    ///
    /// # Errors
    /// [`CatalogError`] when the file cannot be read; the next call tries again. A first cursor that does not fit is no
    /// error: the file is [another one](Followed::Anew).
    ///
    /// # Cancel safety
    /// Yes: what was read and not returned is read again.
    ///
    /// # Panics
    /// Outside of a tokio runtime with time.
    pub async fn next(&mut self) -> Result<Followed, CatalogError> {
        loop {
            let (format, source, at) = (Arc::clone(&self.format), self.source.clone(), self.at.clone());
            let look = tokio::task::spawn_blocking(move || look(&*format, &source, at));
            let path = &self.source.path;
            let (at, followed) =
                look.await.unwrap_or_else(|error| Err(failed(path, io::Error::other(error))))?;
            // From here to the return nothing is awaited: what is taken down is handed out.
            self.at = at;
            if let Some(followed) = followed {
                self.pause = PAUSES.0;
                return Ok(followed);
            }
            tokio::time::sleep(self.pause).await;
            self.pause = (self.pause * 2).min(PAUSES.1);
        }
    }
}

/// One look, and the place to go on from.
fn look(
    format: &dyn TranscriptFormat,
    source: &SessionSource,
    at: At,
) -> Result<(At, Option<Followed>), CatalogError> {
    let path = &source.path;
    let opened = match Opened::at(path, source.state_dir.as_deref()) {
        Ok(opened) => opened,
        Err(error) if error.source.downcast_ref::<io::Error>().is_some_and(is_absent) => {
            let before = matches!(at, At::Gone);
            return Ok((At::Gone, (!before).then_some(Followed::Gone)));
        }
        Err(error) => return Err(error),
    };
    let look = || {
        let transcript = Transcript { format, path, opened: &opened };
        let begin = match &at {
            At::Gone => return Ok((At::Beginning, Some(Followed::Anew))),
            At::Beginning => 0,
            At::Cursor(cursor) => match Spot::parse(cursor) {
                Some(spot) if spot.check(&opened.file, &opened.metadata, opened.size)?.is_ok() => spot.offset,
                _ => return Ok((At::Beginning, Some(Followed::Anew))),
            },
        };
        let mut page = transcript.forth(begin, opened.size, RECORDS, Limits::PAGE)?;
        // A line that is being written is no damage, and a full step goes on with the next.
        page.notices.retain(|notice| !matches!(notice.kind, NoticeKind::TornTail | NoticeKind::LimitReached));
        let at = page.after.map_or(at, At::Cursor);
        let empty = page.entries.is_empty() && page.notices.is_empty();
        let added = Followed::Added { entries: page.entries, notices: page.notices };
        Ok((at, (!empty).then_some(added)))
    };
    look().map_err(|error| failed(path, error))
}
