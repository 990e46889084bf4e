//! Lists, and the search by an id alone.

use std::path::Path;

use rusqlite::Connection;
use session_core::error::CatalogError;
use session_core::history::{
    Ancestor, Descent, ListQuery, Listing, NoticeKind, Resumability, Scope, SessionEntry, SessionKind,
    TitleSource, Unresumable,
};
use session_core::{EnvMap, NativeId, SessionCatalog as _, Usage};

use super::SCHEMAS;
use super::home::*;
use crate::OpencodeCatalog;

fn ids(listing: &Listing) -> Vec<&str> {
    listing.sessions.iter().map(|entry| entry.id.as_str()).collect()
}

/// The figures of one step with so many tokens sent.
fn usage(input: u64, times: u64, reasoning: u64) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: (2 + reasoning) * times,
        cache_read_tokens: 3 * times,
        cache_write_tokens: 4 * times,
    }
}

#[tokio::test]
async fn a_list_tells_of_a_session_what_every_schema_keeps() {
    for (version, _) in SCHEMAS {
        let home = Home::new();
        let path = home.database(
            "opencode.db",
            version,
            &[
                session("ses_1", "the bug", T),
                user("msg_1", "ses_1", T, " first \\n words "),
                reply("msg_2", "ses_1", T + 1, 10, "one"),
                user("msg_3", "ses_1", T + 5, "last words"),
                reply("msg_4", "ses_1", T + 6, 20, "two"),
            ],
        );
        let listing = home.list().await;
        assert!(listing.is_complete() && listing.notices.is_empty(), "{version}: {:?}", listing.notices);
        let [entry] = listing.sessions.as_slice() else { panic!("{version}: {:?}", listing.sessions) };
        let title = entry.title.as_ref().unwrap();
        assert_eq!((title.text.as_str(), title.source), ("the bug", TitleSource::Agent));
        assert_eq!(entry.first_prompt.as_deref(), Some("first \n words"));
        assert_eq!(entry.last_prompt.as_deref(), Some("last words"));
        assert_eq!((&entry.source.path, &entry.source.state_dir), (&path, &None));
        assert_eq!(
            (entry.cwd.as_deref(), entry.last_cwd.as_deref()),
            (Some(Path::new("/w")), Some("/w/sub".as_ref()))
        );
        assert_eq!(
            (entry.branch.as_ref(), entry.turns, entry.model.as_deref()),
            (None, Some(2), Some("p/m"))
        );
        assert_eq!((entry.began.unwrap().as_millis(), entry.updated.unwrap().as_millis()), (T, T + 9));
        assert_eq!((entry.kind, entry.resumable), (SessionKind::Main, Resumability::Yes));
        assert_eq!(entry.usage, Some(usage(30, 2, 1)), "{version}");
        assert!(entry.exact && entry.parent.is_none());
    }
}

#[tokio::test]
async fn the_agents_own_totals_go_before_the_sum_of_steps() {
    let home = Home::new();
    let rows =
        [session("ses_1", "x", T), user("msg_1", "ses_1", T, "a"), reply("msg_2", "ses_1", T + 1, 10, "one")];
    let path = home.database("opencode.db", "1.18.33", &rows);
    let set =
        "UPDATE session SET tokens_input = 7, tokens_output = 8, tokens_reasoning = 9, tokens_cache_read = 1";
    Connection::open(path).unwrap().execute_batch(set).unwrap();
    let expected = Usage { input_tokens: 7, output_tokens: 17, cache_read_tokens: 1, cache_write_tokens: 0 };
    assert_eq!(home.entry("ses_1").await.usage, Some(expected));
}

#[tokio::test]
async fn every_step_of_a_reply_counts() {
    let home = Home::new();
    let rows = [
        session("ses_1", "x", T),
        user("msg_1", "ses_1", T, "a"),
        reply("msg_2", "ses_1", T + 1, 2, "one"),
        part("prt_0", "msg_2", "ses_1", &step_json(1)),
    ];
    home.database("opencode.db", "1.2.1", &rows);
    assert_eq!(home.entry("ses_1").await.usage, Some(usage(3, 2, 1)), "not the last step alone");
}

