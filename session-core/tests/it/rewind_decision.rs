//! What goes back, over small trees: a second opinion, and what the file system says to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use session_core::decide::*;
use session_core::{Change, Conflicts, FilesPlan};

use crate::shelf::{Tree, diff, node_at, play, put, put_back};

const PATHS: [&str; 9] = ["a", "b", "d", "d/x", "d/y", "d/e", "d/e/z", "f/g", "f"];

/// What one of those who work in the tree does before the next one comes.
#[derive(Debug, Clone)]
struct Spell {
    is_step: bool,
    edits: Vec<Edit>,
}

#[derive(Debug, Clone)]
enum Edit {
    Write(&'static str, u8),
    Folder(&'static str),
    Remove(&'static str),
}

fn edit() -> impl Strategy<Value = Edit> {
    let path = || prop::sample::select(&PATHS[..]);
    prop_oneof![
        4 => (path(), 0..3_u8).prop_map(|(path, text)| Edit::Write(path, text)),
        1 => path().prop_map(Edit::Folder),
        3 => path().prop_map(Edit::Remove),
    ]
}

fn spells() -> impl Strategy<Value = Vec<Spell>> {
    let spell = (any::<bool>(), prop::collection::vec(edit(), 0..4));
    prop::collection::vec(spell.prop_map(|(is_step, edits)| Spell { is_step, edits }), 1..7)
}

fn work(tree: &mut Tree, edits: &[Edit]) {
    for edit in edits {
        match edit {
            Edit::Write(path, text) => put(tree, Path::new(path), Some(&text.to_string())),
            Edit::Folder(path) => put(tree, Path::new(path), None),
            Edit::Remove(path) => play(tree, &format!("-{path}")),
        }
    }
}

/// Who changed a path, by a look at each spell; and all that the decision is given.
struct Story {
    target: Tree,
    now: Tree,
    ours: BTreeMap<PathBuf, (bool, bool)>,
    steps: Vec<Change>,
    gaps: Vec<Change>,
}

fn story(before: &[Edit], spells: &[Spell]) -> Story {
    let mut tree = Tree::new();
    work(&mut tree, before);
    let mut story =
        Story { target: tree.clone(), now: Tree::new(), ours: BTreeMap::new(), steps: vec![], gaps: vec![] };
    for spell in spells {
        let was = tree.clone();
        work(&mut tree, &spell.edits);
        for path in PATHS.map(PathBuf::from) {
            let (by_steps, by_others) = story.ours.entry(path.clone()).or_default();
            let changed = was.get(&path) != tree.get(&path);
            *(if spell.is_step { by_steps } else { by_others }) |= changed;
        }
        let of = if spell.is_step { &mut story.steps } else { &mut story.gaps };
        of.extend(diff(&was, &tree));
    }
    story.now = tree;
    story
}

fn is_folder(tree: &Tree, path: &Path) -> bool {
    tree.get(path) == Some(&None)
}

fn check(story: &Story, plan: &FilesPlan, conflicts: Conflicts) -> Result<(), TestCaseError> {
    let Story { target, now, ours, .. } = story;
    let paths = |of: &[Change]| -> Vec<PathBuf> { of.iter().map(|change| change.path.clone()).collect() };
    let (restore, contested, alone) = (paths(&plan.restore), paths(&plan.conflicts), paths(&plan.left_alone));
    let mut all = [restore.clone(), contested.clone(), alone.clone()].concat();
    all.sort();
    prop_assert_eq!(&all, &paths(&diff(target, now)), "each path once");
    for change in plan.restore.iter().chain(&plan.conflicts).chain(&plan.left_alone) {
        prop_assert_eq!(change.before, node_at(now, &change.path));
        prop_assert_eq!(change.after, node_at(target, &change.path));
    }
    let overwrites = conflicts == Conflicts::Overwrite;
    let stays = |path: &Path| {
        alone.iter().any(|other| other == path)
            || (!overwrites && contested.iter().any(|other| other == path))
    };
    for path in &all {
        let (by_steps, by_others) = ours[path];
        let holds_what_stays = is_folder(now, path)
            && !is_folder(target, path)
            && now.keys().any(|below| below != path && below.starts_with(path) && stays(below));
        let is_in_the_way = target.contains_key(path)
            && path.ancestors().skip(1).any(|above| now.get(above).is_some_and(Option::is_some));
        let is_needed = is_folder(target, path) && !is_folder(now, path);
        let expected: &[&Vec<PathBuf>] = match (by_steps, by_others) {
            (true, false) if holds_what_stays && target.contains_key(path) => &[&contested],
            (true, false) if holds_what_stays => &[&alone],
            (true, false) if is_in_the_way => &[&restore, &contested],
            (true, false) => &[&restore],
            // A folder that is only gone is made again where something of ours goes back into it.
            (true, true) if is_needed && !now.contains_key(path) => &[&restore, &contested],
            (true, true) if holds_what_stays && !target.contains_key(path) => &[&contested, &alone],
            (true, true) => &[&contested],
            (false, true) if is_needed => &[&restore, &contested, &alone],
            (false, true) => &[&alone],
            (false, false) => panic!("{path:?} differs, and nobody changed it"),
        };
        prop_assert!(expected.iter().any(|of| of.contains(path)), "{:?}: {:?}", path, plan);
        if !by_steps && restore.contains(path) {
            prop_assert!(!now.contains_key(path), "{:?} is theirs", path);
        }
    }
    let goes = if overwrites { [restore, contested.clone()].concat() } else { restore };
    let mut after = now.clone();
    let restored = put_back(&mut after, now, target, &goes);
    for left in &restored.left {
        // The caller wants a file where a folder stands that holds what nobody of ours made.
        prop_assert!(overwrites && contested.contains(&left.path), "{:?} in {:?}", left, plan);
    }
    for path in PATHS.map(PathBuf::from) {
        let gone_back = restored.done.contains(&path);
        let expected = if gone_back { target.get(&path) } else { now.get(&path) };
        prop_assert_eq!(after.get(&path), expected, "{:?}", path);
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let stands = above.is_none_or(|above| is_folder(&after, above));
        prop_assert!(stands || !after.contains_key(&path), "{:?} hangs in the air", path);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_back_is_ours_and_can_go_back(
        before in prop::collection::vec(edit(), 0..6),
        spells in spells(),
        overwrites in any::<bool>(),
    ) {
        let story = story(&before, &spells);
        let conflicts = if overwrites { Conflicts::Overwrite } else { Conflicts::Keep };
        let plan = files_plan(diff(&story.target, &story.now), &story.steps, &story.gaps, conflicts);
        check(&story, &plan, conflicts)?;
    }
}

/// What is covered no more and then again is changed by nobody who is known.
#[test]
fn what_steps_changed_goes_back_only_where_that_is_all() {
    let change = |before: Option<&str>, after: Option<&str>| {
        let tree = |text: Option<&str>| -> Tree {
            text.map(|text| (PathBuf::from("a"), Some(text.to_owned()))).into_iter().collect()
        };
        diff(&tree(before), &tree(after)).remove(0)
    };
    let (one, two, three) = (Some("1"), Some("2"), Some("3"));
    let plan = |now, steps: &[Change]| {
        let plan = files_plan(vec![change(one, now)], steps, [], Conflicts::Keep);
        (plan.restore.len(), plan.conflicts.len())
    };
    assert_eq!(plan(three, &[change(one, two), change(two, three)]), (1, 0));
    for steps in [vec![], vec![change(one, two)], vec![change(two, three)]] {
        assert_eq!(plan(three, &steps), (0, 1), "{steps:?}");
        assert_eq!(plan(None, &steps), (1, 0), "nothing stands there: {steps:?}");
    }
}

#[test]
fn a_conversation_goes_back_to_where_it_stood_or_not_at_all() {
    for stood in Stood::ALL {
        for place in Place::ALL {
            for holds in Holds::ALL {
                for bound in Bound::ALL {
                    let facts = TurnBackFacts { stood: *stood, place: *place, holds: *holds, bound: *bound };
                    let answer = turn_back(facts);
                    let none_then = *stood == Stood::Nowhere;
                    let is_exact = *stood == Stood::Known && *holds == Holds::Same;
                    let holds_it = *stood == Stood::Known && matches!(holds, Holds::Same | Holds::More);
                    match answer {
                        TurnBack::Unchanged if none_then => assert_eq!(*bound, Bound::No),
                        TurnBack::Unchanged => assert!(is_exact && *place == Place::InForce, "{facts:?}"),
                        TurnBack::Fresh => assert!(none_then && *bound == Bound::Yes, "{facts:?}"),
                        TurnBack::Rebind => assert!(is_exact && *place == Place::Former, "{facts:?}"),
                        TurnBack::Branch => {
                            assert!(holds_it && !none_then, "{facts:?}");
                            assert!(!is_exact || *place == Place::Unlisted, "no branch is needed: {facts:?}");
                        }
                        TurnBack::Missing | TurnBack::Gone | TurnBack::Unknown => {
                            assert!(!none_then && !holds_it, "it could: {facts:?}");
                        }
                    }
                }
            }
        }
    }
}
