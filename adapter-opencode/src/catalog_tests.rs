use std::path::{Path, PathBuf};

use rusqlite::Connection;
use session_core::SessionQuery;

use super::*;

#[path = "catalog_branch_tests.rs"]
mod branches;
#[path = "catalog_home_tests.rs"]
mod home;
#[path = "catalog_hostile_tests.rs"]
mod hostile;
#[path = "catalog_list_tests.rs"]
mod list;
#[path = "catalog_page_tests.rs"]
mod page;
#[path = "catalog_places_tests.rs"]
mod places;
#[path = "catalog_reading_tests.rs"]
mod reading;
#[path = "catalog_relocate_tests.rs"]
mod relocate;
#[path = "catalog_search_tests.rs"]
mod search;

const S1: &str = "ses_00000000000000000000000000004201";
const S2: &str = "ses_00000000000000000000000000004202";

const SCHEMAS: &[(&str, &str)] = &[
    ("1.2.1", include_str!("catalog/schemas/1.2.1.sql")),
    ("1.15.13", include_str!("catalog/schemas/1.15.13.sql")),
    ("1.18.33", include_str!("catalog/schemas/1.18.33.sql")),
];

/// A state dir, and the version whose sessions lie in it.
struct Stage {
    dir: tempfile::TempDir,
    version: &'static str,
}

impl Stage {
    fn new(version: &'static str) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), version }
    }

    /// A state dir with a session of two turns.
    fn with_session(version: &'static str) -> Self {
        let stage = Self::new(version);
        stage.make(&stage.database());
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where the version keeps the session.
    fn database(&self) -> PathBuf {
        match self.version {
            "1.2.1" => self.path("opencode/opencode.db"),
            _ => self.path(&format!("{S1}.db")),
        }
    }

    /// A database as the version makes it, with the session.
    fn make(&self, path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let connection = Connection::open(path).unwrap();
        let schema = SCHEMAS.iter().find(|(version, _)| *version == self.version).unwrap().1;
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.execute_batch(schema).unwrap();
        connection
            .execute_batch(&format!(
                r#"INSERT INTO project (id, worktree, time_created, time_updated, sandboxes) VALUES ('p', '/w', 1, 1, '[]');
                INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)
                  VALUES ('{S1}', 'p', 'x', '/w', 'issue-42', '1', 1, 1);
                INSERT INTO message (id, session_id, time_created, time_updated, data) VALUES
                  ('msg_1', '{S1}', 1, 1, '{{"role":"user","time":{{"created":1}},"summary":{{"diffs":[]}}}}'),
                  ('msg_2', '{S1}', 2, 2, '{{"role":"assistant","parentID":"msg_1","time":{{"created":2,"completed":3}},"finish":"stop"}}'),
                  ('msg_3', '{S1}', 3, 3, '{{"role":"user","time":{{"created":3}}}}'),
                  ('msg_4', '{S1}', 4, 4, '{{"role":"assistant","parentID":"msg_3","time":{{"created":4}},"finish":"stop"}}');
                INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) VALUES
                  ('prt_1', 'msg_1', '{S1}', 1, 1, '{{"type":"text","text":"alpha"}}'),
                  ('prt_2', 'msg_2', '{S1}', 1, 1, '{{"type":"step-start"}}'),
                  ('prt_3', 'msg_2', '{S1}', 1, 1, '{{"type":"text","text":"one"}}'),
                  ('prt_4', 'msg_3', '{S1}', 1, 1, '{{"type":"text","text":"beta"}}'),
                  ('prt_5', 'msg_4', '{S1}', 1, 1, '{{"type":"text","text":"two"}}');"#
            ))
            .unwrap();
    }

    fn change(&self, sql: &str) {
        Connection::open(self.database()).unwrap().execute_batch(sql).unwrap();
    }

    async fn look_at(&self, id: &str, version: &str) -> Result<Inspection, CatalogError> {
        let (id, version) = (NativeId::new(id), Version::parse(version));
        OpencodeCatalog::new(EnvMap::new()).inspect(self.query(&id, version.as_ref())).await
    }

    fn query<'a>(&'a self, id: &'a NativeId, version: Option<&'a Version>) -> SessionQuery<'a> {
        SessionQuery { id, cwd: Path::new("/w"), state_dir: Some(self.dir.path()), version }
    }

    async fn look(&self) -> Inspection {
        self.look_at(S1, self.version).await.unwrap()
    }

    async fn presence(&self) -> Presence {
        self.look().await.presence
    }
}

