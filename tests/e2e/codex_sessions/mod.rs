//! Lists and pages of Codex sessions: every field against the truth, and what lies in more than one file.

mod corpus;
mod many;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rejoin::adapters::CodexTranscripts;
use rejoin::core::history::{
    Block, Depth, Descent, EntryKind, ListQuery, Listing, NoticeKind, PageQuery, Resumability, SessionEntry,
    SessionKind, TranscriptPage, Unresumable,
};
use rejoin::core::{EnvMap, NativeId, SessionCatalog as _};
use rejoin::transcript::FileCatalog;
use serde_json::json;

use self::corpus::{Chance, TRAPS, Truth, meta, name_it, packed, place, prompt, reply, session, write};

type Catalog = FileCatalog<CodexTranscripts>;

fn catalog() -> Catalog {
    FileCatalog::new(CodexTranscripts::new(EnvMap::new()))
}

async fn list(catalog: &Catalog, home: &Path, depth: Depth) -> Listing {
    let kinds = vec![SessionKind::Main, SessionKind::Headless, SessionKind::Sidechain];
    let query = ListQuery { state_dir: Some(home.to_owned()), kinds, depth, ..ListQuery::default() };
    catalog.list(&query).await.unwrap()
}

async fn exact(home: &Path) -> Listing {
    list(&catalog(), home, Depth::Exact).await
}

fn ids(listing: &Listing) -> Vec<&str> {
    listing.sessions.iter().map(|entry| entry.id.as_str()).collect()
}

fn shown(entry: &SessionEntry) -> Truth {
    let folder = |path: &Option<std::path::PathBuf>| path.as_ref().unwrap().to_str().unwrap().to_owned();
    Truth {
        title: entry.title.as_ref().map(|title| title.text.clone()),
        first_prompt: entry.first_prompt.clone(),
        cwd: folder(&entry.cwd),
        last_cwd: folder(&entry.last_cwd),
        branch: entry.branch.clone().unwrap(),
        kind: entry.kind,
        parent: entry.parent.as_ref().map(|parent| parent.id.as_str().to_owned()),
        resumable: entry.resumable,
        turns: entry.turns.unwrap_or_default(),
        output_tokens: entry.usage.unwrap_or_default().output_tokens,
        skipped: entry.skipped_lines,
        torn: entry.torn_tail,
    }
}

fn assert_shown(listing: &Listing, truths: &BTreeMap<String, Truth>, what: &str) {
    assert_eq!(listing.sessions.len(), truths.len(), "{what}: {:?}", listing.notices);
    for entry in &listing.sessions {
        assert_eq!(shown(entry), truths[entry.id.as_str()], "{what}: {}", entry.source.path.display());
    }
}

#[tokio::test]
async fn every_field_of_every_session_is_right_with_and_without_an_index() {
    for seed in 0..4 {
        let (home, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut chance = Chance(seed);
        let mut truths: BTreeMap<_, _> =
            TRAPS.into_iter().cycle().take(45).map(|trap| session(home.path(), &mut chance, trap)).collect();
        let indexed = catalog().index(cache.path().join("index"));
        assert_shown(&exact(home.path()).await, &truths, "without an index");
        assert_shown(&list(&indexed, home.path(), Depth::Exact).await, &truths, "the first index");
        assert_shown(&list(&indexed, home.path(), Depth::Exact).await, &truths, "the index");

        // What is added is seen: turns of a session, and names of sessions.
        let (id, truth) = truths.iter_mut().find(|(_, truth)| truth.title.is_some()).unwrap();
        let path = place(home.path(), id, false);
        let more = fs::read_to_string(&path).unwrap() + &prompt(3000, "more");
        write(&path, more);
        name_it(home.path(), id, "renamed");
        (truth.turns, truth.title) = (truth.turns + 1, Some("renamed".to_owned()));
        assert_shown(&list(&indexed, home.path(), Depth::Exact).await, &truths, "what was added");

        // A quick look knows who a session is, and does not count.
        for entry in list(&catalog(), home.path(), Depth::Quick).await.sessions {
            let truth = &truths[entry.id.as_str()];
            let found = shown(&entry);
            assert_eq!((&found.title, &found.first_prompt), (&truth.title, &truth.first_prompt), "{entry:?}");
            assert_eq!((&found.cwd, &found.branch), (&truth.cwd, &truth.branch), "{entry:?}");
            assert_eq!((found.kind, &found.parent), (truth.kind, &truth.parent), "{entry:?}");
        }
    }
}

const ONE: &str = "019d0000-0000-7000-8000-000000000001";
const TWO: &str = "019d0000-0000-7000-8000-000000000002";
const THREE: &str = "019d0000-0000-7000-8000-000000000003";

#[tokio::test]
async fn a_file_is_the_session_that_its_name_ends_with() {
    let home = tempfile::tempdir().unwrap();
    let talk = prompt(1, "hi") + &reply(2, "ho");
    write(&place(home.path(), ONE, false), meta(ONE, &json!({})) + &talk);
    let own = meta(TWO, &json!({"forked_from_id": ONE, "thread_source": "subagent", "cwd": "/w/two"}));
    write(&place(home.path(), TWO, false), own + &meta(ONE, &json!({"git": {"branch": "of-one"}})) + &talk);
    // A child of a root, whose header keeps the root's id.
    write(&place(home.path(), &format!("{ONE}_{THREE}"), false), meta(ONE, &json!({})) + &talk);
    let listing = exact(home.path()).await;
    let by_id: BTreeMap<_, _> = listing.sessions.iter().map(|entry| (entry.id.as_str(), entry)).collect();
    assert_eq!(by_id.keys().copied().collect::<Vec<_>>(), [ONE, TWO, THREE]);
    let two = by_id[TWO];
    assert_eq!((two.kind, two.branch.as_deref()), (SessionKind::Sidechain, Some("main")));
    assert_eq!(two.cwd.as_deref(), Some(Path::new("/w/two")));
    let parents = [TWO, THREE].map(|id| by_id[id].parent.as_ref().map(|parent| parent.id.as_str()));
    assert_eq!(parents, [Some(ONE), Some(ONE)]);
    assert_eq!(by_id[ONE].parent, None);
    assert_eq!(listing.notices, []);
    for id in [ONE, TWO, THREE] {
        let found = catalog().find(&NativeId::new(id), Some(home.path())).await.unwrap();
        assert_eq!(found.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), [id]);
    }
    let default = ListQuery { state_dir: Some(home.path().to_owned()), ..ListQuery::default() };
    assert!(!ids(&catalog().list(&default).await.unwrap()).contains(&TWO), "a helper's is hidden");
}

