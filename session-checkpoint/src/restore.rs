//! Puts paths of a tree back.

mod durable;
mod folders;
mod hands;
mod journal;
mod leaves;
mod lock;
mod look;
mod plan;
mod task;
#[cfg(test)]
mod tests;
mod walk;
mod work;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use rusqlite::{Connection, TransactionBehavior};
use session_core::{CheckpointId, LeftPath, LeftWhy, Recovered, RestoreOrder, Restored, RunId, SessionKey};

use self::hands::{Hands, Real};
use self::journal::{Begun, Side};
use self::lock::Lock;
use self::walk::Walker;
use self::work::Work;
use crate::checkpoints::FsCheckpoints;
use crate::covered::LeftOuts;
use crate::database;
use crate::object::Hash;
use crate::place::Tree;
use crate::trouble::{Outcome, Trouble};

/// An order to put some back, owned.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) key: SessionKey,
    pub(crate) step: RunId,
    pub(crate) folder: PathBuf,
    pub(crate) to: CheckpointId,
    pub(crate) from: CheckpointId,
    pub(crate) paths: Vec<PathBuf>,
    /// Who waits for it; once that is dropped, it is not begun any more.
    pub(crate) waiting: Weak<()>,
}

impl Wish {
    pub(crate) fn new(order: &RestoreOrder<'_>, waiting: &Arc<()>) -> Self {
        Self {
            key: order.key.clone(),
            step: order.step,
            folder: order.folder.to_owned(),
            to: order.to,
            from: order.from,
            paths: order.paths.to_vec(),
            waiting: Arc::downgrade(waiting),
        }
    }
}

/// Puts paths back.
///
/// A file is replaced as a whole: another name of it, a hard link, keeps the content that it had. So is one with several names
/// of which only the permissions differ.
pub(crate) fn restore(checkpoints: &FsCheckpoints, wish: &Wish) -> Outcome<Restored> {
    restore_by(&Real, checkpoints, wish)
}

fn restore_by(hands: &dyn Hands, checkpoints: &FsCheckpoints, wish: &Wish) -> Outcome<Restored> {
    let tree = checkpoints.tree(&wish.folder)?;
    let mut db = checkpoints.open(&tree)?;
    let lock = Lock::of(&checkpoints.path(&tree, "lock"), &tree.root)?;
    if wish.waiting.strong_count() == 0 {
        return Err(Trouble::Busy);
    }
    // What another one left cannot be finished: nothing of this one was begun.
    finish_all(hands, &db, &tree.root).map_err(|trouble| match trouble {
        Trouble::CutOff(cause) => *cause,
        other => other,
    })?;
    let mut walker = Walker::new(hands, &tree.root).map_err(Trouble::io(&tree.root))?;

    // What is dropped in the meantime stays until this is ended.
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let kept = |id| database::kept(&transaction, &wish.key, id)?.ok_or(Trouble::NotFound);
    let (to, from) = (kept(wish.to)?, kept(wish.from)?);
    if [&to, &from].iter().any(|kept| kept.root != tree.root.as_os_str().as_bytes()) {
        return Err(Trouble::AnotherTree);
    }
    let left_out = LeftOuts::of(&to);
    let paths: BTreeSet<&PathBuf> = wish.paths.iter().collect();
    let (hidden, paths): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().cloned().partition(|path| left_out.hide(path));
    let mut begun = Begun::new(&wish.key, wish.step, Side::of(&to), Side::of(&from), &paths);
    let mut tasks = plan::tasks(&transaction, &begun)?;
    plan::look_for_open(hands, &mut walker, &mut tasks);
    begun.set_open(tasks.iter().filter(|task| task.was_open).map(|task| task.path.as_path()));
    let row = journal::begin(&transaction, &tree.root, &begun)?;
    transaction.commit()?;

    let cut_off = |trouble| Trouble::CutOff(Box::new(trouble));
    let work = work(hands, &db, walker, row, &begun, false);
    let mut restored = work.run(tasks).map_err(cut_off)?;
    journal::end(&db, row).map_err(cut_off)?;
    restored.left.extend(hidden.into_iter().map(|path| LeftPath { path, why: LeftWhy::NotCovered }));
    restored.left.sort_by(|one, other| one.path.cmp(&other.path));
    drop(lock);
    Ok(restored)
}

/// Finishes what was cut off in the tree around a folder. What is still under way stays as it is.
pub(crate) fn recover(checkpoints: &FsCheckpoints, folder: &Path) -> Outcome<Vec<Recovered>> {
    match recover_tree(checkpoints, &checkpoints.tree(folder)?) {
        Err(Trouble::Busy) => Ok(Vec::new()),
        other => other,
    }
}

/// The same of a tree; an error where something is still under way.
pub(crate) fn recover_tree(checkpoints: &FsCheckpoints, tree: &Tree) -> Outcome<Vec<Recovered>> {
    recover_by(&Real, checkpoints, tree)
}

fn recover_by(hands: &dyn Hands, checkpoints: &FsCheckpoints, tree: &Tree) -> Outcome<Vec<Recovered>> {
    // Where there is no database, nothing was begun.
    if !checkpoints.path(tree, "db").exists() {
        return Ok(Vec::new());
    }
    let db = checkpoints.open(tree)?;
    let lock = checkpoints.path(tree, "lock");
    // One that has the lock is about to begin.
    if journal::all(&db, &tree.root)?.is_empty() && !Lock::is_held(&lock, &tree.root)? {
        return Ok(Vec::new());
    }
    let lock = Lock::of(&lock, &tree.root)?;
    let recovered = finish_all(hands, &db, &tree.root)?;
    drop(lock);
    Ok(recovered)
}

/// The trees whose objects a restore that was not ended needs, whatever is dropped.
pub(crate) fn trees_in_use(db: &Connection) -> Outcome<Vec<Hash>> {
    journal::trees(db)
}

/// Finishes all that was begun in a tree. To be called under its lock.
fn finish_all(hands: &dyn Hands, db: &Connection, root: &Path) -> Outcome<Vec<Recovered>> {
    let mut all = Vec::new();
    for (row, begun) in journal::all(db, root)? {
        let cut_off = |trouble| Trouble::CutOff(Box::new(trouble));
        let walker = Walker::new(hands, root).map_err(Trouble::io(root)).map_err(cut_off)?;
        let tasks = plan::tasks(db, &begun).map_err(cut_off)?;
        let restored = work(hands, db, walker, row, &begun, true).run(tasks).map_err(cut_off)?;
        journal::end(db, row).map_err(cut_off)?;
        all.push(Recovered::new(begun.key, begun.step, begun.to.id, begun.from.id, restored));
    }
    Ok(all)
}

fn work<'a>(
    hands: &'a dyn Hands,
    db: &'a Connection,
    walker: Walker<'a>,
    row: i64,
    begun: &Begun,
    goes_on: bool,
) -> Work<'a> {
    Work {
        hands,
        db,
        walker,
        // Nobody else can have made such a name by chance.
        prefix: format!(".rejoin-restore-{}-{row}-", begun.step),
        goes_on,
        touched: BTreeSet::new(),
        litter: Vec::new(),
        replaced: Vec::new(),
        letting_go: None,
        unsettled: None,
        buffer: Vec::new(),
    }
}
