//! The session files: where they lie, and what a line of them is.

mod branch;
mod entry;
mod facts;
mod json;
mod number;
mod prompt;
mod scan;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use session_core::history::{Entry, FileKind, FolderKind, LineFacts, SessionFile, SessionRoot};
use session_core::{
    Below, Carried, EnvMap, Heir, LiveSession, NativeId, Places, RecordFacts, RecordKind, Said, Seam, Seed,
    SessionQuery, Speaker, TranscriptFormat,
};

use crate::state::{CONFIG_DIR, config_dir};
use crate::wire::{Message, Text};

/// The session files of Claude Code, below the configuration folder of an environment or below a state dir.
#[derive(Debug, Clone)]
pub struct ClaudeTranscripts {
    env: EnvMap,
}

impl ClaudeTranscripts {
    /// The files as an agent with this environment keeps them.
    #[must_use]
    pub const fn new(env: EnvMap) -> Self {
        Self { env }
    }

    /// The names that a folder's project may have, the likeliest first.
    fn project_names(
        &self,
        cwd: &Path,
        state_dir: Option<&Path>,
        cuts: bool,
    ) -> impl Iterator<Item = String> {
        let computed = [project_name(cwd, cuts), project_name(cwd, !cuts)];
        let mut names: Vec<_> = fixed_name(&self.env, state_dir).into_iter().chain(computed).collect();
        names.dedup();
        names.into_iter()
    }
}

