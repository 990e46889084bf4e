//! Which session is meant, and having it be found elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use session_core::error::{FolderError, HistoryError};
use session_core::history::ListedSession;
use session_core::{
    AgentId, Foreseen, Located, Relocated, Relocation, RelocationOutcome, Roster, Seek, WorkTree,
};

use crate::{Sessions, SessionsBuilder};

impl Sessions {
    /// Finds the session that is meant. Signs are tried in one order, and the first that leads to one answers: exact id, key,
    /// what runs in the background, whole name or title, beginning of an id, words, and last, for an id, every state dir.
    /// What only proposes sessions never chooses one of several, and none of another project without a yes. Nothing is run
    /// but the agent's version probe and `git`, nothing is changed.
    ///
    /// ```no_run
    /// # async fn example(sessions: rejoin::Sessions) -> Result<(), Box<dyn std::error::Error>> {
    /// use rejoin::{Answer, Relocation, Seek, Wanted};
    ///
    /// let seek = Seek::new(Wanted::Text("fix the login".into()), "/w/demo");
    /// let located = sessions.locate(&seek).await?;
    /// match &located.answer {
    ///     Answer::Found { hit, .. } => println!("{}", hit.session.entry.label()),
    ///     Answer::Moved { hit, proposal, .. } => {
    ///         let wish = Relocation::new(hit.session.clone(), &proposal.to);
    ///         println!("{:?}", sessions.relocate(&wish).await?);
    ///     }
    ///     other => println!("{other:?}: looked at {:?}", located.looked_at),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`HistoryError::UnknownAgent`]. What could not be looked at is told in the answer.
    ///
    /// # Cancel safety
    /// Nothing is written but what catalogs keep to be faster.
    pub async fn locate(&self, seek: &Seek) -> Result<Located, HistoryError> {
        self.0.locate(seek).await
    }

    /// Has a session be found in another folder by the installed version of its agent: where that finds it from there anyhow,
    /// nothing is done to its file; else that is moved or copied with what belongs to it, read back, and undone where that fails.
    /// A session that anybody has open or writes to stays. If it is bound to a key, that goes with it, under its lease, and
    /// its audit log says so. The caller says yes to another project by calling this.
    ///
    /// # Errors
    /// [`HistoryError`]: no such agent or folder, or it failed; the session is then where it was.
    ///
    /// # Cancel safety
    /// A dropped future leaves the session at its old or its new place, whole. If it was to be noted in a record, the same
    /// call again does that.
    pub async fn relocate(&self, wish: &Relocation) -> Result<Relocated, HistoryError> {
        self.0.relocate(wish).await
    }

    /// What [`relocate`](Self::relocate) would come to by now. Nothing is changed; the agent is asked for its version, and the
    /// file is looked at twice, as there.
    ///
    /// # Errors
    /// As [`relocate`](Self::relocate).
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn foresee(&self, wish: &Relocation) -> Result<Foreseen, HistoryError> {
        self.0.foresee(wish).await
    }

    /// The folder in which the installed version of its agent continues a session, there or not: the one that its file is filed
    /// under, where that is how the version finds it; else the one that a record says, or that it began in. `None`: nobody
    /// knows. `from`: the folder that it is asked from. Nothing is run but the agent's version probe.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn continued_in(&self, session: &ListedSession, from: &Path) -> Option<PathBuf> {
        self.0.continued_in(session, from).await
    }

    /// As [`relocate`](Self::relocate), for all sessions of an agent that began in a folder, or were last in it, one after the other. One that stays
    /// stops no other. What belongs to the folder and to no session stays where it is.
    ///
    /// # Errors
    /// [`HistoryError`] when they could not be listed; nothing was changed.
    ///
    /// # Cancel safety
    /// As [`relocate`](Self::relocate), for each.
    pub async fn relocate_all(
        &self,
        agent: &AgentId,
        from: &Path,
        to: &Path,
    ) -> Result<Vec<RelocationOutcome>, HistoryError> {
        self.0.relocate_all(agent, from, to).await
    }

    /// What a folder is, with the work trees of its repository: [`WorkTree::scope`] lists the sessions of them all.
    ///
    /// # Errors
    /// [`FolderError`] when it is missing, no folder, or cannot be entered.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn work_tree(&self, path: &Path) -> Result<WorkTree, FolderError> {
        self.0.work_tree(path).await
    }
}

impl SessionsBuilder {
    /// Sets who knows what runs in the background. Without it, nothing does.
    pub fn roster(self, roster: impl Roster) -> Self {
        Self(self.0.roster(Arc::new(roster)))
    }
}
