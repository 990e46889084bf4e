//! The port to an agent's session files.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use crate::error::CatalogError;
use crate::history::{
    ListQuery, Listing, PageQuery, Restored, Search, SearchQuery, SessionEntry, SessionSource, TranscriptPage,
};
use crate::{
    Branch, BranchOrder, BranchRefusal, Branched, Conversation, Foreseen, NativeId, Refusal, RelocateOrder,
    Relocated, Version,
};

/// Which session to look at.
#[derive(Debug, Clone, Copy)]
pub struct SessionQuery<'a> {
    /// The session.
    pub id: &'a NativeId,
    /// The folder that the agent would be started in, as a real path.
    pub cwd: &'a Path,
    /// The key's state dir; `None`: the agent's own place.
    pub state_dir: Option<&'a Path>,
    /// The agent's version.
    pub version: Option<&'a Version>,
}

/// Whether a session can be continued, as far as its file tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Presence {
    /// It holds at least one turn.
    Present,
    /// There is no file.
    Missing,
    /// There is a file without a turn.
    Empty,
    /// There is a file that is no conversation.
    Damaged,
    /// There is something that may not be read, or is no file.
    Unreadable,
}

/// What a look at a session's file showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The sum of it.
    pub presence: Presence,
    /// Where it lies.
    pub path: Option<PathBuf>,
    /// Prompts in it.
    pub user_turns: u64,
    /// Answers in it, in records.
    pub answers: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The folder of its first record.
    pub began_in: Option<PathBuf>,
    /// Whether its last line is cut off. The agents leave such a line out.
    pub torn_tail: bool,
    /// Whether its last line has no end, cut off or not: what is appended next would be glued to it.
    pub open_tail: bool,
    /// Lines that are no records.
    pub skipped_lines: u64,
    /// Records that are not there, by the numbers of those that are.
    pub missing_records: u64,
    /// Records without a number behind numbered ones: an older version wrote them, and a newer one refuses them.
    pub unnumbered: u64,
    /// Whether it lies where the agent keeps what is archived.
    pub archived: bool,
    /// Whether it lies in the state dir, but not where this version looks for it.
    pub misplaced: bool,
    /// Whether what is damaged is in the way of a new session, too.
    pub in_the_way: bool,
    /// The oldest version of the agent that may continue what it holds.
    pub needs_version: Option<[u64; 3]>,
    /// Of a packed file, the oldest version of the agent that unpacks it.
    pub unpacked_since: Option<[u64; 3]>,
}

/// A cure for a session's file that loses nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Mend {
    /// Give the last line its end, so that what the agent appends next is not glued to it.
    EndLastLine,
    /// Give the records that an older version wrote the numbers that a newer one wants.
    NumberRecords,
    /// Put the file back from the agent's archive.
    Unarchive,
    /// Put the file where this version of the agent looks for it.
    PutInPlace,
    /// Put a plain file in the place of a packed one, for a version of the agent that reads no packed ones.
    Unpack,
    /// Give a damaged file that is in the way of a new session another name, beside its old one. This one is for a run
    /// that starts fresh.
    SetAside,
}

impl Mend {
    /// Whether it may only be done in a state dir of the key, where nobody else writes.
    #[must_use]
    pub const fn needs_own_dir(self) -> bool {
        match self {
            Self::EndLastLine => false,
            Self::NumberRecords | Self::Unarchive | Self::PutInPlace | Self::Unpack | Self::SetAside => true,
        }
    }
}

impl Inspection {
    /// A look that found no file.
    pub const MISSING: Self = Self {
        presence: Presence::Missing,
        path: None,
        user_turns: 0,
        answers: 0,
        bytes: 0,
        began_in: None,
        torn_tail: false,
        open_tail: false,
        skipped_lines: 0,
        missing_records: 0,
        unnumbered: 0,
        archived: false,
        misplaced: false,
        in_the_way: false,
        needs_version: None,
        unpacked_since: None,
    };

