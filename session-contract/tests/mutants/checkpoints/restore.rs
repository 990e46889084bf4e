//! Puts paths of a tree back: first all that has to go, the deepest first; then all that has to come, from the top down.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use session_core::{LeftPath, LeftWhy, NodeKind, Restored, RunId};

use super::copy::CopyCheckpointer;
use super::flaw::Flaw;
use super::state::{Entry, State, look};

/// A restore of a tree between two states.
pub(super) struct Restore<'a> {
    pub(super) of: &'a CopyCheckpointer,
    pub(super) top: &'a Path,
    pub(super) from: &'a State,
    pub(super) to: &'a State,
    pub(super) step: RunId,
    /// It was cut off before: a path where nothing stands may be between two kinds.
    pub(super) again: bool,
}

/// Where it stands with a path.
enum Standing {
    Done,
    Left(LeftWhy),
    Todo,
}

fn same(one: Option<&Entry>, two: Option<&Entry>) -> bool {
    let seen = |entry: &Entry| (entry.kind, entry.mode, entry.hash);
    one.map(seen) == two.map(seen)
}

fn why(error: &io::Error) -> LeftWhy {
    match error.kind() {
        io::ErrorKind::PermissionDenied => LeftWhy::Denied,
        io::ErrorKind::DirectoryNotEmpty => LeftWhy::NotEmpty,
        _ => LeftWhy::Failed(error.to_string()),
    }
}

