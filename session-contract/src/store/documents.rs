//! Documents: byte for byte, the last one, or none.

use session_core::{Document, Guard, ListOptions, Removed, Revision, Saved};

use super::Subject;
use super::stage::{answer, doc, key, load, put};

/// How large a document may be without a store having an opinion on it.
const LARGE: usize = 8 * 1024 * 1024;

/// Contract 3: where there is nothing, the answer is that, and no error.
pub(super) fn nothing_is_absent(subject: &Subject) {
    subject.every(async |at| {
        let (store, nobody) = (at.store(), key("nobody"));
        for round in 0..2 {
            assert_eq!(load(&**store, &nobody).await, None);
            assert_eq!(answer(store.remove(&nobody, &Guard::Any).await), Removed::NothingThere);
            assert_eq!(answer(store.set_aside(&nobody, &Guard::Any).await), None);
            assert_eq!(answer(store.audit(&nobody, None).await), []);
            let listed = answer(store.list(&ListOptions::default()).await);
            assert!(!listed.items.contains(&nobody), "listed in round {round}");
            let never = Guard::Revision(Revision::new("never"));
            let refused = answer(store.save(&nobody, &doc("x"), &never, None).await);
            assert_eq!(refused, Saved::Refused { current: None });
            // Another key makes no difference.
            at.put(&key("somebody"), "x").await;
        }
    });
}

/// Contract 2, and the revision is the one that was told.
pub(super) fn a_document_comes_back(subject: &Subject) {
    subject.every(async |at| {
        let revision = at.put(&key("a"), "a document").await;
        for _ in 0..2 {
            let stored = load(&**at.store(), &key("a")).await;
            let stored = stored.unwrap_or_else(|| panic!("what was saved is not there"));
            assert_eq!((stored.document, &stored.revision), (doc("a document"), &revision));
        }
    });
}

/// A document replaces the one before it, whole.
pub(super) fn the_last_document_stands(subject: &Subject) {
    subject.every(async |at| {
        for text in ["a long first document", "short", "", "once more", "once more", "the last"] {
            let revision = at.put(&key("a"), text).await;
            assert_eq!(at.get(&key("a")).await.as_deref(), Some(text));
            let stored = load(&**at.store(), &key("a")).await;
            assert_eq!(stored.map(|stored| stored.revision), Some(revision), "after {text:?}");
        }
    });
}

/// Contract 2: the store never parses a document, whatever it looks like.
pub(super) fn any_bytes_come_back(subject: &Subject) {
    subject.every(async |at| {
        let every: Vec<u8> = (0..=255).collect();
        let documents: &[&[u8]] = &[
            b"",
            b"\n",
            b"\0",
            b"\r\n\x1a",
            b" spaces \t ",
            b"\xff\xfe\xc3\x28",
            b"\xef\xbb\xbf{}",
            b"{\"half\": \"a rec",
            b"{\"store\":99}\n",
            b"'; drop table records; --",
            &every,
        ];
        for (n, bytes) in documents.iter().enumerate() {
            put(&**at.store(), &key(format!("k{n}")), bytes).await;
        }
        for (n, bytes) in documents.iter().enumerate() {
            let stored = load(&**at.store(), &key(format!("k{n}"))).await;
            let stored = stored.unwrap_or_else(|| panic!("{bytes:?} is not there"));
            assert_eq!(stored.document.as_bytes(), *bytes);
        }
    });
}

/// 8 MiB, no two parts of which are alike, and then a short one in their place.
pub(super) fn a_large_document_comes_back(subject: &Subject) {
    subject.every(async |at| {
        let mut bytes = Vec::with_capacity(LARGE);
        for part in 0..(LARGE / 4096) as u64 {
            bytes.extend(part.to_le_bytes());
            bytes.resize(bytes.len() + 4088, part as u8);
        }
        put(&**at.store(), &key("a"), &bytes).await;
        let stored = load(&**at.store(), &key("a")).await.map(|stored| stored.document);
        // Not shown: it is long.
        assert!(stored == Some(Document::new(bytes)), "it came back as {stored:?}");
        at.put(&key("a"), "short").await;
        assert_eq!(at.get(&key("a")).await.as_deref(), Some("short"));
    });
}

/// The claims are those of the store, not of a moment.
pub(super) fn the_claims_are_the_same_every_time(subject: &Subject) {
    subject.every(async |at| {
        let claims = at.store().capabilities();
        at.put(&key("a"), "x").await;
        assert_eq!(at.store().capabilities(), claims);
        let at = at.reopened().await;
        assert_eq!(at.store().capabilities(), claims);
    });
}