#[tokio::test]
async fn what_a_fork_copied_is_not_counted_again() {
    for (version, _) in SCHEMAS {
        let home = Home::new();
        let mut rows = vec![session("ses_b", "original", T), session("ses_a", "fork", T + 100)];
        for n in 0..10 {
            rows.push(user(&format!("msg_1{n}"), "ses_b", T + n, "asked"));
            rows.push(reply(&format!("msg_2{n}"), "ses_b", T + n, 10, "told"));
            rows.push(user(&format!("msg_3{n}"), "ses_a", T + n, "asked"));
            rows.push(reply(&format!("msg_4{n}"), "ses_a", T + n, 10, "told"));
        }
        rows.push(user("msg_50", "ses_a", T + 200, "new"));
        rows.push(reply("msg_51", "ses_a", T + 201, 5, "new"));
        // As many figures at the same time, and other words: no copy.
        rows.push(session("ses_c", "beside", T + 300));
        rows.push(user("msg_60", "ses_c", T + 1, "asked"));
        rows.push(reply("msg_61", "ses_c", T + 1, 10, "other words"));
        home.database("opencode.db", version, &rows);
        let [original, fork, beside] =
            [home.entry("ses_b").await, home.entry("ses_a").await, home.entry("ses_c").await];
        assert_eq!(original.usage, Some(usage(100, 10, 1)), "{version}");
        assert_eq!(fork.usage, Some(usage(5, 1, 1)), "{version}");
        assert_eq!(beside.usage, Some(usage(10, 1, 1)), "{version}");
        let parent = Ancestor { id: NativeId::new("ses_b"), descent: Descent::Forked };
        assert_eq!((fork.parent, original.parent, beside.parent), (Some(parent), None, None));
        assert_eq!((fork.turns, original.turns), (Some(11), Some(10)));
        let found = home.catalog().find(&NativeId::new("ses_a"), None).await.unwrap();
        assert_eq!((found.len(), found[0].usage), (1, Some(usage(5, 1, 1))), "{version}");
    }
}

#[tokio::test]
async fn every_store_is_listed_and_the_newer_one_wins() {
    for with_tree in [true, false] {
        let home = Home::new();
        let [two, three] = ["ses_2", "ses_3"]
            .map(|id| [session(id, "of the database", T + 50), user(&format!("msg_{id}"), id, T, "a")]);
        let main = home.database("opencode.db", "1.18.33", &two);
        let stable = home.database("opencode-stable.db", "1.18.33", &three);
        if with_tree {
            let one = home.tree_session("ses_1", "old", T + 20);
            let copy = home.tree_session("ses_2", "of the tree", T + 10);
            let listing = home.list().await;
            assert_eq!(ids(&listing), ["ses_2", "ses_3", "ses_1"]);
            let paths: Vec<_> = listing.sessions.iter().map(|entry| &entry.source.path).collect();
            assert_eq!(paths, [&main, &stable, &one]);
            assert_eq!(listing.sessions[0].title.as_ref().unwrap().text, "of the database");
            let old = &listing.sessions[2];
            assert_eq!(old.resumable, Resumability::No(Unresumable::OlderStore));
            assert_eq!((old.first_prompt.as_deref(), old.turns), (Some("alpha"), Some(1)));
            assert_eq!((old.usage, old.model.as_deref()), (Some(usage(7, 1, 0)), Some("p/m")));
            assert_eq!(listing.notices.len(), 1);
            assert_eq!((&listing.notices[0].path, &listing.notices[0].kind), (&copy, &NoticeKind::OlderCopy));
            let found = home.catalog().find(&NativeId::new("ses_2"), None).await.unwrap();
            let paths: Vec<_> = found.iter().map(|entry| &entry.source.path).collect();
            assert_eq!(paths, [&main, &copy], "newest first");
        } else {
            assert_eq!(ids(&home.list().await), ["ses_2", "ses_3"]);
        }
    }
    let home = Home::new();
    home.tree_session("ses_1", "old", T);
    let listing = home.list().await;
    assert_eq!((ids(&listing), listing.sessions[0].resumable), (vec!["ses_1"], Resumability::Yes));
    assert_eq!(home.catalog().find(&NativeId::new("ses_1"), None).await.unwrap().len(), 1);
    assert_eq!(home.catalog().find(&NativeId::new("ses_2"), None).await.unwrap(), []);
}

