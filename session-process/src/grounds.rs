//! Where an agent writes. What lies there is the agent's word, and is started only in a sandbox.

use std::path::{Component, Path, PathBuf};

use session_core::EnvMap;

use crate::error::SandboxError;

/// More links than any path leads by.
const LINKS: usize = 40;

/// The folder of an embedded store: records, logs, locks, and the state dirs of all mailboxes.
const STORE: &str = ".agent-sessions";

/// The folders that an agent in a sandbox writes in, by their real paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grounds(Vec<PathBuf>);

impl Grounds {
    /// Nowhere: without a sandbox, an agent can write everywhere, and nothing is told apart.
    pub(crate) const NONE: Self = Self(Vec::new());

    /// Waits for the disk.
    pub(crate) fn of(cwd: &Path, state_dir: Option<&Path>) -> Self {
        let real = |folder: &Path| folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Self(std::iter::once(cwd).chain(state_dir).map(real).collect())
    }

    /// The one that a path leads into or through, or the store that it does.
    pub(crate) fn around(&self, path: &Path) -> Option<PathBuf> {
        if self.0.is_empty() {
            return None;
        }
        let way = way(path);
        let own = self.0.iter().find(|folder| way.iter().any(|place| place.starts_with(folder)));
        own.cloned().or_else(|| way.iter().find_map(|place| store_around(place)).map(Path::to_owned))
    }

    /// Refuses what is to be started outside of the sandbox, and is the agent's word.
    pub(crate) fn refuse<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) -> Result<(), SandboxError> {
        let within = |path: &Path| self.around(path).map(|folder| (path.to_owned(), folder));
        match paths.into_iter().find_map(within) {
            Some((program, folder)) => Err(SandboxError::Program { program, folder }),
            None => Ok(()),
        }
    }

    /// The environment for what is started outside: its `PATH` has no folder that an agent could put a program in.
    pub(crate) fn outside(&self, env: &EnvMap) -> EnvMap {
        let mut env = env.clone();
        if let (false, Some(path)) = (self.0.is_empty(), env.get("PATH")) {
            let kept = std::env::split_paths(path).filter(|folder| self.around(folder).is_none());
            match std::env::join_paths(kept) {
                Ok(path) => env.set("PATH", path),
                Err(_) => env.remove("PATH"),
            }
        }
        env
    }
}

/// The store that a real path lies in, or is.
pub(crate) fn store_around(real: &Path) -> Option<&Path> {
    real.ancestors().filter(|folder| folder.file_name().is_some_and(|name| name == STORE)).last()
}

/// The store in a folder, if there is one.
pub(crate) fn store_in(folder: &Path) -> Option<PathBuf> {
    let store = folder.join(STORE);
    store.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()).then_some(store)
}

/// Every place that an absolute path leads by, each without links before its last part: those of folders around it, of links,
/// of what they lead to. The last one is where it ends, also where nothing is there.
pub(crate) fn way(path: &Path) -> Vec<PathBuf> {
    let parts = |path: &Path| path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect();
    let mut ahead: Vec<PathBuf> = parts(path);
    let (mut at, mut places, mut links) = (PathBuf::new(), Vec::new(), 0);
    while let Some(part) = ahead.pop() {
        match part.components().next() {
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::CurDir) | None => {}
            Some(_) => at.push(part),
        }
        places.push(at.clone());
        if links < LINKS
            && let Ok(target) = at.read_link()
        {
            links += 1;
            at.pop();
            ahead.append(&mut parts(&target));
        }
    }
    places
}