/// Whether the text is an id of a session: hexadecimal digits in groups of 8-4-4-4-12, in any letter case.
pub(crate) fn is_session_id(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether a folder's name is that of a project: of an absolute path, as [`project_name`] writes it.
fn is_project(name: &str) -> bool {
    let drive = matches!(name.as_bytes(), [letter, b'-', b'-', ..] if letter.is_ascii_alphabetic());
    name.starts_with('-') || drive
}

/// The longest folder name that is left as it is, in UTF-16 code units.
const LONGEST: usize = 200;

/// The name of a folder's project: every UTF-16 code unit but ASCII letters and digits becomes `-`. A long name is
/// cut, and a hash of the whole path added, in 2.1.50, 2.1.197 and 2.1.332; 2.0.14 never cuts.
fn project_name(cwd: &Path, cut: bool) -> String {
    let path = cwd.to_string_lossy();
    let mut name = String::with_capacity(path.len());
    let mut hash = 0_i32;
    let mut units = 0;
    for unit in path.encode_utf16() {
        units += 1;
        hash = hash.wrapping_mul(31).wrapping_add(i32::from(unit));
        let plain = u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric);
        name.push(plain.map_or('-', char::from));
    }
    if cut && units > LONGEST {
        name.truncate(LONGEST);
        name.push('-');
        name.push_str(&base36(hash.unsigned_abs()));
    }
    name
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// The folder name that the environment puts in place of the project's, where it is valid (2.1.332; only with a
/// configuration folder that was chosen).
fn fixed_name(env: &EnvMap, state_dir: Option<&Path>) -> Option<String> {
    let name = env.get("CLAUDE_CODE_PROJECT_DIR_NAME")?.to_str()?;
    let valid =
        name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    let chosen = state_dir.is_some() || env.get(CONFIG_DIR).is_some();
    (valid && chosen).then(|| name.to_owned())
}

impl TranscriptFormat for ClaudeTranscripts {
    fn revision(&self) -> u32 {
        2
    }

    fn home(&self) -> Option<PathBuf> {
        config_dir(&self.env)
    }

    fn named_home(&self) -> Option<PathBuf> {
        self.home().filter(|_| self.env.get(CONFIG_DIR).is_some())
    }

    fn places(&self, query: &SessionQuery<'_>) -> Places {
        let config: Option<PathBuf> = query.state_dir.map(Path::to_owned).or_else(|| config_dir(&self.env));
        let Some(config) = config.filter(|_| is_session_id(query.id.as_str())) else {
            return Places::default();
        };
        let (projects, file) = (config.join("projects"), format!("{}.jsonl", query.id));
        let cuts = query.version.is_none_or(|version| version.at_least(2, 1, 0));
        let names = self.project_names(query.cwd, query.state_dir, cuts);
        let exact = names.map(|name| projects.join(name).join(&file)).collect();
        Places { exact, below: vec![Below { folder: projects, depth: 1 }] }
    }

    fn filed_in(&self, cwd: &Path, state_dir: Option<&Path>) -> Vec<PathBuf> {
        let config = state_dir.map(Path::to_owned).or_else(|| config_dir(&self.env));
        let Some(config) = config else { return Vec::new() };
        let names = self.project_names(cwd, state_dir, true);
        names.map(|name| config.join("projects").join(name)).collect()
    }

    /// Several folders may have one name; a long one tells of its beginning alone.
    fn may_lie_in(&self, folder: &Path, place: &Path) -> bool {
        let Some(name) = place.file_name().and_then(OsStr::to_str) else { return false };
        let above = project_name(folder, false);
        let (name, above) = (name.get(..LONGEST).unwrap_or(name), above.get(..LONGEST).unwrap_or(&above));
        name.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('-') || above == "-")
    }

    fn is_file_of(&self, name: &str, query: &SessionQuery<'_>) -> bool {
        name.strip_suffix(".jsonl") == Some(query.id.as_str())
    }

    fn roots(&self, state_dir: Option<&Path>) -> Vec<SessionRoot> {
        let config = state_dir.map(Path::to_owned).or_else(|| config_dir(&self.env));
        // A helper's file lies in `<project>/<session>/subagents`.
        let root =
            |config: PathBuf| SessionRoot { folder: config.join("projects"), depth: 3, archived: false };
        config.map(root).into_iter().collect()
    }

    fn session_file(&self, below: &Path) -> Option<SessionFile> {
        // It is called for every file there is.
        let mut names = below.to_str()?.split(std::path::is_separator);
        let parts = [names.next(), names.next(), names.next(), names.next(), names.next()];
        let (name, kind) = match parts {
            [Some(_), Some(name), None, ..] if name.starts_with("agent-") => (name, FileKind::Sidechain),
            [Some(_), Some(name), None, ..] => (name, FileKind::Session),
            // A folder that a move put into the one that was there already.
            [Some(_), Some(nested), Some(name), None, _]
                if is_project(nested) && !name.starts_with("agent-") =>
            {
                (name, FileKind::Session)
            }
            [Some(_), Some(session), Some("subagents"), Some(name), None]
                if is_session_id(session) && name.starts_with("agent-") =>
            {
                (name, FileKind::Sidechain)
            }
            _ => return None,
        };
        let id = name.strip_suffix(".jsonl")?;
        let named = kind == FileKind::Sidechain || is_session_id(id);
        named.then(|| SessionFile { id: NativeId::new(id), kind, packed: false })
    }

    fn helpers(&self, path: &Path) -> Option<PathBuf> {
        Some(path.with_extension("").join("subagents"))
    }

    fn folder(&self, below: &Path) -> FolderKind {
        let Some(name) = below.file_name().and_then(OsStr::to_str) else { return FolderKind::Other };
        match below.iter().count() {
            1 => FolderKind::Sessions,
            2 if is_session_id(name) => FolderKind::Sidechains,
            2 if is_project(name) => FolderKind::Sessions,
            3 if name == "subagents" => FolderKind::Sidechains,
            _ => FolderKind::Other,
        }
    }

    fn file_names(&self, id: &NativeId) -> Vec<String> {
        vec![format!("{id}.jsonl")]
    }

    fn title_mark(&self) -> Option<&str> {
        Some("-title\"")
    }

    fn facts<'a>(&self, line: &'a [u8]) -> Option<LineFacts<'a>> {
        facts::facts(line)
    }

    /// Outputs of tools, and what helpers said (2.1.197, 2.1.332).
    fn belongings(&self, file: &Path) -> Vec<PathBuf> {
        vec![file.with_extension("")]
    }

    /// What the model noted of the project.
    fn shared(&self, file: &Path) -> Vec<PathBuf> {
        vec![file.with_file_name("memory")]
    }

    fn new_id(&self, seed: &Seed) -> Option<NativeId> {
        Some(NativeId::new(seed.random_id()))
    }

    fn seam(&self, line: &[u8]) -> Seam {
        branch::seam(line)
    }

    fn carried(&self, line: &[u8], heir: &Heir<'_>) -> Carried {
        branch::carried(line, heir)
    }

    /// With its belongings, the copies of files that the agent made before it edited them (2.1.50 to 2.1.332).
    fn heirlooms(&self, file: &Path, branch: &Path) -> Vec<(PathBuf, PathBuf)> {
        let copies = |file: &Path| {
            let projects = file.parent()?.parent().filter(|folder| folder.ends_with("projects"))?;
            Some(projects.with_file_name("file-history").join(file.file_stem()?))
        };
        let belongings = self.belongings(file).into_iter().zip(self.belongings(branch));
        belongings.chain(copies(file).zip(copies(branch))).collect()
    }

    /// 2.1.197 and 2.1.332 keep a note there while they run; one that was killed leaves it behind.
    fn live_folder(&self, state_dir: Option<&Path>) -> Option<PathBuf> {
        let config = state_dir.map(Path::to_owned).or_else(|| config_dir(&self.env))?;
        Some(config.join("sessions"))
    }

    fn live(&self, note: &[u8]) -> Option<LiveSession> {
        let note: Note<'_> = serde_json::from_slice(note).ok()?;
        let id = note.session_id.filter(|id| is_session_id(id.as_str()))?;
        let started = note.proc_start.map(|started| started.as_str().to_owned());
        Some(LiveSession { id: NativeId::new(id.as_str()), pid: note.pid?, started })
    }

    fn record(&self, line: &[u8]) -> Option<RecordFacts> {
        let record = Record::parse(line)?;
        let kind = record.kind()?;
        let cwd = record.cwd.filter(|cwd| !cwd.as_str().is_empty()).map(|cwd| PathBuf::from(cwd.as_str()));
        Some(RecordFacts { cwd, ..RecordFacts::new(kind) })
    }

    fn said(&self, line: &[u8]) -> Option<Said> {
        let record = Record::parse(line)?;
        let by = match record.kind()? {
            RecordKind::Prompt => Speaker::User,
            RecordKind::Answer => Speaker::Agent,
            RecordKind::Other => return None,
        };
        let blocks = record.message.as_ref()?.content.0.iter().filter(|block| block.is("text"));
        // Slashes at the beginning of a prompt are a block of their own.
        let joint = if by == Speaker::User { "" } else { "\n" };
        let texts: Vec<_> = blocks.filter_map(|block| block.text.as_ref()).map(Text::as_str).collect();
        Some(Said { by, text: texts.join(joint) }).filter(|said| !said.text.trim().is_empty())
    }

    fn entry(&self, line: &[u8]) -> Option<Entry> {
        entry::entry(line)
    }

    fn numbered(&self, _: &[u8], _: u64) -> Option<Vec<u8>> {
        None
    }

    fn unarchived(&self, _: &Path) -> Option<PathBuf> {
        None
    }
}

