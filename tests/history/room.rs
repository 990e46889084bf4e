//! A configuration folder of Claude Code with sessions of several folders.

use std::fs;
use std::path::{Path, PathBuf};

use rejoin::NativeId;
use rejoin::adapters::ClaudeTranscripts;
use rejoin::core::history::{ListQuery, Listing, Scope, SearchQuery, Searched, SessionEntry};
use rejoin::core::{EnvMap, Inspection, SessionCatalog as _, SessionQuery};
use rejoin::transcript::FileCatalog;
use serde_json::Value;

use crate::desk::{jsonl, said, user};

pub(crate) struct Room {
    dir: tempfile::TempDir,
}

/// The id of the session of that number.
pub(crate) fn id(number: u32) -> String {
    format!("{number:08x}-1111-4111-8111-111111111111")
}

/// A short talk in a folder.
pub(crate) fn talk(folder: &str, words: &str) -> Vec<Value> {
    let mut lines = vec![user("u1", None, words), said("a2", "u1", "yes")];
    lines.iter_mut().for_each(|line| line["cwd"] = folder.into());
    lines
}

impl Room {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, project: &str, number: u32) -> PathBuf {
        self.dir().join("projects").join(project).join(id(number) + ".jsonl")
    }

    pub(crate) fn write(&self, project: &str, number: u32, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(project, number);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn talk(&self, project: &str, number: u32, folder: &str) -> PathBuf {
        self.write(project, number, jsonl(&talk(folder, &format!("words of {number}"))))
    }

    pub(crate) fn catalog(&self) -> FileCatalog<ClaudeTranscripts> {
        FileCatalog::new(ClaudeTranscripts::new(EnvMap::new()))
    }

    pub(crate) fn list(&self, query: ListQuery) -> Listing {
        let query = ListQuery { state_dir: Some(self.dir().to_owned()), ..query };
        wait(self.catalog().list(&query)).unwrap()
    }

    /// The numbers of the sessions of these folders, smallest first.
    pub(crate) fn numbers(&self, scope: Scope) -> Vec<u32> {
        let mut numbers: Vec<_> =
            self.list(ListQuery { scope, ..ListQuery::default() }).sessions.iter().map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// What a run in this folder finds of a session.
    pub(crate) fn look(&self, number: u32, cwd: impl AsRef<Path>) -> Inspection {
        let id = NativeId::new(id(number));
        let query = SessionQuery { id: &id, cwd: cwd.as_ref(), state_dir: Some(self.dir()), version: None };
        wait(self.catalog().inspect(query)).unwrap()
    }

    pub(crate) fn find(&self, number: u32) -> Vec<SessionEntry> {
        wait(self.catalog().find(&NativeId::new(id(number)), Some(self.dir()))).unwrap()
    }

    /// The numbers of the sessions in which a word was said, newest first.
    pub(crate) fn search(&self, word: &str) -> Vec<u32> {
        let words = vec![word.to_owned()];
        let query = SearchQuery { state_dir: Some(self.dir().to_owned()), words, ..SearchQuery::default() };
        wait(async {
            let mut search = self.catalog().search(&query).await.unwrap();
            let mut found = Vec::new();
            while let Some(searched) = search.next().await {
                if let Searched::Hit(hit) = searched {
                    found.push(u32::from_str_radix(&hit.id.as_str()[..8], 16).unwrap());
                }
            }
            found
        })
    }
}

pub(crate) fn number(entry: &SessionEntry) -> u32 {
    u32::from_str_radix(&entry.id.as_str()[..8], 16).unwrap()
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
