//! Sessions that get another folder.

use rusqlite::Connection;
use session_core::{Refusal, RelocateOrder, Relocated, Way};

use super::places::make_tree;
use super::*;

const TO: &str = "/new/w";

async fn relocate(stage: &Stage, bytes: u64, to: &str) -> Result<Relocated, CatalogError> {
    let (id, file, version) = (NativeId::new(S1), stage.database(), Version::parse(stage.version));
    let query = SessionQuery { cwd: Path::new(to), ..stage.query(&id, version.as_ref()) };
    let order = RelocateOrder { query, from: &file, bytes, way: Way::Move };
    OpencodeCatalog::new(EnvMap::new()).relocate(order).await
}

/// The ids, folders and parts of them of all sessions.
fn folders(stage: &Stage, part: &str) -> Vec<(String, String, Option<String>)> {
    let connection = Connection::open(stage.database()).unwrap();
    let sql = format!("SELECT id, directory, {part} FROM session ORDER BY id");
    let mut statement = connection.prepare(&sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

fn names(stage: &Stage) -> Vec<std::ffi::OsString> {
    let folder = stage.database().parent().unwrap().read_dir().unwrap();
    folder.map(|entry| entry.unwrap().file_name()).collect()
}

/// A session that is one's helper, one that is another's, and one that works in another folder.
fn add_others(stage: &Stage) {
    for (id, parent, folder) in
        [("ses_a", S1, "/w"), ("ses_b", "ses_a", "/w"), ("ses_c", "ses_x", "/w"), ("ses_d", S1, "/w/sub")]
    {
        stage.change(&format!(
            "INSERT INTO session (id, project_id, parent_id, slug, directory, title, version, time_created, time_updated)
               VALUES ('{id}', 'p', '{parent}', 'x', '{folder}', 't', '1', 1, 1)"
        ));
    }
}

#[tokio::test]
async fn a_session_of_a_state_dir_gets_the_new_folder_with_its_helpers_and_is_else_the_same() {
    for version in versions() {
        let stage = Stage::with_session(version);
        add_others(&stage);
        let look = stage.look().await;
        let (from, to) = (stage.database(), stage.database());
        let done = Relocated::Done { from, to, way: Way::Move, records: 4, left: vec![], split: false };
        assert_eq!(relocate(&stage, look.bytes, TO).await.unwrap(), done, "{version}");
        assert_eq!(stage.look().await, Inspection { began_in: Some(TO.into()), ..look.clone() });
        let told: Vec<_> = folders(&stage, "NULL").into_iter().map(|(id, folder, _)| (id, folder)).collect();
        let expected = [(S1, TO), ("ses_a", TO), ("ses_b", TO), ("ses_c", "/w"), ("ses_d", "/w/sub")];
        assert_eq!(told, expected.map(|(id, folder)| (id.to_owned(), folder.to_owned())), "{version}");
        assert_eq!(names(&stage), [stage.database().file_name().unwrap()], "nothing is left beside it");

        let already = Relocated::Already { path: stage.database() };
        assert_eq!(relocate(&stage, look.bytes, TO).await.unwrap(), already);
        relocate(&stage, look.bytes, "/w").await.unwrap();
        assert_eq!(stage.look().await, look, "there and back");
    }
}

#[tokio::test]
async fn a_relocation_that_is_taken_back_leaves_the_rows_that_were_there_before() {
    for version in versions() {
        let stage = Stage::with_session(version);
        add_others(&stage);
        // A helper that was in the new folder before, and one that comes there later.
        let helper = |id: &str| {
            stage.change(&format!(
                "INSERT INTO session (id, project_id, parent_id, slug, directory, title, version, time_created, time_updated)
                   VALUES ('{id}', 'p', '{S1}', 'x', '{TO}', 't', '1', 1, 1)"
            ));
        };
        helper("ses_e");
        let part = if version == "1.18.33" { "path" } else { "NULL" };
        if part == "path" {
            // Of these, the new folder leaves nothing.
            stage.change("UPDATE session SET path = 'v' WHERE id = 'ses_a'");
            stage.change("UPDATE session SET path = 'w' WHERE id <> 'ses_a'");
        }
        let (before, bytes) = (folders(&stage, part), stage.look().await.bytes);
        let (id, file, version) = (NativeId::new(S1), stage.database(), Version::parse(version));
        let catalog = OpencodeCatalog::new(EnvMap::new());
        let order = |to| {
            let query = SessionQuery { cwd: Path::new(to), ..stage.query(&id, version.as_ref()) };
            RelocateOrder { query, from: &file, bytes, way: Way::Move }
        };
        let done = catalog.relocate(order(TO)).await.unwrap();
        assert!(matches!(done, Relocated::Done { .. }), "{done:?}");
        assert_ne!(folders(&stage, part), before);
        assert_eq!(catalog.put_back(order("/w")).await.unwrap(), done);
        assert_eq!(folders(&stage, part), before, "{version:?}");

        // Once it is back, there is nothing to take back: it is relocated like any other.
        catalog.relocate(order(TO)).await.unwrap();
        helper("ses_f");
        let other = OpencodeCatalog::new(EnvMap::new());
        assert!(matches!(other.put_back(order("/w")).await.unwrap(), Relocated::Done { .. }));
        assert!(folders(&stage, part).iter().all(|(id, folder, _)| id != "ses_f" || folder == "/w"));
    }
}

#[tokio::test]
async fn the_part_below_the_work_tree_goes_along() {
    for (part, expected) in
        [("''", Some("")), ("'w'", Some("w")), ("'v'", None), ("NULL", None), ("'old/w'", Some("new/w"))]
    {
        let stage = Stage::with_session("1.18.33");
        stage.change(&format!("UPDATE session SET directory = '/old/w', path = {part}"));
        relocate(&stage, stage.look().await.bytes, TO).await.unwrap();
        let [(_, folder, path)] = &*folders(&stage, "path") else { panic!() };
        assert_eq!((folder.as_str(), path.as_deref()), (TO, expected), "{part}");
    }
}

#[tokio::test]
async fn a_session_that_somebody_has_open_or_wrote_to_stays() {
    for version in versions() {
        let stage = Stage::with_session(version);
        let look = stage.look().await;
        let refused = Relocated::Refused(Refusal::Growing);
        assert_eq!(relocate(&stage, look.bytes + 1, TO).await.unwrap(), refused, "{version}");
        let other = Connection::open(stage.database()).unwrap();
        let count =
            || -> i64 { other.query_row("SELECT count(*) FROM session", [], |row| row.get(0)).unwrap() };
        assert_eq!(count(), 1);
        assert_eq!(relocate(&stage, look.bytes, TO).await.unwrap(), refused, "{version}");
        assert_eq!((stage.look().await, count()), (look, 1), "{version}");
    }
}

#[tokio::test]
async fn what_else_is_in_the_database_has_nothing_to_say() {
    let stage = Stage::with_session("1.18.33");
    stage.change("CREATE TRIGGER evil AFTER UPDATE ON session BEGIN DELETE FROM message; END");
    let look = stage.look().await;
    relocate(&stage, look.bytes, TO).await.unwrap();
    assert_eq!(stage.look().await, Inspection { began_in: Some(TO.into()), ..look.clone() });
    // What cannot be done is not done by half.
    stage.change("CREATE UNIQUE INDEX narrow ON session (directory)");
    stage.change(&format!(
        "INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)
           VALUES ('{S2}', 'p', 'x', '/taken', 't', '1', 1, 1)"
    ));
    assert!(relocate(&stage, look.bytes, "/taken").await.is_err());
    assert_eq!(stage.look().await, Inspection { began_in: Some(TO.into()), ..look });
}

#[tokio::test]
async fn what_is_not_relocated_from_here_says_what_does_that() {
    let stage = Stage::with_session("1.2.1");
    let (id, file) = (NativeId::new(S1), stage.database());
    let look = stage.look().await;
    let catalog = OpencodeCatalog::new(EnvMap::new());
    let query = stage.query(&id, None);
    let refused = async |order: RelocateOrder<'_>| match catalog.relocate(order).await.unwrap() {
        Relocated::Refused(Refusal::Unsupported(why)) => why,
        told => panic!("{told:?}"),
    };
    let order = RelocateOrder { query, from: &file, bytes: look.bytes, way: Way::Copy };
    assert!(refused(order).await.contains("--fork"));
    let at_home = RelocateOrder { query: SessionQuery { state_dir: None, ..query }, way: Way::Move, ..order };
    let why = refused(at_home).await;
    assert!(why.contains("opencode export") && why.contains("opencode import"), "{why}");
    let nothing = RelocateOrder { way: Way::Nothing, ..order };
    assert_eq!(catalog.relocate(nothing).await.unwrap(), Relocated::NothingToDo);
    assert_eq!(stage.look().await, look);
}

#[tokio::test]
async fn a_session_of_the_tree_is_there_already_in_every_folder_of_its_project() {
    let (stage, work) = (Stage::new("1.1.65"), tempfile::tempdir().unwrap());
    let file = make_tree(&stage).join(format!("session/p/{S1}.json"));
    let (id, look) = (NativeId::new(S1), stage.look().await);
    let write = |name: &str, text: &str| {
        let path = work.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let told = async |folder: &str, version: &str| {
        let (cwd, version) = (work.path().join(folder), Version::parse(version));
        let query = SessionQuery { cwd: &cwd, ..stage.query(&id, version.as_ref()) };
        let order = RelocateOrder { query, from: &file, bytes: look.bytes, way: Way::Move };
        OpencodeCatalog::new(EnvMap::new()).relocate(order).await.unwrap()
    };
    write("main/.git/opencode", "p");
    write("main/.git/worktrees/tree/commondir", "../..\n");
    write("tree/.git", &format!("gitdir: {}\n", work.path().join("main/.git/worktrees/tree").display()));
    write("tree/sub/file", "");
    write("other/.git/opencode", "q");
    let already = Relocated::Already { path: file.clone() };
    for folder in ["main", "tree", "tree/sub"] {
        assert_eq!(told(folder, "1.1.65").await, already, "{folder}");
    }
    for (folder, version) in
        [("other", "1.1.65"), ("none", "1.1.65"), ("main", "1.15.13"), ("main", "1.18.33")]
    {
        let told = told(folder, version).await;
        assert!(matches!(told, Relocated::Refused(Refusal::Unsupported(_))), "{folder}, {version}: {told:?}");
    }
    assert_eq!(stage.look().await, look);
}
