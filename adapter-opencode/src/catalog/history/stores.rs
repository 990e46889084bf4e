//! Where sessions may lie: all databases that are there, and the tree of files of 1.1 and before.

use std::path::{Path, PathBuf};

use session_core::EnvMap;
use session_core::error::CatalogError;
use session_core::history::{Notice, NoticeKind};

use super::super::seek::{databases_in, is_of_a_channel};
use super::super::{failed, is_missing};
use crate::state::{DATABASE, data_dir};

/// What names a database that lies nowhere.
const IN_MEMORY: &str = ":memory:";

/// The stores of a state dir, or of the agent's own place.
#[derive(Debug)]
pub(super) struct Stores {
    /// Databases, the one first that the agent would use.
    pub(super) databases: Vec<PathBuf>,
    /// The tree of files.
    pub(super) tree: PathBuf,
    pub(super) notices: Vec<Notice>,
}

impl Stores {
    pub(super) fn of(env: &EnvMap, state: Option<&Path>) -> Result<Self, CatalogError> {
        let data = match state {
            Some(state) => Some(state.join("opencode")),
            None => data_dir(env),
        };
        let Some(data) = data else {
            let source = std::io::Error::other("it is not known where its sessions lie");
            return Err(failed(Path::new(""), source));
        };
        let mut stores = Self { databases: Vec::new(), tree: data.join("storage"), notices: Vec::new() };
        match state {
            Some(state) => stores.add(state, |_| true),
            // A relative path is one below the data folder.
            None => stores.databases.extend(env.get(DATABASE).map(|chosen| data.join(chosen))),
        }
        stores.databases.push(data.join("opencode.db"));
        stores.add(&data, is_of_a_channel);
        stores.check(env, state, &data);
        let mut seen = std::collections::HashSet::new();
        stores.databases.retain(|path| seen.insert(path.clone()));
        Ok(stores)
    }

    /// What is there and cannot hold sessions, and what was named and is not there: sessions are missing from what is told.
    fn check(&mut self, env: &EnvMap, state: Option<&Path>, data: &Path) {
        let mut tell = |path: &Path, why: String| {
            let kind = NoticeKind::Unreadable(why);
            self.notices.push(Notice { path: path.to_owned(), offset: None, kind });
        };
        let chosen =
            env.get(DATABASE).filter(|name| state.is_none() && !name.is_empty() && *name != IN_MEMORY);
        if let Some(path) = chosen.map(|name| data.join(name))
            && let Err(error) = path.metadata()
            && is_missing(&error)
        {
            tell(&path, error.to_string());
        }
        match data.metadata() {
            Ok(metadata) if !metadata.is_dir() => tell(data, "it is no folder".to_owned()),
            Ok(_) => {
                let tree = data.join("storage");
                if tree.metadata().is_ok_and(|metadata| !metadata.is_dir()) {
                    tell(&tree, "it is no folder".to_owned());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => tell(data, error.to_string()),
            Err(error) if is_missing(&error) => {
                // Not there, and yet something is: a link that leads nowhere.
                let above = data.ancestors().find_map(|above| Some((above, above.symlink_metadata().ok()?)));
                if let Some((link, _)) = above.filter(|(_, metadata)| metadata.is_symlink()) {
                    tell(link, "it is a link that leads nowhere".to_owned());
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, folder: &Path, is_one: impl Fn(&Path) -> bool) {
        match databases_in(Some(folder)) {
            Ok(paths) => self.databases.extend(paths.into_iter().filter(|path| is_one(path))),
            Err(error) => self.notices.push(Notice {
                path: folder.to_owned(),
                offset: None,
                kind: NoticeKind::Unreadable(error.source.to_string()),
            }),
        }
    }

    /// Whether a database is there, with or without something in it: then newer versions look into no tree.
    pub(super) fn has_database(&self) -> bool {
        self.databases.iter().any(|path| path.symlink_metadata().is_ok())
    }
}
