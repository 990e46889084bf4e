//! A rewind: what goes back of the files, and how the conversation goes back.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::{Change, Conflicts, FilesPlan, NodeKind};

fact! {
    /// Who changed a path between the target of a rewind and now.
    Changer {
        /// Prompts that are taken back.
        Steps,
        /// Somebody else.
        Others,
        /// Both, or nobody can tell.
        Both,
    }
}

fact! {
    /// What becomes of a path that is not as it was at the target.
    PathFate {
        /// It goes back.
        Restore,
        /// The caller says whether it goes back.
        Conflict,
        /// It stays.
        LeftAlone,
    }
}

/// Decides about one path by itself. What nobody else touched goes back; what no prompt touched stays.
#[must_use]
pub const fn path_fate(changer: Changer) -> PathFate {
    match changer {
        Changer::Steps => PathFate::Restore,
        Changer::Both => PathFate::Conflict,
        Changer::Others => PathFate::LeftAlone,
    }
}

/// Decides about all paths that are not as they were at the target.
///
/// `differs` tells from the target to now; `steps` what each prompt and each rewind since changed, in their order, and `gaps` what
/// changed between those. What no gap changed was changed by the steps where their changes follow each other from the target to
/// now; else some of it was not covered when it was changed, and somebody else may have done it. Where nothing stands by now, that
/// is of no matter. A path that cannot go back without another one is as that one is: a folder that holds what stays stays, and
/// nothing is put below what is no folder.
#[must_use]
pub fn files_plan<'a>(
    differs: Vec<Change>,
    steps: impl IntoIterator<Item = &'a Change>,
    gaps: impl IntoIterator<Item = &'a Change>,
    conflicts: Conflicts,
) -> FilesPlan {
    let mut stepped: HashMap<&Path, Vec<&Change>> = HashMap::new();
    for change in steps {
        stepped.entry(&change.path).or_default().push(change);
    }
    let others: HashSet<&Path> = gaps.into_iter().map(|change| change.path.as_path()).collect();
    let fates = differs.into_iter().map(|change| {
        let by_steps = stepped.get(&*change.path).map(Vec::as_slice).unwrap_or_default();
        let changer = match (by_steps, others.contains(&*change.path)) {
            // To make it again takes nothing from anybody.
            (all, false) if change.after.is_none() || make_up(all, &change) => Changer::Steps,
            ([], true) => Changer::Others,
            (_, _) => Changer::Both,
        };
        (change.path.clone(), (change, path_fate(changer)))
    });
    let mut paths = Paths { fates: fates.collect(), conflicts };
    paths.clear_the_way();
    paths.keep_full_folders();
    paths.into_plan()
}

/// Whether changes that follow each other make up a whole one.
fn make_up(changes: &[&Change], whole: &Change) -> bool {
    let mut node = whole.before;
    for change in changes {
        if change.before != node {
            return false;
        }
        node = change.after;
    }
    node == whole.after
}

/// Every path that differs, with what becomes of it.
struct Paths {
    fates: BTreeMap<PathBuf, (Change, PathFate)>,
    conflicts: Conflicts,
}

impl Paths {
    fn stays(&self, fate: PathFate) -> bool {
        match fate {
            PathFate::Restore => false,
            PathFate::LeftAlone => true,
            PathFate::Conflict => self.conflicts == Conflicts::Keep,
        }
    }

    fn set(&mut self, path: &Path, fate: PathFate) {
        if let Some((_, of)) = self.fates.get_mut(path) {
            *of = fate;
        }
    }

