//! Looks at the paths that are known to have changed, and at the folders above them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use session_core::LeftOutWhy;

use crate::found::{Item, Missed, Scanned, State};
use crate::handle::{self, Look};
use crate::node::{Entry, What};
use crate::object::Hash;
use crate::rules::{Judgement, Rules};
use crate::scan::Scan;
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
            // Nothing in the repository itself is covered.
            if path.starts_with(".git") {
                continue;
            }
            let mut at = &mut top;
            for component in path.components() {
                match component {
                    Component::CurDir => {}
                    // What is ignored may have changed anywhere.
                    Component::Normal(name) if name == ".gitignore" || name == ".git" => return None,
                    Component::Normal(name) => at = at.below.entry(name.as_bytes().to_vec()).or_default(),
                    Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
                }
            }
            at.all = true;
        }
        (!top.all).then_some(top)
    }
}

/// Looks at known paths.
#[derive(Debug)]
pub(crate) struct Known<'s, 'a> {
    pub(crate) db: &'s Connection,
    pub(crate) scan: &'s Scan<'a>,
    /// The paths that were looked at as a whole, or are gone: what was left out there is found anew.
    pub(crate) looked: Vec<Vec<u8>>,
    /// What was left out, in the order of paths.
    left_out: &'s [(Vec<u8>, LeftOutWhy)],
    /// Some rules are not covered themselves.
    hidden_rules: bool,
    handles: usize,
}

/// So many folders stay open until what is in them is read.
const HANDLES: usize = 64;

/// A folder on the way to known paths.
struct Way {
    path: Vec<u8>,
    handle: OwnedFd,
    look: Look,
    rules: Arc<Rules>,
    /// Its list, as it was kept.
    list: Hash,
}

impl<'s, 'a> Known<'s, 'a> {
    /// `left_out` is what the checkpoint left out that is built on.
    pub(crate) fn new(db: &'s Connection, scan: &'s Scan<'a>, left_out: &'s [(Vec<u8>, LeftOutWhy)]) -> Self {
        let hidden_rules = left_out.iter().any(|(path, _)| path.ends_with(b".gitignore"));
        Self { db, scan, looked: Vec::new(), left_out, hidden_rules, handles: 0 }
    }

    /// Looks at what is wanted in a tree that was kept so.
    pub(crate) fn walk(&mut self, list: Hash, wanted: &Wanted, rules: &Arc<Rules>) -> Outcome<()> {
        let root = &self.scan.root;
        let handle = handle::top(root).map_err(Trouble::io(root))?;
        let look = handle::look_at(&handle).map_err(Trouble::io(root))?;
        let way = Way { path: Vec::new(), handle, look, rules: Arc::clone(rules), list };
        self.folder(way, wanted)?;
        Ok(())
    }

    fn folder(&mut self, mut way: Way, wanted: &Wanted) -> Outcome<u32> {
        let list = tree::folder(self.db, way.list)?;
        let has = |name: &[u8]| match name {
            b".git" => {
                let path = handle::join(&way.path, name);
                self.left_out.binary_search_by(|(other, _)| other.cmp(&path)).is_ok()
            }
            _ => self.hidden_rules || list.get(name).is_some(),
        };
        way.rules = way.rules.within(&self.scan.root, &way.path, &way.handle, has);
        let number = self.scan.add(Scanned {
            path: way.path.clone(),
            look: way.look,
            rules: [0; 32],
            ignoring: false,
            items: Vec::new(),
            same: None,
            row: false,
            handle: None,
        });
        let mut items = Vec::new();
        let mut kept = list.entries.into_iter().peekable();
        let carried = |Entry { name, what }| Item { name: Cow::Owned(name), state: State::Carried(what) };
        for (name, wanted) in &wanted.below {
            while let Some(entry) = kept.next_if(|entry| entry.name < *name) {
                items.push(carried(entry));
            }
            let before = kept.next_if(|entry| entry.name == *name).map(|entry| entry.what);
            if let Some(state) = self.item(&way, name, before, wanted)? {
                items.push(Item { name: Cow::Owned(name.clone()), state });
            }
        }
        items.extend(kept.map(carried));
        self.handles += 1;
        let handle = (self.handles <= HANDLES).then_some(way.handle);
        self.scan.fill(number, items, handle);
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
            let judgement = self.scan.judge(&way.rules, &way.path, name, true);
            if let Ok((look, handle)) = opened
                && self.scan.foreign(&look).is_none()
                && judgement != Judgement::Out
            {
                let rules = way.rules.for_child(judgement);
                let child = self.folder(Way { path, handle, look, rules, list }, wanted)?;
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
        let judgement = self.scan.judge(&way.rules, &way.path, name, is_folder);
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