/// A note of a process that runs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Note<'a> {
    pid: Option<u32>,
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    #[serde(borrow)]
    proc_start: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    cwd: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    is_api_error_message: Option<bool>,
}

impl<'a> Record<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        if line.trim_ascii_start().first() != Some(&b'{') {
            return None;
        }
        serde_json::from_slice::<Self>(line).ok().or_else(|| {
            // A record whose other fields changed their type is still a record.
            let Kind { kind } = serde_json::from_slice(line).ok()?;
            Some(Record { kind, ..Record::default() })
        })
    }

    /// `None`: it has no type, so it is no record.
    fn kind(&self) -> Option<RecordKind> {
        let kind = self.kind.as_ref()?.as_str();
        let aside = [self.is_sidechain, self.is_meta, self.is_compact_summary, self.is_api_error_message];
        let Some(message) = self.message.as_ref().filter(|_| !aside.contains(&Some(true))) else {
            return Some(RecordKind::Other);
        };
        Some(match kind {
            "user" if is_prompt(message) => RecordKind::Prompt,
            "assistant" if message.model.as_ref().is_none_or(|model| model.as_str() != "<synthetic>") => {
                RecordKind::Answer
            }
            _ => RecordKind::Other,
        })
    }
}

/// Whether a user's message is a prompt: not the result of a tool, no command, and not what the agent writes around its own
/// commands and interruptions, nor blank.
fn is_prompt(message: &Message<'_>) -> bool {
    let blocks = &message.content.0;
    if blocks.iter().any(|block| block.is("tool_result")) {
        return false;
    }
    let texts = blocks.iter().filter(|block| block.is("text")).filter_map(|block| block.text.as_ref());
    let mut texts = texts.map(Text::as_str).filter(|text| !prompt::without_reminders(text).trim().is_empty());
    match texts.next() {
        Some(text) => prompt::is_said(prompt::without_reminders(text)),
        None => blocks.iter().any(|block| !block.is("text")),
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
