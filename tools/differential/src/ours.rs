//! What Rejoin finds.

use std::path::Path;

use adapter_claude::ClaudeTranscripts;
use adapter_codex::CodexTranscripts;
use session_core::history::{Block, EntryKind, Located, PageQuery, SessionSource};
use session_core::{EnvMap, NativeId, SessionCatalog};
use session_transcript::FileCatalog;

use crate::{By, Found, squeeze};

pub(crate) async fn read(agent: &str, home: &Path, path: &Path) -> Found {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let claude = FileCatalog::new(ClaudeTranscripts::new(EnvMap::new()));
    let codex = FileCatalog::new(CodexTranscripts::new(EnvMap::new()));
    let (catalog, id): (&dyn SessionCatalog, &str) =
        if agent == "claude" { (&claude, name) } else { (&codex, &name[name.len().saturating_sub(36)..]) };
    // A home of an agent has the form of a state dir.
    let source = SessionSource { path: path.to_owned(), state_dir: Some(home.to_owned()) };
    let mut query = PageQuery::Last { turns: usize::MAX };
    let mut found = Found::default();
    loop {
        let page = catalog.page(&NativeId::new(id), &source, &query).await;
        let page = page.unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        for located in page.entries {
            found.add(located);
        }
        // A page holds no more than some megabytes.
        match page.before {
            Some(cursor) => query = PageQuery::Before { cursor, turns: usize::MAX },
            None => break,
        }
    }
    found
}

impl Found {
    fn add(&mut self, located: Located) {
        let Located { entry, span, .. } = located;
        let offset = span.expect("it comes from a file").offset;
        let (by, blocks) = match entry.kind {
            EntryKind::Prompt(blocks) | EntryKind::Returned(blocks) => (By::User, blocks),
            EntryKind::Reply(blocks) => (By::Agent, blocks),
            EntryKind::CompactSummary(text) => (By::User, vec![Block::Text(text)]),
            _ => return,
        };
        if entry.queued {
            self.queued.push(offset);
        }
        let line = self.lines.entry(offset).or_default();
        line.by = Some(by);
        for block in blocks {
            match block {
                Block::Text(text) => line.text.push_str(&squeeze(&text)),
                Block::ToolCall { id, name, .. } => line.calls.push((id, name)),
                Block::ToolResult { id, .. } => line.results.push(id),
                _ => {}
            }
        }
        if let (Some(reply), Some(usage)) = (entry.reply, entry.usage) {
            let tokens =
                [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens];
            let known = self.replies.entry(reply).or_default();
            if tokens[1] >= known[1] {
                *known = tokens;
            }
        }
    }
}
