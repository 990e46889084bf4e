//! Lists, in pages.

use std::fs;

use session_core::{ListOptions, SessionKey, SessionStore as _};

use crate::{Fixture, key};

async fn pages(at: &Fixture, limit: usize) -> Vec<SessionKey> {
    let mut keys = Vec::new();
    let mut options = ListOptions { limit: Some(limit), after: None };
    loop {
        let page = at.store.list(&options).await.unwrap();
        assert!(page.items.len() <= limit);
        assert!(!page.more || page.items.len() == limit);
        keys.extend(page.items);
        if !page.more {
            return keys;
        }
        options.after = keys.last().cloned();
    }
}

#[tokio::test]
async fn pages_of_any_size_make_up_the_whole() {
    let at = Fixture::new();
    assert!(at.store.list(&ListOptions::default()).await.unwrap().items.is_empty());
    let mut wanted: Vec<_> = ["b", "a", "A", "a/b", "..", "é", "z", "issue-10", "issue-9"].map(key).to_vec();
    wanted.push(SessionKey::new("a", "codex").unwrap());
    for key in &wanted {
        at.put(key, "x").await;
    }
    let all = at.store.list(&ListOptions::default()).await.unwrap();
    assert!(!all.more);
    for limit in 1..12 {
        assert_eq!(pages(&at, limit).await, all.items);
    }
    let none = at.store.list(&ListOptions { limit: Some(0), after: None }).await.unwrap();
    assert!(none.items.is_empty() && none.more);
    let mut items = all.items;
    items.sort();
    wanted.sort();
    assert_eq!(items, wanted);
}

#[tokio::test]
async fn what_is_no_file_is_not_listed_and_what_is_damaged_is() {
    let at = Fixture::new();
    for name in ["a", "b", "c"] {
        at.put(&key(name), name).await;
    }
    let records = at.path("records");
    let record = |name: &str| records.join(name);
    fs::write(record("b@claude.json"), "garbage").unwrap();
    fs::write(record("d@claude.json"), "{\"store\":2}\n").unwrap();
    fs::write(record(".tmp-00000000000000000000000000000000"), "half").unwrap();
    fs::write(record("README"), "who put this here").unwrap();
    fs::create_dir(record("e@claude.json")).unwrap();
    fs::write(record("no key.json"), "who put this here").unwrap();
    fs::write(record("a-b+00000000000000000000000000000000@claude.json"), "garbage").unwrap();
    // A copy of a record does not show its key twice: it is a damaged record of another.
    fs::copy(record("a@claude.json"), record("a2@claude.json")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(record("a@claude.json"), record("f@claude.json")).unwrap();
    // Whoever asks for what is damaged, or newer, is told so; a list that hid it would make it look like nothing.
    let wanted = ["a2", "a", "b", "c", "d"].map(key);
    assert_eq!(pages(&at, 10).await, wanted);
    assert_eq!(pages(&at, 1).await, wanted);
    for name in ["a2", "b", "d"] {
        assert!(at.store.load(&key(name)).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn paging_goes_on_after_a_key_that_was_removed() {
    let at = Fixture::new();
    for name in ["a", "b", "c"] {
        at.put(&key(name), name).await;
    }
    fs::remove_file(at.path("records/b@claude.json")).unwrap();
    let options = ListOptions { limit: None, after: Some(key("b")) };
    assert_eq!(at.store.list(&options).await.unwrap().items, [key("c")]);
}
