//! Sessions as opencode stores them: found, read, and damaged.

use std::path::{Path, PathBuf};

use rejoin::NativeId;
use rusqlite::Connection;

use crate::agents::{Damage, Place};

use super::{COLUMN, FIELDS, HALF};

/// Where a session lies.
pub(super) enum Kept {
    /// In a database.
    Database(PathBuf),
    /// Below this folder.
    Files(PathBuf),
}

/// Finds the session in the state dirs.
pub(super) fn find(place: &Place, id: &NativeId) -> Kept {
    let files = place.state_files();
    let holds = |path: &&PathBuf| {
        let is_database = path.extension().is_some_and(|extension| extension == "db");
        let count = |path: &Path| -> rusqlite::Result<u32> {
            let sql = "SELECT count(*) FROM session WHERE id = ?1";
            Connection::open(path)?.query_row(sql, [id.as_str()], |row| row.get(0))
        };
        is_database && count(path).is_ok_and(|count| count > 0)
    };
    // A fork's database holds the original, too.
    let own = files.iter().find(|path| path.ends_with(format!("{id}.db"))).filter(holds);
    if let Some(path) = own.or_else(|| files.iter().find(holds)) {
        return Kept::Database(path.clone());
    }
    let own = |path: &&PathBuf| {
        path.ends_with(format!("{id}.json")) && !path.iter().any(|part| part == "session_diff")
    };
    let path = files.iter().find(own).unwrap_or_else(|| panic!("{id} is kept nowhere"));
    // storage/session/<project>/<id>.json
    Kept::Files(path.ancestors().nth(3).unwrap().to_owned())
}

/// Writes all into the database itself, and takes its log away.
fn in_one_file(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0)).unwrap();
}

pub(super) fn damage_database(path: &Path, id: &NativeId, damage: Damage) {
    in_one_file(path);
    let change = |sql: &str| {
        let changed = Connection::open(path).unwrap().execute(sql, [id.as_str()]).unwrap();
        assert!(changed > 0, "{sql}");
    };
    match damage {
        Damage::Deleted => change("DELETE FROM session WHERE id = ?1"),
        Damage::Emptied => {
            change("DELETE FROM part WHERE session_id = ?1");
            change("DELETE FROM message WHERE session_id = ?1");
        }
        Damage::Garbage => std::fs::write(path, [7; 8192]).unwrap(),
        HALF => {
            let whole = std::fs::read(path).unwrap();
            std::fs::write(path, &whole[..whole.len() / 2]).unwrap();
        }
        Damage::CutLastLine => change(
            "UPDATE part SET data = substr(data, 1, 25) WHERE id = (SELECT max(id) FROM part WHERE session_id = ?1)",
        ),
        Damage::GarbageInTheMiddle => change(
            "UPDATE message SET data = 'garbage' WHERE id = (SELECT min(id) FROM message WHERE session_id = ?1)",
        ),
        FIELDS => change(
            "UPDATE message SET data = '{}' WHERE id = (SELECT max(id) FROM message WHERE session_id = ?1)",
        ),
        COLUMN => change("UPDATE session SET permission = '{x' WHERE id = ?1"),
        Damage::UnknownId | Damage::Other(_) => panic!("{damage:?} is not done to a database"),
    }
}

pub(super) fn damage_files(root: &Path, id: &NativeId, damage: Damage) {
    let messages = root.join("message").join(id.as_str());
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&messages).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
    };
    match damage {
        Damage::Deleted => std::fs::remove_file(own_file(root, id)).unwrap(),
        Damage::Emptied => std::fs::remove_dir_all(&messages).unwrap(),
        Damage::Garbage => std::fs::write(own_file(root, id), "no record").unwrap(),
        Damage::CutLastLine => {
            let last = names().pop().unwrap();
            let text = std::fs::read(&last).unwrap();
            std::fs::write(&last, &text[..text.len() / 2]).unwrap();
        }
        Damage::GarbageInTheMiddle => std::fs::write(&names()[0], "garbage").unwrap(),
        Damage::UnknownId | Damage::Other(_) => panic!("{damage:?} is not done to files"),
    }
}

fn own_file(root: &Path, id: &NativeId) -> PathBuf {
    let projects = std::fs::read_dir(root.join("session")).unwrap();
    let mut files = projects.map(|project| project.unwrap().path().join(format!("{id}.json")));
    files.find(|path| path.exists()).unwrap()
}

/// What was said in the session: its messages and their parts.
pub(super) fn rows(path: &Path, id: &NativeId) -> Vec<u8> {
    let connection = Connection::open(path).unwrap();
    let mut all = Vec::new();
    for table in ["message", "part"] {
        let sql = format!("SELECT id, data FROM {table} WHERE session_id = ?1 ORDER BY id");
        let mut statement = connection.prepare(&sql).unwrap();
        let mut rows = statement.query([id.as_str()]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let (id, data): (String, String) = (row.get(0).unwrap(), row.get(1).unwrap());
            all.extend(format!("{id} {data}\n").into_bytes());
        }
    }
    all
}

/// What was said in the session: its messages and their parts.
pub(super) fn files(root: &Path, id: &NativeId) -> Vec<u8> {
    let mut all = Vec::new();
    let mut folders = vec![root.join("message").join(id.as_str())];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            all.extend(std::fs::read(&path).unwrap());
            if path.parent().unwrap().parent().unwrap().ends_with("message") {
                folders.push(root.join("part").join(path.file_stem().unwrap()));
            }
        }
    }
    all
}
