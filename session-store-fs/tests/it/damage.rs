//! Damaged records: corrupt is not absent, and neither is newer.

use std::fs;
use std::time::{Duration, SystemTime};

use session_core::error::StoreErrorKind;
use session_core::{Guard, SessionStore as _};
use session_store_fs::FsStore;

use crate::{Fixture, doc, key, kind_at};

#[tokio::test]
async fn a_record_cut_anywhere_is_corrupt() {
    let at = Fixture::new();
    at.put(&key("a"), "a document\nof two lines").await;
    let path = at.path("records/a@claude.json");
    let whole = fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        assert_eq!(at.get(&key("a")).await, Err(StoreErrorKind::Corrupt), "cut at {cut}");
    }
    // A file system may also leave zeros in place of what it had not yet written.
    for from in 0..whole.len() {
        let mut zeroed = whole.clone();
        zeroed[from..].fill(0);
        fs::write(&path, &zeroed).unwrap();
        assert_eq!(at.get(&key("a")).await, Err(StoreErrorKind::Corrupt), "zeros from {from}");
    }
    let longer = [whole.as_slice(), b"\n"].concat();
    fs::write(&path, longer).unwrap();
    assert_eq!(at.get(&key("a")).await, Err(StoreErrorKind::Corrupt));
    fs::write(&path, &whole).unwrap();
    assert_eq!(at.get(&key("a")).await, Ok(Some("a document\nof two lines".to_owned())));
}

#[tokio::test]
async fn a_record_of_another_key_is_corrupt() {
    let at = Fixture::new();
    at.put(&key("a"), "x").await;
    fs::copy(at.path("records/a@claude.json"), at.path("records/b@claude.json")).unwrap();
    assert_eq!(kind_at(at.store.load(&key("b")).await, "b@claude.json"), StoreErrorKind::Corrupt);
}

#[tokio::test]
async fn a_corrupt_record_is_kept_until_it_is_set_aside() {
    let at = Fixture::new();
    at.put(&key("a"), "x").await;
    let path = at.path("records/a@claude.json");
    fs::write(&path, "torn").unwrap();
    for guard in [Guard::Any, Guard::Absent] {
        let saved = at.store.save(&key("a"), &doc("new"), &guard, None).await;
        assert_eq!(kind_at(saved, "a@claude.json"), StoreErrorKind::Corrupt);
    }
    let removed = at.store.remove(&key("a"), &Guard::Any).await;
    assert_eq!(kind_at(removed, "a@claude.json"), StoreErrorKind::Corrupt);
    assert_eq!(fs::read_to_string(&path).unwrap(), "torn");

    let place = at.store.set_aside(&key("a"), &session_core::Guard::Any).await.unwrap().unwrap();
    assert_eq!(fs::read_to_string(&place).unwrap(), "torn");
    assert!(place.starts_with(at.path("quarantine").to_str().unwrap()));
    assert_eq!(at.get(&key("a")).await, Ok(None));
    assert_eq!(at.store.set_aside(&key("a"), &session_core::Guard::Any).await.unwrap(), None);
    at.put(&key("a"), "new").await;
    // A second one does not take the place of the first.
    fs::write(&path, "torn again").unwrap();
    let second = at.store.set_aside(&key("a"), &session_core::Guard::Any).await.unwrap().unwrap();
    assert_ne!(place, second);
    assert_eq!(fs::read_to_string(&place).unwrap(), "torn");
    assert!(at.store.list(&Default::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_newer_record_is_never_touched() {
    let at = Fixture::new();
    let path = at.path("records/a@claude.json");
    let newer = "{\"store\":2,\"revision\":7}\nwhat comes later";
    fs::write(&path, newer).unwrap();
    let (store, key, newer_kind) = (&at.store, key("a"), StoreErrorKind::Newer);
    assert_eq!(kind_at(store.load(&key).await, "a@claude.json"), newer_kind);
    assert_eq!(kind_at(store.save(&key, &doc("x"), &Guard::Any, None).await, "a@claude.json"), newer_kind);
    assert_eq!(kind_at(store.remove(&key, &Guard::Any).await, "a@claude.json"), newer_kind);
    assert_eq!(kind_at(store.set_aside(&key, &session_core::Guard::Any).await, "a@claude.json"), newer_kind);
    assert_eq!(fs::read_to_string(&path).unwrap(), newer);
}

#[tokio::test]
async fn a_huge_file_that_is_no_record_is_not_read() {
    let at = Fixture::new();
    let path = at.path("records/a@claude.json");
    let file = fs::File::create(&path).unwrap();
    // Far beyond the memory of any machine, without taking space.
    file.set_len(1 << 42).unwrap();
    assert_eq!(at.get(&key("a")).await, Err(StoreErrorKind::Corrupt));
    at.store.set_aside(&key("a"), &session_core::Guard::Any).await.unwrap().unwrap();
}

#[tokio::test]
async fn leftovers_of_dead_writers_go_after_an_hour() {
    let at = Fixture::new();
    let ago = |minutes: u64| SystemTime::now() - Duration::from_secs(minutes * 60);
    let put = |name: &str, minutes| {
        let path = at.path("records").join(name);
        fs::write(&path, "half").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(ago(minutes)).unwrap();
        path
    };
    let old = put(".tmp-0123456789abcdef0123456789abcdef", 61);
    let fresh = put(".tmp-1123456789abcdef0123456789abcdef", 59);
    let foreign = [put(".tmp-x", 999), put(".tmp-0123456789ABCDEF0123456789abcdef", 999), put("a.tmp", 999)];
    let folder = at.path("records/.tmp-2123456789abcdef0123456789abcdef");
    fs::create_dir(&folder).unwrap();
    at.put(&key("a"), "x").await;
    assert!(!old.exists());
    assert!(fresh.exists() && folder.exists() && foreign.iter().all(|path| path.exists()));
    // Not again at once by the same handle; by another one, yes.
    let old = put(".tmp-0123456789abcdef0123456789abcdef", 61);
    at.put(&key("a"), "y").await;
    assert!(old.exists());
    let other = FsStore::open(at.dir.path()).unwrap();
    let _ = other.save(&key("a"), &doc("z"), &Guard::Any, None).await.unwrap();
    assert!(!old.exists());
}
