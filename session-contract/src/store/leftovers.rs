//! Leftovers: what no document leads to, and nothing else, is listed and removed.

use std::path::PathBuf;

use session_core::{
    AuditEvent, Disposed, Guard, Leftover, LeftoverKind, LeftoverOptions, Live, RunId, SessionKey, Timestamp,
    Tombstone,
};

use super::Subject;
use super::stage::{Needs, Stage, answer, holder, key, key_of};

const BYTES: usize = 100_000;

fn tombstone() -> Tombstone {
    let event = |kind| {
        AuditEvent::new(Timestamp::from_millis(1_700_000_000_000), RunId::new(uuid::Uuid::from_u128(7)), kind)
    };
    Tombstone { holder: holder(1), before: event("mailbox_closing"), after: event("mailbox_closed") }
}

/// The state dir of a key, with something in it.
async fn filled(at: &Stage<'_>, key: &SessionKey) -> PathBuf {
    let dir = answer(at.store().state_dir(key).await);
    let dir = dir.unwrap_or_else(|| panic!("state dirs are claimed, and {key} has none"));
    let written = std::fs::write(dir.join("session"), vec![b'x'; BYTES]);
    written.unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    dir
}

async fn states(at: &Stage<'_>, live: Live) -> Vec<Leftover> {
    let mut listed = answer(at.store().leftovers(&LeftoverOptions::new(live)).await);
    listed.retain(|leftover| leftover.kind == LeftoverKind::State);
    listed
}

/// The only leftover there is.
async fn only(at: &Stage<'_>) -> Leftover {
    let mut states = states(at, Live::none()).await;
    assert_eq!(states.len(), 1, "one state dir has no document, and listed are {states:?}");
    states.remove(0)
}

/// Who has no place for state dirs has nothing left in them.
async fn nothing(at: Stage<'_>) {
    at.put(&key("a"), "x").await;
    assert_eq!(states(&at, Live::none()).await, []);
    assert_eq!(answer(at.store().state_size(&key("a")).await), None);
    let made_up = Leftover::new(LeftoverKind::State, "a");
    let disposed = answer(at.store().remove_leftover(&made_up, &tombstone()).await);
    assert!(disposed != Disposed::Removed, "what is not there was removed");
    assert_eq!(at.get(&key("a")).await.as_deref(), Some("x"));
}

/// It takes what was written into it, and nothing of what a link in it leads to.
pub(super) fn a_state_dir_is_measured(subject: &Subject) {
    let case = async |at: Stage<'_>| {
        assert_eq!(answer(at.store().state_size(&key("b")).await), None, "there is none");
        let dir = filled(&at, &key("a")).await;
        let size = async || answer(at.store().state_size(&key("a")).await).map(|size| size.bytes);
        let before = size().await.unwrap_or_else(|| panic!("there is one, and it has no size"));
        assert!(before >= BYTES as u64, "{before} bytes, where {BYTES} were written");
        #[cfg(unix)]
        {
            let other = filled(&at, &key("other")).await;
            for (name, target) in [("folder", other.clone()), ("file", other.join("session"))] {
                let made = std::os::unix::fs::symlink(target, dir.join(name));
                made.unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
            }
            let after = size().await.unwrap_or_default();
            assert!(after < before + BYTES as u64 / 2, "{after} bytes: a link was followed");
        }
        drop(dir);
    };
    subject.needing(Needs::StateDirs, case, nothing);
}

/// A state dir is listed while its key has no document, by whatever name, with its size, its age and whether its mailbox
/// is alive.
pub(super) fn leftovers_are_what_no_document_leads_to(subject: &Subject) {
    subject.needing(
        Needs::StateDirs,
        async |at| {
            let (with, without) = (key("a"), [key("b"), key("B/\u{e9}"), key_of("a", "another")]);
            at.put(&with, "x").await;
            for key in without.iter().chain([&with]) {
                filled(&at, key).await;
            }
            let listed = states(&at, Live::none()).await;
            assert_eq!(listed.len(), without.len(), "{listed:?}");
            for leftover in &listed {
                assert!(!leftover.live, "nothing is alive, but {leftover}");
                assert!(leftover.last_used.is_some(), "{leftover} has no age");
                assert!(leftover.size.bytes >= BYTES as u64, "{leftover} is {:?}", leftover.size);
            }
            for (live, count) in [
                (Live::of(["b", "B/\u{e9}"]).unwrap_or_else(|error| panic!("{error}")), 2),
                (Live::of(["c", "b/\u{e9}"]).unwrap_or_else(|error| panic!("{error}")), 0),
                (Live::all(), 3),
            ] {
                let alive = states(&at, live.clone()).await.iter().filter(|leftover| leftover.live).count();
                assert_eq!(alive, count, "{live:?}");
            }
            at.put(&without[0], "x").await;
            assert_eq!(states(&at, Live::none()).await.len(), 2, "one has a document by now");
            let _ = answer(at.store().remove(&with, &Guard::Any).await);
            assert_eq!(states(&at, Live::none()).await.len(), 3, "one has none any more");
        },
        nothing,
    );
}

