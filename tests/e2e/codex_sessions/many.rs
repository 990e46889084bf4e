//! Many sessions, large ones, and what stays where it is.

use std::fs;
use std::path::Path;

use rejoin::core::history::{ListQuery, NoticeKind, PageQuery, Scope, SearchQuery, Searched, SessionKind};
use rejoin::core::{
    Mend, NativeId, RelocateOrder, Relocated, SessionCatalog as _, SessionQuery, Version, Way,
};
use serde_json::json;

use super::corpus::{Chance, meta, packed, place, prompt, reply, write};
use super::{ONE, TWO, catalog, exact, page, said};

#[tokio::test]
async fn five_of_a_person_are_found_among_thousands_of_programs() {
    let home = tempfile::tempdir().unwrap();
    let mut chance = Chance(11);
    let mut people = Vec::new();
    for number in 0..3_005 {
        let id = chance.id();
        let source = match number {
            0..5 => json!("cli"),
            5..20 => json!({"subagent": "review"}),
            _ => json!("exec"),
        };
        let path = place(home.path(), &id, false);
        write(&path, meta(&id, &json!({"source": source, "base_instructions": null})) + &prompt(1, "review"));
        if number < 5 {
            // Older than all others: a limit that came first would leave them out.
            let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
            fs::File::options().append(true).open(&path).unwrap().set_modified(old).unwrap();
            people.push(id);
        }
    }
    people.sort();
    let of = |kinds, limit| {
        let query =
            ListQuery { state_dir: Some(home.path().to_owned()), kinds, limit, ..ListQuery::default() };
        async move {
            let sessions = catalog().list(&query).await.unwrap().sessions;
            let mut ids: Vec<_> = sessions.iter().map(|entry| entry.id.as_str().to_owned()).collect();
            ids.sort();
            ids
        }
    };
    assert_eq!(of(vec![SessionKind::Main], Some(5)).await, people);
    assert_eq!(of(vec![SessionKind::Headless], None).await.len(), 2_985);
    assert_eq!(of(vec![SessionKind::Sidechain], None).await.len(), 15);
    assert_eq!(of(vec![], Some(2_000)).await.len(), 2_000);
    let search = |kinds, limit| {
        let (state_dir, words) = (Some(home.path().to_owned()), vec!["Review".to_owned()]);
        let query = SearchQuery { state_dir, words, kinds, limit, ..SearchQuery::default() };
        async move {
            let mut search = catalog().search(&query).await.unwrap();
            let mut ids = Vec::new();
            while let Some(Searched::Hit(hit)) = search.next().await {
                ids.push(hit.id.as_str().to_owned());
            }
            ids.sort();
            ids
        }
    };
    assert_eq!(search(vec![SessionKind::Main], Some(5)).await, people);
    assert_eq!(search(vec![SessionKind::Main, SessionKind::Sidechain], None).await.len(), 20);
    assert_eq!(search(vec![SessionKind::Headless], Some(2_000)).await.len(), 2_000);
}

#[tokio::test]
async fn separators_of_other_readers_end_no_line() {
    let home = tempfile::tempdir().unwrap();
    let text = "left\u{2028}right\u{85}end\u{2029}.";
    let lines = meta(ONE, &json!({})) + &prompt(1, text) + &reply(2, "with \r inside");
    assert!(lines.contains('\u{2028}'), "it is written raw");
    write(&place(home.path(), ONE, false), lines.replace('\n', "\r\n"));
    let listing = exact(home.path()).await;
    let entry = &listing.sessions[0];
    assert_eq!((entry.first_prompt.as_deref(), entry.turns, entry.skipped_lines), (Some(text), Some(1), 0));
    let page = page(entry, PageQuery::Last { turns: 3 }).await;
    assert_eq!((said(&page), page.notices.as_slice()), (vec![text, "with \r inside"], &[][..]));
}

fn query<'a>(id: &'a NativeId, home: &'a Path) -> SessionQuery<'a> {
    SessionQuery { id, cwd: Path::new("/w/elsewhere"), state_dir: Some(home), version: None }
}

