//! What a checkpoint costs, beside copying what changed and beside git: `cargo xtask bench checkpoint`.
//!
//! Each figure comes from pairs taken in turn on the same tree, which is changed anew before each. Read the ratios, not the
//! milliseconds.

#![expect(clippy::unwrap_used, reason = "a benchmark for people at a terminal")]

#[path = "../figures/mod.rs"]
mod figures;
mod forest;
mod rewind;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use figures::Pairs;
use forest::{Forest, git};
use rejoin::core::{
    Checkpoint, CheckpointId, Checkpointer as _, Label, Moment, RunId, SessionKey, TakeOrder, Timestamp,
};
use session_checkpoint::FsCheckpoints;

#[derive(Debug, Parser)]
struct Args {
    /// Pairs a figure.
    #[arg(long, default_value_t = 11)]
    pairs: u32,
    /// Files in the tree.
    #[arg(long, default_value_t = 50_000)]
    files: usize,
    /// Where to measure; a folder of its own is made there and removed. Without it, in the build folder.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Fail when a goal is missed.
    #[arg(long)]
    check: bool,
    /// Given by `cargo bench`; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Files that change from checkpoint to checkpoint.
const CHANGED: usize = 10;

/// A tree, and its checkpoints.
struct Site {
    forest: Forest,
    checkpoints: FsCheckpoints,
    runtime: tokio::runtime::Runtime,
    taken: u128,
}

impl Site {
    fn new(place: &Path, files: usize) -> Self {
        let forest = Forest::grow(place.join("tree"), files);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { forest, checkpoints: FsCheckpoints::new(place.join("base")), runtime, taken: 0 }
    }

    fn key(&self) -> SessionKey {
        SessionKey::new("bench", "claude").unwrap()
    }

    fn take(&mut self, changed: Option<&[PathBuf]>) -> Checkpoint {
        self.taken += 1;
        let label = Label::new(self.key(), RunId::new(uuid(self.taken)), Moment::BeforeRun);
        let order = TakeOrder {
            id: CheckpointId::new(uuid(self.taken)),
            label: &label,
            at: Timestamp::EPOCH,
            folder: &self.forest.root,
            changed,
        };
        self.runtime.block_on(self.checkpoints.take(&order)).unwrap()
    }
}

fn uuid(n: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(n)
}

fn timed<T>(act: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    std::hint::black_box(act());
    start.elapsed()
}

/// Both in turn, each time in the other order, on what was changed just before; the first pair warms up.
fn pairs(
    count: u32,
    site: &mut Site,
    mut bare: impl FnMut(&mut Site, &[PathBuf]),
    mut ours: impl FnMut(&mut Site, &[PathBuf]),
) -> Pairs {
    let mut pairs = Pairs::default();
    for n in 0..=count {
        let mut salt = u64::from(n) * 2 + u64::from(count) * 1000;
        let mut one = |site: &mut Site, act: &mut dyn FnMut(&mut Site, &[PathBuf])| {
            salt += 1;
            let changed = site.forest.touch(CHANGED, salt);
            timed(|| act(site, &changed))
        };
        let (a, b) = if n % 2 == 0 {
            let a = one(site, &mut bare);
            (a, one(site, &mut ours))
        } else {
            let b = one(site, &mut ours);
            (one(site, &mut bare), b)
        };
        if n > 0 {
            pairs.push(a, b);
        }
    }
    pairs
}

/// A take of known files in a tree, beside one in a smaller one; in both, they lie in the first so many files of the larger one.
fn beside(count: u32, small: &mut Site, large: &mut Site, among: usize) -> Pairs {
    let mut pairs = Pairs::default();
    for n in 0..=count {
        let take = |site: &mut Site| {
            let among = among.min(site.forest.files);
            let changed = site.forest.touch_among(among, CHANGED, 900_000 + u64::from(n));
            timed(|| site.take(Some(&changed)))
        };
        let (bare, ours) = if n % 2 == 0 {
            let bare = take(small);
            (bare, take(large))
        } else {
            let ours = take(large);
            (take(small), ours)
        };
        if n > 0 {
            pairs.push(bare, ours);
        }
    }
    pairs
}

/// Puts the tree into an object database of its own, as git does, with an index of its own.
fn write_tree(root: &Path, shadow: &Path) {
    let (index, objects) = (shadow.join("index"), shadow.join("objects"));
    fs::create_dir_all(&objects).unwrap();
    let own = [("GIT_INDEX_FILE", index.as_path()), ("GIT_OBJECT_DIRECTORY", objects.as_path())];
    git(root, &["add", "-A"], &own);
    git(root, &["write-tree"], &own);
}

fn main() -> ExitCode {
    let args = Args::parse();
    let place = args.dir.clone().unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let place = tempfile::tempdir_in(place).unwrap();
    let place = fs::canonicalize(place.path()).unwrap();
    let mut site = Site::new(&place.join("large"), args.files);
    let mut small = Site::new(&place.join("small"), args.files / 10);
    let (shadow, copies) = (place.join("shadow"), place.join("copies"));
    fs::create_dir_all(&copies).unwrap();
    let root = site.forest.root.clone();

    let mut first = Pairs::default();
    let theirs = timed(|| write_tree(&root, &shadow));
    first.push(theirs, timed(|| site.take(None)));
    small.take(None);
    // What was just written is read once more.
    site.take(None);
    small.take(None);

    let known = |site: &mut Site, changed: &[PathBuf]| drop(site.take(Some(changed)));
    let unknown = |site: &mut Site, _: &[PathBuf]| drop(site.take(None));
    let copying = pairs(
        args.pairs * 5,
        &mut site,
        |site, changed| {
            site.forest.copy(changed, &copies);
        },
        known,
    );
    let sizes = beside(args.pairs * 5, &mut small, &mut site, args.files / 10);
    let spread = beside(args.pairs * 5, &mut small, &mut site, args.files);
    let status = pairs(args.pairs, &mut site, |_, _| git(&root, &["status", "--porcelain"], &[]), unknown);
    let added = pairs(args.pairs, &mut site, |_, _| write_tree(&root, &shadow), unknown);
    let back = rewind::known(args.pairs * 5, &mut site, &copies);
    let reset = rewind::unknown(args.pairs, &mut site);

    Pairs::heading();
    let mut met = true;
    first.row("the first checkpoint; bare: git add -A and write-tree, objects and index of its own", None, 0);
    met &= copying.row("10 changed files, known; bare: copying them", Some(2.0), 2);
    met &= sizes.row("10 changed files, known; bare: the same ones in a tree of a tenth", Some(1.2), 2);
    spread.row("10 changed files all over the tree, known; bare: all over a tree of a tenth", None, 2);
    met &= status.row("nothing known; bare: git status --porcelain", Some(1.3), 1);
    met &= added.row("nothing known; bare: git add -A and write-tree, index of its own", Some(0.85), 1);
    met &= back.row("10 known files back; bare: copying them", Some(3.0), 2);
    met &= reset.row("10 unknown files found and back; bare: git read-tree -u --reset", Some(0.9), 1);
    fs::remove_dir_all(&place).unwrap();
    if met || !args.check { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
