//! A restore touches the given paths alone, and never through a link (contract 4).

use std::fs;
use std::path::Path;

use session_core::LeftWhy;

use super::Subject;
use super::covers::rich;
use super::stage::{assert_all_done, key, owned, why};
use super::tree::{everything, sure};

/// What was not asked for stays: content, mode, place on the disk and time.
pub(super) fn only_the_given_paths_are_touched(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (rich(&at), key("a"));
        let first = at.take(&work, &key).await;
        for path in ["a.txt", "src/main.rs", "large", "run.sh", "private/of mine"] {
            work.append(path, b"changed");
        }
        work.write("new", "new");
        work.remove("empty");
        let second = at.take(&work, &key).await;
        let marks = work.marks();
        let paths = owned(&["src/main.rs", "large"]);
        let restored = at.restore(&key, &work, (&first, &second), &paths).await;
        assert_all_done(&restored, &paths);
        let mut wanted = second.tree.clone();
        for path in &paths {
            wanted.0.insert(path.clone(), first.tree.0[path].clone());
        }
        work.tree().assert_is(&wanted, "after two paths went back");
        let after = work.marks();
        let moved: Vec<_> = marks
            .iter()
            .filter(|(path, mark)| !paths.contains(path) && after.get(*path) != Some(mark))
            .map(|(path, _)| path)
            .collect();
        assert!(moved.is_empty(), "written anew: {moved:?}");
        // Nothing asked for is nothing done.
        assert_all_done(&at.restore(&key, &work, (&first, &second), &[]).await, &[]);
        assert_eq!(work.marks(), after);
    });
}

/// Two names of one file are two paths: putting one back changes nothing at the other.
pub(super) fn a_hard_link_keeps_its_content(subject: &Subject) {
    subject.every(async |at| {
        let (work, key, outside) = (at.work(), key("a"), at.ground("outside"));
        work.write("a", "one");
        sure(fs::hard_link(work.at("a"), work.at("b")), Path::new("b"));
        sure(fs::hard_link(work.at("a"), &outside), &outside);
        let first = at.take(&work, &key).await;
        assert_eq!(first.checkpoint.files, 2);
        work.write("a", "two");
        work.chmod("a", 0o600);
        let second = at.take(&work, &key).await;
        assert_eq!(second.tree.differing(&first.tree), owned(&["a", "b"]));
        let restored = at.restore(&key, &work, (&first, &second), &owned(&["a"])).await;
        assert_all_done(&restored, &owned(&["a"]));
        assert_eq!(work.bytes("a").as_deref(), Some(&b"one"[..]));
        assert_eq!((work.bytes("b").as_deref(), work.mode("b")), (Some(&b"two"[..]), 0o600));
        assert_eq!(fs::read(&outside).ok().as_deref(), Some(&b"two"[..]), "a name outside of the tree");
    });
}

/// Where a folder became a link, or a file a link, what the link leads to is not touched.
pub(super) fn nothing_goes_through_a_link(subject: &Subject) {
    subject.every(async |at| {
        let (work, key, outside) = (at.work(), key("a"), at.ground("outside"));
        work.write("d/f", "of the tree");
        work.write("d/sub/g", "of the tree");
        work.write("file", "of the tree");
        sure(fs::create_dir_all(outside.join("sub")), &outside);
        for path in ["f", "file", "new"] {
            sure(fs::write(outside.join(path), "not of the tree"), &outside);
        }
        let first = at.take(&work, &key).await;
        work.remove("d");
        work.remove("file");
        work.link("d", &outside);
        work.link("file", outside.join("file"));
        let untouched = everything(&outside);
        let second = at.take(&work, &key).await;
        // Of what lies below the link alone, nothing can be put back.
        let paths = owned(&["d/f", "d/sub", "d/sub/g"]);
        let restored = at.restore(&key, &work, (&first, &second), &paths).await;
        assert_eq!(restored.done, owned(&[]));
        for path in ["d/f", "d/sub", "d/sub/g"] {
            assert_eq!(why(&restored, path), Some(&LeftWhy::InTheWay), "{path}");
        }
        work.tree().assert_is(&second.tree, "after what was in the way");
        assert!(everything(&outside) == untouched, "something was written through the link");
        // With the link, all of it can.
        at.back(&key, &work, &first).await;
        assert!(everything(&outside) == untouched, "something was written where the link led to");
        // A folder that becomes a link after the state that the restore starts from.
        work.write("d/f", "changed");
        let third = at.take(&work, &key).await;
        work.rename("d", "../moved");
        work.link("d", &outside);
        let paths = owned(&["d/f"]);
        let restored = at.restore(&key, &work, (&first, &third), &paths).await;
        assert_eq!(why(&restored, "d/f"), Some(&LeftWhy::InTheWay));
        assert!(everything(&outside) == untouched, "something was written through the later link");
    });
}

/// A path that leads out of the tree is none of it, and neither is its top: nothing is touched there.
pub(super) fn nothing_outside_is_touched(subject: &Subject) {
    subject.every(async |at| {
        let (work, key, outside) = (at.work(), key("a"), at.ground("outside"));
        sure(fs::create_dir(&outside), &outside);
        sure(fs::write(outside.join("file"), "not of the tree"), &outside);
        work.write("d/f", "one");
        let first = at.take(&work, &key).await;
        work.write("d/f", "two");
        let second = at.take(&work, &key).await;
        let (to, from, before) = (first.id, second.id, everything(&outside));
        for path in ["../outside/file", "../outside", "d/../../outside/file", "..", "", "/"] {
            let paths = [outside.join("file"), path.into()];
            let (key, step, folder) = (&key, super::stage::step(), &*work.0);
            let order = session_core::RestoreOrder { key, step, folder, to, from, paths: &paths };
            // Whether it is an error or a path that is left is all one.
            drop(at.engine().restore(&order).await);
            assert!(everything(&outside) == before, "{path:?} led out of the tree");
            work.tree().assert_is(&second.tree, "after a path that leads out of the tree");
        }
        at.back(&key, &work, &first).await;
    });
}

/// Every path comes back as done or as left, once, and as it is told: also where it cannot be done by itself, where it is
/// named twice, or was in neither state.
pub(super) fn every_path_is_told(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        work.write("gone/deep/file", "g");
        work.write("a", "a");
        let first = at.take(&work, &key).await;
        work.remove("gone");
        work.write("a", "b");
        work.write("new/file", "n");
        let second = at.take(&work, &key).await;
        let paths = owned(&["gone/deep/file", "new", "a", "never/there"]);
        let restored = at.restore(&key, &work, (&first, &second), &paths).await;
        let mut told: Vec<_> =
            restored.done.iter().chain(restored.left.iter().map(|left| &left.path)).cloned().collect();
        told.sort();
        let mut asked = paths.clone();
        asked.sort();
        assert_eq!(told, asked);
        let now = work.tree();
        for path in &restored.done {
            assert_eq!(now.get(path), first.tree.get(path), "{path:?} is told as done");
        }
        for left in &restored.left {
            assert_eq!(now.get(&left.path), second.tree.get(&left.path), "{:?} is told as left", left.path);
            assert!(!left.why.to_string().is_empty());
        }
        assert!(restored.done.contains(&"a".into()) && restored.done.contains(&"never/there".into()));
        assert_eq!(why(&restored, "new"), Some(&LeftWhy::NotEmpty), "{restored:?}");
        assert_eq!(work.bytes("new/file").as_deref(), Some(&b"n"[..]));
    });
}
