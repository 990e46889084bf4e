//! Searches in what was said.

use std::time::Duration;

use rusqlite::Connection;
use session_core::history::{Hit, HitPlace, Notice, NoticeKind, Scope, SearchQuery, Searched, SessionKind};
use session_core::{EnvMap, SessionCatalog as _};

use super::SCHEMAS;
use super::home::*;
use crate::{DatabaseError, OpencodeCatalog};

fn query(words: &[&str]) -> SearchQuery {
    SearchQuery { words: words.iter().map(|word| (*word).to_owned()).collect(), ..SearchQuery::default() }
}

async fn search(catalog: &OpencodeCatalog, query: &SearchQuery) -> (Vec<Hit>, Vec<Notice>) {
    let mut search = catalog.search(query).await.unwrap();
    let (mut hits, mut notices) = (Vec::new(), Vec::new());
    while let Some(searched) = search.next().await {
        match searched {
            Searched::Hit(hit) => hits.push(*hit),
            Searched::Notice(notice) => notices.push(notice),
            other => panic!("{other:?}"),
        }
    }
    (hits, notices)
}

/// Each hit as its session, its place and its excerpt.
async fn found(home: &Home, query: &SearchQuery) -> Vec<(String, HitPlace, String)> {
    let (hits, notices) = search(&home.catalog(), query).await;
    assert_eq!(notices, []);
    hits.into_iter().map(|hit| (hit.id.to_string(), hit.place, hit.excerpt)).collect()
}

/// The ids of the sessions in the order of the hits.
async fn ids(home: &Home, query: &SearchQuery) -> Vec<String> {
    found(home, query).await.into_iter().map(|(id, ..)| id).collect()
}

fn hit(id: &str, place: HitPlace, excerpt: &str) -> (String, HitPlace, String) {
    (id.to_owned(), place, excerpt.to_owned())
}

/// A part with a word that nobody said.
fn silent(n: u32, data: &str) -> String {
    part(&format!("prt_silent{n}"), "msg_2", "ses_1", data)
}

