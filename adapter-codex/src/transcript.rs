//! The session files: where they lie, and what a line is.

use std::path::{Path, PathBuf};

use session_core::history::{Entry, FileKind, HistoryBase, LineFacts, SessionFile, SessionRoot, Title};
use session_core::{
    Below, Carried, EnvMap, Heir, NativeId, Places, RecordFacts, RecordKind, Said, Seam, Seed, SessionQuery,
    Speaker, TranscriptFormat,
};

use self::record::Record;
use crate::state::{HOME, home};
use crate::wire::Text;

mod branch;
mod entry;
mod facts;
mod glance;
mod record;

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

    fn home(&self, state_dir: Option<&Path>) -> Option<PathBuf> {
        state_dir.map(Path::to_owned).or_else(|| home(&self.env))
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

/// Where sessions lie, below the home.
const SESSIONS: &str = "sessions";

/// Where archived sessions lie, below the home.
const ARCHIVE: &str = "archived_sessions";

/// The oldest version that may continue a session whose records are numbered: an older one appends records without a
/// number, and does not see what a fork begins with.
const NUMBERED_SINCE: [u64; 3] = [0, 148, 0];

/// The oldest version that reads packed files; older ones do not see them.
const UNPACKS_SINCE: [u64; 3] = [0, 137, 0];

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

/// The ids in a file's name: that of the session, and that of its segment.
fn ids(name: &str) -> Option<(&str, Option<&str>)> {
    let (_, rest) = stem(name)?;
    let (id, segment) = match rest.split_once('_') {
        Some((id, segment)) => (id, Some(segment)),
        None => (rest, None),
    };
    (is_thread_id(id) && segment.is_none_or(is_thread_id)).then_some((id, segment))
}

impl TranscriptFormat for CodexTranscripts {
    fn revision(&self) -> u32 {
        1
    }

    fn home(&self) -> Option<PathBuf> {
        home(&self.env)
    }

    fn named_home(&self) -> Option<PathBuf> {
        home(&self.env).filter(|_| self.env.get(HOME).is_some())
    }

    /// The name of a file begins with the local time of its first record, which nobody knows, so that it is searched
    /// for: below `sessions/<year>/<month>/<day>` and in the archive.
    fn places(&self, query: &SessionQuery<'_>) -> Places {
        let Some(home) = self.home(query.state_dir).filter(|_| is_thread_id(query.id.as_str())) else {
            return Places::default();
        };
        let below = [(SESSIONS, 3), (ARCHIVE, 0)];
        let below = below.map(|(name, depth)| Below { folder: home.join(name), depth });
        Places { exact: Vec::new(), below: below.into() }
    }

    fn is_file_of(&self, name: &str, query: &SessionQuery<'_>) -> bool {
        ids(name).is_some_and(|(id, _)| id == query.id.as_str())
    }

    fn is_packed(&self, name: &str) -> bool {
        name.ends_with(".jsonl.zst")
    }

    fn unpacks_since(&self) -> Option<[u64; 3]> {
        Some(UNPACKS_SINCE)
    }

    fn roots(&self, state_dir: Option<&Path>) -> Vec<SessionRoot> {
        let Some(home) = self.home(state_dir) else { return Vec::new() };
        let roots = [(SESSIONS, 3, false), (ARCHIVE, 0, true)];
        let root = |(name, depth, archived)| SessionRoot { folder: home.join(name), depth, archived };
        roots.map(root).into()
    }

    /// The session that the name tells: `<id>`, or `<id>_<segment>`.
    fn session_file(&self, below: &Path) -> Option<SessionFile> {
        let name = below.file_name()?.to_str()?;
        let (id, _) = ids(name)?;
        Some(SessionFile { id: NativeId::new(id), kind: FileKind::Session, packed: self.is_packed(name) })
    }

    fn segment(&self, name: &str) -> Option<NativeId> {
        ids(name)?.1.map(NativeId::new)
    }

    fn base(&self, header: &[u8]) -> Option<HistoryBase> {
        facts::base(header)
    }

    /// They are in a file of their own (0.63 to 0.171).
    fn has_title_lines(&self) -> bool {
        false
    }

    fn titles(&self, state_dir: Option<&Path>) -> Option<PathBuf> {
        Some(self.home(state_dir)?.join("session_index.jsonl"))
    }

    fn title(&self, line: &[u8]) -> Option<(NativeId, Title)> {
        facts::title(line)
    }

    fn facts<'a>(&self, line: &'a [u8]) -> Option<LineFacts<'a>> {
        facts::facts(line)
    }

    fn glance<'a>(&self, line: &'a [u8]) -> Option<LineFacts<'a>> {
        glance::glance(line)
    }

    fn entry(&self, line: &[u8]) -> Option<Entry> {
        entry::entry(line)
    }

    fn new_id(&self, seed: &Seed) -> Option<NativeId> {
        Some(NativeId::new(seed.timed_id()))
    }

    /// By the time in UTC: nobody here knows the local one, and a session is found by the id in the name.
    fn new_path(&self, query: &SessionQuery<'_>, seed: &Seed) -> Option<PathBuf> {
        let mut folder = self.home(query.state_dir)?.join(SESSIONS);
        let now = seed.now.to_string();
        let (date, time) = (now.get(..10)?, now.get(11..19)?);
        folder.extend(date.split('-'));
        Some(folder.join(format!("rollout-{date}T{}-{}.jsonl", time.replace(':', "-"), query.id)))
    }

    fn seam(&self, line: &[u8]) -> Seam {
        branch::seam(line)
    }

    fn carried(&self, line: &[u8], heir: &Heir<'_>) -> Carried {
        branch::carried(line, heir)
    }

    fn record(&self, line: &[u8]) -> Option<RecordFacts> {
        let record = Record::parse(line)?;
        let Record { ordinal, payload, .. } = &record;
        let is_meta = record.is_header();
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
        Some(Said { by, text: record.text() }).filter(|said| !said.text.trim().is_empty())
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
        let mut folder = archive.parent()?.join(SESSIONS);
        folder.extend(time[..10].split('-'));
        Some(folder.join(name))
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
