//! Lists of sessions.

use std::cmp::{Ordering, Reverse};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{NativeId, Timestamp, Usage};

/// Where a session lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionSource {
    /// The file: the transcript itself, or the database that holds it.
    pub path: PathBuf,
    /// The state dir that the file is in; `None`: the agent's own place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<PathBuf>,
}

/// Who gave a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleSource {
    /// A user, or a runtime on the user's behalf.
    Given,
    /// The agent made it up.
    Agent,
    /// A summary that the agent wrote of the conversation.
    Summary,
}

/// A title, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Title {
    /// The words.
    pub text: String,
    /// Who gave it.
    pub source: TitleSource,
}

/// What kind of conversation a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionKind {
    /// A person's, in the agent's own interface.
    #[default]
    Main,
    /// A program's: an SDK, `-p`, `exec`.
    Headless,
    /// A helper's, begun by another session.
    Sidechain,
}

/// How a session descends from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Descent {
    /// It began as a copy of it.
    Forked,
    /// It was begun by it, as a helper.
    Spawned,
}

/// The session that one comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ancestor {
    /// Its id.
    pub id: NativeId,
    /// How.
    pub descent: Descent,
}

/// Why a session cannot be continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unresumable {
    /// Nothing was said in it.
    Empty,
    /// Its file is no conversation.
    Damaged,
    /// Its file may not be read.
    Unreadable,
    /// It is a helper's, which its agent does not continue by itself.
    Sidechain,
    /// It lies where a version that is no longer used kept it, and newer ones do not look.
    OlderStore,
    /// It goes on from a file that is not there.
    BaseMissing,
}

/// Whether a session can be continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resumability {
    /// As far as its file tells, it can.
    #[default]
    Yes,
    /// It can, once it is taken out of the agent's archive.
    Archived,
    /// It cannot.
    No(Unresumable),
}

/// One session, as a list shows it. What is `None` is not known, or not there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionEntry {
    /// The agent's own id of it.
    pub id: NativeId,
    /// Where it lies.
    pub source: SessionSource,
    /// Its title: the one given last, else the agent's last one; cut like a prompt.
    pub title: Option<Title>,
    /// The first prompt that somebody typed, cut to [`SessionEntry::PROMPT`] bytes.
    pub first_prompt: Option<String>,
    /// The last prompt, cut in the same way.
    pub last_prompt: Option<String>,
    /// The folder that it began in.
    pub cwd: Option<PathBuf>,
    /// The folder that it was last in.
    pub last_cwd: Option<PathBuf>,
    /// The git branch that it was last on.
    pub branch: Option<String>,
    /// The first time noted in it.
    pub began: Option<Timestamp>,
    /// The last time noted in it, else that of its file.
    pub updated: Option<Timestamp>,
    /// By what lists order it, where that is another time: it was not used after its file was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Timestamp>,
    /// Prompts that were typed, where they were counted.
    pub turns: Option<u64>,
    /// Size in bytes, where it has a file of its own.
    pub bytes: Option<u64>,
    /// The session that it comes from.
    pub parent: Option<Ancestor>,
    /// What kind it is.
    pub kind: SessionKind,
    /// Whether it can be continued.
    pub resumable: Resumability,
    /// Tokens, each reply once, where they were counted; of a fork without what was copied.
    pub usage: Option<Usage>,
    /// The model of the last reply.
    pub model: Option<String>,
    /// Whether all of it was read. Else the title may be an older one or missing, and nothing was counted.
    pub exact: bool,
    /// Lines that are no records, among those that were read.
    pub skipped_lines: u64,
    /// Whether its last line is cut off.
    pub torn_tail: bool,
}

impl SessionEntry {
    /// The most bytes of a prompt, a title or another word of a session that a list shows.
    pub const PROMPT: usize = 1024;

    /// A session of which nothing is known but where it lies.
    #[must_use]
    pub const fn new(id: NativeId, source: SessionSource) -> Self {
        Self {
            id,
            source,
            title: None,
            first_prompt: None,
            last_prompt: None,
            cwd: None,
            last_cwd: None,
            branch: None,
            began: None,
            updated: None,
            used: None,
            turns: None,
            bytes: None,
            parent: None,
            kind: SessionKind::Main,
            resumable: Resumability::Yes,
            usage: None,
            model: None,
            exact: false,
            skipped_lines: 0,
            torn_tail: false,
        }
    }

    /// The order of every list, in which no two files are equal: used last first; where that is one time, as in an image,
    /// what they note decides, then id and place. A limited list is the beginning of the whole one where all order so.
    #[must_use]
    pub fn newest_first(&self, other: &Self) -> Ordering {
        let name = (self.id.as_str(), &self.source.path, &self.source.state_dir);
        let other_name = (other.id.as_str(), &other.source.path, &other.source.state_dir);
        self.age().cmp(&other.age()).then_with(|| name.cmp(&other_name))
    }

    /// How long ago it was used.
    pub(super) fn age(&self) -> (Reverse<Option<Timestamp>>, Reverse<Option<Timestamp>>) {
        (Reverse(self.used.or(self.updated)), Reverse(self.updated))
    }

