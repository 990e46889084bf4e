use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::history::{Ancestor, ListedSession, SessionSource, SessionsListing};
use crate::{Binding, Candidate, Counters, Folder, PathText, Phase};

fn agent() -> AgentId {
    AgentId::new("scripted").unwrap()
}

fn id(name: &str) -> NativeId {
    NativeId::new(name)
}

fn at(time: i64) -> Timestamp {
    Timestamp::from_millis(time)
}

fn key(mailbox: &str) -> SessionKey {
    SessionKey::new(mailbox, "scripted").unwrap()
}

fn record(mailbox: &str) -> SessionRecord {
    SessionRecord::new(key(mailbox), at(0))
}

fn binding(name: &str, began: i64, copy_of: Option<&str>) -> Binding {
    Binding {
        native_id: id(name),
        phase: Phase::Confirmed,
        began_in: Folder { path: PathText::new(Path::new("/w")), id: None, repository: None },
        home: None,
        lives_in: None,
        agent_version: None,
        created_at: at(began),
        used_at: at(began),
        counters: Counters::default(),
        forked_from: copy_of.map(id),
        poisoned: None,
        extra: serde_json::Map::new(),
    }
}

fn candidate(name: &str, began: i64, replaces: bool, why: &str) -> Candidate {
    Candidate {
        binding: binding(name, began, None),
        replaces,
        why: Some(why.to_owned()),
        instead_of: None,
        extra: serde_json::Map::new(),
    }
}

fn entry(name: &str, parent: Option<(&str, Descent)>) -> SessionEntry {
    let source = SessionSource { path: format!("/w/{name}").into(), state_dir: None };
    let mut entry = SessionEntry::new(id(name), source);
    entry.parent = parent.map(|(of, descent)| Ancestor { id: id(of), descent });
    entry
}

fn lines(records: &[SessionRecord], files: &[SessionEntry]) -> Lines {
    let mut lines = Lines::default();
    records.iter().for_each(|record| lines.note_record(record));
    files.iter().for_each(|file| lines.note_file(&agent(), file));
    lines.settle();
    lines
}

/// Root, origin and how, as words.
fn traced(lines: &Lines, name: &str) -> String {
    let (root, from) = lines.trace(&agent(), &id(name));
    let from = from.map_or_else(|| "-".to_owned(), |(from, how)| format!("{from} {}", how.code()));
    format!("{root} < {from}")
}

fn retired(record: &mut SessionRecord, name: &str, began: i64, left: i64, why: &str) {
    record.retire(&binding(name, began, None), why, at(left), true);
}

#[test]
fn what_a_mailbox_begins_after_another_session_comes_from_it_for_the_reason_that_ended_it() {
    for (why, how) in [
        ("cleared", "cleared"),
        ("compacted", "compacted"),
        ("rewound", "rewound"),
        ("undone", "rewound"),
        ("session_missing", "fell_back"),
        ("too_large", "fell_back"),
        ("resume_disabled", "replaced"),
        ("recipe_rerun", "replaced"),
        ("other_folder", "replaced"),
        ("id_changed", "replaced"),
        ("of_a_later_version", "replaced"),
    ] {
        // Put aside before the next one began, or left when that held a turn.
        for left in [5, 9] {
            let mut record = record("a");
            retired(&mut record, "one", 1, left, why);
            record.binding = Some(binding("two", 7, None));
            let lines = lines(&[record], &[]);
            assert_eq!(traced(&lines, "two"), format!("one < one {how}"), "{why} {left}");
            assert_eq!(traced(&lines, "one"), "one < -");
        }
    }
}

#[test]
fn a_chain_of_a_mailbox_has_one_root_also_where_one_came_back() {
    let mut record = record("a");
    retired(&mut record, "one", 1, 2, "cleared");
    retired(&mut record, "two", 3, 6, "session_missing");
    retired(&mut record, "three", 5, 8, "compacted");
    record.binding = Some(binding("four", 9, None));
    let told = lines(&[record.clone()], &[]);
    assert_eq!(traced(&told, "two"), "one < one cleared");
    assert_eq!(traced(&told, "three"), "one < two fell_back");
    assert_eq!(traced(&told, "four"), "one < three compacted");
    // The first is rejoined: nothing tells any more why the second began.
    record.past.remove(0);
    record.retire(&record.binding.clone().unwrap(), "set_aside", at(10), true);
    record.binding = Some(binding("one", 1, None));
    let told = lines(&[record], &[]);
    assert_eq!(traced(&told, "two"), "one < one replaced");
    assert_eq!(traced(&told, "four"), "one < three compacted");
    assert_eq!(traced(&told, "one"), "one < -");
}

