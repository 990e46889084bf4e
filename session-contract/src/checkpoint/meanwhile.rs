//! A path that is not as in `from` was changed by somebody else, and stays as it is (contract 4).

use std::path::PathBuf;

use session_core::LeftWhy;

use super::Subject;
use super::stage::{assert_all_done, key, owned, why};

/// By content, by mode, by going, by coming, by another kind: it is left and told, and the others go back.
pub(super) fn what_changed_meanwhile_is_left(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        let changed = ["content", "mode", "gone", "kind", "target", "same size"];
        for path in changed.iter().chain(&["other"]) {
            work.write(path, format!("{path} before"));
        }
        let first = at.take(&work, &key).await;
        for path in changed.iter().chain(&["other"]) {
            work.write(path, format!("{path} between"));
        }
        work.remove("target");
        work.link("target", "content");
        work.remove("gone");
        work.write("gone", "gone between");
        work.write("new", "made and removed later");
        let second = at.take(&work, &key).await;
        work.append("content", b"!");
        work.chmod("mode", 0o600);
        work.remove("gone");
        work.remove("kind");
        work.folder("kind");
        work.remove("target");
        work.link("target", "mode");
        work.write("same size", "same size BETWEEN");
        work.remove("new");
        let now = work.tree();
        let marks = work.marks();
        let paths = second.tree.differing(&first.tree);
        let restored = at.restore(&key, &work, (&first, &second), &paths).await;
        // What is gone by now is what was asked for.
        assert_eq!(restored.done, owned(&["new", "other"]), "{restored:?}");
        for path in changed {
            assert_eq!(why(&restored, path), Some(&LeftWhy::ChangedMeanwhile), "{path}");
        }
        assert_eq!(restored.left.len(), changed.len());
        let mut wanted = now;
        wanted.0.insert("other".into(), first.tree.0[&PathBuf::from("other")].clone());
        work.tree().assert_is(&wanted, "after others had changed it");
        for path in ["content", "mode", "kind", "target", "same size"] {
            let path = PathBuf::from(path);
            assert_eq!(work.marks().get(&path), marks.get(&path), "{path:?} was written anew");
        }
    });
}

/// A path that is in the state that was asked for is done, and not written again.
pub(super) fn what_is_there_already_is_done(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        for path in ["back", "stays", "gone"] {
            work.write(path, "one");
        }
        let first = at.take(&work, &key).await;
        work.write("back", "two");
        work.remove("gone");
        work.write("new", "new");
        let second = at.take(&work, &key).await;
        work.write("back", "one");
        work.write("gone", "one");
        work.remove("new");
        let marks = work.marks();
        let paths = owned(&["back", "gone", "new", "stays"]);
        let restored = at.restore(&key, &work, (&first, &second), &paths).await;
        assert_all_done(&restored, &paths);
        assert_eq!(work.marks(), marks, "what was right was written again");
    });
}

/// A folder that was to go, and holds something that nobody knew of, stays with it; the rest of it goes.
pub(super) fn a_folder_with_something_new_is_left(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        work.write("a", "a");
        work.write("file", "a file");
        let first = at.take(&work, &key).await;
        work.write("new/of ours", "x");
        work.write("new/deep/of ours", "x");
        work.remove("file");
        work.write("file/of ours", "a folder by now");
        let second = at.take(&work, &key).await;
        work.write("new/deep/of theirs", "y");
        work.write("file/of theirs", "y");
        let paths = second.tree.differing(&first.tree);
        let restored = at.restore(&key, &work, (&first, &second), &paths).await;
        for path in ["new", "new/deep", "file"] {
            assert_eq!(why(&restored, path), Some(&LeftWhy::NotEmpty), "{path}: {restored:?}");
        }
        assert_eq!(restored.done, owned(&["file/of ours", "new/deep/of ours", "new/of ours"]));
        assert_eq!(work.bytes("new/deep/of theirs").as_deref(), Some(&b"y"[..]));
        assert_eq!(work.bytes("file/of theirs").as_deref(), Some(&b"y"[..]));
        let left = ["a", "file", "file/of theirs", "new", "new/deep", "new/deep/of theirs"];
        assert_eq!(work.tree().0.keys().cloned().collect::<Vec<_>>(), owned(&left));
    });
}

/// A file that somebody made after the states that a restore is between is no part of it (BR-137).
pub(super) fn what_somebody_else_made_is_kept(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        work.write("code", "one");
        let before = at.take(&work, &key).await;
        work.write("code", "two");
        let after = at.take(&work, &key).await;
        work.write("notes.md", "by hand");
        let changes = at.diff(&key, &after, &before).await;
        let mut paths: Vec<PathBuf> = changes.into_iter().map(|change| change.path).collect();
        assert_eq!(paths, owned(&["code"]), "what the turn changed");
        // Also where somebody asks for it.
        paths.push("notes.md".into());
        let restored = at.restore(&key, &work, (&before, &after), &paths).await;
        assert_eq!(why(&restored, "code"), None);
        assert_eq!(work.bytes("code").as_deref(), Some(&b"one"[..]));
        assert_eq!(work.bytes("notes.md").as_deref(), Some(&b"by hand"[..]));
        assert_eq!(why(&restored, "notes.md"), Some(&LeftWhy::ChangedMeanwhile));
    });
}