fn versions() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().map(|(version, _)| *version)
}

#[tokio::test]
async fn a_session_is_counted_in_every_schema() {
    for version in versions() {
        let stage = Stage::with_session(version);
        let look = stage.look().await;
        assert_eq!(
            (look.presence, look.user_turns, look.answers, look.skipped_lines),
            (Presence::Present, 2, 2, 0),
            "{version}"
        );
        assert_eq!((look.path, look.began_in), (Some(stage.database()), Some("/w".into())));
        assert!(look.bytes > 300 && !look.misplaced);
        assert_eq!(stage.look_at(S2, version).await.unwrap().presence, Presence::Missing);
        // What a turn adds is seen, also while it lies in the log alone.
        let writer = Connection::open(stage.database()).unwrap();
        writer
            .execute_batch(
                "INSERT INTO message SELECT 'msg_5', session_id, 5, 5, data FROM message WHERE id = 'msg_3';
            INSERT INTO part SELECT 'prt_6', 'msg_5', session_id, 5, 5, data FROM part WHERE id = 'prt_4';",
            )
            .unwrap();
        let log = stage.database().with_extension("db-wal");
        assert!(log.metadata().unwrap().len() > 0, "the turn lies in the log");
        let after = stage.look().await;
        assert_eq!(after.user_turns, 3);
        assert!(after.bytes > look.bytes);
        drop(writer);
    }
}