#[tokio::test]
async fn a_database_that_the_user_chose_and_those_of_a_state_dir_are_listed() {
    let home = Home::new();
    let rows = |id: &str| [session(id, "x", T), user(&format!("msg_{id}"), id, T, "a")];
    let chosen = home.database("mine.sqlite", "1.18.33", &rows("ses_1"));
    let catalog = home.catalog_with(&[("OPENCODE_DB", "mine.sqlite")]);
    let listing = catalog.list(&ListQuery::default()).await.unwrap();
    assert_eq!((ids(&listing), &listing.sessions[0].source.path), (vec!["ses_1"], &chosen));
    assert_eq!(ids(&home.list().await), [""; 0]);
    home.database("../ses_2.db", "1.18.33", &rows("ses_2"));
    home.database("opencode.db", "1.2.1", &rows("ses_3"));
    let state_dir = Some(home.dir.path().to_owned());
    let query = ListQuery { state_dir: state_dir.clone(), ..ListQuery::default() };
    let listing = OpencodeCatalog::new(EnvMap::new()).list(&query).await.unwrap();
    assert_eq!(ids(&listing), ["ses_2", "ses_3"]);
    assert!(listing.sessions.iter().all(|entry| entry.source.state_dir == state_dir));
    OpencodeCatalog::new(EnvMap::new()).list(&ListQuery::default()).await.unwrap_err();
}

#[tokio::test]
async fn kinds_titles_and_reasons_are_told() {
    let home = Home::new();
    let mut rows: Vec<String> = ["ses_main", "ses_run", "ses_child", "ses_arch", "ses_fork", "ses_broken"]
        .iter()
        .map(|id| {
            session(id, "New session - 2026-11-29T14:32:55.258Z", T) + &user(&format!("msg_{id}"), id, T, "a")
        })
        .collect();
    rows.push(session("ses_empty", "x", T));
    rows.push(
        r#"UPDATE session SET permission = '[{"permission":"question","pattern":"*","action":"deny"}]' WHERE id IN ('ses_run', 'ses_child');
        UPDATE session SET parent_id = 'ses_main', title = 'sub job (@general subagent)' WHERE id = 'ses_child';
        UPDATE session SET time_archived = 5 WHERE id = 'ses_arch';
        UPDATE session SET title = 'New session - 2026-11-29T14:32:55.258Z (fork #1)' WHERE id = 'ses_fork';
        UPDATE session SET title = 'New session - my own' WHERE id = 'ses_run';
        UPDATE message SET data = '{"role"' WHERE id = 'msg_ses_broken';"#
            .to_owned(),
    );
    home.database("opencode.db", "1.18.33", &rows);
    let listing = home.list().await;
    assert_eq!(ids(&listing), ["ses_arch", "ses_fork", "ses_main", "ses_run"]);
    assert_eq!(listing.empty, 2, "one with nothing in it, and one whose only message is none");
    let told = async |id: &str| {
        let entry = home.entry(id).await;
        (entry.kind, entry.resumable, entry.title.map(|title| title.text))
    };
    let (main, yes) = (SessionKind::Main, Resumability::Yes);
    assert_eq!(told("ses_main").await, (main, yes, None));
    assert_eq!(told("ses_fork").await, (main, yes, None));
    assert_eq!(told("ses_arch").await, (main, yes, None), "the agent continues it all the same");
    assert_eq!(told("ses_run").await, (SessionKind::Headless, yes, Some("New session - my own".into())));
    let child = home.entry("ses_child").await;
    assert_eq!(
        (child.kind, child.resumable),
        (SessionKind::Sidechain, Resumability::No(Unresumable::Sidechain))
    );
    let parent = Ancestor { id: NativeId::new("ses_main"), descent: Descent::Spawned };
    assert_eq!(child.parent, Some(parent));
    assert_eq!(home.entry("ses_empty").await.resumable, Resumability::No(Unresumable::Empty));
    let broken = home.entry("ses_broken").await;
    assert_eq!((broken.resumable, broken.skipped_lines), (Resumability::No(Unresumable::Damaged), 1));
}

