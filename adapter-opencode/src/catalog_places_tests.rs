//! Sessions that lie elsewhere, in files, and in words.

use session_core::Speaker;

use super::*;

#[tokio::test]
async fn a_database_with_another_name_is_given_the_sessions_own() {
    for name in ["new-1.db", "opencode/opencode.db"] {
        let stage = Stage::new("1.18.33");
        let from = stage.path(name);
        stage.make(&from);
        // Something that holds nothing stands in its place.
        std::fs::write(stage.database(), "").unwrap();
        let look = stage.look().await;
        assert_eq!((look.presence, look.misplaced, look.user_turns), (Presence::Present, true, 2), "{name}");
        let (id, version) = (NativeId::new(S1), Version::parse("1.18.33"));
        let query = stage.query(&id, version.as_ref());
        let catalog = OpencodeCatalog::new(EnvMap::new());
        let stale = Inspection { bytes: 1, ..look.clone() };
        assert!(!catalog.mend(query, &stale, Mend::PutInPlace).await.unwrap(), "it changed since");
        assert!(!catalog.mend(query, &look, Mend::EndLastLine).await.unwrap());
        assert!(from.exists());
        assert!(catalog.mend(query, &look, Mend::PutInPlace).await.unwrap(), "{name}");
        let again = stage.look().await;
        assert_eq!((again.presence, again.misplaced, again.user_turns), (Presence::Present, false, 2));
        assert_eq!((again.path, from.exists()), (Some(stage.database()), false));
        assert!(connect::beside(&stage.database(), ".aside-1").exists(), "nothing is lost");
    }
}

#[tokio::test]
async fn a_damaged_database_that_is_in_the_way_is_set_aside() {
    for (version, in_the_way) in [("1.2.1", true), ("1.15.13", false), ("1.18.33", false)] {
        let stage = Stage::with_session(version);
        std::fs::write(stage.database(), [7; 8192]).unwrap();
        let look = stage.look().await;
        assert_eq!((look.presence, look.in_the_way), (Presence::Damaged, in_the_way), "{version}");
        let (id, parsed) = (NativeId::new(S1), Version::parse(version));
        let catalog = OpencodeCatalog::new(EnvMap::new());
        let query = stage.query(&id, parsed.as_ref());
        assert_eq!(catalog.mend(query, &look, Mend::SetAside).await.unwrap(), in_the_way, "{version}");
        assert_eq!(stage.database().exists(), !in_the_way);
        if in_the_way {
            let aside = connect::beside(&stage.database(), ".aside-1");
            assert_eq!(std::fs::read(aside).unwrap(), [7; 8192], "nothing is lost");
            assert_eq!(stage.presence().await, Presence::Missing);
        }
    }
    // Records that are damaged are no reason to take the others away.
    let stage = Stage::with_session("1.2.1");
    stage.change("UPDATE message SET data = 'x'");
    let look = stage.look().await;
    assert_eq!((look.presence, look.in_the_way), (Presence::Damaged, false));
}

#[tokio::test]
async fn a_database_in_use_is_not_moved() {
    let stage = Stage::new("1.18.33");
    let from = stage.path("new-1.db");
    stage.make(&from);
    let reader = Connection::open(&from).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM session").unwrap();
    let look = stage.look().await;
    assert!(look.misplaced);
    let (id, version) = (NativeId::new(S1), Version::parse("1.18.33"));
    let catalog = OpencodeCatalog::new(EnvMap::new());
    let moved = catalog.mend(stage.query(&id, version.as_ref()), &look, Mend::PutInPlace).await;
    assert!(!matches!(moved, Ok(true)), "{moved:?}");
    assert!(from.exists() && !stage.database().exists());
    drop(reader);
    assert_eq!(stage.presence().await, Presence::Present);
}

#[tokio::test]
async fn what_only_another_version_reads_is_unreadable() {
    let stage = Stage::with_session("1.18.33");
    for version in ["1.2.1", "1.1.65"] {
        let look = stage.look_at(S1, version).await.unwrap();
        assert_eq!((look.presence, look.misplaced), (Presence::Unreadable, false), "{version}");
    }
    // What ails another session's database is no news of this one.
    std::fs::write(stage.path("other.db"), "garbage").unwrap();
    assert_eq!(stage.look_at(S2, "1.18.33").await.unwrap().presence, Presence::Missing);
}

