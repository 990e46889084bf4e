//! A format of JSON lines: `{"p":"words"}` is a prompt, `a` a reply, `n` a note, `t` a title; everything else is unknown.

use std::path::{Path, PathBuf};

use serde_json::Value;
use session_core::history::{
    Block, Entry, EntryKind, FileKind, SessionFile, SessionRoot, SessionSource, TitleSource,
};
use session_core::{NativeId, Places, RecordFacts, RecordKind, Said, SessionQuery, TranscriptFormat};

#[derive(Debug)]
pub(crate) struct Talk;

impl TranscriptFormat for Talk {
    fn places(&self, _: &SessionQuery<'_>) -> Places {
        Places::default()
    }

    fn is_file_of(&self, _: &str, _: &SessionQuery<'_>) -> bool {
        false
    }

    fn roots(&self, state_dir: Option<&Path>) -> Vec<SessionRoot> {
        let root = |dir: &Path| SessionRoot { folder: dir.join("talks"), depth: 1, archived: false };
        state_dir.map(root).into_iter().collect()
    }

    fn session_file(&self, below: &Path) -> Option<SessionFile> {
        let name = below.file_name()?.to_str()?.strip_suffix(".jsonl")?;
        Some(SessionFile { id: NativeId::new(name), kind: FileKind::Session, packed: false })
    }

    fn entry(&self, line: &[u8]) -> Option<Entry> {
        let record: Value = serde_json::from_slice(line).ok()?;
        let (key, said) = record.as_object()?.iter().next()?;
        let text = said.as_str().unwrap_or_default().to_owned();
        Some(Entry::new(match key.as_str() {
            "p" => EntryKind::Prompt(vec![Block::Text(text)]),
            "a" => EntryKind::Reply(vec![Block::Text(text)]),
            "t" => EntryKind::Title { source: TitleSource::Given, text },
            "n" => EntryKind::Note(text),
            _ => EntryKind::Unknown { name: key.clone(), record },
        }))
    }

    fn record(&self, line: &[u8]) -> Option<RecordFacts> {
        self.entry(line).map(|_| RecordFacts::new(RecordKind::Other))
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

/// What an entry says, with its kind in front.
pub(crate) fn told(entry: &Entry) -> String {
    let words = |blocks: &[Block]| match blocks {
        [Block::Text(text)] => text.clone(),
        other => format!("{other:?}"),
    };
    match &entry.kind {
        EntryKind::Prompt(blocks) => format!("p {}", words(blocks)),
        EntryKind::Reply(blocks) => format!("a {}", words(blocks)),
        EntryKind::Title { text, .. } => format!("t {text}"),
        EntryKind::Note(text) => format!("n {text}"),
        other => format!("{other:?}"),
    }
}

pub(crate) fn source(path: &Path) -> SessionSource {
    SessionSource { path: path.to_owned(), state_dir: None }
}