#[tokio::test]
async fn only_what_somebody_typed_is_a_turn() {
    let home = Home::new();
    let rows = [
        session("ses_1", "x", T),
        user("msg_1", "ses_1", T, "typed"),
        part("prt_0", "msg_1", "ses_1", r#"{"type":"text","text":"made up","synthetic":true}"#),
        message("msg_2", "ses_1", T, &format!(r#"{{"role":"user","time":{{"created":{T}}}}}"#)),
        part("prt_2", "msg_2", "ses_1", r#"{"type":"compaction","auto":true}"#),
        message("msg_3", "ses_1", T, &format!(r#"{{"role":"user","time":{{"created":{T}}}}}"#)),
        part("prt_3", "msg_3", "ses_1", r#"{"type":"text","text":"go on","synthetic":true}"#),
        message("msg_4", "ses_1", T, &format!(r#"{{"role":"user","time":{{"created":{T}}}}}"#)),
        user("msg_5", "ses_1", T, "taken back"),
        r#"UPDATE session SET revert = '{"messageID":"msg_5"}';"#.to_owned(),
    ];
    home.database("opencode.db", "1.18.33", &rows);
    let entry = home.entry("ses_1").await;
    assert_eq!((entry.turns, entry.last_prompt.as_deref()), (Some(1), Some("typed")));
}

#[cfg(unix)]
#[tokio::test]
async fn a_list_is_narrowed_by_folder_kind_and_number() {
    let home = Home::new();
    let real = home.dir.path().join("real");
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, home.dir.path().join("link")).unwrap();
    let in_folder = |id: &str, folder: &str, at| {
        session(id, "x", at)
            + &user(&format!("msg_{id}"), id, at, "a")
            + &format!("UPDATE session SET directory = '{folder}' WHERE id = '{id}';")
    };
    let folder = real.to_str().unwrap();
    let rows = [
        in_folder("ses_1", folder, T),
        in_folder("ses_2", &format!("{folder}/below"), T + 1),
        in_folder("ses_3", "/gone", T + 2),
        reply("msg_9", "ses_3", T + 3, 1, "x"),
    ];
    home.database("opencode.db", "1.18.33", &rows);
    let list = async |scope: Scope, limit| {
        let query = ListQuery { scope, limit, ..ListQuery::default() };
        let listing = home.catalog().list(&query).await.unwrap();
        listing.sessions.into_iter().map(|entry| entry.id.as_str().to_owned()).collect::<Vec<_>>()
    };
    let link = home.dir.path().join("link");
    assert_eq!(list(Scope::Exact(link.clone()), None).await, ["ses_1"]);
    assert_eq!(list(Scope::Below(link.clone()), None).await, ["ses_2", "ses_1"]);
    assert_eq!(list(Scope::Below(link.clone()), Some(1)).await, ["ses_2"]);
    assert_eq!(list(Scope::Exact("/gone".into()), None).await, ["ses_3"], "as written where it is gone");
    assert_eq!(list(Scope::Exact("/w/sub".into()), None).await, ["ses_3"], "where it was last");
    assert_eq!(list(Scope::AnyBelow(vec![link, "/gone".into()]), None).await, ["ses_3", "ses_2", "ses_1"]);
}

/// The error of a search that could not look everywhere.
#[tokio::test]
async fn a_session_that_may_lie_in_an_unread_store_is_not_called_missing() {
    let home = Home::new();
    std::fs::write(home.path("opencode.db"), [7; 8192]).unwrap();
    let error: CatalogError = home.catalog().find(&NativeId::new("ses_1"), None).await.unwrap_err();
    assert_eq!(error.path, home.path("opencode.db"));
    home.tree_session("ses_1", "old", T);
    assert_eq!(home.catalog().find(&NativeId::new("ses_1"), None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_title_is_as_long_as_a_list_shows() {
    let (home, long) = (Home::new(), "é".repeat(2000));
    let rows =
        [session("ses_1", &long, T), user("msg_1", "ses_1", T, "hi"), reply("msg_2", "ses_1", T, 1, "a")];
    home.database("opencode.db", SCHEMAS[0].0, &rows);
    let listing = home.list().await;
    let title = listing.sessions[0].title.as_ref().unwrap();
    assert_eq!(title.text, long[..SessionEntry::PROMPT]);
}
