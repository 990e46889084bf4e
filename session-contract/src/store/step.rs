//! The steps of a walk, and how walks are made up.

use proptest::collection::vec;
use proptest::prelude::*;

/// The mailboxes of a walk: few, so that steps meet, and alike, so that mixing them up shows.
pub(super) const MAILBOXES: [&str; 4] = ["a/b", "A/b", "\u{e9}", "e\u{301}"];

/// A guard, in words.
#[derive(Debug, Clone, Copy)]
pub(super) enum Under {
    Any,
    Absent,
    /// The revision that the key has, or had last.
    Last,
    /// One that the key had at some time.
    Earlier(usize),
    /// One that no key ever had.
    Unknown,
}

/// Who writes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Whose {
    Nobody,
    /// The holder of the lease, where there is one.
    Holder,
    /// One who held it before, and does not know that it is over.
    Former,
}

/// One thing that is done; the first number is the key.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Save(usize, Vec<u8>, Under, Whose),
    /// A save under the present state that nobody waits for.
    DroppedSave(usize, Vec<u8>),
    Remove(usize, Under),
    SetAside(usize, Under),
    List {
        limit: usize,
    },
    Append(usize, String),
    /// The log after so many entries.
    Audit(usize, usize),
    Lease(usize, u32),
    Release(usize),
    StateDir(usize),
    /// The store is opened again; where handles are one store, leases may be held meanwhile.
    Reopen {
        with_leases: bool,
    },
}

fn under() -> impl Strategy<Value = Under> {
    prop_oneof![
        3 => Just(Under::Any),
        2 => Just(Under::Absent),
        4 => Just(Under::Last),
        2 => (0..8usize).prop_map(Under::Earlier),
        1 => Just(Under::Unknown),
    ]
}

fn whose() -> impl Strategy<Value = Whose> {
    prop_oneof![4 => Just(Whose::Nobody), 2 => Just(Whose::Holder), 1 => Just(Whose::Former)]
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..MAILBOXES.len();
    let bytes = || vec(any::<u8>(), 0..12);
    prop_oneof![
        8 => (key(), bytes(), under(), whose())
            .prop_map(|(key, bytes, under, whose)| Step::Save(key, bytes, under, whose)),
        1 => (key(), bytes()).prop_map(|(key, bytes)| Step::DroppedSave(key, bytes)),
        3 => (key(), under()).prop_map(|(key, under)| Step::Remove(key, under)),
        1 => (key(), under()).prop_map(|(key, under)| Step::SetAside(key, under)),
        2 => (1..4usize).prop_map(|limit| Step::List { limit }),
        3 => (key(), "\\PC{0,4}|a\nb").prop_map(|(key, text)| Step::Append(key, text)),
        1 => (key(), 0..4usize).prop_map(|(key, after)| Step::Audit(key, after)),
        2 => (key(), 1..5u32).prop_map(|(key, pid)| Step::Lease(key, pid)),
        1 => key().prop_map(Step::Release),
        1 => key().prop_map(Step::StateDir),
        2 => any::<bool>().prop_map(|with_leases| Step::Reopen { with_leases }),
    ]
}

pub(super) fn walks() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..24)
}
