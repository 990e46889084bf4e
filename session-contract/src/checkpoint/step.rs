//! The steps of a walk, and how walks are made up.

use proptest::collection::vec;
use proptest::prelude::*;

use super::edit::{Edit, edits};

/// The mailboxes of a walk.
pub(super) const MAILBOXES: [&str; 2] = ["a", "A"];

/// Which of the paths that differ are put back.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pick {
    All,
    /// Some, with all that they need: the folders above what comes, and what lies below a folder that goes.
    Whole(u32),
    /// Some, as chance has it.
    Some(u32),
}

/// One thing that is done. Trees, keys and checkpoints are meant by number, of those that there are.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Edit {
        tree: usize,
        edits: Vec<Edit>,
    },
    Take {
        tree: usize,
        key: usize,
        /// The changed paths are told.
        known: bool,
    },
    /// Puts a tree back to a checkpoint, after somebody else has edited it.
    Restore {
        to: usize,
        pick: Pick,
        meanwhile: Vec<Edit>,
    },
    Diff(usize, usize),
    Read(usize, usize),
    List(usize),
    Forget {
        key: usize,
        which: Option<u8>,
    },
    Reopen,
}

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        3 => Just(Pick::All),
        2 => any::<u32>().prop_map(Pick::Whole),
        2 => any::<u32>().prop_map(Pick::Some),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let (tree, key, any) = (|| 0..2usize, || 0..MAILBOXES.len(), || 0..64usize);
    let meanwhile = prop_oneof![2 => Just(Vec::new()), 1 => edits(4)];
    prop_oneof![
        8 => (tree(), edits(8)).prop_map(|(tree, edits)| Step::Edit { tree, edits }),
        5 => (tree(), key(), proptest::bool::ANY)
            .prop_map(|(tree, key, known)| Step::Take { tree, key, known }),
        5 => (any(), pick(), meanwhile)
            .prop_map(|(to, pick, meanwhile)| Step::Restore { to, pick, meanwhile }),
        2 => (any(), any()).prop_map(|(from, to)| Step::Diff(from, to)),
        1 => (any(), any()).prop_map(|(of, path)| Step::Read(of, path)),
        1 => key().prop_map(Step::List),
        1 => (key(), proptest::option::weighted(0.8, proptest::num::u8::ANY))
            .prop_map(|(key, which)| Step::Forget { key, which }),
        1 => Just(Step::Reopen),
    ]
}

pub(super) fn walks() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 4..24)
}
