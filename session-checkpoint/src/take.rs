//! Takes a checkpoint.

use std::cell::OnceCell;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use rusqlite::Connection;
use session_core::{Checkpoint, CheckpointId, Label, PathText, TakeOrder, Timestamp};

use crate::checkpoints::FsCheckpoints;
use crate::content::{self, Piece};
use crate::database::{self, Kept, begin, end};
use crate::found;
use crate::grow::grow;
use crate::handle::Moment;
use crate::known::{Known, Wanted};
use crate::node::What;
use crate::object;
use crate::place::Tree;
use crate::rules::Rules;
use crate::scan::Scan;
use crate::seen::{self, Rows};
use crate::tracked::Tracked;
use crate::trouble::{Outcome, Trouble};
use crate::{forget, health, hidden, limits, reserve, restore, tree};

/// An order to take one, owned.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) id: CheckpointId,
    pub(crate) label: Label,
    pub(crate) at: Timestamp,
    pub(crate) folder: PathBuf,
    pub(crate) changed: Option<Vec<PathBuf>>,
    /// Who waits for it; once that is dropped, nothing is kept.
    pub(crate) waiting: Weak<()>,
}

impl Wish {
    pub(crate) fn new(order: &TakeOrder<'_>, waiting: &Arc<()>) -> Self {
        Self {
            id: order.id,
            label: order.label.clone(),
            at: order.at,
            folder: order.folder.to_owned(),
            changed: order.changed.map(<[PathBuf]>::to_vec),
            waiting: Arc::downgrade(waiting),
        }
    }
}

/// So often a take begins again when what it counted on was dropped meanwhile.
const TRIES: usize = 5;

pub(crate) fn take(checkpoints: &FsCheckpoints, wish: &Wish) -> Outcome<Checkpoint> {
    let tree = checkpoints.tree(&wish.folder)?;
    match take_of(checkpoints, &tree, wish, &|| ()) {
        Err(trouble) if trouble.is_corrupt() && checkpoints.set_aside(&tree)? => {
            tracing::warn!(%trouble, root = %tree.root.display(), "a damaged database of checkpoints was set aside");
            take_of(checkpoints, &tree, wish, &|| ())
        }
        done => done,
    }
}

/// `between` is done after looking and before keeping.
fn take_of(checkpoints: &FsCheckpoints, tree: &Tree, wish: &Wish, between: &dyn Fn()) -> Outcome<Checkpoint> {
    restore::recover_tree(checkpoints, tree)?;
    let db = checkpoints.open(tree)?;
    let rules = Rules::of(checkpoints, tree);
    let mut take = Take { checkpoints, tree, db: &db, wish, rules, wanted: None, covered: OnceCell::new() };
    take.wanted = wish.changed.as_deref().and_then(|changed| Wanted::new(&tree.root, changed));
    let mut healed = false;
    for number in 0..TRIES {
        if number > TRIES / 2 {
            // Where others never rest, nobody drops anything meanwhile.
            begin(&db)?;
        }
        let done = take.attempt(between);
        if !db.is_autocommit() {
            db.execute_batch("ROLLBACK")?;
        }
        match done {
            Ok(Some(checkpoint)) => {
                reserve::keep(&checkpoints.folder);
                // It is kept, whatever becomes of the dropped ones.
                if let Err(trouble) = forget::tidy(&db) {
                    tracing::warn!(%trouble, "what dropped checkpoints alone needed stays");
                }
                return Ok(checkpoint);
            }
            Ok(None) => {}
            // What it would have built on is not what it was: then nothing is known, and all is read.
            Err(Trouble::Damaged(_)) if !healed => {
                take.heal()?;
                take.wanted = None;
                healed = true;
            }
            Err(trouble) => return Err(trouble),
        }
    }
    Err(Trouble::Busy)
}

/// A checkpoint that is being taken.
struct Take<'t> {
    checkpoints: &'t FsCheckpoints,
    tree: &'t Tree,
    db: &'t Connection,
    wish: &'t Wish,
    rules: Arc<Rules>,
    /// The paths that may have changed. `None`: any.
    wanted: Option<Wanted>,
    /// What is covered whatever a rule says, once that is known.
    covered: OnceCell<Arc<Tracked>>,
}

