//! State dirs: one a key, in one place, private (R13).

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use session_core::{Guard, Holder, Lease, LeaseOutcome, SessionKey};

use super::Subject;
use super::keys::twins;
use super::stage::{Needs, Stage, answer, key};

/// The state dir of a key, whose links are resolved.
async fn dir(at: &Stage<'_>, key: &SessionKey) -> PathBuf {
    let dir = answer(at.store().state_dir(key).await);
    let dir = dir.unwrap_or_else(|| panic!("state dirs are claimed, and {key} has none"));
    assert!(dir.is_absolute(), "{} is not absolute", dir.display());
    let tricks = dir.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir));
    assert!(!tricks, "{} is not where it says", dir.display());
    let real = std::fs::canonicalize(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    assert!(real.is_dir(), "{} is no directory", dir.display());
    real
}

async fn lease(at: &Stage<'_>, key: &SessionKey) -> Lease {
    let holder = Holder { host: "here".to_owned(), pid: 1, since: None };
    match answer(at.store().lease(key, &holder).await) {
        LeaseOutcome::Held(lease) => lease,
        LeaseOutcome::Busy { by } => panic!("{key} is leased to nobody, and is busy by {by:?}"),
    }
}

/// Who has no place for them says so of every key.
async fn none(at: Stage<'_>) {
    for key in [key("a"), key("..")] {
        assert_eq!(answer(at.store().state_dir(&key).await), None);
    }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// No two keys have one directory, none lies in another's, and all lie in one place, whatever their names hold.
pub(super) fn state_dirs_are_apart(subject: &Subject) {
    subject.needing(
        Needs::StateDirs,
        async |at| {
            let mut dirs: BTreeMap<PathBuf, SessionKey> = BTreeMap::new();
            for key in twins() {
                let dir = dir(&at, &key).await;
                // A file system may fold what the paths tell apart.
                let inside = std::fs::read_dir(&dir).map(Iterator::count);
                assert!(matches!(inside, Ok(0)), "{} of {key} is another key's", dir.display());
                write(&dir.join("of"), &format!("{key:?}"));
                if let Some(other) = dirs.insert(dir.clone(), key.clone()) {
                    panic!("{} is of {key} and of {other}", dir.display());
                }
            }
            let scratch = std::fs::canonicalize(at.scratch().dir());
            let scratch = scratch.unwrap_or_else(|error| panic!("the scratch: {error}"));
            let below = dirs.keys().filter(|dir| dir.starts_with(&scratch)).count();
            assert!(below == 0 || below == dirs.len(), "{below} of {} lie in the store's place", dirs.len());
            for (dir, key) in &dirs {
                let outer = dir.ancestors().skip(1).find_map(|upper| dirs.get(upper));
                assert_eq!(outer, None, "the state dir of {key} lies in another's");
                let text = std::fs::read_to_string(dir.join("of")).unwrap_or_default();
                assert_eq!(text, format!("{key:?}"));
            }
        },
        none,
    );
}

/// It is the same one every time, with what lies in it, also after a removal and when the store is opened again.
pub(super) fn a_state_dir_stays_where_it_is(subject: &Subject) {
    subject.needing(
        Needs::StateDirs,
        async |at| {
            let first = dir(&at, &key("a/b")).await;
            write(&first.join("session"), "x");
            at.put(&key("a/b"), "x").await;
            let _ = answer(at.store().remove(&key("a/b"), &Guard::Any).await);
            at.put(&key("a/b"), "y").await;
            assert!(answer(at.store().set_aside(&key("a/b"), &Guard::Any).await).is_some());
            let durable = at.claims(Needs::Durable);
            let kept = |dir: &Path| std::fs::read_to_string(dir.join("session")).unwrap_or_default();
            assert_eq!(dir(&at, &key("a/b")).await, first);
            assert_eq!(kept(&first), "x");
            if durable {
                let at = at.reopened().await;
                assert_eq!(dir(&at, &key("a/b")).await, first);
                assert_eq!(kept(&first), "x");
            }
        },
        none,
    );
}

/// Nobody else can look into it, also where somebody opened it up meanwhile.
pub(super) fn a_state_dir_is_private(subject: &Subject) {
    subject.needing(
        Needs::StateDirs,
        async |at| {
            for _ in 0..2 {
                let dir = dir(&at, &key("a")).await;
                #[cfg(unix)]
                {
                    use std::os::unix::fs::PermissionsExt as _;
                    let found = std::fs::metadata(&dir).map(|found| found.permissions().mode() & 0o7777);
                    let found = found.map(|mode| format!("{mode:o}")).unwrap_or_default();
                    assert_eq!(found, "700", "the mode of {}", dir.display());
                    let open = std::fs::Permissions::from_mode(0o755);
                    let opened = std::fs::set_permissions(&dir, open);
                    opened.unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
                }
                write(&dir.join("session"), "x");
            }
        },
        none,
    );
}

/// What stands in its place and is no directory is refused: a file, and a link, which may lead to another mailbox.
pub(super) fn what_is_planted_is_no_state_dir(subject: &Subject) {
    subject.needing(
        Needs::StateDirs,
        async |at| {
            let (mine, other) = (dir(&at, &key("a")).await, dir(&at, &key("b")).await);
            let failed = |error: std::io::Error| panic!("{}: {error}", mine.display());
            std::fs::remove_dir(&mine).unwrap_or_else(failed);
            write(&mine, "a file");
            let file = at.store().state_dir(&key("a")).await;
            assert!(file.is_err(), "a file is given out as {file:?}");
            std::fs::remove_file(&mine).unwrap_or_else(failed);
            #[cfg(unix)]
            {
                for target in [other.as_path(), Path::new("/nowhere at all")] {
                    std::os::unix::fs::symlink(target, &mine).unwrap_or_else(failed);
                    let link = at.store().state_dir(&key("a")).await;
                    assert!(link.is_err(), "a link to {} is given out as {link:?}", target.display());
                    std::fs::remove_file(&mine).unwrap_or_else(failed);
                }
            }
            assert_eq!(dir(&at, &key("a")).await, mine, "once it is out of the way");
            assert_eq!(dir(&at, &key("b")).await, other);
        },
        none,
    );
}

/// What is removed is gone with all that is in it, no other key's is touched, and no link is followed; the next one begins
/// anew.
pub(super) fn a_removed_state_dir_is_gone_and_no_other_is(subject: &Subject) {
    subject.needing(
        Needs::StateDirs,
        async |at| {
            let agent = SessionKey::new("a", "another").unwrap_or_else(|error| panic!("{error}"));
            let (mine, others) = (key("a"), [agent, key("b"), key("a/b")]);
            let removed = async |key: &SessionKey| {
                let lease = lease(&at, key).await;
                answer(at.store().remove_state(key, &lease).await)
            };
            assert!(!removed(&mine).await, "there was nothing");
            let place = dir(&at, &mine).await;
            let failed = |error: std::io::Error| panic!("{}: {error}", place.display());
            std::fs::create_dir_all(place.join("deep/er")).unwrap_or_else(failed);
            write(&place.join("deep/er/session"), "x");
            let mut kept = Vec::new();
            for key in &others {
                let file = dir(&at, key).await.join("session");
                write(&file, "kept");
                kept.push(file);
            }
            let untouched = || {
                for file in &kept {
                    let text = std::fs::read_to_string(file).unwrap_or_default();
                    assert_eq!(text, "kept", "{} is another key's", file.display());
                }
            };
            assert!(removed(&mine).await, "it was there");
            assert!(place.symlink_metadata().is_err(), "{} is still there", place.display());
            assert!(!removed(&mine).await, "it is gone");
            untouched();
            let again = dir(&at, &mine).await;
            assert_eq!(std::fs::read_dir(&again).map(Iterator::count).ok(), Some(0), "it begins anew");
            #[cfg(unix)]
            {
                let other = kept[1].parent().unwrap_or(&kept[1]);
                std::os::unix::fs::symlink(other, again.join("inside")).unwrap_or_else(failed);
                assert!(removed(&mine).await);
                untouched();
                let place = dir(&at, &mine).await;
                std::fs::remove_dir(&place).unwrap_or_else(failed);
                std::os::unix::fs::symlink(other, &place).unwrap_or_else(failed);
                let lease = lease(&at, &mine).await;
                let _ = at.store().remove_state(&mine, &lease).await;
                untouched();
            }
        },
        async |at| {
            let lease = lease(&at, &key("a")).await;
            assert!(!answer(at.store().remove_state(&key("a"), &lease).await));
        },
    );
}