    /// What is to stand below a folder needs it.
    fn clear_the_way(&mut self) {
        let paths: Vec<PathBuf> = self.fates.keys().cloned().collect();
        for path in paths {
            // From the top down: what is above was seen to.
            for above in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
                let Some(&(ref change, fate)) = self.fates.get(&path) else { continue };
                if change.before.is_none() || fate == PathFate::LeftAlone {
                    break;
                }
                let Some(&(ref folder, of_folder)) = self.fates.get(above) else { continue };
                if of_folder == PathFate::Restore || is_folder(folder.after.as_ref()) {
                    continue;
                }
                let gone = folder.after.is_none();
                match (fate, of_folder, gone) {
                    // To make it again takes nothing from anybody.
                    (PathFate::Restore, _, true) => self.set(above, PathFate::Restore),
                    (PathFate::Restore, _, false) => {
                        self.set(above, PathFate::Conflict);
                        self.set(&path, PathFate::Conflict);
                    }
                    (PathFate::Conflict, PathFate::LeftAlone, _) => self.set(above, PathFate::Conflict),
                    (PathFate::Conflict | PathFate::LeftAlone, _, _) => {}
                }
            }
        }
    }

    /// A folder that holds what stays cannot go.
    fn keep_full_folders(&mut self) {
        let folders = self.fates.iter().rev().filter(|(_, (change, _))| {
            is_folder(change.after.as_ref()) && !is_folder(change.before.as_ref())
        });
        let folders: Vec<PathBuf> = folders.map(|(path, _)| path.clone()).collect();
        // From the bottom up: a folder that stays keeps the one above it.
        for path in folders {
            let below = self.fates.range(path.clone()..).skip(1);
            let mut below = below.take_while(|(other, _)| other.starts_with(&path));
            let full = below.any(|(_, (change, fate))| change.after.is_some() && self.stays(*fate));
            let Some(&(ref change, fate)) = self.fates.get(&path) else { continue };
            if !full || self.stays(fate) {
                continue;
            }
            let stands_for_another = change.before.is_some();
            self.set(&path, if stands_for_another { PathFate::Conflict } else { PathFate::LeftAlone });
        }
    }

    fn into_plan(self) -> FilesPlan {
        let mut plan = FilesPlan::default();
        for (change, fate) in self.fates.into_values() {
            let change = change.reversed();
            match fate {
                PathFate::Restore => plan.restore.push(change),
                PathFate::Conflict => plan.conflicts.push(change),
                PathFate::LeftAlone => plan.left_alone.push(change),
            }
        }
        plan
    }
}

fn is_folder(node: Option<&crate::Node>) -> bool {
    node.is_some_and(|node| node.kind == NodeKind::Folder)
}

fact! {
    /// Where the conversation stood at the target.
    Stood {
        /// There was none.
        Nowhere,
        /// In a session, nobody knows how far.
        Somewhere,
        /// At a known point of a session.
        Known,
    }
}

fact! {
    /// What that session is by now.
    Place {
        /// The one in force.
        InForce,
        /// One of before.
        Former,
        /// One that the record does not name.
        Unlisted,
    }
}

fact! {
    /// What that session's file holds by now.
    Holds {
        /// It is not there.
        Nothing,
        /// Less than at the target.
        Less,
        /// As much.
        Same,
        /// More.
        More,
        /// Nobody can look.
        Unknown,
    }
}

/// All that [`turn_back`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TurnBackFacts {
    /// Where the conversation stood.
    pub stood: Stood,
    /// What the session is by now.
    pub place: Place,
    /// What it holds by now.
    pub holds: Holds,
    /// Whether a session is in force.
    pub bound: super::Bound,
}

/// How a conversation goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnBack {
    /// It stands there already.
    Unchanged,
    /// Nothing is kept: the next run begins anew.
    Fresh,
    /// The session is in force again.
    Rebind,
    /// A branch of the session is in force.
    Branch,
    /// It cannot: the session is not there.
    Missing,
    /// It cannot: the session holds less than it did.
    Gone,
    /// It cannot: nobody can tell what the session held, or holds.
    Unknown,
}

/// Decides how a conversation goes back. No session loses anything, and none is in force that holds more or less than at the
/// target.
#[must_use]
pub const fn turn_back(facts: TurnBackFacts) -> TurnBack {
    match (facts.stood, facts.holds, facts.place) {
        (Stood::Nowhere, _, _) => match facts.bound {
            super::Bound::Yes => TurnBack::Fresh,
            super::Bound::No => TurnBack::Unchanged,
        },
        (_, Holds::Nothing, _) => TurnBack::Missing,
        (Stood::Somewhere, _, _) | (Stood::Known, Holds::Unknown, _) => TurnBack::Unknown,
        (Stood::Known, Holds::Less, _) => TurnBack::Gone,
        (Stood::Known, Holds::Same, Place::InForce) => TurnBack::Unchanged,
        (Stood::Known, Holds::Same, Place::Former) => TurnBack::Rebind,
        (Stood::Known, Holds::Same, Place::Unlisted) | (Stood::Known, Holds::More, _) => TurnBack::Branch,
    }
}
