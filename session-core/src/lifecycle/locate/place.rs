//! Where a session is, seen from the folder that it is sought from.

use std::path::{Path, PathBuf};

use crate::decide::{FoundFrom, Reach, Workdir};
use crate::error::FolderError;
use crate::history::ListedSession;
use crate::resolution::{Seek, Wanted};
use crate::{Folder, PathText, WorkTree};

use super::{Lifecycle, Search};

/// Where a session is.
#[derive(Debug)]
pub(in crate::lifecycle) struct Whereabouts {
    /// How the caller's folder relates to that of the session.
    pub(in crate::lifecycle) workdir: Workdir,
    /// The folder that it is in.
    pub(in crate::lifecycle) folder: Option<PathBuf>,
    filed: Option<Filed>,
    place: FoundFrom,
}

/// The folder that a session's file is filed under.
#[derive(Debug)]
struct Filed {
    /// Whether the caller's folder has this place.
    is_here: bool,
    /// The folder, where one can be told.
    folder: Option<PathBuf>,
    /// Whether the file or the record tells of that folder.
    told: bool,
}

impl Whereabouts {
    /// Whether a version finds it from the caller's folder.
    pub(in crate::lifecycle) const fn is_found_by(&self, reach: Reach) -> bool {
        self.place.is_found(reach, self.workdir)
    }
}

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
    ) -> Whereabouts {
        let entry = &session.entry;
        let of = (session.agent.clone(), entry.id.clone());
        // One that was relocated is where the record says; its file still tells of the old folder, at least in its replies.
        let home = search.known.homes.get(&of).cloned();
        let moved = search.known.moved.get(&of).cloned();
        let last = entry.last_cwd.as_ref().or(entry.cwd.as_ref()).cloned();
        let recorded = home.as_ref().and_then(|home| home.path.as_path()).map(Path::to_owned);
        let recorded = recorded.filter(|home| moved.is_some() || entry.cwd.as_ref() != Some(home));
        let filed = self.filed(search, session, recorded.as_deref()).await;
        let place = self.place_of(search, filed.as_ref()).await;
        // What was relocated and is noted nowhere is where its file lies, as far as that can be told.
        let unnoted = match &filed {
            Some(Filed { folder: Some(folder), told: false, .. }) => Some(folder.clone()),
            _ => None,
        };
        let Some(folder) = moved.or(unnoted).or(recorded).or(last) else {
            let Some(home) = home else {
                return Whereabouts { workdir: Workdir::OtherProject, folder: None, filed, place };
            };
            let workdir = self.relation_of(search, &home).await;
            let folder = home.path.as_path().map(Path::to_owned);
            return Whereabouts { workdir, folder, filed, place };
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
        Whereabouts { workdir, folder: Some(folder), filed, place }
    }

    /// The folder that a session's file is filed under; `None` where its agent does not file by folder.
    async fn filed(
        &self,
        search: &Search<'_>,
        session: &ListedSession,
        recorded: Option<&Path>,
    ) -> Option<Filed> {
        let (entry, source) = (&session.entry, &session.entry.source);
        let catalog = self.agents.get(&session.agent).and_then(crate::Agent::catalog)?;
        let here = search.here.folder.path.as_path().unwrap_or(&search.seek.from);
        let is_here = catalog.is_filed_in(source, here)?;
        let is_filed = |folder: &&Path| catalog.is_filed_in(source, folder) == Some(true);
        let told = [recorded, entry.last_cwd.as_deref(), entry.cwd.as_deref()];
        if let Some(folder) = told.into_iter().flatten().find(is_filed) {
            return Some(Filed { is_here, folder: Some(folder.to_owned()), told: true });
        }
        let near = search.here.trees.iter().chain(search.known.folders.keys()).map(PathBuf::as_path);
        let folder = match std::iter::once(here).chain(near).find(is_filed) {
            Some(folder) => Some(folder.to_owned()),
            None => catalog.folder_of(source).await,
        };
        Some(Filed { is_here, folder, told: false })
    }

    /// From where the place of a file is looked at.
    async fn place_of(&self, search: &mut Search<'_>, filed: Option<&Filed>) -> FoundFrom {
        match filed {
            None => FoundFrom::AsFolders,
            Some(Filed { is_here: true, .. }) => FoundFrom::Here,
            Some(Filed { folder: None, .. }) => FoundFrom::Elsewhere,
            Some(Filed { folder: Some(folder), .. }) => {
                FoundFrom::folder(self.relation_to(search, folder).await)
            }
        }
    }

    /// The folder in which the installed version of its agent continues a session, there or not: the one that its file is filed
    /// under, where that is how the version finds it; else the one that a record says, or that it began in. `None`: nobody
    /// knows. Nothing is run but the agent's version probe.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn continued_in(&self, session: &ListedSession, from: &Path) -> Option<PathBuf> {
        let seek = Seek::new(Wanted::Nothing, from);
        let mut search = self.begin(&seek).await;
        let of = (session.agent.clone(), session.entry.id.clone());
        let moved = search.known.moved.get(&of).cloned();
        let told =
            moved.clone().or_else(|| session.entry.cwd.clone()).or_else(|| session.entry.last_cwd.clone());
        let Some(filed) = self.whereabouts(&mut search, session).await.filed else { return told };
        if filed.folder.is_some() && (moved.is_none() || filed.folder == moved) {
            return filed.folder;
        }
        match self.reach(&search, &session.agent).await {
            Reach::Anywhere => told,
            Reach::SameFolder | Reach::Repository => filed.folder,
        }
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
