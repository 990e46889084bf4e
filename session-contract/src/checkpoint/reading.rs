//! Contents, differences and lists.

use std::path::Path;

use session_core::error::CheckpointErrorKind;

use super::Subject;
use super::covers::rich;
use super::stage::{answer, key, kind, new_id};
use super::tree::assert_told;

/// The bytes of a file and the target of a link, as they were, up to a limit; of anything else, nothing.
pub(super) fn a_content_is_read_as_it_was(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (rich(&at), key("a"));
        let first = at.take(&work, &key).await;
        let large = work.bytes("large");
        work.write("src/deep/er/file", "changed");
        work.remove("large");
        work.remove("to folder");
        let wanted = [0, 159, 146, 150, 10, 0];
        assert_eq!(at.read(&key, &first, "src/deep/er/file").await.as_deref(), Some(&wanted[..]));
        assert_eq!(at.read(&key, &first, "large").await, large);
        assert_eq!(at.read(&key, &first, "to folder").await.as_deref(), Some(&b"src"[..]));
        assert_eq!(at.read(&key, &first, "empty").await.as_deref(), Some(&b""[..]));
        for path in ["src", "nothing", "not/there", "a.txt/below", "to folder/main.rs", ""] {
            assert_eq!(at.read(&key, &first, path).await, None, "{path:?}");
        }
        for (path, limit, wanted) in [("a.txt", 1, "a"), ("a.txt", 0, ""), ("a.txt", 3, "a\n")] {
            let read = answer(at.engine().read(&key, first.id, Path::new(path), limit).await);
            assert_eq!(read.as_deref(), Some(wanted.as_bytes()), "{limit} bytes of {path}");
        }
        let read = answer(at.engine().read(&key, first.id, Path::new("large"), 70_000).await);
        assert_eq!(read.as_deref(), large.as_deref().map(|large| &large[..70_000]));
        let unknown = at.engine().read(&key, new_id(), Path::new("a.txt"), 9).await;
        assert_eq!(kind(unknown), CheckpointErrorKind::NotFound);
    });
}

/// It names what differs, both ways, in the order of paths, and nothing of two states that are the same.
pub(super) fn a_diff_tells_what_changed(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (rich(&at), key("a"));
        let first = at.take(&work, &key).await;
        // Written anew as it was: nothing differs.
        work.write("a.txt", "a\n");
        work.remove("to file");
        work.link("to file", "a.txt");
        let same = at.take(&work, &key).await;
        assert_eq!(at.diff(&key, &first, &same).await, []);
        assert_eq!(at.diff(&key, &first, &first).await, []);
        work.write("a.txt", "b\n");
        work.rename("src/deep", "src/deeper");
        work.remove("large");
        work.write("large/by now", "a folder");
        work.remove("nothing/in");
        work.chmod("private", 0o755);
        work.write("new", "new");
        let second = at.take(&work, &key).await;
        let there = at.diff(&key, &first, &second).await;
        assert_told(&there, &first.tree, &second.tree);
        assert!(there.windows(2).all(|two| two[0].path < two[1].path), "in the order of paths");
        let back = at.diff(&key, &second, &first).await;
        assert_told(&back, &second.tree, &first.tree);
        let reversed: Vec<_> = back.into_iter().map(session_core::Change::reversed).collect();
        assert_eq!(there, reversed);
        let unknown = at.engine().diff(&key, first.id, new_id()).await;
        assert_eq!(kind(unknown), CheckpointErrorKind::NotFound);
        let unknown = at.engine().diff(&key, new_id(), first.id).await;
        assert_eq!(kind(unknown), CheckpointErrorKind::NotFound);
    });
}

/// Oldest first, each once, and none where none was taken.
pub(super) fn a_list_is_in_order(subject: &Subject) {
    subject.every(async |at| {
        let (work, key) = (at.work(), key("a"));
        assert_eq!(at.list(&key).await, []);
        let mut taken = Vec::new();
        for n in 0..12 {
            work.write("a", format!("{}", n / 2));
            taken.push(at.take(&work, &key).await.checkpoint);
        }
        assert_eq!(at.list(&key).await, taken);
        let at = at.reopened().await;
        assert_eq!(at.list(&key).await, taken);
    });
}
