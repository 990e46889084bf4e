//! Pages of a transcript, and what is restored.

use rusqlite::Connection;
use session_core::history::{Block, Cursor, EntryKind, OpenCall, PageQuery, SessionSource, TranscriptPage};
use session_core::{NativeId, SessionCatalog as _, Usage};

use super::SCHEMAS;
use super::home::*;
use crate::DatabaseError;

fn named(page: &TranscriptPage) -> Vec<&str> {
    page.entries.iter().map(|located| located.entry.id.as_deref().unwrap()).collect()
}

/// Three turns.
fn talk() -> Vec<String> {
    vec![
        session("ses_1", "the bug", T),
        user("msg_1", "ses_1", T, "one"),
        reply("msg_2", "ses_1", T + 1, 10, "first"),
        user("msg_3", "ses_1", T + 5, "two"),
        reply("msg_4", "ses_1", T + 6, 20, "second"),
        reply("msg_5", "ses_1", T + 8, 30, "more"),
        user("msg_6", "ses_1", T + 9, "three"),
        reply("msg_7", "ses_1", T + 10, 40, "third"),
    ]
}

async fn page(home: &Home, source: &SessionSource, query: PageQuery) -> TranscriptPage {
    home.catalog().page(&NativeId::new("ses_1"), source, &query).await.unwrap()
}

#[tokio::test]
async fn pages_lead_from_the_end_to_the_beginning() {
    for (version, _) in SCHEMAS {
        let home = Home::new();
        let source = SessionSource { path: home.database("opencode.db", version, &talk()), state_dir: None };
        let last = page(&home, &source, PageQuery::Last { turns: 2 }).await;
        assert_eq!(named(&last), ["msg_3", "msg_4", "msg_5", "msg_6", "msg_7"], "{version}");
        let entry = &last.entries[1].entry;
        let EntryKind::Reply(blocks) = &entry.kind else { panic!("{entry:?}") };
        assert_eq!(blocks[0], Block::Text("second".into()));
        assert!(matches!(&blocks[1], Block::Other(step) if step["type"] == "step-finish"));
        assert_eq!((entry.model.as_deref(), entry.usage.unwrap().input_tokens), (Some("p/m"), 20));
        assert_eq!((entry.parent.as_deref(), entry.time.unwrap().as_millis()), (Some("msg_0"), T + 6));
        assert_eq!(
            (last.entries[0].span, last.entries[0].line, &last.entries[0].path),
            (None, None, &source.path)
        );
        assert_eq!(last.entries[0].entry.kind, EntryKind::Prompt(vec![Block::Text("two".into())]));
        let before = PageQuery::Before { cursor: last.before.clone().unwrap(), turns: 5 };
        let first = page(&home, &source, before).await;
        assert_eq!((named(&first), &first.before), (vec!["msg_1", "msg_2"], &None), "{version}");
        // What is between the two pages is nothing.
        let after = PageQuery::After { cursor: first.after.unwrap(), records: 2 };
        assert_eq!(named(&page(&home, &source, after).await), ["msg_3", "msg_4"]);
        let whole = page(&home, &source, PageQuery::Last { turns: 3 }).await;
        assert_eq!((whole.entries.len(), whole.before), (7, None));
    }
}