#[tokio::test]
async fn what_the_agent_would_forget_is_empty() {
    for version in versions() {
        for sql in ["DELETE FROM part; DELETE FROM message", "DELETE FROM part"] {
            let stage = Stage::with_session(version);
            stage.change(sql);
            assert_eq!(stage.presence().await, Presence::Empty, "{version}: {sql}");
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_missing() {
    for version in versions() {
        let stage = Stage::new(version);
        assert_eq!(stage.presence().await, Presence::Missing, "{version}: nothing");
        assert!(!stage.database().exists(), "a look makes no database");
        std::fs::create_dir_all(stage.database().parent().unwrap()).unwrap();
        std::fs::write(stage.database(), "").unwrap();
        assert_eq!(stage.presence().await, Presence::Missing, "{version}: no bytes");
        let stage = Stage::with_session(version);
        stage.change(&format!("DELETE FROM session WHERE id = '{S1}'"));
        assert_eq!(stage.presence().await, Presence::Missing, "{version}: no row");
        let stage = Stage::with_session(version);
        stage.change("DROP TABLE part; DROP TABLE message; DROP TABLE session; CREATE TABLE x (y)");
        assert_eq!(stage.presence().await, Presence::Missing, "{version}: no table");
    }
}

#[tokio::test]
async fn what_the_agent_cannot_read_is_damaged() {
    for version in versions() {
        for sql in [
            "UPDATE message SET data = '{\"role\"' WHERE id = 'msg_1'",
            "UPDATE message SET data = x'00ff' WHERE id = 'msg_3'",
            "UPDATE part SET data = '{\"type\"' WHERE id = 'prt_5'",
            "UPDATE session SET permission = '{x'",
            "UPDATE session SET revert = 'x'",
        ] {
            let stage = Stage::with_session(version);
            stage.change(sql);
            assert_eq!(stage.presence().await, Presence::Damaged, "{version}: {sql}");
        }
    }
    // Only the newest cannot do without these; the others leave the message out in silence.
    let (there, damaged) = (Presence::Present, Presence::Damaged);
    for (version, expected) in [("1.2.1", (there, 1)), ("1.15.13", (there, 1)), ("1.18.33", (damaged, 0))] {
        let stage = Stage::with_session(version);
        stage.change("UPDATE message SET data = '{}' WHERE id = 'msg_1'");
        let look = stage.look().await;
        assert_eq!((look.presence, look.skipped_lines), expected, "{version}");
    }
    let stage = Stage::with_session("1.18.33");
    stage.change("UPDATE session SET model = '{x'");
    assert_eq!(stage.presence().await, Presence::Damaged);
}

#[tokio::test]
async fn what_lies_before_a_summary_is_read_no_more() {
    let stage = Stage::with_session("1.18.33");
    stage.change(
        r#"UPDATE message SET data = '{"role"' WHERE id = 'msg_1';
        UPDATE part SET data = '{"type"' WHERE id = 'prt_1';
        UPDATE message SET data = '{"role":"assistant","parentID":"msg_3","summary":true,"time":{"created":4},"finish":"stop"}' WHERE id = 'msg_4'"#,
    );
    let look = stage.look().await;
    assert_eq!((look.presence, look.user_turns, look.answers), (Presence::Present, 1, 2));
    stage.change("UPDATE part SET data = '{\"type\"' WHERE id = 'prt_4'");
    assert_eq!(stage.presence().await, Presence::Damaged);
}

#[tokio::test]
async fn what_the_user_took_back_does_not_count() {
    let stage = Stage::with_session("1.18.33");
    stage.change(r#"UPDATE session SET revert = '{"messageID":"msg_3"}'"#);
    let look = stage.look().await;
    assert_eq!((look.presence, look.user_turns, look.answers), (Presence::Present, 1, 1));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_damaged() {
    for version in versions() {
        let stage = Stage::with_session(version);
        let connection = Connection::open(stage.database()).unwrap();
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        drop(connection);
        let whole = std::fs::read(stage.database()).unwrap();
        for bytes in [vec![7; 8192], whole[..whole.len() / 2].to_vec()] {
            std::fs::write(stage.database(), &bytes).unwrap();
            let look = stage.look().await;
            assert_eq!((look.presence, look.path), (Presence::Damaged, Some(stage.database())), "{version}");
            assert_eq!(std::fs::read(stage.database()).unwrap(), bytes, "a look changes nothing");
        }
    }
}

#[tokio::test]
async fn nobody_can_look_into_a_locked_database() {
    let stage = Stage::with_session("1.18.33");
    let writer = Connection::open(stage.database()).unwrap();
    writer.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let error = stage.look_at(S1, "1.18.33").await.unwrap_err();
    assert_eq!(error.path, stage.database());
    drop(writer);
    assert_eq!(stage.presence().await, Presence::Present);
}

#[tokio::test]
async fn what_is_no_file_or_of_unknown_tables_is_unreadable() {
    let stage = Stage::new("1.18.33");
    std::fs::create_dir(stage.database()).unwrap();
    assert_eq!(stage.presence().await, Presence::Unreadable);
    let stage = Stage::with_session("1.18.33");
    stage.change("ALTER TABLE session RENAME COLUMN directory TO place");
    assert_eq!(stage.presence().await, Presence::Unreadable);
    #[cfg(unix)]
    {
        let (stage, other) = (Stage::new("1.18.33"), Stage::with_session("1.18.33"));
        std::os::unix::fs::symlink(other.database(), stage.database()).unwrap();
        assert_eq!(stage.presence().await, Presence::Unreadable, "a link is not followed");
    }
}

#[tokio::test]
async fn columns_of_a_newer_version_do_not_matter() {
    let stage = Stage::with_session("1.18.33");
    stage.change(
        "ALTER TABLE session ADD COLUMN mood text; CREATE TABLE news (x); ALTER TABLE part ADD COLUMN y",
    );
    assert_eq!(stage.presence().await, Presence::Present);
}
