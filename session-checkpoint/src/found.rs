//! What was found of a tree, before it is made into lists.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use session_core::LeftOutWhy;

use crate::handle::{Look, Sort, Stamp};
use crate::node::What;
use crate::object::Hash;

/// A folder that was looked at.
#[derive(Debug)]
pub(crate) struct Scanned<'a> {
    /// Within the tree.
    pub(crate) path: Vec<u8>,
    /// Of the folder itself.
    pub(crate) look: Look,
    pub(crate) rules: [u8; 32],
    pub(crate) ignoring: bool,
    pub(crate) items: Vec<Item<'a>>,
    /// Its list as it was kept, and sums of it: right as long as each folder in it is as before.
    pub(crate) same: Option<(Hash, u64, u64)>,
    /// Whether what was seen of it is to be written.
    pub(crate) row: bool,
    /// Where it is still open.
    pub(crate) handle: Option<OwnedFd>,
}

/// Something in it.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    pub(crate) name: Cow<'a, [u8]>,
    pub(crate) state: State,
}

/// What is known of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum State {
    /// It is as it was kept.
    Kept(Stamp, What),
    /// It is carried over unseen from a former checkpoint.
    Carried(What),
    /// It has to be read.
    Read(Stamp, Sort),
    /// A folder that is looked at under this number, and what it was before.
    Child(u32, Option<What>),
    Ignored,
    /// Not covered for another reason.
    Other,
    /// It went away meanwhile.
    Gone,
}

/// What came of looking at a folder.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are folders")]
pub(crate) enum Found<'a> {
    Folder(Scanned<'a>),
    Out,
    Gone,
}

/// What a scan found: folders by number, each after those that it lies in; and what is left out.
#[derive(Debug)]
pub(crate) struct Harvest<'a> {
    pub(crate) found: Vec<Found<'a>>,
    pub(crate) left_out: Vec<(Vec<u8>, LeftOutWhy)>,
}

impl Harvest<'_> {
    /// The bytes of all files, and of those that have to be read.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let (mut all, mut new) = (0, 0);
        for found in &self.found {
            let Found::Folder(folder) = found else { continue };
            for item in &folder.items {
                match item.state {
                    State::Kept(_, what) | State::Carried(what) => all = what.sums().1.saturating_add(all),
                    State::Read(stamp, _) => {
                        all = stamp.size.saturating_add(all);
                        new += stamp.size;
                    }
                    State::Child(..) | State::Ignored | State::Other | State::Gone => {}
                }
            }
        }
        (all, new)
    }
}

/// Why something was not looked at.
#[derive(Debug)]
pub(crate) enum Missed {
    /// It is gone.
    Gone,
    /// It is left out.
    Out(LeftOutWhy),
    /// This process lacks what it takes: nothing can be said of the tree.
    Failed(io::Error),
}

impl From<io::Error> for Missed {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => Self::Gone,
            // A folder became something else.
            Some(Errno::NOTDIR | Errno::LOOP) => Self::Out(LeftOutWhy::Unsteady),
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => Self::Failed(error),
            _ => Self::Out(LeftOutWhy::Unreadable),
        }
    }
}

/// The paths of folders that were looked at.
pub(crate) fn paths<'s>(found: &'s [Found<'_>]) -> HashSet<&'s [u8]> {
    let folders = found.iter().filter_map(|found| match found {
        Found::Folder(folder) => Some(folder.path.as_slice()),
        Found::Out | Found::Gone => None,
    });
    folders.collect()
}
