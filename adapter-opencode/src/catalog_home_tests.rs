//! A data folder of the user's own, and what is put into it.

use std::path::PathBuf;

use rusqlite::Connection;
use session_core::history::{ListQuery, Listing, SessionEntry, SessionKind};
use session_core::{EnvMap, SessionCatalog as _};

use super::SCHEMAS;
use crate::OpencodeCatalog;

/// A time of the days when agents were.
pub(super) const T: i64 = 1_795_962_000_000;

/// A data folder of the user's own.
pub(super) struct Home {
    pub(super) dir: tempfile::TempDir,
}

impl Home {
    pub(super) fn new() -> Self {
        let home = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(home.data()).unwrap();
        home
    }

    pub(super) fn data(&self) -> PathBuf {
        self.dir.path().join("opencode")
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.data().join(name)
    }

    pub(super) fn catalog(&self) -> OpencodeCatalog {
        self.catalog_with(&[])
    }

    pub(super) fn catalog_with(&self, more: &[(&str, &str)]) -> OpencodeCatalog {
        let own = [("XDG_DATA_HOME", self.dir.path().to_str().unwrap())];
        OpencodeCatalog::new(own.iter().chain(more).copied().collect::<EnvMap>())
    }

    /// A database as the version makes it, closed as it closes one.
    pub(super) fn database(&self, name: &str, version: &str, rows: &[String]) -> PathBuf {
        let path = self.path(name);
        let connection = Connection::open(&path).unwrap();
        let schema = SCHEMAS.iter().find(|(name, _)| *name == version).unwrap().1;
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.execute_batch(schema).unwrap();
        connection
            .execute_batch("INSERT INTO project (id, worktree, time_created, time_updated, sandboxes) VALUES ('p', '/w', 1, 1, '[]')")
            .unwrap();
        connection.execute_batch(&rows.concat()).unwrap();
        path
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path("storage").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A session of one turn in the tree of 1.1.
    pub(super) fn tree_session(&self, id: &str, title: &str, at: i64) -> PathBuf {
        let message = |n: i64| format!("msg_{}_{n}", id.trim_start_matches("ses_"));
        self.write(
            &format!("message/{id}/{}.json", message(1)),
            &format!(r#"{{"role":"user","time":{{"created":{at}}}}}"#),
        );
        self.write(&format!("message/{id}/{}.json", message(2)), &reply_json(&message(1), at + 1, 7));
        self.write(&format!("part/{}/prt_1.json", message(1)), r#"{"type":"text","text":"\nalpha"}"#);
        self.write(&format!("part/{}/prt_2.json", message(2)), &step_json(7));
        self.write(
            &format!("session/p/{id}.json"),
            &format!(
                r#"{{"id":"{id}","directory":"/w","title":"{title}","version":"1.1.65","time":{{"created":{at},"updated":{}}}}}"#,
                at + 1
            ),
        )
    }

    pub(super) async fn list(&self) -> Listing {
        self.catalog().list(&ListQuery::default()).await.unwrap()
    }

    pub(super) async fn entry(&self, id: &str) -> SessionEntry {
        let kinds = vec![SessionKind::Main, SessionKind::Headless, SessionKind::Sidechain];
        let query = ListQuery { kinds, with_empty: true, ..ListQuery::default() };
        let listing = self.catalog().list(&query).await.unwrap();
        listing.sessions.into_iter().find(|entry| entry.id.as_str() == id).unwrap()
    }

    /// What lies in the data folder.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.data()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

pub(super) fn session(id: &str, title: &str, at: i64) -> String {
    format!(
        "INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)
           VALUES ('{id}', 'p', 'x', '/w', '{title}', '1.18.33', {at}, {at} + 9);"
    )
}

pub(super) fn message(id: &str, session: &str, at: i64, data: &str) -> String {
    format!("INSERT INTO message VALUES ('{id}', '{session}', {at}, {at}, '{data}');")
}

pub(super) fn part(id: &str, message: &str, session: &str, data: &str) -> String {
    format!("INSERT INTO part VALUES ('{id}', '{message}', '{session}', {T}, {T}, '{data}');")
}

pub(super) fn user(id: &str, session: &str, at: i64, text: &str) -> String {
    message(id, session, at, &format!(r#"{{"role":"user","time":{{"created":{at}}}}}"#))
        + &part(&format!("prt_{id}"), id, session, &format!(r#"{{"type":"text","text":"{text}"}}"#))
}

pub(super) fn reply_json(parent: &str, at: i64, input: u64) -> String {
    format!(
        r#"{{"role":"assistant","parentID":"{parent}","path":{{"cwd":"/w/sub","root":"/w"}},"cost":0.5,"tokens":{{"input":{input},"output":2,"reasoning":1,"cache":{{"read":3,"write":4}}}},"modelID":"m","providerID":"p","time":{{"created":{at},"completed":{}}},"finish":"stop"}}"#,
        at + 1
    )
}

pub(super) fn step_json(input: u64) -> String {
    format!(
        r#"{{"type":"step-finish","reason":"stop","cost":0.5,"tokens":{{"input":{input},"output":2,"reasoning":1,"cache":{{"read":3,"write":4}}}}}}"#
    )
}

/// A reply of one step.
pub(super) fn reply(id: &str, session: &str, at: i64, input: u64, text: &str) -> String {
    message(id, session, at, &reply_json("msg_0", at, input))
        + &part(&format!("prt_{id}1"), id, session, &format!(r#"{{"type":"text","text":"{text}"}}"#))
        + &part(&format!("prt_{id}2"), id, session, &step_json(input))
}