#[test]
fn a_copy_within_a_mailbox_is_a_rewinds_and_else_a_fork() {
    let mut first = record("a");
    retired(&mut first, "one", 1, 4, "rewound");
    first.binding = Some(binding("two", 4, Some("one")));
    let mut second = record("b");
    second.binding = Some(binding("three", 5, Some("two")));
    let mut third = record("c");
    retired(&mut third, "four", 1, 6, "id_changed");
    third.binding = Some(binding("five", 5, Some("four")));
    let mut fourth = record("d");
    fourth.binding = Some(binding("seven", 1, Some("gone")));
    let told = lines(&[first, second, third, fourth], &[]);
    assert_eq!(traced(&told, "two"), "one < one rewound");
    assert_eq!(traced(&told, "three"), "one < two forked");
    assert_eq!(traced(&told, "five"), "four < four forked");
    assert_eq!(traced(&told, "seven"), "gone < gone forked");
    let stranger = told.trace(&AgentId::new("stranger").unwrap(), &id("two"));
    assert_eq!(stranger, (id("two"), None), "the same id of another agent is another session");
}

#[test]
fn what_stands_beside_the_session_in_force_comes_from_none() {
    let mut record = record("a");
    retired(&mut record, "aside", 2, 3, "stood_aside");
    retired(&mut record, "strange", 3, 4, "session_replaced");
    record.binding = Some(binding("one", 1, None));
    record.candidate = Some(candidate("beside", 5, false, "worktree_gone"));
    let told = lines(std::slice::from_ref(&record), &[]);
    for name in ["aside", "strange", "beside", "one"] {
        assert_eq!(traced(&told, name), format!("{name} < -"));
    }
    record.candidate = Some(candidate("instead", 5, true, "session_missing"));
    assert_eq!(traced(&lines(std::slice::from_ref(&record), &[]), "instead"), "one < one fell_back");
    record.candidate.as_mut().unwrap().instead_of = Some(id("one"));
    assert_eq!(traced(&lines(&[record], &[]), "instead"), "instead < -");
}

#[test]
fn a_record_that_knows_of_a_copy_is_believed_before_a_file_and_that_before_what_only_follows() {
    let file =
        [entry("two", Some(("zero", Descent::Forked))), entry("help", Some(("two", Descent::Spawned)))];
    let mut copy = record("b");
    copy.binding = Some(binding("two", 4, Some("one")));
    let mut next = record("a");
    retired(&mut next, "other", 1, 2, "cleared");
    next.binding = Some(binding("two", 3, None));
    assert_eq!(traced(&lines(&[next.clone()], &[]), "two"), "other < other cleared");
    assert_eq!(traced(&lines(&[next.clone()], &file), "two"), "zero < zero forked");
    let mut another = copy.clone();
    (another.key, another.binding) = (key("c"), Some(binding("two", 4, Some("a"))));
    for records in [[&next, &copy, &another], [&another, &copy, &next]] {
        let told = lines(&records.map(Clone::clone), &file);
        assert_eq!(traced(&told, "two"), "one < one forked", "the first key is believed");
        assert_eq!(traced(&told, "help"), "help < -", "a helper is no descendant");
    }
}

#[test]
fn a_circle_begins_with_its_first_id() {
    // Many, as they are walked in no order.
    let named = |circle: usize, name: &str| format!("{name}-{circle}");
    let forked = |circle, name, of| entry(&named(circle, name), Some((&*named(circle, of), Descent::Forked)));
    let links = [("c", "b"), ("b", "a"), ("a", "c"), ("d", "c"), ("e", "e")];
    let files = (0..40).flat_map(|circle| links.map(|(name, of)| forked(circle, name, of)));
    let told = lines(&[], &files.collect::<Vec<_>>());
    for circle in 0..40 {
        let trace = |name| told.trace(&agent(), &id(&named(circle, name)));
        let root = id(&named(circle, "a"));
        assert_eq!(trace("a"), (root.clone(), None));
        for (name, from) in [("b", "a"), ("c", "b"), ("d", "c")] {
            assert_eq!(trace(name), (root.clone(), Some((id(&named(circle, from)), Lineage::Forked))));
        }
        assert_eq!(trace("e"), (id(&named(circle, "e")), None));
    }
}

#[test]
fn a_long_chain_is_walked_once() {
    let files: Vec<_> =
        (1..200_000).map(|n| entry(&n.to_string(), Some((&*(n - 1).to_string(), Descent::Forked)))).collect();
    assert_eq!(traced(&lines(&[], &files), "199999"), "0 < 199998 forked");
}