impl Restore<'_> {
    fn is(&self, flaw: Flaw) -> bool {
        self.of.is(flaw)
    }

    pub(super) async fn run(&self, paths: &[PathBuf]) -> Restored {
        let mut paths: BTreeSet<&PathBuf> = paths.iter().collect();
        if self.is(Flaw::RestoresEverything) {
            let all = self.from.keys().chain(self.to.keys());
            paths.extend(all.filter(|path| !same(self.from.get(*path), self.to.get(*path))));
        }
        self.clear(&paths);
        let mut standing: BTreeMap<&PathBuf, Standing> =
            paths.iter().map(|path| (*path, self.judge(path))).collect();
        for (path, standing) in standing.iter_mut().rev() {
            tokio::task::yield_now().await;
            if matches!(standing, Standing::Todo) {
                *standing = self.take_away(path);
            }
        }
        for (path, standing) in &mut standing {
            tokio::task::yield_now().await;
            if matches!(standing, Standing::Todo) {
                *standing = self.bring(path);
            }
        }
        let mut restored = Restored::default();
        for (path, standing) in standing {
            match standing {
                Standing::Left(_) if self.is(Flaw::ForgetsToTell) => {}
                Standing::Left(why) if !self.is(Flaw::TellsDone) => {
                    restored.left.push(LeftPath { path: path.clone(), why });
                }
                _ => restored.done.push(path.clone()),
            }
        }
        restored
    }

    /// Whether a path is one of the tree.
    fn own(&self, path: &Path) -> bool {
        let normal = |part: Component<'_>| matches!(part, Component::Normal(name) if name != ".git");
        path.components().all(normal) && path.components().next().is_some()
    }

    fn judge(&self, path: &Path) -> Standing {
        if !self.own(path) && !self.is(Flaw::TakesAnyPath) {
            return Standing::Left(LeftWhy::Failed("it is no path of the tree".to_owned()));
        }
        let (from, to) = (self.from.get(path), self.to.get(path));
        let through = self.is(Flaw::GoesThroughLinks);
        let now = match look(self.top, path, self.of.limit, through) {
            Ok(now) => now,
            // What stands in the way may be put back itself.
            Err(()) if from.is_none() => None,
            Err(()) => return Standing::Left(LeftWhy::InTheWay),
        };
        let kind_changed = from.zip(to).is_some_and(|(from, to)| from.kind != to.kind);
        if same(now.as_ref(), to) && !self.is(Flaw::WritesWhatIsRight) {
            let changed = self.is(Flaw::LeavesWhatIsRight) && !same(now.as_ref(), from);
            return if changed { Standing::Left(LeftWhy::ChangedMeanwhile) } else { Standing::Done };
        }
        match self.flaw() {
            Flaw::MissesDeletions if from.is_none() => return Standing::Done,
            Flaw::KeepsWhatIsNew if to.is_none() => return Standing::Done,
            Flaw::KeepsTheKind if kind_changed => return Standing::Done,
            Flaw::TakesAnyPath if !self.own(path) => return Standing::Todo,
            Flaw::IgnoresFrom => return Standing::Todo,
            Flaw::RemovesWhatItHadNot if to.is_none() => return Standing::Todo,
            Flaw::WritesWhatIsRight if same(now.as_ref(), to) => return Standing::Todo,
            Flaw::IgnoresLaterModes => {
                let content = |entry: Option<&Entry>| entry.map(|entry| (entry.kind, entry.hash));
                if content(now.as_ref()) == content(from) {
                    return Standing::Todo;
                }
            }
            _ => {}
        }
        let between = self.again && now.is_none() && kind_changed;
        if same(now.as_ref(), from) || between || from.is_some_and(|from| from.mode > 0o777) {
            Standing::Todo
        } else {
            Standing::Left(LeftWhy::ChangedMeanwhile)
        }
    }

    fn flaw(&self) -> Flaw {
        self.of.flaw
    }

    /// Removes what has to go, or stands where something of another kind has to come.
    fn take_away(&self, path: &Path) -> Standing {
        let to = self.to.get(path);
        let through = self.is(Flaw::GoesThroughLinks);
        let Ok(Some(now)) = look(self.top, path, self.of.limit, through) else {
            return if to.is_some() { Standing::Todo } else { Standing::Done };
        };
        if to.is_some_and(|to| {
            to.kind == now.kind || now.kind != NodeKind::Folder && to.kind != NodeKind::Folder
        }) {
            // It is replaced.
            return Standing::Todo;
        }
        // What is damaged replaces nothing.
        if to.is_some_and(|to| to.content.is_none()) {
            return Standing::Left(LeftWhy::Damaged);
        }
        let full = self.top.join(path);
        let removed = match now.kind {
            NodeKind::Folder if self.is(Flaw::RemovesFullFolders) => fs::remove_dir_all(&full),
            NodeKind::Folder => fs::remove_dir(&full),
            _ => fs::remove_file(&full),
        };
        match removed {
            Err(error) => Standing::Left(why(&error)),
            Ok(()) if to.is_some() => Standing::Todo,
            Ok(()) => Standing::Done,
        }
    }

    /// Makes a path what it has to be.
    fn bring(&self, path: &Path) -> Standing {
        let Some(to) = self.to.get(path) else { return Standing::Done };
        let full = self.top.join(path);
        let folder = full.parent().unwrap_or(self.top);
        let through = self.is(Flaw::GoesThroughLinks) && folder.is_dir();
        if !through && (look(self.top, path, self.of.limit, false).is_err() || !folder.is_dir()) {
            return Standing::Left(LeftWhy::InTheWay);
        }
        let Some(content) = &to.content else { return Standing::Left(LeftWhy::Damaged) };
        match self.write(&full, folder, to, content) {
            Ok(()) => Standing::Done,
            Err(error) => Standing::Left(why(&error)),
        }
    }

    fn write(&self, full: &Path, folder: &Path, to: &Entry, content: &[u8]) -> io::Result<()> {
        let temporary = folder.join(self.temporary());
        let mode = Permissions::from_mode(to.mode);
        match to.kind {
            NodeKind::Folder => {
                if !full.is_dir() {
                    fs::create_dir(full)?;
                } else if self.is(Flaw::LeavesFolderModes) {
                    return Ok(());
                }
                fs::set_permissions(full, mode)
            }
            NodeKind::Link => {
                symlink(OsStr::from_bytes(content), &temporary)?;
                fs::rename(&temporary, full)
            }
            NodeKind::File if self.is(Flaw::WritesInPlace) && full.is_file() => {
                fs::write(full, content)?;
                fs::set_permissions(full, mode)
            }
            NodeKind::File => {
                let umask = self.is(Flaw::LeavesModesToTheUmask);
                let first = if umask {
                    to.mode
                } else if self.of.wide {
                    0o666
                } else {
                    0o600
                };
                let mut file = File::options().write(true).create_new(true).mode(first).open(&temporary)?;
                file.write_all(content)?;
                if !umask {
                    file.set_permissions(mode)?;
                }
                fs::rename(&temporary, full)?;
                if self.is(Flaw::RewritesNeighbours) {
                    rewrite(folder)?;
                }
                Ok(())
            }
        }
    }

    /// The name of what is not yet whole: the same when the restore is finished later.
    fn temporary(&self) -> String {
        format!(".copy-{}", self.step)
    }

    /// Removes what a restore that was cut off left beside the paths.
    fn clear(&self, paths: &BTreeSet<&PathBuf>) {
        for path in paths.iter().filter(|path| self.own(path)) {
            let beside = path.with_file_name(self.temporary());
            if look(self.top, &beside, 0, false).is_ok_and(|found| found.is_some()) {
                drop(fs::remove_file(self.top.join(beside)));
            }
            let remains = self.is(Flaw::RemovesSpecialFiles).then(|| fs::read_dir(self.top)).into_iter();
            for entry in remains.flatten().flatten().flatten() {
                let special = fs::symlink_metadata(entry.path());
                if special.is_ok_and(|m| !m.is_dir() && !m.is_file() && !m.is_symlink()) {
                    drop(fs::remove_file(entry.path()));
                }
            }
        }
    }
}

/// Writes every file of a folder anew, as it is.
fn rewrite(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_file() {
            let bytes = fs::read(&path)?;
            fs::remove_file(&path)?;
            fs::write(&path, bytes)?;
            fs::set_permissions(&path, metadata.permissions())?;
        }
    }
    Ok(())
}
