//! Where a session is, seen from the folder that it is sought from.

use std::path::{Path, PathBuf};

use crate::decide::Workdir;
use crate::error::FolderError;
use crate::history::ListedSession;
use crate::{Folder, PathText, WorkTree};

use super::{Lifecycle, Search};

impl Lifecycle {
    /// What a folder is, with the work trees of its repository.
    ///
    /// # Errors
    /// [`FolderError`] when it is missing, no folder, or cannot be entered.
    pub async fn work_tree(&self, path: &Path) -> Result<WorkTree, FolderError> {
        self.host.work_tree(path).await
    }

    /// What a folder is; one that cannot be looked at is taken as it is written.
    pub(super) async fn work_tree_of(&self, path: &Path) -> WorkTree {
        self.host.work_tree(path).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "a folder is taken as it is written");
            WorkTree { folder: blank(path), trees: vec![path.to_owned()] }
        })
    }

    /// How the caller's folder relates to that of a session, and which that is: the one that it was last in. Of a session that
    /// began in this project and left it, the project counts.
    pub(in crate::lifecycle) async fn whereabouts(
        &self,
        search: &mut Search<'_>,
        session: &ListedSession,
    ) -> (Workdir, Option<PathBuf>) {
        let entry = &session.entry;
        let of = (session.agent.clone(), entry.id.clone());
        // One that was relocated is where the record says; its file still tells of the old folder, at least in its replies.
        let home = search.known.homes.get(&of).cloned();
        let is_relocated = search.known.moved.contains_key(&of);
        let last = entry.last_cwd.as_ref().or(entry.cwd.as_ref()).cloned();
        let relocated = home.as_ref().and_then(|home| home.path.as_path()).map(Path::to_owned);
        let relocated = relocated.filter(|home| is_relocated || entry.cwd.as_ref() != Some(home));
        let Some(folder) = relocated.or(last) else {
            let Some(home) = home else { return (Workdir::OtherProject, None) };
            let workdir = self.relation_of(search, &home).await;
            return (workdir, home.path.as_path().map(Path::to_owned));
        };
        let workdir = self.relation_to(search, &folder).await;
        let began = match &entry.cwd {
            Some(cwd) if *cwd != folder && workdir == Workdir::OtherProject => {
                self.relation_to(search, cwd).await
            }
            _ => Workdir::OtherProject,
        };
        let workdir = match (workdir, began) {
            (Workdir::OtherProject, Workdir::Same | Workdir::SameRepository) => Workdir::SameRepository,
            (Workdir::OtherProject, began) => began,
            (workdir, _) => workdir,
        };
        (workdir, Some(folder))
    }

    async fn relation_of(&self, search: &Search<'_>, began: &Folder) -> Workdir {
        let there = match began.path.as_path() {
            Some(path) => self.host.folder(path).await.is_ok_and(|folder| folder.id == began.id),
            None => false,
        };
        search.here.folder.kinship_to(began, there)
    }

    /// How the caller's folder relates to one that is recorded by its path. Real paths are compared, and paths as they are
    /// written where the folder is gone.
    async fn relation_to(&self, search: &mut Search<'_>, recorded: &Path) -> Workdir {
        if let Some(known) = search.relations.get(recorded) {
            return *known;
        }
        let ours = search.seek.ours(recorded);
        let (began, there) = match self.host.folder(&ours).await {
            Ok(folder) => (folder, true),
            Err(FolderError::Unusable { .. }) => (blank(&ours), true),
            Err(FolderError::Missing { .. } | FolderError::NotAFolder { .. }) => (gone(search, &ours), false),
        };
        let here = &search.here.folder;
        // A subfolder that is gone is of the work tree that it lay in.
        let workdir = match here.kinship_to(&began, there) {
            // The agent's files are filed by the path that the other side sees.
            Workdir::Same if ours != recorded => Workdir::Moved,
            workdir => workdir,
        };
        search.relations.insert(recorded.to_owned(), workdir);
        workdir
    }
}

/// What a folder that is gone was: as a record tells, or as one of the work trees of this repository.
fn gone(search: &Search<'_>, path: &Path) -> Folder {
    if let Some(folder) = search.known.folders.get(path) {
        return folder.clone();
    }
    let ours = search.here.trees.iter().any(|tree| path.starts_with(tree));
    let repository = search.here.folder.repository.clone().filter(|_| ours);
    Folder { repository, ..blank(path) }
}

fn blank(path: &Path) -> Folder {
    Folder { path: PathText::new(path), id: None, repository: None }
}
