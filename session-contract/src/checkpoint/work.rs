//! A work tree of the suite: a folder, with or without a repository.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::tree::{Marks, Tree, marks, sure};

/// A work tree.
#[derive(Debug, Clone)]
pub(super) struct Work(pub(super) PathBuf);

impl Work {
    /// A folder of no repository.
    pub(super) fn plain(at: PathBuf) -> Self {
        sure(fs::create_dir_all(&at), &at);
        Self(at)
    }

    /// The top of a repository without a commit: as much of one as git takes for one.
    pub(super) fn repository(at: PathBuf) -> Self {
        let work = Self::plain(at);
        for folder in ["objects", "refs/heads", "refs/tags", "info"] {
            work.folder(format!(".git/{folder}"));
        }
        work.write(".git/HEAD", "ref: refs/heads/main\n");
        work.write(".git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n");
        work
    }

    /// A linked work tree of this repository.
    pub(super) fn linked(&self, at: PathBuf) -> Self {
        let (linked, name) = (Self::plain(at), "linked");
        let (link, own) = (linked.at(".git"), self.at(format!(".git/worktrees/{name}")));
        self.write(format!(".git/worktrees/{name}/HEAD"), "ref: refs/heads/linked\n");
        self.write(format!(".git/worktrees/{name}/commondir"), "../..\n");
        self.write(format!(".git/worktrees/{name}/gitdir"), format!("{}\n", link.display()));
        linked.write(".git", format!("gitdir: {}\n", own.display()));
        linked
    }

    pub(super) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }

    /// Writes a file, in place where there is one, and makes its folders.
    pub(super) fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.at(path);
        if let Some(folder) = path.parent() {
            sure(fs::create_dir_all(folder), folder);
        }
        sure(fs::write(&path, bytes), &path);
    }

    pub(super) fn append(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        let path = self.at(path);
        let mut file = sure(File::options().append(true).open(&path), &path);
        sure(file.write_all(bytes), &path);
    }

    /// Writes other bytes of the same number, and sets the time of the file back to what it was.
    pub(super) fn backdated(&self, path: impl AsRef<Path>) {
        let path = self.at(path);
        let time = sure(fs::metadata(&path).and_then(|metadata| metadata.modified()), &path);
        let bytes: Vec<u8> = sure(fs::read(&path), &path).iter().map(|byte| byte ^ 0x20).collect();
        sure(fs::write(&path, bytes), &path);
        let file = sure(File::options().write(true).open(&path), &path);
        sure(file.set_modified(time), &path);
    }

    pub(super) fn folder(&self, path: impl AsRef<Path>) {
        let path = self.at(path);
        sure(fs::create_dir_all(&path), &path);
    }

    pub(super) fn chmod(&self, path: impl AsRef<Path>, mode: u32) {
        let path = self.at(path);
        sure(fs::set_permissions(&path, Permissions::from_mode(mode)), &path);
    }

    /// All its mode, also what is no permission.
    pub(super) fn mode(&self, path: impl AsRef<Path>) -> u32 {
        let path = self.at(path);
        sure(fs::symlink_metadata(&path), &path).mode() & 0o7777
    }

    pub(super) fn link(&self, path: impl AsRef<Path>, target: impl AsRef<Path>) {
        let path = self.at(path);
        sure(symlink(target, &path), &path);
    }

    /// Removes a file, a link, or a folder with all below it.
    pub(super) fn remove(&self, path: impl AsRef<Path>) {
        let path = self.at(path);
        let folder = sure(fs::symlink_metadata(&path), &path).is_dir();
        sure(if folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }, &path);
    }

    pub(super) fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        let (from, to) = (self.at(from), self.at(to));
        sure(fs::rename(&from, to), &from);
    }

    pub(super) fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        fs::read(self.at(path)).ok()
    }

    pub(super) fn there(&self, path: impl AsRef<Path>) -> bool {
        fs::symlink_metadata(self.at(path)).is_ok()
    }

    pub(super) fn tree(&self) -> Tree {
        Tree::read(&self.0)
    }

    pub(super) fn marks(&self) -> Marks {
        marks(&self.0)
    }

    /// A shell's doing, with these paths as `$1` and so on.
    pub(super) fn shell(&self, script: &str, paths: &[&Path]) -> bool {
        let mut command = bare("sh", &self.0);
        command.args(["-c", script, "sh"]).args(paths);
        sure(command.status(), Path::new("sh")).success()
    }

    /// git, as someone with no settings of their own runs it.
    pub(super) fn git(&self, arguments: &[&str]) {
        let mut command = bare("git", &self.0);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null").env("HOME", "/nowhere");
        command.args(["-c", "user.name=A", "-c", "user.email=a@example.com"]).args(arguments);
        assert!(sure(command.status(), Path::new("git")).success(), "git {arguments:?}");
    }
}

/// A program in an environment of nothing but a path.
fn bare(program: &str, folder: &Path) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut command = Command::new(program);
    command.env_clear().env("PATH", path).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
