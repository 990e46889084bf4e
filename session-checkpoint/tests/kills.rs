//! A process that is killed at a random moment while it puts a tree back: this program, run once more.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as the tests do")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use session_checkpoint::{CheckpointLimits, FsCheckpoints};
use session_core::{
    Checkpoint, CheckpointId, Checkpointer as _, Label, Moment, RestoreOrder, RunId, SessionKey, TakeOrder,
    Timestamp,
};

const ORDER: &str = "REJOIN_KILLED_RESTORE";
const KILLS: u64 = 15;

fn key() -> SessionKey {
    SessionKey::new("issue-42", "claude").unwrap()
}

fn checkpoints(base: &Path) -> FsCheckpoints {
    let mut limits = CheckpointLimits::default();
    limits.free_bytes = 0;
    FsCheckpoints::new(base).limits(limits)
}

fn done<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn step(number: u64) -> RunId {
    RunId::new(uuid::Uuid::from_u128(number.into()))
}

fn take(base: &Path, folder: &Path, number: u64) -> Checkpoint {
    let label = Label::new(key(), step(number), Moment::Asked);
    let id = CheckpointId::new(uuid::Uuid::from_u128(number.into()));
    let order = TakeOrder { id, label: &label, at: Timestamp::EPOCH, folder, changed: None };
    done(checkpoints(base).take(&order)).unwrap()
}

/// Puts everything back that differs.
fn restore(base: &Path, folder: &Path, from: CheckpointId, to: CheckpointId) {
    done(async {
        let checkpoints = checkpoints(base);
        let changes = checkpoints.diff(&key(), from, to).await.unwrap();
        let paths: Vec<PathBuf> = changes.into_iter().map(|change| change.path).collect();
        let order = RestoreOrder { key: &key(), step: step(1), folder, to, from, paths: &paths };
        let mut out = std::io::stdout();
        writeln!(out, "begins").unwrap();
        checkpoints.restore(&order).await.unwrap();
    });
}

fn read(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let (mut tree, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
            tree.insert(path.clone(), (meta.permissions().mode(), content));
            if meta.is_dir() {
                folders.push(path);
            }
        }
    }
    tree
}

fn grow(root: &Path, turn: u8) {
    for n in 0..300 {
        let folder = root.join(format!("d{}", n % 17)).join(format!("{}{turn}", n % 5));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(n.to_string()), vec![turn; n * 7]).unwrap();
        fs::write(root.join(format!("d{}", n % 17)).join(format!("f{n}")), vec![turn; n]).unwrap();
        let path = root.join(format!("x{n}"));
        if turn == 1 {
            fs::write(path, "a file").unwrap();
        } else {
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o500)).unwrap();
        }
    }
}

#[test]
fn whenever_the_process_is_killed_the_restore_is_finished() {
    if let Ok(order) = std::env::var(ORDER) {
        let mut words = order.split('\n');
        let mut word = || words.next().unwrap();
        let (base, folder) = (PathBuf::from(word()), PathBuf::from(word()));
        let mut id = || CheckpointId::parse(word()).unwrap();
        return restore(&base, &folder, id(), id());
    }
    let home = tempfile::tempdir().unwrap();
    let (base, root) = (home.path().join("base"), home.path().canonicalize().unwrap().join("tree"));
    fs::create_dir(&root).unwrap();
    grow(&root, 1);
    let mut there = (take(&base, &root, 1).id, read(&root));
    grow(&root, 2);
    let mut here = (take(&base, &root, 2).id, read(&root));
    let (mut chance, mut cut_off) = (1_u64, 0);
    for _ in 0..KILLS {
        let order = format!("{}\n{}\n{}\n{}", base.display(), root.display(), here.0, there.0);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["whenever_the_process_is_killed_the_restore_is_finished", "--exact", "--nocapture"])
            .env(ORDER, order)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("begins")));
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let moment = Instant::now() + Duration::from_micros((chance >> 33) % 60_000);
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let recovered = done(checkpoints(&base).recover(&root)).unwrap();
        cut_off += recovered.len();
        for recovered in recovered {
            assert_eq!(recovered.restored.left, []);
        }
        let now = read(&root);
        if now == there.1 {
            std::mem::swap(&mut here, &mut there);
        }
        assert!(now == here.1, "the tree is neither what it was nor what it was to be");
    }
    assert!(cut_off > 0, "no kill was in the midst of it");
}
