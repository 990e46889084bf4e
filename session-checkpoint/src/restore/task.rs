//! One path that is put back.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use session_core::LeftWhy;

use super::plan::WORK;
use super::walk;
use crate::node::What;

/// What is to be done at a path, and how far it got.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) path: PathBuf,
    /// Its number among the paths of the restore; `None`: a folder that is only worked in.
    pub(super) number: Option<usize>,
    pub(super) before: Option<What>,
    pub(super) after: Option<What>,
    /// Whether something below it is a task.
    pub(super) is_worked_in: bool,
    /// Whether the folder had the permissions already with which it is worked in.
    pub(super) was_open: bool,
    /// Whether what stood there `before` was taken away by this very restore, as it may have been when it goes on.
    pub(super) cleared: bool,
    /// The present permissions of the folder that stands there, where it is one that may be touched.
    pub(super) mode: Option<u16>,
    pub(super) verdict: Option<Verdict>,
    /// It was left as there were no handles left.
    pub(super) is_short: bool,
}

/// What became of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    Left(LeftWhy),
}

impl Task {
    pub(super) fn new(path: &Path, number: Option<usize>) -> Self {
        Self {
            path: path.to_owned(),
            number,
            before: None,
            after: None,
            is_worked_in: false,
            was_open: false,
            cleared: false,
            mode: None,
            verdict: None,
            is_short: false,
        }
    }

    pub(super) fn parent(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Its name in its parent.
    pub(super) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or(OsStr::new("."))
    }

    pub(super) fn leave(&mut self, why: LeftWhy) {
        self.verdict = Some(Verdict::Left(why));
    }

    /// Leaves it for what the system said.
    pub(super) fn fail(&mut self, error: &io::Error) {
        self.is_short = walk::is_short(error);
        self.leave(why(error));
    }

    /// Whether it was left as there were no handles left; then it is open again.
    pub(super) fn was_short(&mut self) -> bool {
        let was = std::mem::take(&mut self.is_short);
        if was {
            self.verdict = None;
        }
        was
    }

    /// The permissions of the folder before and after; `None`: it is no folder there.
    pub(super) fn folder_modes(&self) -> (Option<u16>, Option<u16>) {
        (folder_mode(self.before), folder_mode(self.after))
    }

    /// The permissions of the folder while it is worked in: for nobody who is not let in both before and after.
    pub(super) fn work_mode(&self) -> u16 {
        match self.folder_modes() {
            (Some(before), Some(after)) => (before & after) | WORK,
            (Some(one), None) | (None, Some(one)) => one | WORK,
            (None, None) => WORK,
        }
    }

    /// What is made before it gets the path's own name.
    pub(super) fn draft(&self, prefix: &str) -> OsString {
        format!("{prefix}{}", self.number.unwrap_or(usize::MAX)).into()
    }
}

const fn folder_mode(what: Option<What>) -> Option<u16> {
    match what {
        Some(What::Folder { mode, .. }) => Some(mode),
        _ => None,
    }
}

/// Whether it is a file or a link.
pub(super) const fn is_leaf(what: Option<What>) -> bool {
    matches!(what, Some(What::File { .. } | What::Link { .. }))
}

/// What an error of the system means for a path.
pub(super) fn why(error: &io::Error) -> LeftWhy {
    match Errno::from_io_error(error) {
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => LeftWhy::Denied,
        Some(Errno::NOTDIR | Errno::LOOP) => LeftWhy::InTheWay,
        _ => LeftWhy::Failed(error.to_string()),
    }
}
