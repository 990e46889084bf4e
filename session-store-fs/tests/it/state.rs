//! State dirs.

use session_core::{SessionKey, SessionStore as _};

use crate::{Fixture, key};

#[tokio::test]
async fn every_key_has_a_state_dir_of_its_own() {
    let at = Fixture::new();
    let mut dirs = std::collections::BTreeSet::new();
    let keys = [
        key("issue-42"),
        SessionKey::new("issue-42", "codex").unwrap(),
        key("a/b"),
        key("a-b"),
        key(".."),
        key("../../etc"),
        key("A"),
        key("a"),
        SessionKey::new("a", "..").unwrap(),
        key(&"x".repeat(1024)),
    ];
    for key in &keys {
        let dir = at.store.state_dir(key).await.unwrap().unwrap();
        assert!(dir.is_dir() && dir.is_absolute());
        // Exactly two levels below `state`, whatever the names hold.
        assert_eq!(dir.parent().unwrap().parent().unwrap(), at.path("state"));
        assert_eq!(
            dir.canonicalize().unwrap(),
            at.path("state").canonicalize().unwrap().join(dir.strip_prefix(at.path("state")).unwrap())
        );
        assert!(dirs.insert(dir), "{key}");
    }
    assert_eq!(dirs.first().unwrap().file_name().unwrap().len(), 6);
    let dir = at.store.state_dir(&keys[0]).await.unwrap().unwrap();
    assert_eq!(dir, at.path("state/issue-42/claude"));
}

#[tokio::test]
async fn what_lies_in_a_state_dir_stays() {
    let at = Fixture::new();
    let dir = at.store.state_dir(&key("a")).await.unwrap().unwrap();
    std::fs::write(dir.join("session"), "x").unwrap();
    at.put(&key("a"), "x").await;
    let _ = at.store.remove(&key("a"), &session_core::Guard::Any).await.unwrap();
    let again = at.store.state_dir(&key("a")).await.unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(again.join("session")).unwrap(), "x");
}

#[cfg(unix)]
#[tokio::test]
async fn a_state_dir_is_private_at_every_level() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    let at = Fixture::new();
    for round in 0..2 {
        let dir = at.store.state_dir(&key("a")).await.unwrap().unwrap();
        for level in [dir.as_path(), dir.parent().unwrap()] {
            let mode = fs::metadata(level).unwrap().permissions().mode() & 0o7777;
            assert_eq!(mode, 0o700, "{} in round {round}", level.display());
            fs::set_permissions(level, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}
