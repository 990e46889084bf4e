//! A format for lists: `p|millis|folder|words` is a prompt, `r` a reply, `t` a title, `h` the header of a program's session, `o`
//! anything else. Files are `rooms/<room>/<id>.talk`, those of helpers `rooms/<room>/<id>/helpers/<name>.talk`.

use std::borrow::Cow;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use session_core::history::{
    FileKind, FolderKind, LineFacts, LineRole, ListQuery, Listing, RawTime, Scope, SessionFile, SessionKind,
    SessionRoot, TitleSource,
};
use session_core::{
    NativeId, Places, RecordFacts, Said, SessionCatalog as _, SessionQuery, TranscriptFormat,
};
use session_transcript::FileCatalog;

#[derive(Debug, Clone, Default)]
pub(crate) struct Talk {
    /// The agent's own place.
    pub(crate) home: Option<PathBuf>,
    /// Of a later one, words are loud.
    pub(crate) revision: u32,
}

impl TranscriptFormat for Talk {
    fn places(&self, _: &SessionQuery<'_>) -> Places {
        Places::default()
    }

    fn is_file_of(&self, _: &str, _: &SessionQuery<'_>) -> bool {
        false
    }

    fn roots(&self, state_dir: Option<&Path>) -> Vec<SessionRoot> {
        let root = |name, archived| SessionRoot {
            folder: state_dir.or(self.home.as_deref()).map(|home| home.join(name)).unwrap_or_default(),
            depth: 3,
            archived,
        };
        if state_dir.is_none() && self.home.is_none() {
            return Vec::new();
        }
        vec![root("rooms", false), root("old", true)]
    }

    fn revision(&self) -> u32 {
        self.revision
    }

    fn is_packed(&self, name: &str) -> bool {
        name.ends_with(".z")
    }

    fn session_file(&self, below: &Path) -> Option<SessionFile> {
        let name = below.file_name()?.to_str()?;
        let packed = name.ends_with(".z");
        let id = name.strip_suffix(".z").unwrap_or(name).strip_suffix(".talk")?;
        let helper = below.parent().is_some_and(|folder| folder.ends_with("helpers"));
        let kind = if helper { FileKind::Sidechain } else { FileKind::Session };
        Some(SessionFile { id: NativeId::new(id), kind, packed })
    }

    fn folder(&self, below: &Path) -> FolderKind {
        match below.iter().count() {
            1 => FolderKind::Sessions,
            2 if below.file_name().is_some_and(|name| name.to_string_lossy().starts_with('-')) => {
                FolderKind::Sessions
            }
            _ if below.ends_with("memory") => FolderKind::Other,
            _ => FolderKind::Sidechains,
        }
    }

    fn file_names(&self, id: &NativeId) -> Vec<String> {
        vec![format!("{id}.talk")]
    }

    fn facts<'a>(&self, line: &'a [u8]) -> Option<LineFacts<'a>> {
        let line = std::str::from_utf8(line).ok()?;
        let mut parts = line.splitn(4, '|');
        let (role, millis, cwd, text) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let text = if self.revision > 0 { Cow::Owned(text.to_uppercase()) } else { Cow::Borrowed(text) };
        let role = match role {
            "p" => LineRole::Prompt { text, command: false, queued: false },
            "r" => LineRole::Reply { reply: None, usage: None, model: None },
            "t" => LineRole::Title { source: TitleSource::Given, text },
            "h" => LineRole::Header { id: None, parent: None, kind: SessionKind::Headless },
            "o" => LineRole::Other,
            _ => return None,
        };
        let time = millis.parse().ok().map(RawTime::Number);
        let cwd = Some(Cow::Borrowed(cwd)).filter(|cwd| !cwd.is_empty());
        Some(LineFacts { role, time, cwd, ..LineFacts::default() })
    }

    fn record(&self, _: &[u8]) -> Option<RecordFacts> {
        None
    }

    fn said(&self, _: &[u8]) -> Option<Said> {
        None
    }

    fn numbered(&self, _: &[u8], _: u64) -> Option<Vec<u8>> {
        None
    }

    fn unarchived(&self, _: &Path) -> Option<PathBuf> {
        None
    }
}

/// The time of the tests: of a number, the seconds after it.
pub(crate) const START: u64 = 1_700_000_000;

/// A state dir with sessions.
pub(crate) struct Rooms(tempfile::TempDir);

impl Rooms {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file that was written so many seconds after the start.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>, seconds: u64) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        written(&path, seconds);
        path
    }

    /// A session with one turn, in this folder of work, at that time.
    pub(crate) fn session(&self, name: &str, cwd: &str, seconds: u64) -> PathBuf {
        let millis = (START + seconds) * 1000;
        let text = format!("p|{millis}|{cwd}|prompt of {name}\nr|{millis}|{cwd}|yes\n");
        self.write(&format!("rooms/{name}.talk"), text, seconds)
    }

    pub(crate) fn query(&self) -> ListQuery {
        ListQuery { state_dir: Some(self.dir().to_owned()), ..ListQuery::default() }
    }

    pub(crate) fn scoped(&self, scope: Scope) -> ListQuery {
        ListQuery { scope, ..self.query() }
    }

    pub(crate) async fn list(&self, query: &ListQuery) -> Listing {
        FileCatalog::new(Talk::default()).list(query).await.unwrap()
    }
}

pub(crate) fn written(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(START + seconds);
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

pub(crate) fn ids(listing: &Listing) -> Vec<&str> {
    listing.sessions.iter().map(|entry| entry.id.as_str()).collect()
}
