//! Looks at the paths that are known to have changed, and at the folders above them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use session_core::LeftOutWhy;

use crate::handle::{self, Look};
use crate::node::{Entry, What};
use crate::object::Hash;
use crate::rules::{Judgement, Rules};
use crate::scan::{Item, Missed, Scan, Scanned, State};
use crate::tree;
use crate::trouble::{Outcome, Trouble};

/// What to look at, as a tree of names.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// This, and all below it.
    all: bool,
    below: BTreeMap<Vec<u8>, Self>,
}

impl Wanted {
    /// Paths within a tree, or of it in full. `None`: they cannot be told one by one.
    pub(crate) fn new(root: &Path, changed: &[PathBuf]) -> Option<Self> {
        let mut top = Self::default();
        for path in changed {
            let path = match path.strip_prefix(root) {
                Ok(path) => path,
                // Outside of the tree.
                Err(_) if path.is_absolute() => continue,
                Err(_) => path,
            };
            let mut at = &mut top;
            for component in path.components() {
                match component {
                    Component::CurDir => {}
                    // What is ignored may have changed anywhere.
                    Component::Normal(name) if name == ".gitignore" => return None,
                    Component::Normal(name) => at = at.below.entry(name.as_bytes().to_vec()).or_default(),
                    Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
                }
            }
            at.all = true;
        }
        (!top.all).then_some(top)
    }

    /// The paths that stand for all below them.
    pub(crate) fn whole(&self) -> Vec<Vec<u8>> {
        let mut whole = Vec::new();
        self.gather(&[], &mut whole);
        whole
    }

    fn gather(&self, path: &[u8], whole: &mut Vec<Vec<u8>>) {
        if self.all {
            whole.push(path.to_vec());
            return;
        }
        for (name, below) in &self.below {
            below.gather(&handle::join(path, name), whole);
        }
    }
}

/// Looks at known paths.
#[derive(Debug)]
pub(crate) struct Known<'s, 'a> {
    pub(crate) db: &'s Connection,
    pub(crate) scan: &'s Scan<'a>,
    /// The paths that were looked at as a whole, or are gone: what was left out there is found anew.
    pub(crate) looked: Vec<Vec<u8>>,
}

/// A folder on the way to known paths.
struct Way {
    path: Vec<u8>,
    handle: OwnedFd,
    look: Look,
    rules: Arc<Rules>,
    /// Its list, as it was kept.
    list: Hash,
}

impl Known<'_, '_> {
    /// Looks at what is wanted in a tree that was kept so.
    pub(crate) fn walk(&mut self, list: Hash, wanted: &Wanted, rules: &Arc<Rules>) -> Outcome<()> {
        let root = &self.scan.root;
        let handle = handle::top(root).map_err(Trouble::io(root))?;
        let look = handle::look_at(&handle).map_err(Trouble::io(root))?;
        let rules = rules.within(root, b"", &handle, |_| true);
        self.folder(&Way { path: Vec::new(), handle, look, rules, list }, wanted)?;
        Ok(())
    }

    fn folder(&mut self, way: &Way, wanted: &Wanted) -> Outcome<u32> {
        let number = self.scan.add(Scanned {
            path: way.path.clone(),
            look: way.look,
            rules: [0; 32],
            ignoring: false,
            items: Vec::new(),
            same: None,
            row: false,
        });
        let mut items = Vec::new();
        let mut kept = tree::folder(self.db, way.list)?.entries.into_iter().peekable();
        let carried = |Entry { name, what }| Item { name: Cow::Owned(name), state: State::Carried(what) };
        for (name, wanted) in &wanted.below {
            while let Some(entry) = kept.next_if(|entry| entry.name < *name) {
                items.push(carried(entry));
            }
            let before = kept.next_if(|entry| entry.name == *name).map(|entry| entry.what);
            if let Some(state) = self.item(way, name, before, wanted)? {
                items.push(Item { name: Cow::Owned(name.clone()), state });
            }
        }
        items.extend(kept.map(carried));
        self.scan.fill(number, items);
        Ok(number)
    }

    fn item(
        &mut self,
        way: &Way,
        name: &[u8],
        before: Option<What>,
        wanted: &Wanted,
    ) -> Outcome<Option<State>> {
        let path = handle::join(&way.path, name);
        if let (Some(What::Folder { list, .. }), false) = (before, wanted.all) {
            let opened =
                handle::folder(&way.handle, name).and_then(|handle| Ok((handle::look_at(&handle)?, handle)));
            let judgement = way.rules.judge(&way.path, name, true);
            if let Ok((look, handle)) = opened
                && self.scan.foreign(&look).is_none()
                && judgement != Judgement::Out
            {
                let rules = way.rules.for_child(judgement);
                let rules = rules.within(&self.scan.root, &path, &handle, |_| true);
                let child = self.folder(&Way { path, handle, look, rules, list }, wanted)?;
                return Ok(Some(State::Child(child, before)));
            }
        }
        self.looked.push(path.clone());
        match self.whole(way, name, &path) {
            Ok(state) => Ok(Some(state)),
            Err(Missed::Gone) => Ok(None),
            Err(Missed::Out(why)) => {
                self.scan.leave_out(path, why);
                Ok(Some(State::Other))
            }
            Err(Missed::Failed(error)) => Err(Trouble::io(self.scan.root.join(handle::path(&path)))(error)),
        }
    }

    /// Looks at what stands there, and orders what is below it.
    fn whole(&self, way: &Way, name: &[u8], path: &[u8]) -> Result<State, Missed> {
        let mut state = self.scan.entry(&way.handle, name, None)?;
        let is_folder = matches!(state, State::Child(..));
        let judgement = way.rules.judge(&way.path, name, is_folder);
        if judgement == Judgement::Out {
            return Err(Missed::Out(LeftOutWhy::Ignored));
        }
        if let State::Child(number, _) = &mut state {
            // What cannot be opened is left out when its turn comes.
            *number = self.scan.order(path.to_vec(), way.rules.for_child(judgement));
        }
        Ok(state)
    }
}