#[tokio::test]
async fn what_is_added_is_followed() {
    let home = Home::new();
    let path = home.database("opencode.db", "1.18.33", &talk());
    let source = SessionSource { path: path.clone(), state_dir: None };
    let last = page(&home, &source, PageQuery::Last { turns: 1 }).await;
    let follow = async |cursor: &Option<Cursor>| {
        let query = PageQuery::After { cursor: cursor.clone().unwrap(), records: 9 };
        page(&home, &source, query).await
    };
    let nothing = follow(&last.after).await;
    assert_eq!((named(&nothing), &nothing.after), (vec![], &last.after));
    let writer = Connection::open(&path).unwrap();
    let open = r#"{"role":"assistant","parentID":"msg_8","time":{"created":1}}"#;
    writer
        .execute_batch(&(user("msg_8", "ses_1", T + 20, "four") + &message("msg_9", "ses_1", T + 21, open)))
        .unwrap();
    let added = follow(&last.after).await;
    assert_eq!(named(&added), ["msg_8"], "the reply is still being made");
    let now = page(&home, &source, PageQuery::Last { turns: 1 }).await;
    assert_eq!((named(&now), &now.after), (vec!["msg_8", "msg_9"], &added.after));
    writer
        .execute_batch(r#"UPDATE message SET data = '{"role":"assistant","time":{"created":1,"completed":2}}' WHERE id = 'msg_9'"#)
        .unwrap();
    assert_eq!(named(&follow(&added.after).await), ["msg_9"]);
}

#[tokio::test]
async fn a_cursor_of_another_session_or_of_a_message_that_is_gone_is_refused() {
    let home = Home::new();
    let mut rows = talk();
    rows.push(session("ses_2", "x", T) + &user("msg_x", "ses_2", T, "a"));
    let path = home.database("opencode.db", "1.18.33", &rows);
    let source = SessionSource { path: path.clone(), state_dir: None };
    let last = page(&home, &source, PageQuery::Last { turns: 1 }).await;
    let refused = async |id: &str, cursor: Cursor| {
        let query = PageQuery::Before { cursor, turns: 1 };
        let error = home.catalog().page(&NativeId::new(id), &source, &query).await.unwrap_err();
        assert!(matches!(error.source.downcast_ref(), Some(DatabaseError::PlaceGone)), "{error:?}");
    };
    let cursor = last.before.unwrap();
    refused("ses_2", cursor.clone()).await;
    refused("ses_1", Cursor("é".into())).await;
    refused("ses_1", Cursor(String::new())).await;
    Connection::open(&path).unwrap().execute_batch("DELETE FROM message WHERE id = 'msg_6'").unwrap();
    refused("ses_1", cursor).await;
    let error = home.catalog().page(&NativeId::new("ses_9"), &source, &PageQuery::Last { turns: 1 }).await;
    assert!(matches!(error.unwrap_err().source.downcast_ref(), Some(DatabaseError::SessionGone)));
}

#[tokio::test]
async fn every_kind_of_part_has_its_block_and_unknown_ones_survive() {
    let home = Home::new();
    let completed =
        format!(r#"{{"role":"assistant","time":{{"created":{T},"completed":{T}}},"error":{{"name":"E"}}}}"#);
    let mut rows = vec![
        session("ses_1", "x", T),
        user("msg_1", "ses_1", T, "typed"),
        part("prt_z1", "msg_1", "ses_1", r#"{"type":"file","mime":"image/png","url":"data:xxxx"}"#),
        message("msg_2", "ses_1", T, &completed),
        message("msg_3", "ses_1", T, r#"{"role":"oracle","time":{"created":1}}"#),
        message("msg_4", "ses_1", T, "{cut"),
    ];
    let parts = [
        r#"{"type":"reasoning","text":"hm"}"#,
        r#"{"type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"a":1},"output":"out"}}"#,
        r#"{"type":"tool","callID":"c2","tool":"edit","state":{"status":"error","input":{},"error":"bad"}}"#,
        r#"{"type":"tool","callID":"c3","tool":"bash","state":{"status":"running","input":{}}}"#,
        r#"{"type":"patch","hash":"h","files":["a"]}"#,
        r#"{"type":"novelty","x":1}"#,
        r#"{"type":"text","text":"half \ud83d"}"#,
    ];
    for (n, data) in parts.iter().enumerate() {
        rows.push(part(&format!("prt_2{n}"), "msg_2", "ses_1", data));
    }
    rows.push(part("prt_29", "msg_2", "ses_1", "{cut"));
    let source = SessionSource { path: home.database("opencode.db", "1.18.33", &rows), state_dir: None };
    let page = page(&home, &source, PageQuery::Last { turns: 1 }).await;
    assert_eq!(named(&page), ["msg_1", "msg_2", "msg_3"]);
    assert_eq!(page.notices.len(), 2, "a message and a part that are none");
    let text = |text: &str| text.to_owned();
    assert_eq!(
        page.entries[0].entry.kind,
        EntryKind::Prompt(vec![Block::Text(text("typed")), Block::Attachment { media: text("image/png") }])
    );
    let EntryKind::Reply(blocks) = &page.entries[1].entry.kind else { panic!() };
    assert_eq!(
        blocks[..6],
        [
            Block::Thinking(text("hm")),
            Block::ToolCall { id: text("c1"), name: text("bash"), input: serde_json::json!({"a":1}) },
            Block::ToolResult { id: text("c1"), text: text("out"), failed: false },
            Block::ToolCall { id: text("c2"), name: text("edit"), input: serde_json::json!({}) },
            Block::ToolResult { id: text("c2"), text: text("bad"), failed: true },
            Block::ToolCall { id: text("c3"), name: text("bash"), input: serde_json::json!({}) },
        ]
    );
    assert!(matches!(&blocks[6], Block::Other(part) if part["type"] == "patch"));
    assert!(matches!(&blocks[7], Block::Other(part) if part["x"] == 1));
    assert!(matches!(&blocks[8], Block::Text(text) if text.starts_with("half ")));
    assert!(matches!(&blocks[9], Block::Other(error) if error["error"]["name"] == "E"));
    assert!(matches!(&page.entries[2].entry.kind, EntryKind::Unknown { name, .. } if name == "oracle"));
}

#[tokio::test]
async fn a_session_is_restored_from_every_schema() {
    for (version, _) in SCHEMAS {
        let home = Home::new();
        let mut rows = talk();
        let summary = format!(
            r#"{{"role":"assistant","parentID":"msg_71","summary":true,"finish":"stop","time":{{"created":{},"completed":1}}}}"#,
            T + 12
        );
        rows.extend([
            message("msg_71", "ses_1", T + 11, &format!(r#"{{"role":"user","time":{{"created":{T}}}}}"#)),
            part("prt_71", "msg_71", "ses_1", r#"{"type":"compaction","auto":true}"#),
            message("msg_72", "ses_1", T + 12, &summary),
            part("prt_72", "msg_72", "ses_1", r#"{"type":"text","text":"in short"}"#),
            user("msg_8", "ses_1", T + 20, "four"),
            message("msg_9", "ses_1", T + 21, &format!(r#"{{"role":"assistant","path":{{"cwd":"/last"}},"time":{{"created":{T}}},"modelID":"n"}}"#)),
            part("prt_9", "msg_9", "ses_1", r#"{"type":"tool","callID":"c","tool":"bash","state":{"status":"running"}}"#),
            session("ses_kid", "sub", T) + &user("msg_k1", "ses_kid", T, "k") + &reply("msg_k2", "ses_kid", T + 77, 100, "k"),
            session("ses_kid2", "sub", T) + &user("msg_k3", "ses_kid2", T, "k") + &reply("msg_k4", "ses_kid2", T + 78, 1000, "k"),
            "UPDATE session SET parent_id = 'ses_1' WHERE id = 'ses_kid'; UPDATE session SET parent_id = 'ses_kid' WHERE id = 'ses_kid2';".to_owned(),
        ]);
        let path = home.database("opencode.db", version, &rows);
        let source = SessionSource { path: path.clone(), state_dir: None };
        let restored = home.catalog().restore(&NativeId::new("ses_1"), &source).await.unwrap();
        assert_eq!(restored.title.unwrap().text, "the bug");
        let [boundary] = restored.boundaries.as_slice() else { panic!("{:?}", restored.boundaries) };
        assert_eq!(
            (boundary.turns_before, boundary.summary.as_deref(), boundary.anchored),
            (3, Some("in short"), true)
        );
        assert_eq!(boundary.time.unwrap().as_millis(), T + 12);
        assert_eq!((restored.turns, restored.all_messages, restored.live_messages), (4, 11, 4), "{version}");
        let usage =
            Usage { input_tokens: 100, output_tokens: 12, cache_read_tokens: 12, cache_write_tokens: 16 };
        assert_eq!((restored.usage, restored.usage_with_copied), (usage, usage));
        assert_eq!(restored.usage_of_sidechains.input_tokens, 1100);
        assert_eq!(restored.cost_usd, Some(2.0));
        assert_eq!(restored.open_calls, [OpenCall { id: "c".into(), name: "bash".into() }]);
        assert_eq!((restored.model.as_deref(), restored.cwd), (Some("n"), Some("/last".into())));
        assert_eq!((restored.branch, restored.notices), (None, vec![]));
        Connection::open(&path).unwrap().execute_batch("DELETE FROM part WHERE id = 'prt_9'").unwrap();
        let cut = home.catalog().restore(&NativeId::new("ses_1"), &source).await.unwrap();
        assert_eq!(cut.open_calls, [OpenCall { id: "msg_9".into(), name: "reply".into() }]);
        let page = page(&home, &source, PageQuery::Last { turns: 2 }).await;
        assert_eq!(named(&page), ["msg_6", "msg_7", "msg_71", "msg_72", "msg_8", "msg_9"]);
        assert_eq!(page.entries[2].entry.kind, EntryKind::Boundary);
        assert_eq!(page.entries[3].entry.kind, EntryKind::CompactSummary("in short".into()));
    }
}

#[tokio::test]
async fn a_fork_is_restored_with_and_without_what_it_copied() {
    let home = Home::new();
    let copy = |id: &str, session: &str| reply(id, session, T + 1, 10, "told");
    let rows = [
        session("ses_b", "original", T) + &user("msg_1", "ses_b", T, "a") + &copy("msg_2", "ses_b"),
        session("ses_a", "fork", T + 9) + &user("msg_3", "ses_a", T, "a") + &copy("msg_4", "ses_a"),
        user("msg_5", "ses_a", T + 20, "b") + &reply("msg_6", "ses_a", T + 21, 5, "new"),
    ];
    let source = SessionSource { path: home.database("opencode.db", "1.18.33", &rows), state_dir: None };
    let restored = home.catalog().restore(&NativeId::new("ses_a"), &source).await.unwrap();
    assert_eq!((restored.usage.input_tokens, restored.usage_with_copied.input_tokens), (5, 15));
    assert_eq!((restored.cost_usd, restored.turns), (Some(0.5), 2));
}

#[tokio::test]
async fn a_tree_of_files_is_paged_and_restored() {
    let home = Home::new();
    let source = SessionSource { path: home.tree_session("ses_1", "old", T), state_dir: None };
    let last = page(&home, &source, PageQuery::Last { turns: 1 }).await;
    assert_eq!((named(&last), &last.before), (vec!["msg_1_1", "msg_1_2"], &None));
    let after = PageQuery::After { cursor: last.after.unwrap(), records: 9 };
    assert_eq!(named(&page(&home, &source, after).await), [""; 0]);
    let restored = home.catalog().restore(&NativeId::new("ses_1"), &source).await.unwrap();
    assert_eq!((restored.turns, restored.usage.input_tokens, restored.cost_usd), (1, 7, Some(0.5)));
    assert_eq!((restored.title.unwrap().text, restored.open_calls), ("old".into(), vec![]));
}

/// What a caller says where a session lies may come from anywhere.
#[tokio::test]
async fn nothing_outside_of_the_state_dir_is_read() {
    let home = Home::new();
    let path = home.database("opencode.db", "1.18.33", &talk());
    for path in [path, home.dir.path().join("state/../opencode/opencode.db")] {
        let source = SessionSource { path, state_dir: Some(home.dir.path().join("state")) };
        std::fs::create_dir_all(home.dir.path().join("state")).unwrap();
        home.catalog().restore(&NativeId::new("ses_1"), &source).await.unwrap_err();
    }
}
