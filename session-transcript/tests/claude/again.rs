//! What stands in a file a second time, page by page.

use std::fs;

use adapter_claude::ClaudeTranscripts;
use session_core::history::{Block, Cursor, EntryKind, PageQuery, SessionSource, TranscriptPage};
use session_core::{EnvMap, NativeId, SessionCatalog as _};
use session_transcript::FileCatalog;

const ID: &str = "11111111-1111-4111-8111-111111111111";

/// A session of these prompts, each with its second; a boundary where it is empty.
struct Session(tempfile::TempDir);

impl Session {
    fn of(prompts: &[(u32, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let line = |(number, (second, text)): (usize, &(u32, &str))| {
            let what = match text.is_empty() {
                true => r#""type":"system","subtype":"compact_boundary""#.to_owned(),
                false => format!(r#""type":"user","message":{{"role":"user","content":"{text}"}}"#),
            };
            format!(
                "{{\"uuid\":\"{number:08x}-0000-4000-8000-000000000000\",\"parentUuid\":null,\"sessionId\":\"{ID}\",\
                 \"timestamp\":\"2026-05-08T18:00:{second:02}.000Z\",{what}}}\n"
            )
        };
        fs::create_dir_all(folder.path().join("projects/-w")).unwrap();
        let text: String = prompts.iter().enumerate().map(line).collect();
        fs::write(folder.path().join(format!("projects/-w/{ID}.jsonl")), text).unwrap();
        Self(folder)
    }

    async fn page(&self, query: PageQuery) -> TranscriptPage {
        let state = self.0.path().to_owned();
        let source =
            SessionSource { path: state.join(format!("projects/-w/{ID}.jsonl")), state_dir: Some(state) };
        let catalog = FileCatalog::new(ClaudeTranscripts::new(EnvMap::new()));
        catalog.page(&NativeId::new(ID), &source, &query).await.unwrap()
    }

    /// What all pages say, and the place behind the first record.
    async fn back(&self, turns: usize) -> (Vec<String>, Cursor) {
        let mut page = self.page(PageQuery::Last { turns }).await;
        let mut all = said(&page);
        while let Some(cursor) = page.before {
            page = self.page(PageQuery::Before { cursor, turns }).await;
            all = [said(&page), all].concat();
        }
        (all, page.after.unwrap())
    }

    async fn forth(&self, mut cursor: Cursor, records: usize) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let page = self.page(PageQuery::After { cursor: cursor.clone(), records }).await;
            all.extend(said(&page));
            match page.after {
                Some(after) if after != cursor => cursor = after,
                _ => return all,
            }
        }
    }
}

fn said(page: &TranscriptPage) -> Vec<String> {
    let text = |blocks: &[Block]| match blocks {
        [Block::Text(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    let prompts = page.entries.iter().filter_map(|it| match &it.entry.kind {
        EntryKind::Prompt(blocks) => Some(text(blocks)),
        _ => None,
    });
    prompts.collect()
}

#[tokio::test]
async fn the_same_words_in_the_same_second_are_shown_as_often_as_they_were_typed() {
    let session = Session::of(&[(0, "go"), (1, "yes"), (1, "yes"), (1, "yes"), (2, "bye")]);
    let expected = ["go", "yes", "yes", "yes", "bye"];
    for turns in 1..6 {
        assert_eq!(session.back(turns).await.0, expected, "{turns}");
    }
    let (_, first) = session.back(1).await;
    for records in 1..6 {
        assert_eq!(session.forth(first.clone(), records).await, expected[1..], "{records}");
    }
}

#[tokio::test]
async fn what_is_written_again_up_to_its_last_message_is_left_out_of_pages_of_every_size() {
    let written = [(0, "a"), (1, "b"), (2, "c")];
    let session = Session::of(&[&written[..], &written[1..], &[(3, ""), (4, "d")]].concat());
    let (_, first) = session.back(1).await;
    for records in 1..6 {
        assert_eq!(session.forth(first.clone(), records).await, ["b", "c", "d"], "{records}");
    }
}

#[tokio::test]
async fn what_is_written_again_is_found_behind_what_was_written_again_before() {
    let early = [(0, "a"), (1, "b"), (2, "c"), (3, "d")];
    let late = [(6, "e"), (7, "f")];
    let session = Session::of(
        &[&early[..], &early[..2], &[(4, "")], &late, &[(9, "g")], &late, &[(8, ""), (9, "h")]].concat(),
    );
    for turns in [1, 2, 9] {
        assert_eq!(session.back(turns).await.0, ["a", "b", "c", "d", "e", "f", "g", "h"], "{turns}");
    }
}
