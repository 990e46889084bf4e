//! What an agent could put into its state dir, so that a look reads what is not its own, or never ends.

use std::time::Duration;

use super::places::make_tree;
use session_core::history::{PageQuery, SessionSource};

use super::*;
use crate::catalog::tree::Budget;

/// A look that gives a database no time.
fn hasty() -> OpencodeCatalog {
    OpencodeCatalog { reading: Duration::ZERO, ..OpencodeCatalog::new(EnvMap::new()) }
}

async fn said(stage: &Stage) -> Result<Vec<String>, CatalogError> {
    let (id, version) = (NativeId::new(S1), Version::parse(stage.version));
    let query = stage.query(&id, version.as_ref());
    let all = OpencodeCatalog::new(EnvMap::new()).last_said(query, 1000).await?;
    Ok(all.said.into_iter().map(|said| said.text).collect())
}

/// Moves what stands there out of the state dir, and leaves a link to it.
#[cfg(unix)]
fn replace_by_link(place: &Path, other: &Path) {
    std::fs::rename(place, other).unwrap();
    std::os::unix::fs::symlink(other, place).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn no_link_is_followed_below_a_state_dir() {
    use Presence::{Damaged, Missing, Unreadable};
    for (name, presence) in [
        ("", Unreadable),
        ("session", Unreadable),
        ("session/p", Missing),
        ("session/p/{}.json", Unreadable),
        ("message", Unreadable),
        ("message/{}", Unreadable),
        ("message/{}/msg_1.json", Damaged),
        ("part", Damaged),
        ("part/msg_1", Damaged),
        ("part/msg_1/prt_1.json", Damaged),
    ] {
        let (stage, other) = (Stage::new("1.1.65"), tempfile::tempdir().unwrap());
        // Without a slash at its end, which would lead through a link.
        let place: PathBuf = make_tree(&stage).join(name.replace("{}", S1)).components().collect();
        replace_by_link(&place, &other.path().join("other"));
        assert_eq!(stage.presence().await, presence, "{name:?}");
        let said = said(&stage).await.unwrap_or_default();
        assert!(!said.contains(&"alpha".to_owned()), "{name:?}: {said:?}");
    }
    for (version, name) in [("1.1.65", "opencode"), ("1.2.1", "opencode"), ("1.2.1", "opencode/opencode.db")]
    {
        let (stage, other) = (Stage::new(version), tempfile::tempdir().unwrap());
        if version == "1.1.65" {
            drop(make_tree(&stage))
        } else {
            stage.make(&stage.database())
        }
        replace_by_link(&stage.path(name), &other.path().join("other"));
        assert_eq!(stage.presence().await, Unreadable, "{version}: {name}");
    }
}

/// The state dir itself is the user's; and without one, so is all.
#[cfg(unix)]
#[tokio::test]
async fn the_users_own_links_are_followed() {
    for version in ["1.1.65", "1.2.1", "1.18.33"] {
        let (stage, home) = (Stage::new(version), tempfile::tempdir().unwrap());
        let (link, data) = (home.path().join("link"), home.path().join("opencode"));
        std::os::unix::fs::symlink(stage.dir.path(), &link).unwrap();
        std::fs::create_dir(&data).unwrap();
        let (target, name) = match version {
            "1.1.65" => (make_tree(&stage), "storage"),
            _ => (stage.database(), "opencode.db"),
        };
        if version != "1.1.65" {
            stage.make(&target);
        }
        std::os::unix::fs::symlink(target, data.join(name)).unwrap();
        let (id, parsed) = (NativeId::new(S1), Version::parse(version));
        let env: EnvMap = [("XDG_DATA_HOME", home.path().to_str().unwrap())].into_iter().collect();
        for state_dir in [Some(link.as_path()), None] {
            let query = SessionQuery { state_dir, ..stage.query(&id, parsed.as_ref()) };
            let look = OpencodeCatalog::new(env.clone()).inspect(query).await.unwrap();
            assert_eq!(look.presence, Presence::Present, "{version}: {state_dir:?}");
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_pipe_is_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let pipe = |path: &Path| {
        std::fs::remove_file(path).ok();
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap();
    };
    for (name, presence) in [
        ("session/p/{}.json", Presence::Unreadable),
        ("message/{}/msg_1.json", Presence::Damaged),
        ("part/msg_1/prt_1.json", Presence::Damaged),
    ] {
        let stage = Stage::new("1.1.65");
        pipe(&make_tree(&stage).join(name.replace("{}", S1)));
        assert_eq!(stage.presence().await, presence, "{name}");
        assert_eq!(said(&stage).await.is_ok(), presence == Presence::Damaged, "{name}");
    }
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let stage = Stage::with_session("1.18.33");
        pipe(&connect::beside(&stage.database(), suffix));
        assert_eq!(stage.presence().await, Presence::Unreadable, "{suffix:?}");
    }
}

#[tokio::test]
async fn a_file_without_end_is_not_read() {
    for (name, presence) in [
        ("session/p/{}.json", Presence::Unreadable),
        ("message/{}/msg_1.json", Presence::Damaged),
        ("part/msg_1/prt_1.json", Presence::Damaged),
    ] {
        let stage = Stage::new("1.1.65");
        let path = make_tree(&stage).join(name.replace("{}", S1));
        // As sound as it was, for who reads it whole.
        let mut text = std::fs::read(&path).unwrap();
        text.resize((32 << 20) + 1, b' ');
        std::fs::write(&path, &text).unwrap();
        assert_eq!(stage.presence().await, presence, "{name}");
        std::fs::write(&path, &text[..32 << 20]).unwrap();
        assert_eq!(stage.presence().await, Presence::Present, "{name}");
    }
}

#[tokio::test]
async fn of_a_session_without_end_the_newest_is_read() {
    let stage = Stage::new("1.1.65");
    let root = make_tree(&stage);
    let (id, version) = (NativeId::new(S1), Version::parse("1.1.65"));
    let asked = OpencodeCatalog::new(EnvMap::new()).asked(&stage.query(&id, version.as_ref()));
    for (bytes, files, turns) in
        [(u64::MAX, 9, (1, 1)), (u64::MAX, 2, (0, 1)), (1, 9, (0, 0)), (99, 9, (0, 1))]
    {
        let look = tree::inspect_within(&root, &asked, Budget { bytes, files }).unwrap();
        assert_eq!((look.user_turns, look.answers), turns, "{bytes} bytes, {files} files");
    }
}

#[tokio::test]
async fn the_name_of_a_message_leads_nowhere_else() {
    let stage = Stage::new("1.1.65");
    let root = make_tree(&stage);
    std::fs::copy(root.join(format!("message/{S1}/msg_1.json")), root.join(format!("message/{S1}/...json")))
        .unwrap();
    std::fs::write(root.join("x.json"), r#"{"type":"text","text":"of nobody"}"#).unwrap();
    assert!(!said(&stage).await.unwrap().contains(&"of nobody".to_owned()));
    assert_eq!(stage.look().await.user_turns, 1);
}

#[tokio::test]
async fn a_query_without_end_is_interrupted() {
    for (table, columns) in [("message", "data"), ("part", "data, 'msg_4' AS message_id")] {
        let stage = Stage::with_session("1.18.33");
        stage.change(&format!(
            "DROP TABLE {table}; CREATE VIEW {table} AS
               WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)
               SELECT 'x' || n AS id, '{S1}' AS session_id, '{{}}' AS {columns} FROM c"
        ));
        let (id, version) = (NativeId::new(S1), Version::parse("1.18.33"));
        let query = stage.query(&id, version.as_ref());
        let look = hasty().inspect(query).await.unwrap();
        assert_eq!((look.presence, look.path), (Presence::Unreadable, Some(stage.database())), "{table}");
        hasty().last_said(query, 1000).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_connection_trusts_nothing_and_reads_no_giant() {
    let stage = Stage::with_session("1.18.33");
    let until = Instant::now();
    let connection = connect::connect(&stage.database(), connect::Way::Reading, until).unwrap();
    let trusted: bool = connection.query_row("PRAGMA trusted_schema", [], |row| row.get(0)).unwrap();
    let query = "SELECT length(zeroblob(200000000))";
    let giant = connection.query_row(query, [], |row| row.get::<_, i64>(0)).map_err(database::Ailment::from);
    assert!(!trusted && matches!(giant, Err(database::Ailment::Endless)));
}

#[tokio::test]
async fn what_ails_another_sessions_database_does_not_spoil_a_look() {
    let stage = Stage::new("1.18.33");
    let broken = |name: &str| {
        stage.make(&stage.path(name));
        let connection = Connection::open(stage.path(name)).unwrap();
        connection
            .execute_batch("DROP TABLE message; CREATE VIEW message AS SELECT nowhere AS data")
            .unwrap();
    };
    broken(&format!("{S2}.db"));
    stage.make(&stage.path("other.db"));
    let writer = Connection::open(stage.path("other.db")).unwrap();
    writer.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    assert_eq!(stage.presence().await, Presence::Missing);
    // One that nobody named may be the session's own: nobody knows that it is missing, but it may be found elsewhere.
    broken("new-1.db");
    stage.look_at(S1, "1.18.33").await.unwrap_err();
    stage.make(&stage.path("new-2.db"));
    let look = stage.look().await;
    assert_eq!((look.presence, look.path), (Presence::Present, Some(stage.path("new-2.db"))));
    drop(writer);
}

#[tokio::test]
async fn a_folder_of_databases_without_end_is_not_looked_through() {
    let stage = Stage::new("1.18.33");
    for number in 0..=DATABASES {
        std::fs::write(stage.path(&format!("{number}.db")), "").unwrap();
    }
    stage.look_at(S1, "1.18.33").await.unwrap_err();
    std::fs::remove_file(stage.path("0.db")).unwrap();
    assert_eq!(stage.presence().await, Presence::Missing, "so many are");
}

#[tokio::test]
async fn what_there_was_no_time_for_is_not_missing() {
    let stage = Stage::new("1.18.33");
    let (id, version) = (NativeId::new(S1), Version::parse("1.18.33"));
    stage.make(&stage.path("other.db"));
    let query = stage.query(&id, version.as_ref());
    assert_eq!(hasty().inspect(query).await.unwrap(), Inspection::MISSING);
    // The shared database, then one without a name.
    for name in ["new-1.db", "opencode/opencode.db"] {
        stage.make(&stage.path(name));
        let look = hasty().inspect(query).await.unwrap();
        assert_eq!((look.presence, look.misplaced), (Presence::Unreadable, false), "{name}");
    }
}

#[tokio::test]
async fn what_the_user_took_back_is_not_told() {
    let stage = Stage::with_session("1.18.33");
    stage.change(r#"UPDATE session SET revert = '{"messageID":"msg_3"}'"#);
    assert_eq!(said(&stage).await.unwrap(), ["alpha", "one"]);
    let stage = Stage::new("1.1.65");
    let path = make_tree(&stage).join(format!("session/p/{S1}.json"));
    assert_eq!(said(&stage).await.unwrap(), ["alpha", "one"]);
    std::fs::write(path, r#"{"directory":"/w","revert":{"messageID":"msg_2","snapshot":"x"}}"#).unwrap();
    assert_eq!(said(&stage).await.unwrap(), ["alpha"]);
    let look = stage.look().await;
    assert_eq!((look.presence, look.user_turns, look.answers), (Presence::Present, 1, 0));
}

/// Done to a database, a journal could name any file as one to be removed.
#[tokio::test]
async fn no_journal_is_played_back_and_none_is_left_for_another_database() {
    let stage = Stage::new("1.18.33");
    let (from, to) = (stage.path("new-1.db"), stage.database());
    stage.make(&from);
    std::fs::write(connect::beside(&to, "-journal"), "of another").unwrap();
    let look = stage.look().await;
    let (id, version) = (NativeId::new(S1), Version::parse("1.18.33"));
    let (catalog, query) = (OpencodeCatalog::new(EnvMap::new()), stage.query(&id, version.as_ref()));
    std::fs::write(connect::beside(&from, "-journal"), "").unwrap();
    assert!(!catalog.mend(query, &look, Mend::PutInPlace).await.unwrap());
    assert!(from.exists());
    std::fs::remove_file(connect::beside(&from, "-journal")).unwrap();
    assert!(catalog.mend(query, &look, Mend::PutInPlace).await.unwrap());
    assert!(!connect::beside(&to, "-journal").exists());
    let aside = connect::beside(&to, ".aside-1-journal");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "of another", "nothing is lost");
}

#[tokio::test]
async fn ids_of_messages_that_are_no_text_end_no_page_and_lead_in_no_circle() {
    let stage = Stage::with_session("1.18.33");
    for (n, id) in ["x'6d73675f3261'", "CAST(x'6d73675f3080' AS TEXT)", "CAST(x'6d73675f32ff' AS TEXT)"]
        .iter()
        .enumerate()
    {
        stage.change(&format!(
            "INSERT INTO message SELECT {id}, session_id, {n}, {n}, data FROM message WHERE id = 'msg_3'"
        ));
    }
    let id = NativeId::new(S1);
    let source = SessionSource { path: stage.database(), state_dir: Some(stage.dir.path().to_owned()) };
    let (mut seen, mut query) = (Vec::new(), PageQuery::Last { turns: 1 });
    // As often as there are messages, at most.
    for _ in 0..8 {
        let page = OpencodeCatalog::new(EnvMap::new()).page(&id, &source, &query).await.unwrap();
        seen.extend(page.entries.into_iter().rev().map(|it| it.entry.id.unwrap()));
        let Some(cursor) = page.before else { break };
        query = PageQuery::Before { cursor, turns: 1 };
    }
    assert_eq!(seen, ["msg_4", "msg_3", "msg_2", "msg_1"]);
}
