//! Which folders belong to the one that the command was started in.

use std::fs;
use std::path::{Path, PathBuf};

use rejoin::history::{ListedSession, Scope};

use crate::args::ScopeChoice;

/// The present folder and the work trees of its repository, as real paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Folders {
    pub(crate) here: PathBuf,
    /// The work trees; outside of a repository, the folder alone.
    pub(crate) trees: Vec<PathBuf>,
}

impl Folders {
    /// Looks at the repository around a folder, without a git process.
    pub(crate) fn around(here: &Path) -> Self {
        let trees = work_trees(here).filter(|trees| !trees.is_empty());
        Self { here: here.to_owned(), trees: trees.unwrap_or_else(|| vec![here.to_owned()]) }
    }

    /// The scope of the library that a word of the command line means.
    pub(crate) fn scope(&self, choice: ScopeChoice) -> Scope {
        match choice {
            ScopeChoice::Here => Scope::Exact(self.here.clone()),
            ScopeChoice::Below => Scope::Below(self.here.clone()),
            ScopeChoice::Repository => Scope::AnyBelow(self.trees.clone()),
            ScopeChoice::All => Scope::All,
        }
    }
}

/// Whether a session began in the scope, or was last in it.
pub(crate) fn holds(scope: &Scope, listed: &ListedSession) -> bool {
    let entry = &listed.entry;
    let mut folders = entry.cwd.iter().chain(&entry.last_cwd);
    *scope == Scope::All || folders.any(|folder| scope.holds(folder))
}

/// The work trees of the repository around the folder: those that git knows, and those that are there.
fn work_trees(here: &Path) -> Option<Vec<PathBuf>> {
    let (root, git) =
        here.ancestors().map(|folder| (folder, folder.join(".git"))).find(|(_, git)| git.exists())?;
    let git_dir =
        if git.is_dir() { git } else { root.join(pointer(&git, "gitdir: ")?).canonicalize().ok()? };
    let common = match pointer(&git_dir.join("commondir"), "") {
        Some(path) => git_dir.join(path).canonicalize().ok()?,
        None => git_dir,
    };
    let mut trees = vec![root.to_owned()];
    if common.file_name().is_some_and(|name| name == ".git") {
        trees.extend(common.parent().map(Path::to_owned));
    }
    for tree in fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten() {
        let Some(file) = pointer(&tree.path().join("gitdir"), "") else { continue };
        let file = tree.path().join(file);
        // One that was moved or removed stays as git knows it: its sessions are still of this repository.
        let file = file.canonicalize().unwrap_or(file);
        trees.extend(file.parent().map(Path::to_owned));
    }
    trees.sort();
    trees.dedup();
    Some(trees)
}

/// The path in one of git's small files.
fn pointer(file: &Path, prefix: &str) -> Option<PathBuf> {
    let is_small = |metadata: &fs::Metadata| metadata.is_file() && metadata.len() < 16 * 1024;
    fs::metadata(file).ok().filter(is_small)?;
    let text = fs::read_to_string(file).ok()?;
    let path = text.strip_prefix(prefix)?.trim_end_matches(['\n', '\r']);
    (!path.is_empty() && !path.contains(['\0', '\n'])).then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_work_tree_is_found_from_any_other() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (main, linked) = (root.join("main"), root.join("linked"));
        let inner = main.join(".git/worktrees/linked");
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir_all(linked.join("src")).unwrap();
        fs::write(main.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(inner.join("gitdir"), format!("{}\n", linked.join(".git").display())).unwrap();
        fs::write(inner.join("commondir"), "../..\n").unwrap();
        fs::write(linked.join(".git"), format!("gitdir: {}\n", inner.display())).unwrap();

        let expected = vec![linked.clone(), main.clone()];
        assert_eq!(Folders::around(&main).trees, expected);
        assert_eq!(Folders::around(&linked.join("src")).trees, expected);
        // What is gone, and still known to git, lies wherever it lay.
        fs::remove_dir_all(&linked).unwrap();
        assert_eq!(Folders::around(&main).trees, expected);
        assert_eq!(Folders::around(&root).trees, vec![root.clone()], "no repository");
    }
}