/// The base holds two turns, of which the first was kept.
fn base_and(home: &Path, id: &str, name: &str, archived: bool) {
    let kept = meta(ONE, &json!({"history_mode": "paginated"})) + &prompt(1, "first") + &reply(2, "one");
    let base = json!({"thread_id": ONE, "end_ordinal_exclusive": 3, "end_byte_offset": kept.len()});
    write(&place(home, ONE, archived), kept + &prompt(3, "second") + &reply(4, "two"));
    let own = meta(id, &json!({"history_base": base})) + &prompt(5, "instead") + &reply(6, "three");
    write(&place(home, name, false), own);
    let file = fs::File::options().append(true).open(place(home, name, false)).unwrap();
    file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(60)).unwrap();
}

fn said(page: &TranscriptPage) -> Vec<&str> {
    let mut texts = Vec::new();
    for located in &page.entries {
        if let EntryKind::Prompt(blocks) | EntryKind::Reply(blocks) = &located.entry.kind {
            texts.extend(blocks.iter().filter_map(|block| match block {
                Block::Text(text) => Some(text.as_str()),
                _ => None,
            }));
        }
    }
    texts
}

async fn page(entry: &SessionEntry, query: PageQuery) -> TranscriptPage {
    catalog().page(&entry.id, &entry.source, &query).await.unwrap()
}

#[tokio::test]
async fn a_fork_goes_on_from_its_base_wherever_that_lies() {
    for archived in [false, true] {
        let home = tempfile::tempdir().unwrap();
        base_and(home.path(), TWO, TWO, archived);
        let listing = exact(home.path()).await;
        let fork = listing.sessions.iter().find(|entry| entry.id.as_str() == TWO).unwrap();
        assert_eq!((fork.first_prompt.as_deref(), fork.turns), (Some("first"), Some(2)));
        assert_eq!(fork.parent.as_ref().map(|parent| parent.descent), Some(Descent::Forked));
        assert_eq!(fork.resumable, Resumability::Yes);
        let all = page(fork, PageQuery::Last { turns: 9 }).await;
        assert_eq!(said(&all), ["first", "one", "instead", "three"]);
        assert_eq!((all.before.as_ref(), all.notices.len()), (None, 0));
        // Page by page, it is the same.
        let last = page(fork, PageQuery::Last { turns: 1 }).await;
        assert_eq!(said(&last), ["instead", "three"]);
        let cursor = last.before.unwrap();
        let before = page(fork, PageQuery::Before { cursor, turns: 1 }).await;
        assert_eq!(said(&before), ["first", "one"]);
    }
}

