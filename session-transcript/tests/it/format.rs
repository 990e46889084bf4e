//! A small format: `p` is a prompt, `a` an answer, a number behind it is the record's.

use std::fs;
use std::path::{Path, PathBuf};

use session_core::{
    Below, Conversation, Inspection, Mend, NativeId, Places, RecordFacts, RecordKind, Said,
    SessionCatalog as _, SessionQuery, Speaker, TranscriptFormat,
};
use session_transcript::FileCatalog;

#[derive(Debug)]
pub(crate) struct Letters;

impl TranscriptFormat for Letters {
    fn places(&self, query: &SessionQuery<'_>) -> Places {
        let state = query.state_dir.expect("the tests give one");
        Places {
            exact: vec![state.join("days/1/guess-s.log")],
            below: vec![
                Below { folder: state.join("days"), depth: 1 },
                Below { folder: state.join("archive"), depth: 0 },
            ],
        }
    }

    fn is_file_of(&self, name: &str, query: &SessionQuery<'_>) -> bool {
        name.strip_suffix(".z")
            .unwrap_or(name)
            .strip_suffix(".log")
            .and_then(|name| name.split_once('-'))
            .is_some_and(|(_, id)| id == query.id.as_str())
    }

    fn is_packed(&self, name: &str) -> bool {
        name.ends_with(".z")
    }

    fn unpacks_since(&self) -> Option<[u64; 3]> {
        Some([3, 0, 0])
    }

    fn record(&self, line: &[u8]) -> Option<RecordFacts> {
        let text = std::str::from_utf8(line).ok()?.trim();
        let (kind, rest) = text.split_at_checked(1)?;
        let kind = match kind {
            "p" => RecordKind::Prompt,
            "a" => RecordKind::Answer,
            "o" | "n" | "b" => RecordKind::Other,
            _ => return None,
        };
        let number = if rest.is_empty() { None } else { Some(rest.parse().ok()?) };
        let needs_version = text.starts_with('n').then_some([2, 0, 0]);
        Some(RecordFacts { number, needs_version, inherits: text.starts_with('b'), ..RecordFacts::new(kind) })
    }

    fn said(&self, line: &[u8]) -> Option<Said> {
        let by = match self.record(line)?.kind {
            RecordKind::Prompt => Speaker::User,
            RecordKind::Answer => Speaker::Agent,
            RecordKind::Other => return None,
        };
        Some(Said { by, text: String::from_utf8_lossy(line).into_owned() })
    }

    fn numbered(&self, line: &[u8], number: u64) -> Option<Vec<u8>> {
        // Of an `o`, nobody knows how to give it one.
        (!line.starts_with(b"o")).then(|| [line, number.to_string().as_bytes()].concat())
    }

    fn unarchived(&self, path: &Path) -> Option<PathBuf> {
        let folder = path.parent()?;
        let home = folder.parent()?.join("days/7").join(path.file_name()?);
        folder.ends_with("archive").then_some(home)
    }
}

pub(crate) struct Stage(tempfile::TempDir);

impl Stage {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) async fn look(&self) -> Inspection {
        self.try_look().await.unwrap()
    }

    pub(crate) async fn try_look(&self) -> Result<Inspection, session_core::error::CatalogError> {
        let id = NativeId::new("s");
        FileCatalog::new(Letters).inspect(self.query(&id)).await
    }

    /// A look that goes through so many entries.
    pub(crate) async fn look_at_most(&self, entries: usize) -> Inspection {
        let id = NativeId::new("s");
        FileCatalog::new(Letters).search_limit(entries).inspect(self.query(&id)).await.unwrap()
    }

    pub(crate) async fn said(&self, bytes: usize) -> Result<Conversation, session_core::error::CatalogError> {
        let id = NativeId::new("s");
        FileCatalog::new(Letters).last_said(self.query(&id), bytes).await
    }

    pub(crate) async fn mend(
        &self,
        look: &Inspection,
        mend: Mend,
    ) -> Result<bool, session_core::error::CatalogError> {
        let id = NativeId::new("s");
        FileCatalog::new(Letters).mend(self.query(&id), look, mend).await
    }

    fn query<'a>(&'a self, id: &'a NativeId) -> SessionQuery<'a> {
        SessionQuery { id, cwd: Path::new("/w"), state_dir: Some(self.0.path()), version: None }
    }
}
