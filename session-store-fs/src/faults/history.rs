//! What is done with a store: lists of steps that can be shrunk by leaving steps out.

use proptest::prelude::*;
use proptest::sample::select;

/// How many keys a history is about.
pub(super) const KEYS: usize = 3;
/// How many handles of the store are open at once.
pub(super) const HANDLES: usize = 2;

/// A step, which means something after any others.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) handle: usize,
    pub(super) key: usize,
    pub(super) what: Do,
}

#[derive(Debug, Clone)]
pub(super) enum Do {
    /// A document of such a length.
    Save(Admits, Under, usize),
    Remove(Admits),
    SetAside(Admits),
    /// An event of such a length.
    Append(usize),
    Lease,
    Release,
    Load,
    Audit,
    List,
    StateDir,
    Reopen,
    /// The power goes at some point of this, some of what was not durable is kept, and the history goes on.
    Crash {
        during: Box<Self>,
        point: usize,
        seed: u64,
    },
}

/// What a guard admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admits {
    Anything,
    Nothing,
    /// The revision that is there.
    Current,
    /// One that was there before.
    Old,
}

/// Under which lease a document is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Under {
    Nothing,
    /// The one that is held, where one is.
    Held,
    /// One that is over, where another was granted since.
    Lost,
}

fn admits() -> impl Strategy<Value = Admits> {
    use Admits as A;
    prop_oneof![3 => Just(A::Current), 2 => Just(A::Anything), 1 => Just(A::Nothing), 1 => Just(A::Old)]
}

fn under() -> impl Strategy<Value = Under> {
    prop_oneof![3 => Just(Under::Nothing), 2 => Just(Under::Held), 1 => Just(Under::Lost)]
}

/// Within a sector, over some, and over many.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 0..40_usize, 3 => 200..700_usize, 1 => 700..3000_usize]
}

fn write() -> impl Strategy<Value = Do> {
    prop_oneof![
        6 => (admits(), under(), length()).prop_map(|(admits, under, length)| Do::Save(admits, under, length)),
        3 => length().prop_map(Do::Append),
        2 => admits().prop_map(Do::Remove),
        1 => select(&[Admits::Anything, Admits::Current, Admits::Old][..]).prop_map(Do::SetAside),
        2 => Just(Do::Lease),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    use Do as D;
    let crash = (write(), any::<usize>(), any::<u64>());
    let what = prop_oneof![
        24 => write(),
        7 => select(&[D::Release, D::Release, D::Load, D::Audit, D::List, D::StateDir, D::Reopen][..]),
        2 => crash.prop_map(|(during, point, seed)| D::Crash { during: Box::new(during), point, seed }),
    ];
    (0..HANDLES, 0..KEYS, what).prop_map(|(handle, key, what)| Step { handle, key, what })
}

pub(super) fn histories(steps: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), steps)
}
