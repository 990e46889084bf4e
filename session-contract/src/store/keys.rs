//! Keys that look alike, and share nothing (contract 1).

use session_core::SessionKey;

use super::Subject;
use super::stage::{answer, event, key, key_of, take};

/// Mailboxes that a file system, a database or a person may take for one another, or for a path.
const TWINS: &[&str] = &[
    // A branch and its slug; the letter case.
    "feature/foo",
    "feature-foo",
    "Feature/foo",
    "FEATURE-FOO",
    "feature_foo",
    "a",
    "A",
    // One letter in several Unicode forms, and letters that fold to others.
    "\u{e9}",
    "e\u{301}",
    "\u{c9}",
    "\u{212b}",
    "\u{c5}",
    "A\u{30a}",
    "\u{df}",
    "ss",
    "\u{1e9e}",
    "\u{131}",
    "i",
    "I",
    "\u{130}",
    "\u{fb01}",
    "fi",
    "k",
    "\u{212a}",
    // What cannot be seen.
    "ab",
    "a\u{200d}b",
    "a\u{200b}b",
    "a\u{202e}b",
    "a\u{2028}b",
    "\u{feff}ab",
    " a",
    "a ",
    "a\u{a0}",
    // Paths and what is special in them.
    ".",
    "..",
    "...",
    "a.",
    ".a",
    "/a",
    "a/",
    "a/b",
    "a//b",
    "a\\b",
    "a/../b",
    "../a",
    "../../../../tmp/a",
    "~",
    "%2e%2e",
    "a:b",
    "a*",
    "a?",
    "con",
    "CON",
    "nul.txt",
    "-rf",
    "a@claude",
    "a+b",
    "a.json",
    ".tmp-a",
    "\u{1f600}",
    "\u{1f601}",
];

/// Keys with nothing in common, though they look so.
pub(super) fn twins() -> Vec<SessionKey> {
    let long = "x".repeat(1023);
    let mut twins: Vec<_> = TWINS.iter().map(|mailbox| key(*mailbox)).collect();
    // Lengths at which names are cut.
    twins.extend(["a", "b"].map(|end| key(format!("{long}{end}"))));
    twins.extend([64, 65, 255, 256].map(|length| key("y".repeat(length))));
    twins.extend(["\u{e9}".repeat(512), "e\u{301}".repeat(341)].map(key));
    // What stands between mailbox and agent.
    twins.extend([("a", "b.c"), ("a.b", "c"), ("a-b", "c"), ("a", "b-c")].map(|(m, a)| key_of(m, a)));
    twins.push(key_of("a", &"z".repeat(64)));
    twins
}

/// The keys of a few cases that ask for more than a document each.
pub(super) fn few() -> Vec<SessionKey> {
    let few = ["a", "A", "\u{e9}", "e\u{301}", "feature/foo", "feature-foo", "..", "a/../b"];
    let long = ["a", "b"].map(|end| key(format!("{}{end}", "x".repeat(1023))));
    few.into_iter().map(key).chain(long).chain([key_of("a", "codex")]).collect()
}

/// No document is another key's, and a removal takes one only.
pub(super) fn no_two_keys_share_a_document(subject: &Subject) {
    subject.every(async |at| {
        let keys = twins();
        for key in &keys {
            assert_eq!(at.get(key).await, None, "{key} has a document before it was saved");
            at.put(key, &format!("of {key:?}")).await;
        }
        for key in &keys {
            assert_eq!(at.get(key).await, Some(format!("of {key:?}")));
        }
        let mut listed = super::pages::all(&**at.store(), 7).await;
        let mut wanted = keys.clone();
        listed.sort();
        wanted.sort();
        assert_eq!(listed, wanted);
        for (n, key) in keys.iter().enumerate().step_by(2) {
            let removed = answer(at.store().remove(key, &session_core::Guard::Any).await);
            assert_eq!(removed, session_core::Removed::Done, "{key}, number {n}");
        }
        for (n, key) in keys.iter().enumerate() {
            assert_eq!(at.get(key).await.is_some(), n % 2 == 1, "{key}");
        }
    });
}

/// No entry is in another key's log, and each log has numbers of its own.
pub(super) fn no_two_keys_share_a_log(subject: &Subject) {
    subject.every(async |at| {
        let keys = few();
        for round in 0..2 {
            for key in &keys {
                answer(at.store().append_audit(key, &event(&format!("{round} {key:?}"))).await);
            }
        }
        for key in &keys {
            let log = answer(at.store().audit(key, None).await);
            let details: Vec<_> = log.into_iter().filter_map(|entry| entry.event.detail).collect();
            assert_eq!(details, [format!("0 {key:?}"), format!("1 {key:?}")]);
        }
    });
}

/// A lease of one key keeps nobody from another.
pub(super) fn no_two_keys_share_a_lease(subject: &Subject) {
    subject.every(async |at| {
        let keys = few();
        let mut held = Vec::new();
        for key in &keys {
            match take(&**at.store(), key, 1).await {
                Ok(lease) => held.push(lease),
                Err(by) => panic!("{key} is held by {by:?}, and nobody took it"),
            }
        }
        for key in &keys {
            assert!(take(&**at.store(), key, 2).await.is_err(), "{key} is held twice");
        }
        // Letting one go frees that one.
        drop(held.remove(0));
        assert!(take(&**at.store(), &keys[0], 2).await.is_ok());
        for key in &keys[1..] {
            assert!(take(&**at.store(), key, 2).await.is_err(), "{key} was freed with another");
        }
    });
}
