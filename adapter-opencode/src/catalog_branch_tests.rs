//! Sessions that are branched.

use std::collections::BTreeMap;

use session_core::{BranchRefusal, Spot, Timestamp};

use super::places::make_tree;
use super::*;

const NOW: i64 = 1_796_000_000_000;

fn uuid_of(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}

/// The work on one stage: where the branch goes, and how much of the session it keeps.
struct Cut<'a> {
    stage: &'a Stage,
    into: PathBuf,
    turns: u64,
}

impl Cut<'_> {
    fn with<T>(&self, work: impl FnOnce(BranchOrder<'_>) -> T) -> T {
        let (id, version) = (NativeId::new(S1), Version::parse(self.stage.version));
        let keep = Spot { native_id: id.clone(), turns: self.turns, bytes: None };
        let query = self.stage.query(&id, version.as_ref());
        let seed = uuid_of(u128::from(self.turns) << 64 | 5);
        let now = Timestamp::from_millis(NOW);
        work(BranchOrder { query, keep: &keep, into: Some(&self.into), seed, now })
    }

    fn branch(&self) -> Result<Branched, CatalogError> {
        self.with(|order| wait(OpencodeCatalog::new(EnvMap::new()).branch(order)))
    }

    fn made(&self) -> Branch {
        match self.branch().unwrap() {
            Branched::Done(branch) => branch,
            other => panic!("{}: {other:?}", self.stage.version),
        }
    }

    fn prune(&self, branch: &Branch) -> Result<(), CatalogError> {
        self.with(|order| wait(OpencodeCatalog::new(EnvMap::new()).prune(order, branch)))
    }

    fn look(&self, id: &NativeId) -> Inspection {
        let version = Version::parse(self.stage.version);
        let query = SessionQuery { state_dir: Some(&self.into), ..self.stage.query(id, version.as_ref()) };
        wait(OpencodeCatalog::new(EnvMap::new()).inspect(query)).unwrap()
    }

    /// What was said, and the turns that are had back.
    fn said(&self, id: &NativeId, path: &Path) -> (Vec<String>, u64) {
        let version = Version::parse(self.stage.version);
        let query = SessionQuery { state_dir: Some(&self.into), ..self.stage.query(id, version.as_ref()) };
        let catalog = OpencodeCatalog::new(EnvMap::new());
        let said = wait(catalog.last_said(query, 1000)).unwrap();
        let source = SessionSource { path: path.to_owned(), state_dir: Some(self.into.clone()) };
        let restored = wait(catalog.restore(id, &source)).unwrap();
        (said.said.into_iter().map(|said| said.text).collect(), restored.turns)
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn cut(stage: &Stage, turns: u64) -> Cut<'_> {
    Cut { stage, into: stage.dir.path().to_owned(), turns }
}

/// All rows of these tables that belong to a session, as text.
fn rows(path: &Path, session: &str) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut all = Vec::new();
    for (table, column) in [("session", "id"), ("message", "session_id"), ("part", "session_id")] {
        let sql = format!("SELECT * FROM {table} WHERE {column} = ?1 ORDER BY id");
        let mut statement = connection.prepare(&sql).unwrap();
        let count = statement.column_count();
        let mut found = statement.query([session]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let values: Vec<_> = (0..count).map(|at| format!("{:?}", row.get_ref(at).unwrap())).collect();
            all.push(format!("{table} {}", values.join(" ")));
        }
    }
    all
}

/// Every file below a folder, by its path.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                drop(files.insert(path.clone(), std::fs::read(&path).unwrap()))
            }
        }
    }
    files
}

fn told(path: &Path, sql: &str) -> String {
    Connection::open(path)
        .unwrap()
        .query_row(sql, [], |row| row.get::<_, Option<String>>(0))
        .unwrap()
        .unwrap_or_default()
}

const GRANTED: &str = r#"[{"permission":"question","pattern":"*","action":"deny"},{"permission":"bash","pattern":"*","action":"allow"}]"#;