#[tokio::test]
async fn prompts_replies_and_titles_of_every_schema_are_searched_and_nothing_else() {
    for (version, _) in SCHEMAS {
        let home = Home::new();
        let rows = [
            session("ses_1", "About Needles", T),
            user("msg_1", "ses_1", T, "a needle first"),
            reply("msg_2", "ses_1", T + 1, 10, "the NEEDLE there"),
            silent(
                1,
                r#"{"type":"tool","tool":"bash","callID":"c","state":{"status":"completed","input":{"a":"needle"},"output":"needle"}}"#,
            ),
            silent(2, r#"{"type":"reasoning","text":"a needle"}"#),
            silent(3, r#"{"type":"text","text":"a needle","synthetic":true}"#),
            silent(4, r#"{"type":"file","mime":"text/plain","url":"needle"}"#),
            user("msg_3", "ses_1", T + 5, "nothing"),
            session("ses_2", "other", T + 100),
            user("msg_4", "ses_2", T + 100, "needle \\u00e9\\tÀ propos"),
        ];
        let path = home.database("opencode.db", version, &rows);
        let (hits, notices) = search(&home.catalog(), &query(&["needle"])).await;
        assert_eq!(notices, [], "{version}");
        let told: Vec<_> =
            hits.iter().map(|hit| (hit.id.as_str(), hit.place, hit.excerpt.as_str())).collect();
        // The session that was used last first; in each the title, then the last message first.
        let expected = [
            ("ses_2", HitPlace::Prompt, "needle é À propos"),
            ("ses_1", HitPlace::Title, "About Needles"),
            ("ses_1", HitPlace::Reply, "the NEEDLE there"),
            ("ses_1", HitPlace::Prompt, "a needle first"),
        ];
        assert_eq!(told, expected, "{version}");
        let reply = &hits[2];
        assert_eq!(&reply.excerpt[reply.matched.clone()], "NEEDLE");
        assert_eq!((reply.span, reply.time.unwrap().as_millis()), (None, T + 1));
        assert_eq!((&reply.source.path, &reply.source.state_dir), (&path, &None));
        assert_eq!((hits[1].span, hits[1].time), (None, None), "a title has no time of its own");
        assert_eq!(ids(&home, &query(&["É\tà pro"])).await, ["ses_2"], "in any letter case, as it is read");
        assert_eq!(home.names(), ["opencode.db"]);
    }
}

#[tokio::test]
async fn all_words_have_to_be_in_one_message_whichever_part_they_are_in() {
    let home = Home::new();
    let two = user("msg_1", "ses_1", T, "alpha")
        + &part("prt_z", "msg_1", "ses_1", r#"{"type":"text","text":"beta gamma"}"#);
    let rows = [session("ses_1", "delta", T), two, reply("msg_2", "ses_1", T + 1, 1, "epsilon")];
    home.database("opencode.db", "1.18.33", &rows);
    let excerpt = "alpha beta gamma";
    assert_eq!(found(&home, &query(&["BETA", "alpha"])).await, [hit("ses_1", HitPlace::Prompt, excerpt)]);
    assert_eq!(ids(&home, &query(&["alpha\nbeta g"])).await, ["ses_1"]);
    for words in [&["alpha", "epsilon"][..], &["alpha", "delta"], &["alpha gamma"]] {
        assert_eq!(ids(&home, &query(words)).await, [""; 0], "{words:?}");
    }
    let error = home.catalog().search(&query(&["", ""])).await.unwrap_err();
    let told = format!("{error}: {}", error.source);
    assert_eq!(told, "cannot look at the agent's sessions: there is nothing to search for");
}

#[tokio::test]
async fn a_session_of_the_tree_is_searched_as_one_of_a_database() {
    let home = Home::new();
    home.tree_session("ses_1", "an old tale", T);
    home.tree_session("ses_2", "ALPHA again", T + 50);
    home.write("part/msg_1_2/prt_3.json", r#"{"type":"text","text":"the Alpha reply"}"#);
    let all = [
        hit("ses_2", HitPlace::Title, "ALPHA again"),
        hit("ses_2", HitPlace::Prompt, " alpha"),
        hit("ses_1", HitPlace::Reply, "the Alpha reply"),
        hit("ses_1", HitPlace::Prompt, " alpha"),
    ];
    assert_eq!(found(&home, &query(&["alpha"])).await, all);
    // A database beside it has the same session, and that one counts.
    let rows = [session("ses_1", "new", T + 99), user("msg_1", "ses_1", T, "alpha moved")];
    home.database("opencode.db", "1.18.33", &rows);
    let (hits, notices) = search(&home.catalog(), &query(&["alpha"])).await;
    let told: Vec<_> = hits.iter().map(|hit| (hit.id.as_str(), hit.excerpt.as_str())).collect();
    assert_eq!(told, [("ses_1", "alpha moved"), ("ses_2", "ALPHA again"), ("ses_2", " alpha")]);
    let [Notice { path, kind: NoticeKind::OlderCopy, .. }] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    assert_eq!(*path, home.path("storage/session/p/ses_1.json"));
}

#[tokio::test]
async fn helpers_what_was_taken_back_and_summaries_are_left_out() {
    let home = Home::new();
    let summary = r#"{"role":"assistant","summary":true,"finish":"stop","time":{"created":1,"completed":2}}"#;
    let rows = [
        session("ses_1", "New session - 2026-11-30T00:00:00.000Z", T),
        user("msg_1", "ses_1", T, "alpha one"),
        message("msg_2", "ses_1", T + 1, summary),
        part("prt_s", "msg_2", "ses_1", r#"{"type":"text","text":"alpha in sum"}"#),
        user("msg_3", "ses_1", T + 2, "alpha two"),
        "UPDATE session SET revert = '{\"messageID\":\"msg_3\"}';".to_owned(),
        session("ses_2", "alpha helper", T + 50),
        user("msg_4", "ses_2", T + 50, "alpha helps"),
        "UPDATE session SET parent_id = 'ses_1' WHERE id = 'ses_2';".to_owned(),
    ];
    home.database("opencode.db", "1.18.33", &rows);
    assert_eq!(found(&home, &query(&["alpha"])).await, [hit("ses_1", HitPlace::Prompt, "alpha one")]);
    assert_eq!(ids(&home, &query(&["new session"])).await, [""; 0], "nobody gave that title");
    let all = SearchQuery { with_sidechains: true, ..query(&["alpha"]) };
    assert_eq!(ids(&home, &all).await, ["ses_2", "ses_2", "ses_1"]);
    let of_ses_1 = home.list().await.sessions[0].kind;
    let of = |kind| SearchQuery { kinds: vec![kind], ..query(&["alpha"]) };
    assert_eq!(ids(&home, &of(SessionKind::Sidechain)).await, ["ses_2", "ses_2"]);
    assert_eq!(ids(&home, &of(SessionKind::Main)).await.len(), usize::from(of_ses_1 == SessionKind::Main));
}

#[tokio::test]
async fn a_scope_is_that_of_the_session_or_of_what_was_said_and_a_limit_counts_what_is_left() {
    let home = Home::new();
    let rows = [
        session("ses_1", "alpha", T),
        user("msg_1", "ses_1", T, "alpha"),
        // Its folder is `/w/sub`.
        reply("msg_2", "ses_1", T + 1, 1, "alpha"),
        session("ses_2", "alpha", T + 50),
        user("msg_3", "ses_2", T + 50, "alpha"),
        "UPDATE session SET directory = '/elsewhere' WHERE id = 'ses_2';".to_owned(),
    ];
    home.database("opencode.db", "1.18.33", &rows);
    let within = |scope| SearchQuery { scope, ..query(&["alpha"]) };
    assert_eq!(ids(&home, &within(Scope::Exact("/w".into()))).await, ["ses_1"; 3]);
    let said_there = found(&home, &within(Scope::Exact("/w/sub".into()))).await;
    assert_eq!(said_there, [hit("ses_1", HitPlace::Reply, "alpha")]);
    assert_eq!(ids(&home, &within(Scope::Below("/elsewhere".into()))).await, ["ses_2"; 2]);
    let limited = SearchQuery { limit: Some(2), ..within(Scope::Below("/w".into())) };
    assert_eq!(ids(&home, &limited).await, ["ses_1"; 2]);
    assert_eq!(ids(&home, &SearchQuery { limit: Some(0), ..limited }).await, [""; 0]);
}

#[tokio::test]
async fn nothing_is_told_twice_or_left_out_where_it_goes_on_in_slices() {
    let home = Home::new();
    let message = |n: u32| user(&format!("msg_{n:05}"), "ses_1", T + i64::from(n), &format!("alpha {n}"));
    let rows: Vec<_> = [session("ses_1", "alpha", T)]
        .into_iter()
        .chain((0..700).map(message))
        .chain((0..200).map(|n| session(&format!("ses_x{n:03}"), "alpha", T - 1000)))
        .collect();
    home.database("opencode.db", "1.18.33", &rows);
    let mut expected = vec![hit("ses_1", HitPlace::Title, "alpha")];
    expected.extend((0..700).rev().map(|n| hit("ses_1", HitPlace::Prompt, &format!("alpha {n}"))));
    expected.extend((0..200).map(|n| hit(&format!("ses_x{n:03}"), HitPlace::Title, "alpha")));
    assert_eq!(found(&home, &query(&["alpha"])).await, expected);
}

#[tokio::test]
async fn a_writer_is_in_nobodys_way_while_hits_wait() {
    let home = Home::new();
    let rows: Vec<_> = [session("ses_1", "alpha", T)]
        .into_iter()
        .chain((0..900).map(|n| user(&format!("msg_{n:05}"), "ses_1", T, "alpha")))
        .collect();
    let path = home.database("opencode.db", "1.18.33", &rows);
    let writer = Connection::open(&path).unwrap();
    writer.busy_timeout(Duration::from_secs(60)).unwrap();
    writer.execute_batch("UPDATE session SET title = 'beta'").unwrap();
    let mut search = home.catalog().search(&query(&["alpha"])).await.unwrap();
    let Some(Searched::Hit(first)) = search.next().await else { panic!() };
    assert_eq!(first.place, HitPlace::Prompt);
    // It waits for whoever reads; nobody asks for another hit meanwhile.
    writer.execute_batch("UPDATE session SET title = 'gamma'").unwrap();
    let busy: i64 = writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0);
    let mut hits = 1;
    while search.next().await.is_some() {
        hits += 1;
    }
    assert_eq!(hits, 900);
}

#[tokio::test]
async fn what_cannot_be_read_is_told_and_stops_nothing() {
    let home = Home::new();
    std::fs::write(home.path("opencode.db"), [7; 8192]).unwrap();
    let rows = [
        session("ses_1", "x", T),
        user("msg_1", "ses_1", T, "alpha"),
        message("msg_2", "ses_1", T + 1, "{"),
        part("prt_2", "msg_2", "ses_1", r#"{"type":"text","text":"alpha"}"#),
        message("msg_3", "ses_1", T + 2, r#"{"role":"user","time":{"created":1}}"#),
        part("prt_3", "msg_3", "ses_1", "{alpha"),
        part("prt_4", "msg_3", "ses_1", r#"{"type":"text","text":"alpha too"}"#),
    ];
    let path = home.database("opencode-beta.db", "1.18.33", &rows);
    let (hits, notices) = search(&home.catalog(), &query(&["alpha"])).await;
    let told: Vec<_> = hits.iter().map(|hit| hit.excerpt.as_str()).collect();
    assert_eq!(told, ["alpha too", "alpha"]);
    let damaged = NoticeKind::Unreadable(DatabaseError::Damaged.to_string());
    let notice = |path, kind| Notice { path, offset: None, kind };
    let skipped = || notice(path.clone(), NoticeKind::SkippedLine);
    assert_eq!(notices, [notice(home.path("opencode.db"), damaged), skipped(), skipped()]);
}

#[tokio::test]
async fn a_place_that_is_not_there_holds_nothing_and_one_that_is_not_known_is_an_error() {
    let home = Home::new();
    let query = SearchQuery { state_dir: Some(home.dir.path().join("none")), ..query(&["alpha"]) };
    assert_eq!(search(&home.catalog(), &query).await, (vec![], vec![]));
    let nowhere = OpencodeCatalog::new(EnvMap::new());
    let error = nowhere.search(&SearchQuery { state_dir: None, ..query }).await.unwrap_err();
    assert_eq!(error.source.to_string(), "it is not known where its sessions lie");
}

#[tokio::test]
async fn databases_of_a_state_dir_are_searched_and_what_leads_out_of_it_is_not() {
    let home = Home::new();
    let rows = [session("ses_1", "alpha", T)];
    home.database("ses_1.db", "1.18.33", &rows);
    let state = home.data();
    let query = SearchQuery { state_dir: Some(state.clone()), ..query(&["alpha"]) };
    let (hits, notices) = search(&home.catalog(), &query).await;
    assert_eq!((hits.len(), notices), (1, vec![]));
    assert_eq!(hits[0].source.state_dir.as_ref(), Some(&state));
    #[cfg(unix)]
    {
        let other = home.dir.path().join("other.db");
        std::fs::rename(home.path("ses_1.db"), &other).unwrap();
        std::os::unix::fs::symlink(&other, home.path("ses_1.db")).unwrap();
        let (hits, notices) = search(&home.catalog(), &query).await;
        let denied = NoticeKind::Unreadable(DatabaseError::Denied.to_string());
        assert_eq!((hits, notices.into_iter().map(|it| it.kind).collect::<Vec<_>>()), (vec![], vec![denied]));
    }
}

#[tokio::test]
async fn a_search_without_time_says_that_it_did_not_look() {
    let home = Home::new();
    let rows = [session("ses_1", "alpha", T), user("msg_1", "ses_1", T, "alpha")];
    let path = home.database("opencode.db", "1.18.33", &rows);
    let hasty = OpencodeCatalog { reading: Duration::ZERO, ..home.catalog() };
    let (hits, notices) = search(&hasty, &query(&["alpha"])).await;
    let notice = Notice { path, offset: None, kind: NoticeKind::LimitReached };
    assert_eq!((hits, notices), (vec![], vec![notice]));
}