    /// What to call it: its title, else its first prompt, else its id.
    #[must_use]
    pub fn label(&self) -> &str {
        let title = self.title.as_ref().map(|title| title.text.as_str());
        title.or(self.first_prompt.as_deref()).unwrap_or(self.id.as_str())
    }
}

/// Which folders' sessions are asked for. Folders are compared as real paths, and as written where they are gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All.
    #[default]
    All,
    /// Those that began in this folder, or were last in it.
    Exact(PathBuf),
    /// Those of this folder and of all below it.
    Below(PathBuf),
    /// Those of any of these folders or below them: the work trees of a repository.
    AnyBelow(Vec<PathBuf>),
}

impl Scope {
    /// The folders that it is made of.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        match self {
            Self::All => [].iter(),
            Self::Exact(path) | Self::Below(path) => std::slice::from_ref(path).iter(),
            Self::AnyBelow(paths) => paths.iter(),
        }
        .map(PathBuf::as_path)
    }

    /// The same, of other folders: such as the real paths of its own.
    #[must_use]
    pub fn map(&self, mut folder: impl FnMut(&Path) -> PathBuf) -> Self {
        match self {
            Self::All => Self::All,
            Self::Exact(path) => Self::Exact(folder(path)),
            Self::Below(path) => Self::Below(folder(path)),
            Self::AnyBelow(paths) => Self::AnyBelow(paths.iter().map(|path| folder(path)).collect()),
        }
    }

    /// Whether a session in this folder belongs to it. Both sides are taken as they are: who asks resolves links first.
    #[must_use]
    pub fn holds(&self, folder: &Path) -> bool {
        match self {
            Self::All => true,
            Self::Exact(path) => folder == path,
            Self::Below(path) => folder.starts_with(path),
            Self::AnyBelow(paths) => paths.iter().any(|path| folder.starts_with(path)),
        }
    }
}

/// How much is read for a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// What is indexed, else the beginning and the end of each file: what is not indexed is not [exact](SessionEntry::exact).
    Quick,
    /// What is indexed, else each file as a whole.
    #[default]
    Exact,
}

/// Which sessions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// The state dir to look in; `None`: the agent's own place.
    pub state_dir: Option<PathBuf>,
    /// Whose folders.
    pub scope: Scope,
    /// Of which kinds; empty: main and headless ones.
    pub kinds: Vec<SessionKind>,
    /// Whether sessions without a turn are listed. They are counted in any case.
    pub with_empty: bool,
    /// How much is read.
    pub depth: Depth,
    /// How many at the most, [newest first](SessionEntry::newest_first), counted after everything else was left out.
    pub limit: Option<usize>,
}

impl ListQuery {
    /// Whether sessions of a kind are asked for.
    #[must_use]
    pub fn takes(&self, kind: SessionKind) -> bool {
        if self.kinds.is_empty() { kind != SessionKind::Sidechain } else { self.kinds.contains(&kind) }
    }
}

/// Something that a reader left out or put right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The file or folder.
    pub path: PathBuf,
    /// Where in it, in bytes, if it is one place.
    pub offset: Option<u64>,
    /// What it is.
    pub kind: NoticeKind,
}

impl Notice {
    /// Whether something was not looked at: what is not there may be in it.
    #[must_use]
    pub const fn is_gap(&self) -> bool {
        matches!(self.kind, NoticeKind::Unreadable(_) | NoticeKind::LimitReached)
    }
}

/// What kind of notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoticeKind {
    /// A line that is no record was left out.
    SkippedLine,
    /// A whole record was found behind something else on its line.
    Recovered,
    /// The last line is cut off.
    TornTail,
    /// A line is too long to be read.
    LineTooLong,
    /// A packed file ends too early, or unpacks to more than is read.
    PackedInPart,
    /// It goes on from a file that is not there.
    BaseMissing,
    /// A record's parent is not in the file.
    LinkMissing,
    /// Two records that differ have one id.
    SameId,
    /// It could not be read; the sentence says why.
    Unreadable(String),
    /// More than one file has this session's id; the one listed is the newest.
    OlderCopy,
    /// Not all was looked at: a bound of the reader's own was reached. A limit that was asked for is none, see
    /// [`Listing::more`].
    LimitReached,
    /// Its last time is more than an hour after its file was written: one of the two clocks was wrong. The time is told as
    /// it is written; a list orders it by that of the file.
    TimeAhead,
}

/// A list of sessions, [newest first](SessionEntry::newest_first).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// The sessions.
    pub sessions: Vec<SessionEntry>,
    /// How many without a turn were found.
    pub empty: u64,
    /// What could not be read, and what was put right. Only where this holds no
    /// [`Unreadable`](NoticeKind::Unreadable) and no [`LimitReached`](NoticeKind::LimitReached), a session that is not
    /// listed is not there.
    pub notices: Vec<Notice>,
    /// Whether there may be more than [the limit](ListQuery::limit) left.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more: bool,
    /// Of [`Scope::Exact`], where the agent files sessions by folder: its places for that folder that are there. Where
    /// nothing is listed, this tells one that has no sessions from one in which there never were any, as far as a place
    /// can be told by its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filed_in: Vec<PathBuf>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(super) const fn is_false(value: &bool) -> bool {
    !*value
}

impl Listing {
    /// Whether everything was looked at, but for what the limit left out.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.notices.iter().any(Notice::is_gap)
    }
}
