//! Takes a checkpoint.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rusqlite::Connection;
use session_core::{Checkpoint, CheckpointId, Label, LeftOut, LeftOutWhy, PathText, TakeOrder, Timestamp};

use crate::checkpoints::FsCheckpoints;
use crate::content::{self, Piece};
use crate::database::{self, Kept};
use crate::grow::grow;
use crate::handle::{self, Moment};
use crate::node::What;
use crate::object;
use crate::place::Tree;
use crate::rules::Rules;
use crate::scan::{self, Scan};
use crate::seen::{self, Rows};
use crate::trouble::{Outcome, Trouble};

/// An order to take one, owned.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) id: CheckpointId,
    pub(crate) label: Label,
    pub(crate) at: Timestamp,
    pub(crate) folder: PathBuf,
    pub(crate) changed: Option<Vec<PathBuf>>,
}

impl Wish {
    pub(crate) fn new(order: &TakeOrder<'_>) -> Self {
        Self {
            id: order.id,
            label: order.label.clone(),
            at: order.at,
            folder: order.folder.to_owned(),
            changed: order.changed.map(<[PathBuf]>::to_vec),
        }
    }
}

/// Whether checkpoints are taken of a tree.
pub(crate) fn allow(_checkpoints: &FsCheckpoints, _tree: &Tree) -> Outcome<()> {
    Ok(())
}

/// So often a take begins again when what it counted on was dropped meanwhile.
const TRIES: usize = 5;

pub(crate) fn take(checkpoints: &FsCheckpoints, wish: &Wish) -> Outcome<Checkpoint> {
    let tree = checkpoints.tree(&wish.folder)?;
    let mut db = checkpoints.open(&tree)?;
    for _ in 0..TRIES {
        if let Some(checkpoint) = attempt(checkpoints, &tree, &mut db, wish)? {
            return Ok(checkpoint);
        }
    }
    Err(Trouble::Busy)
}

/// Takes a checkpoint, unless objects were dropped while it was taken.
fn attempt(
    checkpoints: &FsCheckpoints,
    tree: &Tree,
    db: &mut Connection,
    wish: &Wish,
) -> Outcome<Option<Checkpoint>> {
    let root = tree.root.as_os_str().as_bytes();
    let age = database::age(db)?;
    let mut rows = Rows::new();
    seen::load(db, root, b"", &mut rows)?;

    let began = Moment::now();
    let scan = Scan::new(tree.root.clone(), ours(checkpoints), checkpoints.limits, &rows)?;
    let top = scan.top.try_clone().map_err(Trouble::io(&tree.root))?;
    scan.order(Vec::new(), Rules::none());
    let mut harvest = scan.run()?;

    let mut writer = Writer { db, waiting: 0 };
    content::read_all(&mut harvest, &top, checkpoints.limits.file_bytes, |piece| writer.put(&piece))?;
    let Writer { db, .. } = writer;
    begin(db)?;
    let done = (|| {
        if database::age(db)? != age {
            return Ok(None);
        }
        let grown = grow(db, root, &harvest, began)?;
        let Some(What::Folder { mode, list, files, bytes }) = grown else {
            return Err(Trouble::NotHere("its top cannot be read".to_owned()));
        };
        let found = scan::paths(&harvest.found);
        for folder in rows.keys().filter(|folder| !found.contains(folder.as_slice())) {
            seen::remove(db, root, folder)?;
        }
        let path = PathText::new(&tree.root);
        let mut checkpoint = Checkpoint::new(wish.id, wish.label.clone(), wish.at, path);
        checkpoint.files = files;
        checkpoint.bytes = bytes;
        leave_out(&mut checkpoint, harvest.left_out);
        let kept = Kept { checkpoint, root: root.to_owned(), tree: list, mode };
        database::keep(db, &kept)?;
        Ok(Some(kept.checkpoint))
    })();
    end(db, done)
}

/// Begins a transaction that writes, unless there is one.
fn begin(db: &Connection) -> Outcome<()> {
    if db.is_autocommit() {
        db.execute_batch("BEGIN IMMEDIATE")?;
    }
    Ok(())
}

/// Ends it, well or badly.
fn end<T>(db: &Connection, done: Outcome<Option<T>>) -> Outcome<Option<T>> {
    match done {
        Ok(Some(done)) => {
            db.execute_batch("COMMIT")?;
            Ok(Some(done))
        }
        other => {
            db.execute_batch("ROLLBACK")?;
            other
        }
    }
}

/// Puts objects, in transactions that do not grow without bound.
struct Writer<'a> {
    db: &'a mut Connection,
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

/// Names what is left out, in the order of paths.
fn leave_out(checkpoint: &mut Checkpoint, mut left_out: Vec<(Vec<u8>, LeftOutWhy)>) {
    left_out.sort_unstable();
    checkpoint.left_out_count = left_out.len() as u64;
    let shown = left_out.iter().take(Checkpoint::LEFT_OUT_SHOWN);
    checkpoint.left_out =
        shown.map(|(path, why)| LeftOut { path: PathText::new(handle::path(path)), why: *why }).collect();
}
