//! A store that was damaged: a checkpoint is whole or damaged, and never another than it was (contract 3).

use std::fs::{self, Permissions};
use std::future::poll_fn;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use session_core::error::CheckpointErrorKind;
use session_core::{Checkpointer, Forget, Health, RestoreOrder, SessionKey};

use super::stage::{Stage, Taken, answer, key, step};
use super::tree::{Thing, Tree, assert_told, sure};
use super::work::Work;
use super::{Damage, Subject};

/// So many files of a store are damaged, at most.
const FILES: usize = 24;

/// Makes a folder what another one is.
fn copy(from: &Path, to: &Path) {
    sure(fs::create_dir_all(to), to);
    for entry in sure(fs::read_dir(to), to) {
        let path = sure(entry, to).path();
        let gone = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        sure(gone, &path);
    }
    for entry in sure(fs::read_dir(from), from) {
        let path = sure(entry, from).path();
        let into = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &into);
        } else if path.is_file() {
            sure(fs::copy(&path, &into), &path);
        }
        let mode = sure(fs::metadata(&path), &path).permissions();
        sure(fs::set_permissions(&into, mode), &into);
    }
}

/// The files of a store, below its top: not all of them, where they are many.
fn files(top: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in sure(fs::read_dir(&folder), &folder) {
            let path = sure(entry, &folder).path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                files.push(sure(path.strip_prefix(top), top).to_owned());
            }
        }
    }
    files.sort();
    let every = files.len().div_ceil(FILES).max(1);
    files.into_iter().step_by(every).collect()
}

/// Makes a tree what it was.
fn set(work: &Work, tree: &Tree) {
    for path in work.tree().0.keys().filter(|path| path.components().count() == 1) {
        work.remove(path);
    }
    for (path, thing) in &tree.0 {
        match thing {
            Thing::File { bytes, mode } => {
                work.write(path, bytes);
                work.chmod(path, *mode);
            }
            Thing::Link { target } => work.link(path, target),
            Thing::Folder { .. } => work.folder(path),
        }
    }
}

/// Opens the store once more. A store may refuse to be opened when it is damaged.
async fn opened(at: &Stage<'_>) -> Option<Arc<dyn Checkpointer>> {
    let mut opening = pin!(at.another());
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| opening.as_mut().poll(context))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// Whatever is answered of the two checkpoints is right, and the tree holds nothing that stands in neither.
async fn nothing_is_wrong(
    engine: &dyn Checkpointer,
    key: &SessionKey,
    work: &Work,
    (one, two): (&Taken, &Taken),
) {
    if let Ok(listed) = engine.list(key).await {
        for listed in listed.iter().filter(|listed| listed.health == Health::Whole) {
            let known = [one, two].into_iter().find(|taken| taken.checkpoint == *listed);
            assert!(known.is_some(), "listed as whole: {listed:?}");
        }
    }
    for taken in [one, two] {
        for (path, thing) in &taken.tree.0 {
            let wanted = match thing {
                Thing::File { bytes, .. } => Some(bytes.clone()),
                Thing::Link { target } => Some(target.as_os_str().as_encoded_bytes().to_vec()),
                Thing::Folder { .. } => None,
            };
            if let Ok(read) = engine.read(key, taken.id, path, 1 << 30).await {
                assert_eq!(read, wanted, "{path:?} was read");
            }
        }
    }
    if let Ok(changes) = engine.diff(key, one.id, two.id).await {
        assert_told(&changes, &one.tree, &two.tree);
    }
    let paths = two.tree.differing(&one.tree);
    let (step, folder) = (step(), &*work.0);
    let order = RestoreOrder { key, step, folder, to: one.id, from: two.id, paths: &paths };
    let restored = engine.restore(&order).await;
    let now = work.tree();
    for path in now.differing(&two.tree) {
        assert_eq!(now.get(&path), one.tree.get(&path), "{path:?} is neither as before nor as after");
    }
    match restored {
        Ok(restored) => {
            for path in &restored.done {
                assert_eq!(now.get(path), one.tree.get(path), "{path:?} is told as done");
            }
            assert_eq!(restored.done.len() + restored.left.len(), paths.len(), "{restored:?}");
        }
        Err(error) if error.kind() == CheckpointErrorKind::CutOff => {}
        Err(_) => now.assert_is(&two.tree, "after a restore that was refused"),
    }
}

