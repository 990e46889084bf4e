//! What a crash may leave of the changes that were not durable.

use super::platter::{Class, State};

/// Numbers that come again with the same seed (SplitMix64).
#[derive(Debug, Clone)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

/// How much is tried of what a crash may leave.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Up to this many changes, every subset of them is tried.
    pub(super) exhaustive: usize,
    /// Else the classes, and this many others.
    pub(super) others: usize,
    /// No more than this many altogether.
    pub(super) most: usize,
}

/// Subsets of the pending changes, as whether each is kept.
pub(super) fn subsets(state: &State, effort: Effort, chance: &mut Chance) -> Vec<Vec<bool>> {
    let mut subsets = all_subsets(state, effort, chance);
    while subsets.len() > effort.most {
        subsets.swap_remove(chance.below(subsets.len()));
    }
    subsets
}

fn all_subsets(state: &State, effort: Effort, chance: &mut Chance) -> Vec<Vec<bool>> {
    let count = state.pending();
    if count <= effort.exhaustive {
        return (0..1_usize << count).map(|bits| (0..count).map(|i| bits >> i & 1 == 1).collect()).collect();
    }
    let by_class = |keep: &[Class]| (0..count).map(|i| keep.contains(&state.class(i))).collect();
    let mut subsets: Vec<Vec<bool>> = vec![
        by_class(&[]),
        by_class(&[Class::Entry, Class::Length, Class::Content]),
        // A rename before the content of what was renamed; an empty file, or one of zeros.
        by_class(&[Class::Entry]),
        by_class(&[Class::Entry, Class::Length]),
        by_class(&[Class::Length, Class::Content]),
    ];
    for _ in 0..effort.others {
        subsets.push(any(state, chance));
    }
    subsets.sort_unstable();
    subsets.dedup();
    subsets
}

/// One of them: cut off in time, with one change lost or alone, or anything.
pub(super) fn any(state: &State, chance: &mut Chance) -> Vec<bool> {
    let count = state.pending();
    let (kind, one) = (chance.below(6), chance.below(count.max(1)));
    (0..count)
        .map(|i| match kind {
            0 => i < one,
            1 => i >= one,
            2 => i != one,
            3 => i == one,
            _ => chance.below(2) == 0,
        })
        .collect()
}