#[test]
fn every_code_is_the_one_that_is_serialized() {
    use Lineage::*;
    for lineage in [Forked, Rewound, Cleared, Compacted, FellBack, Replaced] {
        assert_eq!(serde_json::to_value(lineage).unwrap(), lineage.code());
    }
}

/// Whose set each of them is in, by joining what is linked.
fn joined(links: &[(usize, usize)], many: usize) -> Vec<usize> {
    let mut set: Vec<usize> = (0..many).collect();
    for (one, other) in links {
        let (from, to) = (set[*one], set[*other]);
        set.iter_mut().filter(|set| **set == from).for_each(|set| *set = to);
    }
    set
}

const WHYS: [&str; 8] = [
    "cleared",
    "compacted",
    "rewound",
    "undone",
    "set_aside",
    "session_missing",
    "stood_aside",
    "id_changed",
];

proptest! {
    #[test]
    fn groups_are_what_links_join_and_hold_every_session_once(
        parents in proptest::collection::vec((0_usize..14, proptest::option::of(0_usize..14)), 0..20),
        limit in 0_usize..20,
    ) {
        // Some are named and not listed, some are listed more than once.
        let name = |n: usize| format!("s-{n:02}");
        let mut listing = SessionsListing::default();
        for (place, (child, parent)) in parents.iter().enumerate() {
            let parent = parent.map(name);
            let mut entry = entry(&name(*child), parent.as_deref().map(|parent| (parent, Descent::Forked)));
            entry.source.path = place.to_string().into();
            entry.updated = Some(at(place as i64 % 5));
            listing.sessions.push(ListedSession::new(agent(), entry));
        }
        listing.trace(Lines::default());
        listing.put_in_order(Some(limit));
        // Of several files of one id, the one that names the first is believed.
        let mut believed = std::collections::BTreeMap::new();
        for (child, parent) in parents.iter().filter_map(|(child, parent)| Some((*child, (*parent)?))) {
            if child != parent {
                let there = believed.entry(child).or_insert(parent);
                *there = parent.min(*there);
            }
        }
        let sets = joined(&believed.into_iter().collect::<Vec<_>>(), 14);
        let set = |listed: &ListedSession| sets[listed.entry.id.as_str()[2..].parse::<usize>().unwrap()];

        let families = listing.by_root();
        let mut shown: Vec<_> = families.iter().flat_map(|family| &family.sessions).map(|one| &one.entry.source.path).collect();
        shown.sort();
        let mut all: Vec<_> = listing.sessions.iter().map(|one| &one.entry.source.path).collect();
        all.sort();
        prop_assert_eq!(shown, all);
        let place = |of: &ListedSession| listing.sessions.iter().position(|one| std::ptr::eq(one, of)).unwrap();
        let mut seen = HashSet::new();
        for family in &families {
            prop_assert!(seen.insert(set(family.sessions[0])), "a set is in two groups");
            prop_assert!(family.sessions.iter().all(|one| set(one) == set(family.sessions[0])));
            prop_assert!(family.sessions.is_sorted_by_key(|one| place(one)));
            for one in &family.sessions {
                prop_assert_eq!(one.from.is_none(), one.entry.id == *family.root);
            }
        }
        prop_assert!(families.is_sorted_by_key(|family| place(family.sessions[0])));
    }

    #[test]
    fn sessions_of_any_record_have_one_root_or_come_from_none(
        past in proptest::collection::vec((0_i64..6, 0_i64..6, 0..WHYS.len(), proptest::option::of(0_usize..8)), 0..8),
        bound in proptest::option::of((0_i64..6, proptest::option::of(0_usize..8))),
    ) {
        let name = |n: usize| format!("s-{n}");
        let mut record = record("a");
        for (place, (began, left, why, copy_of)) in past.iter().enumerate() {
            let copy_of = copy_of.map(name);
            record.retire(&binding(&name(place), *began, copy_of.as_deref()), WHYS[*why], at(*left), true);
        }
        record.binding = bound.map(|(began, copy_of)| binding("bound", began, copy_of.map(name).as_deref()));
        let told = lines(&[record.clone()], &[]);
        for of in record.past.iter().map(|former| &former.native_id).chain(record.binding.as_ref().map(|of| &of.native_id)) {
            let (root, from) = told.trace(&agent(), of);
            prop_assert_eq!(told.trace(&agent(), &root), (root.clone(), None));
            match from {
                None => prop_assert_eq!(&root, of),
                Some((from, _)) => prop_assert_eq!(told.trace(&agent(), &from).0, root),
            }
        }
    }
}