    /// What would make it better, in the order in which it is to be done.
    pub fn mends(&self) -> impl Iterator<Item = Mend> {
        let ailments = [
            (self.open_tail, Mend::EndLastLine),
            (self.unnumbered > 0, Mend::NumberRecords),
            (self.archived, Mend::Unarchive),
            (self.misplaced, Mend::PutInPlace),
            (self.in_the_way, Mend::SetAside),
        ];
        ailments.into_iter().filter_map(|(ails, mend)| ails.then_some(mend))
    }

    /// Whether a version may continue it as it is; an unknown one is taken for a new one.
    #[must_use]
    pub fn suits(&self, version: Option<&Version>) -> bool {
        self.suits_unpacked(version) && !self.is_to_be_unpacked(version)
    }

    /// Whether a version may continue what it holds, once that is unpacked.
    #[must_use]
    pub fn suits_unpacked(&self, version: Option<&Version>) -> bool {
        reaches(version, self.needs_version)
    }

    /// Whether it is packed, and the version reads no packed ones: [`Mend::Unpack`] helps.
    #[must_use]
    pub fn is_to_be_unpacked(&self, version: Option<&Version>) -> bool {
        !reaches(version, self.unpacked_since)
    }
}

fn reaches(version: Option<&Version>, needed: Option<[u64; 3]>) -> bool {
    version.zip(needed).is_none_or(|(version, needed)| version.numbers >= needed)
}

