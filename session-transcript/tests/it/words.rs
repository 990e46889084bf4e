//! A format of JSON lines: `{"p":"words"}` is a prompt, `a` a reply, `n` a note, `t` a title; everything else is unknown.
//! `<id>_<segment>.jsonl` goes on from the file that `b` names in its first line; `w` is the folder.

use std::path::{Path, PathBuf};

use serde_json::Value;
use session_core::history::{
    Block, Entry, EntryKind, FileKind, HistoryBase, LineFacts, LineRole, SessionFile, SessionKind,
    SessionRoot, SessionSource, Title, TitleSource,
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
        let id = name.split_once('_').map_or(name, |(id, _)| id);
        Some(SessionFile { id: NativeId::new(id), kind: FileKind::Session, packed: false })
    }

    fn segment(&self, name: &str) -> Option<NativeId> {
        name.strip_suffix(".jsonl")?.split_once('_').map(|(_, segment)| NativeId::new(segment))
    }

    fn titles(&self, state_dir: Option<&Path>) -> Option<PathBuf> {
        Some(state_dir?.join("titles"))
    }

    fn title(&self, line: &[u8]) -> Option<(NativeId, Title)> {
        let record: Value = serde_json::from_slice(line).ok()?;
        let (id, text) = record.as_object()?.iter().next()?;
        Some((
            NativeId::new(id.as_str()),
            Title { text: text.as_str()?.to_owned(), source: TitleSource::Given },
        ))
    }

    fn base(&self, header: &[u8]) -> Option<HistoryBase> {
        let record: Value = serde_json::from_slice(header).ok()?;
        Some(HistoryBase { id: NativeId::new(record["b"].as_str()?), end: None })
    }

    fn facts<'a>(&self, line: &'a [u8]) -> Option<LineFacts<'a>> {
        let record: Value = serde_json::from_slice(line).ok()?;
        let (key, said) = record.as_object()?.iter().next()?;
        let text = said.as_str().unwrap_or_default().to_owned().into();
        let role = match key.as_str() {
            "p" => LineRole::Prompt { text, command: false, queued: false },
            "a" => LineRole::Reply { reply: None, usage: None, model: None },
            "b" => LineRole::Header { id: None, parent: None, kind: SessionKind::Main },
            _ => LineRole::Other,
        };
        let cwd = record["w"].as_str().map(|cwd| cwd.to_owned().into());
        Some(LineFacts { role, cwd, ..LineFacts::default() })
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
