//! How databases are read: nothing is left beside them, nothing is missed, and nothing is waited for without end.

use rusqlite::Connection;
use session_core::NativeId;
use session_core::SessionCatalog as _;
use session_core::history::{ListQuery, Listing, NoticeKind, PageQuery, SessionSource};

use super::home::*;
use crate::DatabaseError;
use crate::catalog::connect::beside;

fn one(home: &Home, name: &str, id: &str) -> std::path::PathBuf {
    home.database(name, "1.18.33", &[session(id, "x", T), user(&format!("msg_{id}"), id, T, "a")])
}

fn ids(listing: &Listing) -> Vec<&str> {
    listing.sessions.iter().map(|entry| entry.id.as_str()).collect()
}

/// The mode of a folder does not bind a superuser: what is looked at is that nothing is made in it.
#[cfg(unix)]
#[tokio::test]
async fn an_idle_database_is_read_in_a_folder_that_may_not_be_written_and_nothing_is_left_there() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let path = one(&home, "opencode.db", "ses_1");
    assert_eq!(home.names(), ["opencode.db"], "its log is gone, as after a clean end");
    let before = (std::fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap());
    let mode = |mode| std::fs::set_permissions(home.data(), std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    let listing = home.list().await;
    let source = SessionSource { path: path.clone(), state_dir: None };
    let id = NativeId::new("ses_1");
    let page = home.catalog().page(&id, &source, &PageQuery::Last { turns: 1 }).await.unwrap();
    let restored = home.catalog().restore(&id, &source).await.unwrap();
    let found = home.catalog().find(&id, None).await.unwrap();
    mode(0o755);
    assert_eq!((ids(&listing), listing.is_complete()), (vec!["ses_1"], true));
    assert_eq!((page.entries.len(), restored.turns, found.len()), (1, 1, 1));
    assert_eq!(home.names(), ["opencode.db"], "nothing is left");
    assert_eq!((std::fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap()), before);
}

#[tokio::test]
async fn a_row_that_only_the_log_of_a_live_writer_holds_is_seen() {
    let home = Home::new();
    let path = one(&home, "opencode.db", "ses_1");
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch(&(session("ses_2", "x", T + 5) + &user("msg_2", "ses_2", T, "b"))).unwrap();
    assert!(beside(&path, "-wal").metadata().unwrap().len() > 0, "it lies in the log");
    let names = home.names();
    assert_eq!(ids(&home.list().await), ["ses_2", "ses_1"]);
    assert_eq!(home.names(), names, "nothing is added");
    drop(writer);
    assert_eq!(home.names(), ["opencode.db"], "the writer could end cleanly");
}

#[tokio::test]
async fn a_database_of_no_bytes_is_an_empty_store() {
    let home = Home::new();
    std::fs::write(home.path("opencode.db"), "").unwrap();
    assert_eq!(home.list().await, Listing::default());
    assert_eq!(home.names(), ["opencode.db"]);
    assert_eq!(home.path("opencode.db").metadata().unwrap().len(), 0);
}

#[tokio::test]
async fn a_locked_database_is_waited_for_and_then_called_busy() {
    for mode in ["WAL", "DELETE"] {
        let home = Home::new();
        let path = one(&home, "opencode.db", "ses_1");
        one(&home, "opencode-beta.db", "ses_2");
        let writer = Connection::open(&path).unwrap();
        writer.pragma_update(None, "journal_mode", mode).unwrap();
        writer
            .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM message")
            .unwrap();
        let listing = home.list().await;
        assert_eq!(ids(&listing), ["ses_2"], "{mode}: the others are listed");
        let [notice] = listing.notices.as_slice() else { panic!("{:?}", listing.notices) };
        let busy = NoticeKind::Unreadable(DatabaseError::Busy.to_string());
        assert_eq!((&notice.path, &notice.kind), (&path, &busy), "{mode}");
        let source = SessionSource { path: path.clone(), state_dir: None };
        let error = home.catalog().restore(&NativeId::new("ses_1"), &source).await.unwrap_err();
        assert!(matches!(error.source.downcast_ref(), Some(DatabaseError::Busy)), "{mode}: {error:?}");
        drop(writer);
        assert_eq!(ids(&home.list().await), ["ses_1", "ses_2"], "{mode}");
    }
}

#[tokio::test]
async fn what_is_no_database_is_told_and_stops_nothing() {
    let home = Home::new();
    std::fs::write(home.path("opencode.db"), [7; 8192]).unwrap();
    std::fs::create_dir(home.path("opencode-dir.db")).unwrap();
    one(&home, "opencode-beta.db", "ses_1");
    let tables = one(&home, "opencode-new.db", "ses_2");
    Connection::open(&tables).unwrap().execute_batch("DROP TABLE part; CREATE TABLE part (x)").unwrap();
    let listing = home.list().await;
    assert_eq!(ids(&listing), ["ses_1"]);
    let told: Vec<_> = listing
        .notices
        .iter()
        .map(|notice| (notice.path.file_name().unwrap().to_str().unwrap(), notice.kind.clone()))
        .collect();
    let unreadable = |why: DatabaseError| NoticeKind::Unreadable(why.to_string());
    assert_eq!(
        told,
        [
            ("opencode.db", unreadable(DatabaseError::Damaged)),
            ("opencode-dir.db", unreadable(DatabaseError::Denied)),
            ("opencode-new.db", unreadable(DatabaseError::UnknownTables)),
        ]
    );
}