/// What is removed is gone, a log says so before and after, and nothing else is touched.
pub(super) fn a_removed_leftover_is_gone_and_told(subject: &Subject) {
    subject.needing(
        Needs::StateDirs,
        async |at| {
            let (gone, kept) = (filled(&at, &key("a/b")).await, filled(&at, &key("kept")).await);
            at.put(&key("kept"), "x").await;
            let leftover = only(&at).await;
            let removed = answer(at.store().remove_leftover(&leftover, &tombstone()).await);
            assert_eq!(removed, Disposed::Removed);
            assert!(gone.symlink_metadata().is_err(), "{} is still there", gone.display());
            assert!(kept.join("session").is_file(), "{} is another key's", kept.display());
            assert_eq!(at.get(&key("kept")).await.as_deref(), Some("x"));
            let log = answer(at.store().audit(&key("a/b"), None).await);
            let kinds: Vec<_> = log.iter().map(|entry| entry.event.kind.as_str()).collect();
            assert_eq!(kinds, ["mailbox_closing", "mailbox_closed"]);
            let again = answer(at.store().remove_leftover(&leftover, &tombstone()).await);
            assert!(again != Disposed::Removed, "it was removed twice");
            assert_eq!(states(&at, Live::none()).await, []);
            at.take_soon(&key("a/b"), 2).await;
        },
        nothing,
    );
}

/// Whose key is being run is not removed, and who runs it is told.
pub(super) fn a_leftover_that_is_run_is_left(subject: &Subject) {
    subject.needing(
        Needs::StateDirs,
        async |at| {
            let dir = filled(&at, &key("a")).await;
            let leftover = only(&at).await;
            let lease = at.take_soon(&key("a"), 7).await;
            let disposed = answer(at.store().remove_leftover(&leftover, &tombstone()).await);
            let Disposed::Busy { by } = disposed else {
                panic!("its key is leased, and it was {disposed:?}")
            };
            let named = at.store().capabilities().names_holders;
            assert_eq!(by.map(|holder| holder.pid), named.then_some(7));
            assert!(dir.join("session").is_file());
            drop(lease);
            let removed = answer(at.store().remove_leftover(&leftover, &tombstone()).await);
            assert_eq!(removed, Disposed::Removed, "it is not run any more");
        },
        nothing,
    );
}

/// What has a document by now is not removed.
pub(super) fn a_leftover_that_changed_is_left(subject: &Subject) {
    subject.needing(
        Needs::StateDirs,
        async |at| {
            let dir = filled(&at, &key("a")).await;
            let leftover = only(&at).await;
            at.put(&key("a"), "x").await;
            let disposed = answer(at.store().remove_leftover(&leftover, &tombstone()).await);
            assert_eq!(disposed, Disposed::Changed);
            assert!(dir.join("session").is_file());
            assert_eq!(answer(at.store().audit(&key("a"), None).await), []);
        },
        nothing,
    );
}

/// A leftover is a name that the store gave. What names something else, removes nothing.
pub(super) fn what_is_no_leftover_is_left(subject: &Subject) {
    subject.every(async |at| {
        at.put(&key("a"), "x").await;
        let planted = at.scratch().dir().join("planted");
        let made = std::fs::create_dir_all(planted.join("inner"));
        made.unwrap_or_else(|error| panic!("{}: {error}", planted.display()));
        let absolute = planted.display().to_string();
        for kind in [
            LeftoverKind::State,
            LeftoverKind::Folder,
            LeftoverKind::Removal,
            LeftoverKind::Temporary,
            LeftoverKind::Aside,
            LeftoverKind::Log,
            LeftoverKind::Unreadable,
            LeftoverKind::Foreign,
        ] {
            for name in ["", ".", "..", "planted", "state/../../planted", "../planted/inner", "a", &absolute]
            {
                let disposed = at.store().remove_leftover(&Leftover::new(kind, name), &tombstone()).await;
                assert!(!matches!(disposed, Ok(Disposed::Removed)), "{kind:?} {name:?} was removed");
            }
        }
        assert!(planted.join("inner").is_dir(), "what is not the store's was removed");
        assert_eq!(at.get(&key("a")).await.as_deref(), Some("x"));
    });
}