/// Its versions find a session by its id: no file has to go anywhere, packed or not.
#[tokio::test]
async fn no_file_is_moved_for_another_folder() {
    let home = tempfile::tempdir().unwrap();
    let text = meta(ONE, &json!({})) + &prompt(1, "hi") + &reply(2, "ho");
    let files = [
        (ONE, place(home.path(), ONE, false).with_extension("jsonl.zst"), packed(text.as_bytes())),
        (TWO, place(home.path(), TWO, false), text.replace(ONE, TWO).into_bytes()),
    ];
    for (id, path, bytes) in &files {
        write(path, bytes);
        let id = NativeId::new(*id);
        for way in [Way::Move, Way::Copy, Way::Nothing] {
            let order =
                RelocateOrder { query: query(&id, home.path()), from: path, bytes: bytes.len() as u64, way };
            assert_eq!(catalog().relocate(order).await.unwrap(), Relocated::NothingToDo, "{way:?}");
            assert_eq!(fs::read(path).unwrap(), *bytes);
        }
    }
}

/// Versions that read packed files unpack them themselves.
#[tokio::test]
async fn a_packed_file_is_unpacked_for_a_version_that_reads_none() {
    let home = tempfile::tempdir().unwrap();
    let text = meta(ONE, &json!({})) + &prompt(1, "hi") + &reply(2, "ho");
    let plain = place(home.path(), ONE, false);
    let zst = plain.with_extension("jsonl.zst");
    write(&zst, packed(text.as_bytes()));
    let id = NativeId::new(ONE);
    let (older, newer) = (Version::parse("codex-cli 0.128.0"), Version::parse("codex-cli 0.145.0"));
    let asked = SessionQuery { version: older.as_ref(), ..query(&id, home.path()) };
    let look = catalog().inspect(asked).await.unwrap();
    assert!(look.suits(newer.as_ref()) && !look.suits(older.as_ref()) && look.suits_unpacked(older.as_ref()));
    assert!(catalog().mend(asked, &look, Mend::Unpack).await.unwrap());
    assert_eq!((fs::read_to_string(&plain).unwrap(), zst.exists()), (text, false));
    let again = catalog().inspect(asked).await.unwrap();
    assert!(again.suits(older.as_ref()) && again.user_turns == 1, "{again:?}");
}

/// Sparse: it takes no room on the disk.
#[tokio::test]
async fn a_hole_of_gigabytes_takes_nothing_from_the_sessions_beside_it() {
    let home = tempfile::tempdir().unwrap();
    let lines = meta(ONE, &json!({})) + &prompt(1, "parser of the large one") + &reply(2, "ho");
    let large = place(home.path(), ONE, false);
    write(&large, &lines);
    fs::File::options().append(true).open(&large).unwrap().set_len(4 << 30).unwrap();
    write(&place(home.path(), TWO, false), lines.replace(ONE, TWO).replace("large", "small"));
    let listing = super::list(&catalog(), home.path(), rejoin::core::history::Depth::Quick).await;
    let sizes: Vec<_> = listing.sessions.iter().filter_map(|entry| entry.bytes).collect();
    assert!(sizes.len() == 2 && sizes.contains(&(4 << 30)), "{sizes:?}");
    let entry = |id: &str| listing.sessions.iter().find(|entry| entry.id.as_str() == id).unwrap();
    assert_eq!(entry(ONE).first_prompt.as_deref(), Some("parser of the large one"));
    let id = NativeId::new(TWO);
    assert_eq!(catalog().inspect(query(&id, home.path())).await.unwrap().user_turns, 1);
    assert_eq!(
        said(&page(entry(TWO), PageQuery::Last { turns: 1 }).await),
        ["parser of the small one", "ho"]
    );
    let words = vec!["small".to_owned()];
    let search = SearchQuery {
        state_dir: Some(home.path().to_owned()),
        words,
        scope: Scope::All,
        limit: Some(1),
        ..SearchQuery::default()
    };
    let mut search = catalog().search(&search).await.unwrap();
    let mut told = Vec::new();
    loop {
        match search.next().await {
            Some(Searched::Hit(hit)) => break assert_eq!(hit.id.as_str(), TWO),
            Some(Searched::Notice(notice)) => told.push(notice.kind),
            other => panic!("{other:?}"),
        }
    }
    assert!(
        told.iter().all(|kind| matches!(kind, NoticeKind::LineTooLong | NoticeKind::TornTail)),
        "{told:?}"
    );
    // A line longer than any record is none: it is told, and what lies before it is read.
    fs::File::options().append(true).open(&large).unwrap().set_len(64 << 20).unwrap();
    let page = page(entry(ONE), PageQuery::Last { turns: 1 }).await;
    assert_eq!(said(&page), ["parser of the large one", "ho"]);
    assert_eq!(page.notices.len(), 1, "{page:?}");
}
