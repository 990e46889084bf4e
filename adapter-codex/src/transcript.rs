//! The session files: where they lie, and what a line is.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use session_core::{
    Below, EnvMap, Places, RecordFacts, RecordKind, Said, SessionQuery, Speaker, TranscriptFormat,
};

use crate::state::home;
use crate::wire::{Fields, Text};

/// The session files of Codex, below the home of an environment or below a state dir.
#[derive(Debug, Clone)]
pub struct CodexTranscripts {
    env: EnvMap,
}

impl CodexTranscripts {
    /// The files as an agent with this environment keeps them.
    #[must_use]
    pub const fn new(env: EnvMap) -> Self {
        Self { env }
    }
}

/// Whether the text is an id of a session in the one spelling that the agent prints: lower-case hexadecimal digits in
/// groups of 8-4-4-4-12.
pub(crate) fn is_thread_id(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

/// Where archived sessions lie, below the home.
const ARCHIVE: &str = "archived_sessions";

/// The oldest version that may continue a session whose records are numbered: an older one appends records without a
/// number, and does not see what a fork begins with.
const NUMBERED_SINCE: [u64; 3] = [0, 148, 0];

/// `rollout-<local time>-<id>`, which may be followed by `_<segment>`, as the date and what stands behind it.
fn stem(name: &str) -> Option<(&str, &str)> {
    let name = name.strip_prefix("rollout-")?;
    let stem = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".jsonl.zst"))?;
    let (time, rest) = (stem.get(..19)?, stem.get(19..)?);
    let is_time = time.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 | 13 | 16 => byte == b'-',
        10 => byte == b'T',
        _ => byte.is_ascii_digit(),
    });
    Some((time, rest.strip_prefix('-')?)).filter(|_| is_time)
}

impl TranscriptFormat for CodexTranscripts {
    fn home(&self) -> Option<PathBuf> {
        home(&self.env)
    }

    /// The name of a file begins with the local time of its first record, which nobody knows, so that it is searched
    /// for: below `sessions/<year>/<month>/<day>` and in the archive.
    fn places(&self, query: &SessionQuery<'_>) -> Places {
        let home = query.state_dir.map(Path::to_owned).or_else(|| home(&self.env));
        let Some(home) = home.filter(|_| is_thread_id(query.id.as_str())) else {
            return Places::default();
        };
        let below = [("sessions", 3), (ARCHIVE, 0)];
        let below = below.map(|(name, depth)| Below { folder: home.join(name), depth });
        Places { exact: Vec::new(), below: below.into() }
    }

    fn is_file_of(&self, name: &str, query: &SessionQuery<'_>) -> bool {
        let rest = stem(name).and_then(|(_, rest)| rest.strip_prefix(query.id.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('_').is_some_and(is_thread_id))
    }

    fn is_packed(&self, name: &str) -> bool {
        name.ends_with(".jsonl.zst")
    }

    fn record(&self, line: &[u8]) -> Option<RecordFacts> {
        let record = Record::parse(line)?;
        let Record { ordinal, payload, .. } = &record;
        let is_meta = record.kind.is("session_meta");
        let numbered = payload.history_mode.as_ref().is_some_and(|mode| mode.as_str() == "paginated");
        let cwd = payload.cwd.as_ref().map(Text::as_str).filter(|cwd| is_meta && !cwd.is_empty());
        Some(RecordFacts {
            cwd: cwd.map(PathBuf::from),
            number: *ordinal,
            needs_version: (is_meta && (numbered || payload.history_base.is_some()))
                .then_some(NUMBERED_SINCE),
            inherits: is_meta && payload.history_base.is_some(),
            ..RecordFacts::new(record.what())
        })
    }

    fn said(&self, line: &[u8]) -> Option<Said> {
        let record = Record::parse(line)?;
        let by = match record.what() {
            RecordKind::Prompt => Speaker::User,
            RecordKind::Answer => Speaker::Agent,
            RecordKind::Other => return None,
        };
        let payload = &record.payload;
        let blocks = payload.item.iter().flat_map(|item| &item.content);
        let texts = payload.message.iter().chain(blocks.filter_map(|block| block.text.as_ref()));
        let text = texts.map(Text::as_str).collect::<Vec<_>>().join("\n");
        Some(Said { by, text }).filter(|said| !said.text.trim().is_empty())
    }

    fn numbered(&self, line: &[u8], number: u64) -> Option<Vec<u8>> {
        if Record::parse(line)?.ordinal.is_some() {
            return None;
        }
        let inside = line.trim_ascii_start().strip_prefix(b"{")?;
        Some([format!("{{\"ordinal\":{number},").as_bytes(), inside].concat())
    }

    fn unarchived(&self, path: &Path) -> Option<PathBuf> {
        let archive = path.parent().filter(|folder| folder.ends_with(ARCHIVE))?;
        let name = path.file_name()?.to_str()?;
        let (time, _) = stem(name)?;
        let mut folder = archive.parent()?.join("sessions");
        folder.extend(time[..10].split('-'));
        Some(folder.join(name))
    }
}

/// One record, as far as it matters.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow, rename = "type")]
    kind: Kind<'a>,
    ordinal: Option<u64>,
    #[serde(borrow, default)]
    payload: Payload<'a>,
}

#[derive(Deserialize)]
struct Kind<'a>(#[serde(borrow)] Text<'a>);

impl Kind<'_> {
    fn is(&self, kind: &str) -> bool {
        self.0.as_str() == kind
    }
}

#[derive(Default, Deserialize)]
struct Payload<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    cwd: Option<Text<'a>>,
    #[serde(borrow)]
    history_mode: Option<Text<'a>>,
    history_base: Option<serde::de::IgnoredAny>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
}

#[derive(Default, Deserialize)]
struct Item<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

impl<'a> Record<'a> {
    /// `None`: it has no type, so it is no record.
    fn parse(line: &'a [u8]) -> Option<Self> {
        if line.trim_ascii_start().first() != Some(&b'{') {
            return None;
        }
        serde_json::from_slice(line).ok().or_else(|| {
            // A record whose other fields changed their type is still a record.
            let fields = Fields::of(line)?;
            let kind = Kind(fields.text("type")?);
            Some(Self { kind, ordinal: fields.value("ordinal"), payload: Payload::default() })
        })
    }

    /// What was said is told by an event of its own. The messages beside it (`response_item`) are what the model gets:
    /// they hold what the agent puts in, too.
    fn what(&self) -> RecordKind {
        if !self.kind.is("event_msg") {
            return RecordKind::Other;
        }
        let item = self.payload.item.as_ref().and_then(|item| item.kind.as_ref());
        match (words(self.payload.kind.as_ref()), words(item)) {
            // The second of each from 0.148 on, where the records are numbered.
            ("user_message", _) | ("item_completed", "UserMessage") => RecordKind::Prompt,
            ("agent_message", _) | ("item_completed", "AgentMessage") => RecordKind::Answer,
            _ => RecordKind::Other,
        }
    }
}

fn words<'t>(text: Option<&'t Text<'_>>) -> &'t str {
    text.map_or("", Text::as_str)
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