impl Take<'_> {
    fn root(&self) -> &[u8] {
        self.tree.root.as_os_str().as_bytes()
    }

    /// Takes it, unless objects were dropped meanwhile.
    fn attempt(&self, between: &dyn Fn()) -> Outcome<Option<Checkpoint>> {
        let (db, root, limits) = (self.db, self.root(), self.checkpoints.limits);
        let began = Moment::now();
        let age = database::age(db)?;
        let base = self.base()?;
        let mut scan = Scan::new(self.tree.root.clone(), ours(self.checkpoints), limits)?;
        scan.covered = self.covered.get().cloned();
        let looked = match &base {
            None => {
                scan.order(Vec::new(), Arc::clone(&self.rules));
                Vec::new()
            }
            Some((base, wanted)) => {
                let mut known = Known::new(db, &scan, &base.left_out);
                known.walk(base.tree, wanted, &self.rules)?;
                known.looked
            }
        };
        let mut rows = Rows::new();
        for folder in scan.ordered() {
            seen::load(db, root, &folder, &mut rows)?;
        }
        let top = scan.top.try_clone().map_err(Trouble::io(&self.tree.root))?;
        let mut harvest = scan.run(&rows)?;
        if self.covered.get().is_none()
            && let Some(covered) = hidden::covered(db, &self.wish.label, root, &harvest.left_out)?
        {
            drop(self.covered.set(Arc::new(covered)));
            return Ok(None);
        }
        between();
        // Who dropped it may have gone on to change the tree while it was looked at.
        if self.wish.waiting.strong_count() == 0 {
            return Err(Trouble::Busy);
        }
        let (bytes, new) = harvest.bytes();
        limits::measure(&limits, 0, bytes)?;
        limits::room(&limits, &self.checkpoints.folder, new)?;
        let mut writer = Writer { db, waiting: 0 };
        let read = content::read_all(&mut harvest, &top, limits.file_bytes, |piece| writer.put(&piece));
        end(
            db,
            read.and_then(|()| {
                begin(db)?;
                if database::age(db)? != age {
                    return Ok(None);
                }
                let grown = grow(db, root, &harvest, began)?;
                let Some(What::Folder { mode, list, files, bytes }) = grown else {
                    return Err(Trouble::NotHere("its top cannot be read".to_owned()));
                };
                limits::measure(&limits, files, bytes)?;
                // What was seen may speak of objects that are not what they were.
                tree::folder(db, list)?;
                if base.is_none() {
                    let found = found::paths(&harvest.found);
                    for folder in rows.keys().filter(|folder| !found.contains(folder.as_slice())) {
                        seen::remove(db, root, folder)?;
                    }
                }
                let mut left_out = harvest.left_out;
                if let Some((base, _)) = base {
                    let stays = |path: &[u8]| !looked.iter().any(|looked| is_at_or_below(path, looked));
                    left_out.extend(base.left_out.into_iter().filter(|(path, _)| stays(path)));
                }
                left_out.sort_unstable();
                let wish = self.wish;
                let path = PathText::new(&self.tree.root);
                let mut checkpoint = Checkpoint::new(wish.id, wish.label.clone(), wish.at, path);
                (checkpoint.files, checkpoint.bytes) = (files, bytes);
                database::show_left_out(&mut checkpoint, &left_out);
                let (root, rules) = (root.to_owned(), self.rules.digest());
                let kept = Kept { checkpoint, root, tree: list, mode, left_out, rules };
                database::keep(db, &kept)?;
                // What it is compared with stays, and all that a rewind may go back to that is not done yet.
                if let (Some(count), None) = (self.checkpoints.keep_latest, wish.label.back_to) {
                    forget::keep_latest(db, &wish.label.key, &kept.root, count.get())?;
                }
                Ok(Some(kept.checkpoint))
            }),
        )
    }

    /// Drops what is damaged of the latest checkpoint, and what was seen.
    fn heal(&self) -> Outcome<()> {
        let latest = match database::latest(self.db, self.root()) {
            Err(Trouble::Damaged(_)) => None,
            latest => latest?,
        };
        if let Some(kept) = latest {
            health::check(self.db, &kept)?;
        }
        health::heal(self.db, &[])
    }

    /// What a take of known paths builds on. `None`: the whole tree has to be looked at.
    fn base(&self) -> Outcome<Option<(Kept, &Wanted)>> {
        let Some(wanted) = &self.wanted else { return Ok(None) };
        let base = database::latest(self.db, self.root())?;
        Ok(base.filter(|base| base.rules == self.rules.digest()).map(|base| (base, wanted)))
    }
}

/// Whether a path is this one, or lies below it.
fn is_at_or_below(path: &[u8], this: &[u8]) -> bool {
    path.strip_prefix(this).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Puts objects, in transactions that do not grow without bound.
struct Writer<'a> {
    db: &'a Connection,
    waiting: usize,
}