/// Looks at the session files of one agent.
#[async_trait]
pub trait SessionCatalog: Debug + Send + Sync + 'static {
    /// Looks whether the session is there and what it holds: cheap enough for before and after every run.
    ///
    /// # Errors
    /// [`CatalogError`] when nobody can look; then nothing is known about the session.
    async fn inspect(&self, query: SessionQuery<'_>) -> Result<Inspection, CatalogError>;

    /// The last of what was said in the session's main conversation, in at most so many bytes of text.
    ///
    /// # Errors
    /// [`CatalogError`] when nobody can look. A session that is not there has said nothing.
    async fn last_said(&self, query: SessionQuery<'_>, bytes: usize) -> Result<Conversation, CatalogError>;

    /// Carries out one cure on the file that was looked at, and says whether it did. Only a file that did not change
    /// since: one that did has a writer. Nothing else is written, and nothing through a link.
    ///
    /// # Errors
    /// [`CatalogError`] when it could not be done; then the file is as it was.
    async fn mend(
        &self,
        query: SessionQuery<'_>,
        look: &Inspection,
        mend: Mend,
    ) -> Result<bool, CatalogError>;

    /// The agent's own place for its sessions, as it is now set; `None`: that is not known. A session that is bound to
    /// another one, and is not found in this one, is not lost.
    fn home(&self) -> Option<PathBuf> {
        None
    }

    /// Lists sessions, newest first. What cannot be read is told in the list, and stops nothing else.
    ///
    /// # Errors
    /// [`CatalogError`] when nobody can look, or this catalog does not list.
    async fn list(&self, query: &ListQuery) -> Result<Listing, CatalogError> {
        Err(CatalogError::unsupported(query.state_dir.as_deref(), "list sessions"))
    }

    /// Looks for a session by its id alone, wherever it lies, index or not: every file that has it, newest first.
    ///
    /// # Errors
    /// [`CatalogError`] when nobody can look, or this catalog does not list.
    async fn find(
        &self,
        _id: &NativeId,
        state_dir: Option<&Path>,
    ) -> Result<Vec<SessionEntry>, CatalogError> {
        Err(CatalogError::unsupported(state_dir, "find a session by its id"))
    }

    /// Reads a part of a session's transcript, in time and memory that do not grow with the size of the file.
    ///
    /// # Errors
    /// [`CatalogError`] when it cannot be read, when the cursor does not fit, or when this catalog reads no pages.
    async fn page(
        &self,
        _id: &NativeId,
        source: &SessionSource,
        _query: &PageQuery,
    ) -> Result<TranscriptPage, CatalogError> {
        Err(CatalogError::unsupported(Some(&source.path), "read pages"))
    }

    /// Has a session be found from another folder, by a version: the same bytes, with what belongs to them, at another place.
    /// Only a file that nobody writes to. What was done is read back, and undone where that fails.
    ///
    /// # Errors
    /// [`CatalogError`] when it could not be done; then everything is as it was.
    async fn relocate(&self, _order: RelocateOrder<'_>) -> Result<Relocated, CatalogError> {
        Ok(Relocated::Refused(Refusal::Unsupported("its sessions cannot be relocated from here".to_owned())))
    }

    /// Takes back a relocation that this catalog just did, where it could not be noted: what went along goes back, and nothing
    /// that was there before. The order is the one that leads back; a catalog whose own relocation does just that need not
    /// have another way.
    ///
    /// # Errors
    /// [`CatalogError`] when it could not be done; then everything is as the relocation left it.
    async fn put_back(&self, order: RelocateOrder<'_>) -> Result<Relocated, CatalogError> {
        self.relocate(order).await
    }

    /// What [`relocate`](Self::relocate) would come to. Nothing is changed. By default, as by the default of that.
    ///
    /// # Errors
    /// [`CatalogError`] when nobody can look.
    async fn foresee(&self, _order: RelocateOrder<'_>) -> Result<Foreseen, CatalogError> {
        Ok(Foreseen::Refused(Refusal::Unsupported("its sessions cannot be relocated from here".to_owned())))
    }

    /// Makes a branch: a new session that holds what a session held at some spot, and that the agent resumes as any other. The
    /// original stays byte for byte. What was made is read back, and removed where that fails.
    ///
    /// # Errors
    /// [`CatalogError`] when it could not be made; nothing is left of it.
    async fn branch(&self, _order: BranchOrder<'_>) -> Result<Branched, CatalogError> {
        let why = "its sessions cannot be branched from here".to_owned();
        Ok(Branched::Refused(BranchRefusal::Unsupported(why)))
    }

    /// Removes a branch that this catalog just made, where it could not be noted, as long as nobody went on with it.
    ///
    /// # Errors
    /// [`CatalogError`] when it is still there.
    async fn prune(&self, _order: BranchOrder<'_>, _branch: &Branch) -> Result<(), CatalogError> {
        Ok(())
    }

    /// Whether a file lies where sessions of this folder are filed: there, a version that looks nowhere else finds it from
    /// the folder, whatever the file itself tells. `None`: sessions are not filed by folder, or nobody can tell. Nothing is
    /// looked at.
    fn is_filed_in(&self, _source: &SessionSource, _folder: &Path) -> Option<bool> {
        None
    }

    /// The one folder that is there and whose sessions are filed where this file lies. `None`: there is none, more than one,
    /// or nobody can tell.
    async fn folder_of(&self, _source: &SessionSource) -> Option<PathBuf> {
        None
    }

    /// Reads a session whole, for what can be had back of its state. Memory may grow with the number of its records, not with
    /// their size.
    ///
    /// # Errors
    /// [`CatalogError`] when it cannot be read, or this catalog does not restore.
    async fn restore(&self, _id: &NativeId, source: &SessionSource) -> Result<Restored, CatalogError> {
        Err(CatalogError::unsupported(Some(&source.path), "restore"))
    }

    /// Searches in what was said in all sessions: in prompts, replies and titles, never in what tools were given or returned.
    ///
    /// # Errors
    /// [`CatalogError`] when nobody can look, or this catalog does not search. What cannot be read is told on the way.
    async fn search(&self, query: &SearchQuery) -> Result<Box<dyn Search>, CatalogError> {
        Err(CatalogError::unsupported(query.state_dir.as_deref(), "search"))
    }
}