/// Which channel a build is of, it does not tell: the agent itself says whether it finds the session.
#[tokio::test]
async fn a_database_of_another_channel_is_looked_at_after_the_common_one() {
    let stage = Stage::new("1.18.33");
    let [common, other] = ["opencode/opencode.db", "opencode/opencode-beta.db"].map(|name| stage.path(name));
    let at_home = async |more: Option<(&str, &str)>| {
        let data = stage.dir.path().to_str().unwrap();
        let env: EnvMap = [("XDG_DATA_HOME", data)].into_iter().chain(more).collect();
        let (id, version) = (NativeId::new(S1), Version::parse("1.18.33"));
        let query = SessionQuery { state_dir: None, ..stage.query(&id, version.as_ref()) };
        let look = OpencodeCatalog::new(env).inspect(query).await.unwrap();
        (look.presence, look.misplaced, look.path)
    };
    stage.make(&other);
    std::fs::write(stage.path("opencode/notes.db"), "garbage").unwrap();
    std::fs::write(stage.path("opencode/opencode-alpha.db"), "garbage").unwrap();
    assert_eq!(at_home(None).await, (Presence::Present, false, Some(other)));
    assert_eq!(
        at_home(Some(("OPENCODE_DB", "/none.db"))).await.0,
        Presence::Missing,
        "it reads that one alone"
    );
    stage.make(&common);
    assert_eq!(at_home(None).await, (Presence::Present, false, Some(common)));
}

/// The tree of 1.1.65.
pub(super) fn make_tree(stage: &Stage) -> PathBuf {
    let root = stage.path("opencode/storage");
    for (path, text) in [
        ("session/p/{}.json", r#"{"id":"x","directory":"/w","title":"issue-42"}"#),
        ("message/{}/msg_1.json", r#"{"id":"msg_1","role":"user","time":{"created":1}}"#),
        (
            "message/{}/msg_2.json",
            r#"{"id":"msg_2","role":"assistant","time":{"created":2},"finish":"stop"}"#,
        ),
        ("part/msg_1/prt_1.json", r#"{"type":"text","text":"alpha"}"#),
        ("part/msg_2/prt_2.json", r#"{"type":"text","text":"one"}"#),
    ] {
        let path = root.join(path.replace("{}", S1));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

#[tokio::test]
async fn a_tree_of_files_is_counted_by_the_versions_that_read_it() {
    let stage = Stage::new("1.1.65");
    let root = make_tree(&stage);
    for (version, presence) in [
        ("1.1.65", Presence::Present),
        ("1.2.1", Presence::Present),
        ("1.15.13", Presence::Present),
        ("1.18.33", Presence::Unreadable),
    ] {
        assert_eq!(stage.look_at(S1, version).await.unwrap().presence, presence, "{version}");
    }
    let look = stage.look().await;
    assert_eq!((look.user_turns, look.answers, look.began_in), (1, 1, Some("/w".into())));
    assert_eq!(look.path, Some(root.join(format!("session/p/{S1}.json"))));
    assert_eq!(stage.look_at(S2, "1.1.65").await.unwrap().presence, Presence::Missing);
}

#[tokio::test]
async fn a_tree_of_files_can_be_damaged_in_each_of_them() {
    for name in ["session/p/{}.json", "message/{}/msg_1.json", "part/msg_2/prt_2.json"] {
        let stage = Stage::new("1.1.65");
        let path = make_tree(&stage).join(name.replace("{}", S1));
        std::fs::write(path, "{\"cut").unwrap();
        assert_eq!(stage.presence().await, Presence::Damaged, "{name}");
    }
    for name in ["message", "part"] {
        let stage = Stage::new("1.1.65");
        let root = make_tree(&stage);
        std::fs::remove_dir_all(root.join(name)).unwrap();
        assert_eq!(stage.presence().await, Presence::Empty, "{name}");
    }
}

#[tokio::test]
async fn what_was_said_is_told_of_databases_and_trees() {
    let by = |conversation: &Conversation| -> Vec<(Speaker, String)> {
        conversation.said.iter().map(|said| (said.by, said.text.clone())).collect()
    };
    let (user, agent) = (Speaker::User, Speaker::Agent);
    let said = |by, text: &str| (by, text.to_owned());
    let catalog = OpencodeCatalog::new(EnvMap::new());
    for version in versions() {
        let stage = Stage::with_session(version);
        stage.change(&format!(
            "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data)
             VALUES ('prt_9', 'msg_4', '{S1}', 1, 1, '{{\"type\":\"text\",\"text\":\"more\"}}')"
        ));
        let (id, parsed) = (NativeId::new(S1), Version::parse(version));
        let query = stage.query(&id, parsed.as_ref());
        let all = catalog.last_said(query, 1000).await.unwrap();
        assert_eq!(
            by(&all),
            [said(user, "alpha"), said(agent, "one"), said(user, "beta"), said(agent, "two\nmore")]
        );
        let last = catalog.last_said(query, 12).await.unwrap();
        assert_eq!((by(&last).len(), last.left_out), (2, 2), "{version}");
    }
    let stage = Stage::new("1.1.65");
    make_tree(&stage);
    let (id, parsed) = (NativeId::new(S1), Version::parse("1.1.65"));
    let all = catalog.last_said(stage.query(&id, parsed.as_ref()), 1000).await.unwrap();
    assert_eq!(by(&all), [said(user, "alpha"), said(agent, "one")]);
    let none = NativeId::new(S2);
    assert_eq!(
        catalog.last_said(stage.query(&none, parsed.as_ref()), 9).await.unwrap(),
        Conversation::default()
    );
}