#[test]
fn a_branch_holds_the_first_turns_under_new_ids_and_the_original_is_as_it_was() {
    for version in versions() {
        for turns in [1, 2] {
            let stage = Stage::with_session(version);
            stage.change(&format!("UPDATE session SET permission = '{GRANTED}', parent_id = 'ses_p'"));
            let before = rows(&stage.database(), S1);
            let file = std::fs::read(stage.database()).unwrap();
            let cut = cut(&stage, turns);
            let branch = cut.made();
            assert_eq!((branch.turns, branch.bytes), (turns, None));
            assert!(branch.id.as_str().starts_with("ses_"), "{version}");
            let look = cut.look(&branch.id);
            assert_eq!(
                (look.presence, look.user_turns, look.answers),
                (Presence::Present, turns, turns),
                "{version}"
            );
            assert_eq!((look.path.as_deref(), look.misplaced), (Some(&*branch.path), false));
            let words = ["alpha", "one", "beta", "two"].map(str::to_owned);
            let kept = usize::try_from(turns).unwrap() * 2;
            assert_eq!(cut.said(&branch.id, &branch.path), (words[..kept].to_vec(), turns), "{version}");
            assert_eq!(rows(&stage.database(), S1), before, "{version}: the original is as it was");
            if branch.path != stage.database() {
                assert_eq!(std::fs::read(stage.database()).unwrap(), file, "{version}: to the byte");
                assert_eq!(told(&branch.path, "SELECT group_concat(id) FROM session"), branch.id.as_str());
                assert_eq!(
                    told(&branch.path, "SELECT group_concat(name) FROM sqlite_schema WHERE name = 'session'"),
                    "session"
                );
            }
            let id = &branch.id;
            let column =
                |column: &str| told(&branch.path, &format!("SELECT {column} FROM session WHERE id = '{id}'"));
            assert_eq!(column("permission"), r#"[{"action":"deny","pattern":"*","permission":"question"}]"#);
            assert_eq!(
                (column("parent_id"), column("title"), column("directory")),
                (String::new(), "issue-42".into(), "/w".into())
            );
            // Replies hang on the copies of their prompts, and all ids are new and ascend.
            let parents = told(
                &branch.path,
                &format!(
                    "SELECT group_concat(json_extract(data, '$.parentID')) FROM (SELECT data FROM message WHERE session_id = '{id}' ORDER BY id)"
                ),
            );
            let prompts = told(
                &branch.path,
                &format!(
                    "SELECT group_concat(id) FROM (SELECT id FROM message WHERE session_id = '{id}' AND json_extract(data, '$.role') = 'user' ORDER BY id)"
                ),
            );
            assert_eq!(parents, prompts, "{version}");
            assert!(prompts.starts_with("msg_") && !prompts.contains("msg_1,"), "{prompts}");
        }
    }
}

#[test]
fn what_was_taken_back_and_what_is_not_there_is_no_spot() {
    for version in versions() {
        let stage = Stage::with_session(version);
        stage.change(r#"UPDATE session SET revert = '{"messageID":"msg_3"}'"#);
        let files = tree(stage.dir.path());
        for turns in [0, 2, 3] {
            let refused = cut(&stage, turns).branch().unwrap();
            assert_eq!(refused, Branched::Refused(BranchRefusal::SpotGone), "{version} {turns}");
        }
        assert_eq!(tree(stage.dir.path()).keys().collect::<Vec<_>>(), files.keys().collect::<Vec<_>>());
        let branch = cut(&stage, 1).made();
        assert_eq!(told(&branch.path, &format!("SELECT revert FROM session WHERE id = '{}'", branch.id)), "");
        stage.change(&format!("DELETE FROM session WHERE id = '{S1}'"));
        assert_eq!(cut(&stage, 1).branch().unwrap(), Branched::Refused(BranchRefusal::Missing), "{version}");
    }
}

#[test]
fn in_another_state_dir_it_is_alone_or_beside_what_is_there() {
    for version in versions() {
        let (stage, other) = (Stage::with_session(version), tempfile::tempdir().unwrap());
        let into = other.path().join("new");
        let cut = |turns| Cut { stage: &stage, into: into.clone(), turns };
        let (first, second) = (cut(1).made(), cut(2).made());
        assert!(first.path.starts_with(&into) && second.path.starts_with(&into), "{version}");
        for (branch, turns) in [(&first, 1), (&second, 2)] {
            let look = cut(turns).look(&branch.id);
            assert_eq!((look.presence, look.user_turns), (Presence::Present, turns), "{version}");
        }
        let leftovers: Vec<_> =
            tree(&into).into_keys().filter(|path| path.to_str().unwrap().contains(".branch")).collect();
        assert_eq!(leftovers, Vec::<PathBuf>::new(), "{version}");
        // What was kept of the other turn lies nowhere in the file.
        if first.path != second.path {
            let bytes = std::fs::read(&first.path).unwrap();
            assert!(!bytes.windows(6).any(|part| part == b"\"beta\""), "{version}");
        }
        cut(2).prune(&second).unwrap();
        assert_eq!(cut(2).look(&second.id).presence, Presence::Missing, "{version}");
        assert_eq!(cut(1).look(&first.id).user_turns, 1, "{version}: the other is as it was");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(first.path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{version}");
        }
    }
}

#[test]
fn the_tables_of_another_version_are_not_written_to() {
    let (stage, other) = (Stage::with_session("1.2.1"), tempfile::tempdir().unwrap());
    let path = other.path().join("opencode/opencode.db");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE session (id text, more text); CREATE TABLE message (id text, data text); CREATE TABLE part (id text);").unwrap();
    let before = std::fs::read(&path).unwrap();
    let refused = Cut { stage: &stage, into: other.path().to_owned(), turns: 1 }.branch().unwrap();
    assert!(matches!(refused, Branched::Refused(BranchRefusal::Unsupported(_))), "{refused:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_branch_that_somebody_went_on_with_is_not_pruned() {
    for version in versions() {
        let stage = Stage::with_session(version);
        let before = rows(&stage.database(), S1);
        let cut = cut(&stage, 1);
        let branch = cut.made();
        let id = &branch.id;
        let more = |sql: &str| Connection::open(&branch.path).unwrap().execute_batch(sql).unwrap();
        more(&format!(
            r#"INSERT INTO message (id, session_id, time_created, time_updated, data)
                 VALUES ('msg_z', '{id}', 9, 9, '{{"role":"user","time":{{"created":9}}}}');
               INSERT INTO part (id, message_id, session_id, time_created, time_updated, data)
                 VALUES ('prt_z', 'msg_z', '{id}', 9, 9, '{{"type":"text","text":"more"}}')"#
        ));
        cut.prune(&branch).unwrap_err();
        assert_eq!(cut.look(id).user_turns, 2, "{version}");
        more("DELETE FROM part WHERE id = 'prt_z'; DELETE FROM message WHERE id = 'msg_z'");
        cut.prune(&branch).unwrap();
        assert_eq!(cut.look(id).presence, Presence::Missing, "{version}");
        cut.prune(&branch).unwrap();
        assert_eq!(rows(&stage.database(), S1), before, "{version}");
    }
}

#[test]
fn where_somebody_has_the_database_open_nothing_is_added_to_it() {
    let stage = Stage::with_session("1.2.1");
    let holder = Connection::open(stage.database()).unwrap();
    holder.execute_batch("BEGIN; SELECT count(*) FROM session").unwrap();
    let before = rows(&stage.database(), S1);
    let refused = cut(&stage, 1).branch().unwrap();
    assert_eq!(refused, Branched::Refused(BranchRefusal::Live { pid: None }));
    drop(holder);
    assert_eq!(rows(&stage.database(), S1), before);
    assert_eq!(told(&stage.database(), "SELECT group_concat(id) FROM session"), S1);
}

#[test]
fn in_the_users_own_place_it_is_left_to_the_agents_own_program() {
    let stage = Stage::with_session("1.18.33");
    let (id, keep) = (NativeId::new(S1), Spot { native_id: NativeId::new(S1), turns: 1, bytes: None });
    let own = SessionQuery { id: &id, cwd: Path::new("/w"), state_dir: None, version: None };
    let inside = stage.query(&id, None);
    for (query, into) in [(own, Some(stage.dir.path())), (inside, None)] {
        let order = BranchOrder { query, keep: &keep, into, seed: uuid_of(1), now: Timestamp::EPOCH };
        let refused = wait(OpencodeCatalog::new(EnvMap::new()).branch(order)).unwrap();
        assert!(matches!(refused, Branched::Refused(BranchRefusal::Unsupported(_))), "{refused:?}");
    }
}

#[test]
fn in_the_tree_of_files_the_files_are_copied() {
    let (stage, other) = (Stage::new("1.1.65"), tempfile::tempdir().unwrap());
    let root = make_tree(&stage);
    for (path, text) in [
        (
            "session/p/{}.json",
            format!(r#"{{"id":"x","directory":"/w","title":"t","parentID":"y","permission":{GRANTED}}}"#),
        ),
        ("message/{}/msg_3.json", r#"{"id":"msg_3","role":"user","time":{"created":3}}"#.to_owned()),
        (
            "message/{}/msg_2.json",
            r#"{"id":"msg_2","role":"assistant","parentID":"msg_1","time":{"created":2},"finish":"stop"}"#
                .to_owned(),
        ),
        ("part/msg_3/prt_3.json", r#"{"type":"text","text":"beta"}"#.to_owned()),
        ("migration", "2".to_owned()),
    ] {
        let path = root.join(path.replace("{}", S1));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let before = tree(stage.dir.path());
    for (into, turns) in [(stage.dir.path(), 1), (stage.dir.path(), 2), (other.path(), 1), (other.path(), 2)]
    {
        let cut = Cut { stage: &stage, into: into.to_owned(), turns };
        let branch = cut.made();
        let after = tree(into);
        assert_eq!(cut.look(&branch.id).user_turns, turns);
        let json = |path: &Path| serde_json::from_slice::<serde_json::Value>(&after[path]).unwrap();
        let own = json(&branch.path);
        assert_eq!((&own["id"], &own["title"]), (&branch.id.as_str().into(), &"t".into()));
        assert_eq!(
            own["permission"],
            serde_json::json!([{"permission": "question", "pattern": "*", "action": "deny"}])
        );
        assert!(own.get("parentID").is_none());
        let messages = into.join("opencode/storage/message").join(branch.id.as_str());
        let names: Vec<_> = after.keys().filter(|path| path.starts_with(&messages)).collect();
        let said: Vec<_> = names.iter().map(|path| json(path)["role"].clone()).collect();
        assert_eq!(said, ["user", "assistant", "user"][..names.len()]);
        assert_eq!(names.len(), if turns == 1 { 2 } else { 3 });
        assert_eq!(json(names[1])["parentID"], json(names[0])["id"]);
        for path in &names {
            let message = json(path);
            let (id, name) = (message["id"].as_str().unwrap(), path.file_stem().unwrap());
            assert_eq!(
                (id, message["sessionID"].as_str()),
                (name.to_str().unwrap(), Some(branch.id.as_str()))
            );
            let parts = into.join("opencode/storage/part").join(id);
            let part = json(after.keys().find(|path| path.starts_with(&parts)).unwrap());
            assert_eq!((&part["messageID"], &part["sessionID"]), (&message["id"], &message["sessionID"]));
        }
        let words = ["alpha", "one", "beta"].map(str::to_owned);
        assert_eq!(cut.said(&branch.id, &branch.path), (words[..names.len()].to_vec(), turns));
        assert_eq!(after[&into.join("opencode/storage/migration")], b"2");
        assert!(!after.keys().any(|path| path.ends_with(".branch")), "no draft is left");
        assert_eq!(
            tree(stage.dir.path())
                .into_iter()
                .filter(|it| before.contains_key(&it.0))
                .collect::<BTreeMap<_, _>>(),
            before
        );
        cut.prune(&branch).unwrap();
        assert_eq!(cut.look(&branch.id).presence, Presence::Missing);
    }
    assert_eq!(tree(stage.dir.path()), before);
    assert_eq!(cut(&stage, 3).branch().unwrap(), Branched::Refused(BranchRefusal::SpotGone));
}
