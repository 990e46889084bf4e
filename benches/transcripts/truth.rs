//! The truth about a corpus, from its manifest, and what a list says beside it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use rejoin::core::Usage;
use rejoin::core::history::{Listing, Resumability, SessionEntry, TitleSource};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) sessions: Vec<Session>,
    #[serde(default)]
    pub(crate) huge: Option<Huge>,
    #[serde(default)]
    pub(crate) totals: Option<Totals>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Totals {
    pub(crate) claude_usage: Tokens,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Tokens {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cache_creation_input_tokens: usage.cache_write_tokens,
            cache_read_input_tokens: usage.cache_read_tokens,
            output_tokens: usage.output_tokens,
        }
    }
}

/// A long transcript.
#[derive(Debug, Deserialize)]
pub(crate) struct Huge {
    pub(crate) usage: Tokens,
    pub(crate) tail: Tail,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Tail {
    pub(crate) prompts: Vec<Place>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Place {
    pub(crate) uuid: String,
    pub(crate) offset: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Session {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) listed: bool,
    #[serde(default)]
    pub(crate) traps: Vec<String>,
    pub(crate) first_prompt: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) legacy_summary: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) last_cwd: Option<String>,
    pub(crate) git_branch: Option<String>,
    pub(crate) bytes: u64,
    pub(crate) human_prompts: Option<u64>,
    pub(crate) turns: Option<u64>,
    pub(crate) usage_new: Option<HashMap<String, u64>>,
    pub(crate) usage: Option<HashMap<String, u64>>,
}

pub(crate) fn read(corpus: &Path) -> Manifest {
    serde_json::from_slice(&fs::read(corpus.join("manifest.json")).unwrap()).unwrap()
}

/// What of a list is not as it should be.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    pub(crate) missed: Vec<String>,
    pub(crate) extra: Vec<String>,
    pub(crate) fields: HashMap<&'static str, Vec<String>>,
}

impl Differences {
    pub(crate) fn is_none(&self) -> bool {
        self.missed.is_empty() && self.extra.is_empty() && self.fields.is_empty()
    }
}

impl std::fmt::Display for Differences {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "missed {}, extra {}", self.missed.len(), self.extra.len())?;
        for (field, which) in &self.fields {
            write!(f, ", {field} {}", which.len())?;
        }
        for sample in self.missed.iter().take(3) {
            write!(f, "\n    missed: {sample}")?;
        }
        for sample in self.extra.iter().take(3) {
            write!(f, "\n    extra: {sample}")?;
        }
        for (field, which) in &self.fields {
            for sample in which.iter().take(3) {
                write!(f, "\n    {field}: {sample}")?;
            }
        }
        Ok(())
    }
}

/// Compares a list with the truth about the sessions of one kind: all fields, or those that a quick list has.
pub(crate) fn compare(manifest: &Manifest, kind: &str, listing: &Listing) -> Differences {
    let mut found: HashMap<&str, Vec<&SessionEntry>> = HashMap::new();
    for entry in &listing.sessions {
        found.entry(entry.id.as_str()).or_default().push(entry);
    }
    let mut differences = Differences::default();
    for session in manifest.sessions.iter().filter(|session| session.kind == kind && session.listed) {
        // The older copies of a session have its id, too.
        match found.remove(session.id.as_str()).as_deref() {
            None => differences.missed.push(format!("{} {:?}", session.path, session.traps)),
            Some([entry]) => one(session, entry, &mut differences),
            Some(entries) => differences.extra.push(format!("{} {} times", session.path, entries.len())),
        }
    }
    // The agent itself does not list what is in its archive.
    found.retain(|_, entries| entries.iter().any(|entry| entry.resumable != Resumability::Archived));
    differences.extra.extend(found.into_keys().map(str::to_owned));
    differences
}

fn one(session: &Session, entry: &SessionEntry, differences: &mut Differences) {
    let mut field = |name, is_right: bool, got: &dyn std::fmt::Debug, right: &dyn std::fmt::Debug| {
        if !is_right {
            let text = format!("{} {:?}: {got:?}, and not {right:?}", session.path, session.traps);
            differences.fields.entry(name).or_default().push(text);
        }
    };
    let prompt = session.first_prompt.as_deref().unwrap_or_default();
    let got = entry.first_prompt.as_deref().unwrap_or_default();
    // A prompt is shown cut.
    let cut = got.len() >= SessionEntry::PROMPT - 3 && got.len() <= SessionEntry::PROMPT;
    field("first_prompt", got == prompt || (cut && prompt.starts_with(got)), &got, &prompt);
    let (cwd, last) = (session.cwd.as_deref(), session.last_cwd.as_deref().or(session.cwd.as_deref()));
    field("cwd", entry.cwd.as_deref().and_then(Path::to_str) == cwd, &entry.cwd, &cwd);
    field("last_cwd", entry.last_cwd.as_deref().and_then(Path::to_str) == last, &entry.last_cwd, &last);
    field(
        "branch",
        entry.branch.as_deref() == session.git_branch.as_deref(),
        &entry.branch,
        &session.git_branch,
    );
    field("bytes", entry.bytes == Some(session.bytes), &entry.bytes, &session.bytes);
    if !entry.exact {
        return;
    }
    let title = entry.title.as_ref().map(|title| title.text.as_str());
    // A summary stands where nobody gave a title.
    let summary = entry.title.as_ref().is_some_and(|title| title.source == TitleSource::Summary);
    let right = session.title.as_deref();
    let is_right =
        title == right || (right.is_none() && summary && title == session.legacy_summary.as_deref());
    field("title", is_right, &entry.title, &right);
    let turns = session.human_prompts.or(session.turns);
    field("turns", entry.turns == turns, &entry.turns, &turns);
    if let Some(usage) = session.usage_new.as_ref().or(session.usage.as_ref()) {
        let token = |name| usage.get(name).copied().unwrap_or_default();
        let right = if session.kind == "claude" {
            [
                token("input_tokens"),
                token("output_tokens"),
                token("cache_read_input_tokens"),
                token("cache_creation_input_tokens"),
            ]
        } else {
            let cached = token("cached_input_tokens");
            [token("input_tokens") - cached, token("output_tokens"), cached, 0]
        };
        let got = entry.usage.map(|usage| {
            [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens]
        });
        field("usage", got.unwrap_or_default() == right, &got, &right);
    }
}