#[tokio::test]
async fn a_session_that_was_reverted_is_listed_once_as_it_is_now() {
    let home = tempfile::tempdir().unwrap();
    base_and(home.path(), ONE, &format!("{ONE}_{THREE}"), false);
    let listing = exact(home.path()).await;
    assert_eq!((ids(&listing), listing.notices.len()), (vec![ONE], 0));
    let entry = &listing.sessions[0];
    assert_eq!((entry.turns, entry.last_prompt.as_deref()), (Some(2), Some("instead")));
    assert_eq!((entry.first_prompt.as_deref(), &entry.parent), (Some("first"), &None));
    assert_eq!(said(&page(entry, PageQuery::Last { turns: 9 }).await), ["first", "one", "instead", "three"]);
    assert_eq!(catalog().find(&NativeId::new(ONE), Some(home.path())).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_base_that_is_gone_is_told_and_seen_when_it_is_back() {
    let (home, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    base_and(home.path(), TWO, TWO, false);
    let indexed = catalog().index(cache.path().join("index"));
    let (base, away) = (place(home.path(), ONE, false), home.path().join("away"));
    for (there, expected) in [
        (true, Resumability::Yes),
        (false, Resumability::No(Unresumable::BaseMissing)),
        (true, Resumability::Yes),
    ] {
        match (there, base.exists()) {
            (true, false) => fs::rename(&away, &base).unwrap(),
            (false, true) => fs::rename(&base, &away).unwrap(),
            _ => {}
        }
        let listing = list(&indexed, home.path(), Depth::Exact).await;
        let fork = listing.sessions.iter().find(|entry| entry.id.as_str() == TWO).unwrap();
        assert_eq!(fork.resumable, expected);
        let told = page(fork, PageQuery::Last { turns: 9 }).await.notices;
        assert_eq!(told.iter().any(|notice| notice.kind == NoticeKind::BaseMissing), !there);
    }
}

#[tokio::test]
async fn packed_files_are_listed_once_and_as_far_as_they_go() {
    let home = tempfile::tempdir().unwrap();
    let text = meta(ONE, &json!({})) + &prompt(1, "hi") + &reply(2, "ho");
    // Both, the plain one a line longer.
    write(&place(home.path(), ONE, false).with_extension("jsonl.zst"), packed(text.as_bytes()));
    write(&place(home.path(), ONE, false), text.clone() + &prompt(3, "more"));
    // Cut off.
    let long: String = (0..20_000).map(|turn| prompt(turn, &format!("turn {turn}"))).collect();
    let whole = packed((meta(TWO, &json!({})) + &long).as_bytes());
    write(&place(home.path(), TWO, false).with_extension("jsonl.zst"), &whole[..whole.len() / 2]);
    // Packed, and named as if it were not.
    write(&place(home.path(), THREE, false), packed(text.replace(ONE, THREE).as_bytes()));
    for depth in [Depth::Quick, Depth::Exact] {
        let listing = list(&catalog(), home.path(), depth).await;
        let mut found = ids(&listing);
        found.sort_unstable();
        assert_eq!(found, [ONE, TWO, THREE], "{depth:?}");
        let by_id = |id: &str| listing.sessions.iter().find(|entry| entry.id.as_str() == id).unwrap();
        assert!(by_id(ONE).source.path.extension().is_some_and(|extension| extension == "jsonl"));
        assert_eq!(by_id(THREE).first_prompt.as_deref(), Some("hi"), "{depth:?}");
        assert_eq!(by_id(TWO).first_prompt.as_deref(), Some("turn 0"), "{depth:?}");
        if depth == Depth::Exact {
            let kinds: Vec<_> = listing.notices.iter().map(|notice| &notice.kind).collect();
            assert_eq!(kinds, [&NoticeKind::PackedInPart]);
            assert!(by_id(TWO).turns.is_some_and(|turns| (100..20_000).contains(&turns)));
            assert_eq!((by_id(ONE).turns, by_id(THREE).turns), (Some(2), Some(1)));
            assert_eq!(said(&page(by_id(THREE), PageQuery::Last { turns: 1 }).await), ["hi", "ho"]);
        }
    }
}

#[tokio::test]
async fn filters_come_before_the_limit() {
    let home = tempfile::tempdir().unwrap();
    let mut chance = Chance(7);
    for number in 0..300 {
        let id = chance.id();
        let source = if number % 60 == 0 { json!("cli") } else { json!("exec") };
        write(&place(home.path(), &id, false), meta(&id, &json!({"source": source})) + &prompt(1, "review"));
    }
    let of = |kinds, limit| {
        let query =
            ListQuery { state_dir: Some(home.path().to_owned()), kinds, limit, ..ListQuery::default() };
        async move { catalog().list(&query).await.unwrap().sessions.len() }
    };
    assert_eq!(of(vec![SessionKind::Main], Some(5)).await, 5);
    assert_eq!(of(vec![SessionKind::Main], None).await, 5);
    assert_eq!(of(vec![SessionKind::Headless], None).await, 295);
}