/// Each file of the store, cut, emptied, altered: no content comes out that never was.
pub(super) fn damage_is_never_wrong_content(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        work.write("a", "one and one and one");
        work.write("gone", "content that is there once");
        work.write("folder/same", "the same in both");
        work.link("link", "a");
        let one = at.take(&work, &key).await;
        work.write("a", "two and two and two");
        work.remove("gone");
        work.remove("link");
        work.write("new", "new");
        let two = at.take(&work, &key).await;
        let (store, whole) = (at.scratch().dir().to_owned(), at.ground("whole"));
        copy(&store, &whole);
        let damages: [fn(Vec<u8>) -> Vec<u8>; 4] = [
            |bytes| bytes[..bytes.len() / 2].to_vec(),
            |_| Vec::new(),
            |mut bytes| {
                let middle = bytes.len() / 2;
                bytes.iter_mut().skip(middle).take(1).for_each(|byte| *byte ^= 1);
                bytes
            },
            |mut bytes| {
                bytes.iter_mut().rev().take(2).for_each(|byte| *byte = b'0');
                bytes
            },
        ];
        for file in files(&store) {
            for damage in damages {
                let path = store.join(&file);
                let bytes = sure(fs::read(&path), &path);
                sure(fs::set_permissions(&path, Permissions::from_mode(0o600)), &path);
                sure(fs::write(&path, damage(bytes)), &path);
                if let Some(engine) = opened(&at).await {
                    nothing_is_wrong(&*engine, &key, &work, (&one, &two)).await;
                }
                copy(&whole, &store);
                set(&work, &two.tree);
            }
        }
        // And that it was the damage.
        let engine = at.another().await;
        let paths = two.tree.differing(&one.tree);
        let (key, step, folder) = (&key, step(), &*work.0);
        let order = RestoreOrder { key, step, folder, to: one.id, from: two.id, paths: &paths };
        super::stage::assert_all_done(&answer(engine.restore(&order).await), &paths);
    });
}

/// The others are listed and restored, nothing is written over, and what is damaged goes when somebody asks (BR-141).
pub(super) fn a_damaged_checkpoint_is_listed_as_such(subject: &Subject) {
    for damage in [Damage::Cut, Damage::Emptied, Damage::Content, Damage::Leftover] {
        subject.every(async |at| {
            let (work, key) = (at.work(), key("a"));
            work.write("a", "one");
            let one = at.take(&work, &key).await;
            work.write("a", "two");
            work.write("b", "of two alone");
            let two = at.take(&work, &key).await;
            if at.damage(two.id, damage).await.is_err() {
                // Nothing is called damaged that is not.
                assert_eq!(at.list(&key).await, [one.checkpoint.clone(), two.checkpoint.clone()]);
                at.back(&key, &work, &one).await;
                return;
            }
            let at = at.reopened().await;
            let listed = at.list(&key).await;
            let ids: Vec<_> = listed.iter().map(|listed| listed.id).collect();
            assert_eq!(ids, [one.id, two.id], "{damage:?}");
            assert_eq!(listed[0], one.checkpoint, "{damage:?}");
            if matches!(damage, Damage::Cut | Damage::Emptied) {
                assert!(matches!(&listed[1].health, Health::Damaged(why) if !why.is_empty()), "{listed:?}");
                assert_eq!(listed[1].label.key, key);
            }
            if damage == Damage::Leftover {
                assert_eq!(listed[1], two.checkpoint, "a leftover is no checkpoint, and damages none");
            } else {
                let read = at.engine().read(&key, two.id, Path::new("b"), 100).await;
                assert_eq!(super::stage::kind(read), CheckpointErrorKind::Corrupt, "{damage:?}");
            }
            work.write("a", "three");
            work.remove("b");
            let three = at.take(&work, &key).await;
            assert_eq!(at.ids(&key).await, [one.id, two.id, three.id], "{damage:?}");
            if matches!(damage, Damage::Cut | Damage::Emptied) {
                let (step, folder, paths) = (step(), &*work.0, super::stage::owned(&["a"]));
                let order =
                    RestoreOrder { key: &key, step, folder, to: two.id, from: three.id, paths: &paths };
                assert_eq!(
                    super::stage::kind(at.engine().restore(&order).await),
                    CheckpointErrorKind::Corrupt
                );
                let diff = at.engine().diff(&key, one.id, two.id).await;
                assert_eq!(super::stage::kind(diff), CheckpointErrorKind::Corrupt);
            }
            if damage == Damage::Content {
                let paths = super::stage::owned(&["b"]);
                let restored = at.restore(&key, &work, (&two, &three), &paths).await;
                assert_eq!(super::stage::why(&restored, "b"), Some(&session_core::LeftWhy::Damaged));
                assert!(!work.there("b"));
            }
            at.back(&key, &work, &one).await;
            at.back(&key, &work, &three).await;
            let gone = answer(at.engine().forget(&key, Forget::These(&[two.id])).await);
            assert_eq!(gone.checkpoints, 1, "{damage:?}");
            assert!(!at.ids(&key).await.contains(&two.id), "{damage:?}");
            at.back(&key, &work, &one).await;
        });
    }
}
