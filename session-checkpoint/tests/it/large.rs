//! A tree of 100,000 files goes to and fro between its checkpoints.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use session_core::{Checkpoint, Checkpointer as _, RestoreOrder, RunId};

use crate::support::{World, block, key};

const FOLDERS: usize = 400;
const FILES: usize = 250;

/// What stands at each path: permissions, and what is in it.
type Picture = BTreeMap<PathBuf, (u32, Vec<u8>)>;

fn picture(folder: &Path) -> Picture {
    let mut all = Picture::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let what = if meta.is_dir() {
                folders.push(path.clone());
                b"a folder".to_vec()
            } else if meta.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            let mode = if meta.is_symlink() { 0 } else { meta.permissions().mode() };
            all.insert(path, (mode, what));
        }
    }
    all
}

/// Compares two of them; an `assert_eq!` would print both.
fn same(now: &Picture, then: &Picture, when: &str) {
    let differs = |(path, what): &(&PathBuf, &(u32, Vec<u8>))| then.get(*path) != Some(*what);
    assert_eq!(now.iter().find(differs), None, "{when}");
    assert_eq!(now.len(), then.len(), "{when}");
}

fn folder(n: usize) -> PathBuf {
    PathBuf::from(format!("d{}/e{n}", n % 20))
}

/// Every hundredth has a name that is no text.
fn name(n: usize) -> PathBuf {
    let name = format!("{n}").into_bytes();
    let name = if n % 100 == 7 { [&name[..], b"\xff"].concat() } else { name };
    OsStr::from_bytes(&name).into()
}

fn grow(root: &Path) {
    for n in 0..FOLDERS {
        fs::create_dir_all(root.join(folder(n))).unwrap();
        for k in 0..FILES {
            let text = if k % 10 == 0 { String::new() } else { format!("{n} {k}") };
            fs::write(root.join(folder(n)).join(name(k)), text).unwrap();
        }
    }
}

fn shell(root: &Path, script: &str) {
    assert!(Command::new("sh").arg("-ec").arg(script).current_dir(root).status().unwrap().success());
}

/// Edits by hand and by a shell, other ones in every round.
fn edit(root: &Path, round: usize) {
    for n in (round..FOLDERS).step_by(37) {
        fs::write(root.join(folder(n)).join(name(n % FILES)), vec![u8::try_from(round).unwrap(); n]).unwrap();
    }
    let [gone, moved, filled, made, closed] = [3, 5, 8, 11, 13].map(|n| folder(n + 20 * round));
    let show = |path: &Path| path.display().to_string();
    shell(
        root,
        &format!(
            "rm -r {gone}; mv {moved} moved{round}; rm {filled}/1; mkdir {filled}/1; echo in it > {filled}/1/x; \
             rm -r {made}; echo a file > {made}; chmod 600 {closed}/*; chmod 700 {closed}",
            gone = show(&gone),
            moved = show(&moved),
            filled = show(&filled),
            made = show(&made),
            closed = show(&closed),
        ),
    );
    symlink(format!("moved{round}"), root.join(format!("link{round}"))).unwrap();
}

fn rewind(world: &World, from: &Checkpoint, to: &Checkpoint) {
    let changes = block(world.checkpoints.diff(&key("a"), from.id, to.id)).unwrap();
    let paths: Vec<PathBuf> = changes.into_iter().map(|change| change.path).collect();
    let (key, step) = (key("a"), RunId::new(uuid::Uuid::new_v4()));
    let order =
        RestoreOrder { key: &key, step, folder: &world.tree, to: to.id, from: from.id, paths: &paths };
    let restored = block(world.checkpoints.restore(&order)).unwrap();
    assert_eq!((restored.done.len(), restored.left), (paths.len(), Vec::new()));
}

#[test]
fn a_hundred_thousand_files_go_to_and_fro() {
    let world = World::new();
    grow(&world.tree);
    let mut kept = vec![(world.take(), picture(&world.tree))];
    assert_eq!(kept[0].0.files, (FOLDERS * FILES) as u64);
    for round in 0..3 {
        edit(&world.tree, round);
        kept.push((world.take(), picture(&world.tree)));
    }
    let mut at = kept.len() - 1;
    // To the first, forth again, and one by one back.
    for to in [0, 2, 1, 3] {
        rewind(&world, &kept[at].0, &kept[to].0);
        same(&picture(&world.tree), &kept[to].1, &format!("from {at} to {to}"));
        at = to;
    }
}