#[tokio::test]
async fn rows_of_any_type_and_shape_are_borne() {
    let home = Home::new();
    let path = one(&home, "opencode.db", "ses_1");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    let values = [
        "NULL",
        "7",
        "1e999",
        "-1",
        "x'00ff'",
        "'{'",
        "'[]'",
        "'[[1]]'",
        "'{\"role\":7,\"time\":[],\"tokens\":{\"input\":-1}}'",
        "'{\"role\":\"user\",\"time\":{\"created\":\"x\"},\"summary\":[{}]}'",
        "'{\"role\":\"assistant\",\"time\":{\"created\":1e300},\"tokens\":{\"input\":18446744073709551615,\"cache\":7},\"cost\":\"x\",\"path\":[]}'",
        "'{\"type\":\"tool\",\"state\":7}'",
        "'{\"type\":\"text\",\"text\":{}}'",
        "'{\"type\":\"step-finish\",\"tokens\":[],\"cost\":null}'",
        "char(0)",
    ];
    connection
        .execute_batch(
            "ALTER TABLE message RENAME TO m0; ALTER TABLE part RENAME TO p0; ALTER TABLE session RENAME TO s0;
             CREATE TABLE session (id, parent_id, directory, title, version, revert, permission, model, tokens_input, tokens_output, time_created, time_updated, time_archived);
             CREATE TABLE message (id, session_id, time_created, data); CREATE TABLE part (id, message_id, session_id, data);",
        )
        .unwrap();
    for (n, value) in values.iter().enumerate() {
        connection
            .execute_batch(&format!(
                "INSERT INTO session VALUES ('ses_{n}', {value}, {value}, {value}, {value}, {value}, {value}, {value}, {value}, {value}, {value}, {value}, {value});
                 INSERT INTO session (id, directory) VALUES ({value}, '/w');
                 INSERT INTO message VALUES ('msg_{n}', 'ses_{n}', {value}, {value});
                 INSERT INTO message VALUES ({value}, 'ses_{n}', {value}, {value});
                 INSERT INTO message VALUES ('msg_u{n}', 'ses_{n}', 1, '{{\"role\":\"user\",\"time\":{{\"created\":1}}}}');
                 INSERT INTO part VALUES ('prt_{n}', 'msg_{n}', 'ses_{n}', {value});
                 INSERT INTO part VALUES ('prt_u{n}', 'msg_u{n}', 'ses_{n}', {value});
                 INSERT INTO part VALUES ({value}, {value}, {value}, {value});"
            ))
            .unwrap();
    }
    // One that is too long is not read.
    connection.execute_batch("UPDATE part SET data = zeroblob(9000000) WHERE id = 'prt_u0'").unwrap();
    drop(connection);
    let query = ListQuery { with_empty: true, ..ListQuery::default() };
    let listing = home.catalog().list(&query).await.unwrap();
    assert_eq!(listing.sessions.len(), values.len());
    assert!(
        listing.notices.iter().all(|notice| notice.kind == NoticeKind::SkippedLine),
        "{:?}",
        listing.notices
    );
    for entry in &listing.sessions {
        let catalog = home.catalog();
        let page = catalog.page(&entry.id, &entry.source, &PageQuery::Last { turns: 99 }).await.unwrap();
        catalog.restore(&entry.id, &entry.source).await.unwrap();
        assert!(page.entries.len() <= 3);
        assert_eq!(catalog.find(&entry.id, None).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_view_without_end_costs_a_list_no_more_than_its_time() {
    for (table, columns) in [
        ("session", "'/w' AS directory"),
        ("message", "'ses_1' AS session_id, '{}' AS data"),
        ("part", "'msg_ses_1' AS message_id, 'ses_1' AS session_id, '{}' AS data"),
    ] {
        let home = Home::new();
        let path = one(&home, "opencode.db", "ses_1");
        one(&home, "opencode-beta.db", "ses_2");
        Connection::open(path)
            .unwrap()
            .execute_batch(&format!(
                "DROP TABLE {table}; CREATE VIEW {table} AS
                   WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT 'x' || n AS id, {columns} FROM c"
            ))
            .unwrap();
        let mut catalog = home.catalog();
        catalog.reading = std::time::Duration::from_millis(300);
        let listing = catalog.list(&ListQuery::default()).await.unwrap();
        assert!(ids(&listing).contains(&"ses_2"), "{table}");
        assert!(!listing.is_complete(), "{table}: {:?}", listing.notices);
        assert!(listing.sessions.iter().all(|entry| entry.id.as_str() == "ses_2" || !entry.exact), "{table}");
    }
}

/// The system takes all locks of a process from a file as soon as the process closes the file, by whatever handle.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_lock_of_the_caller_outlives_every_look() {
    use std::os::unix::fs::MetadataExt as _;
    for mode in ["WAL", "DELETE"] {
        let home = Home::new();
        let path = one(&home, "opencode.db", "ses_1");
        // Other processes have locks, too, on files of other file systems that have the same number.
        let (inode, process) =
            (format!(":{} ", path.metadata().unwrap().ino()), format!(" {} ", std::process::id()));
        let is_ours =
            |line: &&str| line.contains(&inode) && line.contains(&process) && line.contains("POSIX");
        let locks = || std::fs::read_to_string("/proc/locks").unwrap().lines().filter(is_ours).count();
        let writer = Connection::open(&path).unwrap();
        writer.pragma_update(None, "journal_mode", mode).unwrap();
        writer.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
        let before = locks();
        assert!(before > 0, "{mode}");
        let source = SessionSource { path: path.clone(), state_dir: None };
        let id = NativeId::new("ses_1");
        drop(home.list().await);
        drop(home.catalog().find(&id, None).await);
        drop(home.catalog().restore(&id, &source).await);
        drop(home.catalog().page(&id, &source, &PageQuery::Last { turns: 1 }).await);
        assert_eq!(locks(), before, "{mode}");
    }
}