/// So many bytes go into one transaction.
const BATCH: usize = 64 << 20;

impl Writer<'_> {
    fn put(&mut self, (kind, hash, data): &Piece) -> Outcome<()> {
        begin(self.db)?;
        if object::put(self.db, *kind, *hash, data)? {
            self.waiting += data.len();
        }
        if self.waiting > BATCH {
            self.db.execute_batch("COMMIT")?;
            self.waiting = 0;
        }
        Ok(())
    }
}

/// The place of our store, where it is.
fn ours(checkpoints: &FsCheckpoints) -> Option<(u64, u64)> {
    let place = checkpoints.folder.parent()?.metadata().ok()?;
    Some((place.dev(), place.ino()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::sync::{Arc, Weak};

    use session_core::{CheckpointId, Health, Label, Moment, RunId, SessionKey, Timestamp};

    use super::{FsCheckpoints, Tree, Wish, database, take, take_of};
    use crate::seen::{Seen, SeenKind};
    use crate::{forget, health};

    /// One who waits to the end.
    fn somebody() -> Weak<()> {
        Arc::downgrade(Box::leak(Box::new(Arc::new(()))))
    }

    #[test]
    fn a_file_too_young_to_tell_is_read_again_by_the_next_take() {
        let place = tempfile::tempdir().unwrap();
        let (root, base) = (place.path().join("tree"), place.path().join("base"));
        fs::create_dir_all(&root).unwrap();
        let file = fs::File::create(root.join("x")).unwrap();
        file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(3600)).unwrap();
        let checkpoints = FsCheckpoints::new(&base);
        let key = SessionKey::new("a", "claude").unwrap();
        let step = RunId::new(uuid::Uuid::nil());
        let label = Label::new(key, step, Moment::Asked);
        let id = CheckpointId::new(uuid::Uuid::new_v4());
        take(
            &checkpoints,
            &Wish {
                id,
                label,
                at: Timestamp::EPOCH,
                folder: root.clone(),
                changed: None,
                waiting: somebody(),
            },
        )
        .unwrap();
        let tree = Tree::around(&root).unwrap();
        let db = checkpoints.open(&tree).unwrap();
        let row: Vec<u8> = db.query_row("SELECT data FROM seen", [], |row| row.get(0)).unwrap();
        let seen = Seen::decoded(&row).unwrap();
        assert!(matches!(seen.get(b"x").unwrap().kind, SeenKind::Kept(None, _)));
    }

    #[test]
    fn what_goes_while_a_take_counts_on_it_is_put_again() {
        let place = tempfile::tempdir().unwrap();
        let (root, base) = (place.path().join("tree"), place.path().join("base"));
        fs::create_dir_all(root.join("d")).unwrap();
        fs::write(root.join("d/x"), "content").unwrap();
        let checkpoints = FsCheckpoints::new(&base);
        let wish = |mailbox: &str, changed: Option<Vec<_>>| {
            let key = SessionKey::new(mailbox, "claude").unwrap();
            let step = RunId::new(uuid::Uuid::nil());
            let label = Label::new(key, step, Moment::Asked);
            let id = CheckpointId::new(uuid::Uuid::new_v4());
            Wish { id, label, at: Timestamp::EPOCH, folder: root.clone(), changed, waiting: somebody() }
        };
        for changed in [None, Some(vec!["new".into()])] {
            let first = wish("a", None);
            take(&checkpoints, &first).unwrap();
            let times = Cell::new(0);
            // All that the take counts on is dropped when it has looked at the tree.
            let drop_all = || {
                times.set(times.get() + 1);
                let wish = forget::Wish { key: first.label.key.clone(), these: None };
                forget::forget(&checkpoints, &wish).unwrap();
            };
            fs::write(root.join("new"), format!("{changed:?}")).unwrap();
            let second = wish("b", changed);
            let tree = Tree::around(&root).unwrap();
            take_of(&checkpoints, &tree, &second, &drop_all).unwrap();
            assert_eq!(times.get(), 2, "it began again");
            let db = checkpoints.open(&tree).unwrap();
            let kept = database::kept(&db, &second.label.key, second.id).unwrap().unwrap();
            assert_eq!(health::check(&db, &kept).unwrap(), Health::Whole);
            forget::forget(&checkpoints, &forget::Wish { key: second.label.key, these: None }).unwrap();
        }
    }
}
