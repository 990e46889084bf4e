use session_core::{NativeId, Version};

use super::*;
use crate::state::DATABASE;

const S1: &str = "ses_1";

fn places_of(version: &str, state_dir: Option<&str>, env: &[(&str, &str)]) -> Places {
    let (id, version) = (NativeId::new(S1), Version::parse(version));
    let env: EnvMap = env.iter().copied().collect();
    let query = SessionQuery {
        id: &id,
        cwd: Path::new("/w"),
        state_dir: state_dir.map(Path::new),
        version: version.as_ref(),
    };
    places(&env, &query)
}

fn database(path: &str) -> Store {
    Store::Database(path.into())
}

fn tree(path: &str) -> Store {
    Store::Tree(path.into())
}

#[test]
fn a_state_dir_is_read_as_each_version_keeps_it() {
    let own = database("/s/ses_1.db");
    let (shared, files) = (database("/s/opencode/opencode.db"), tree("/s/opencode/storage"));
    let newest = places_of("1.18.33", Some("/s"), &[]);
    assert_eq!((newest.here, newest.elsewhere), (vec![own.clone()], vec![files.clone()]));
    assert_eq!(newest.movable, [PathBuf::from("/s/opencode/opencode.db")]);
    assert_eq!(newest.movable_in.as_deref(), Some(Path::new("/s")));
    // It reads the files into every database that it makes.
    assert_eq!(places_of("1.15.13", Some("/s"), &[]).here, [own, files.clone()]);
    let old = places_of("1.2.1", Some("/s"), &[]);
    assert_eq!((old.here, old.movable), (vec![shared.clone(), files.clone()], Vec::new()));
    assert_eq!(old.elsewhere_in.as_deref(), Some(Path::new("/s")));
    let oldest = places_of("1.1.65", Some("/s"), &[]);
    assert_eq!((oldest.here, oldest.elsewhere), (vec![files], vec![shared]));
}

#[test]
fn without_a_state_dir_it_is_the_users_data_folder() {
    let home = [("HOME", "/h")];
    let data = "/h/.local/share/opencode";
    assert_eq!(places_of("1.18.33", None, &home).here, [database(&format!("{data}/opencode.db"))]);
    assert_eq!(places_of("1.1.65", None, &home).here, [tree(&format!("{data}/storage"))]);
    for (chosen, path) in [("/x/y.db", "/x/y.db".to_owned()), ("y.db", format!("{data}/y.db"))] {
        let env = [("HOME", "/h"), (DATABASE, chosen)];
        assert_eq!(places_of("1.18.33", None, &env).here, [database(&path)]);
        assert_eq!(
            places_of("1.2.1", None, &env).here[0],
            database(&format!("{data}/opencode.db")),
            "it does not know the variable"
        );
    }
    assert_eq!(places_of("1.18.33", None, &[]), Places::default());
}

#[test]
fn what_is_no_id_has_no_place() {
    let id = NativeId::new("../x");
    let query =
        SessionQuery { id: &id, cwd: Path::new("/w"), state_dir: Some(Path::new("/s")), version: None };
    assert_eq!(places(&EnvMap::new(), &query), Places::default());
}

#[test]
fn messages_are_told_apart() {
    let user = br#"{"role":"user","time":{"created":1},"agent":"build","summary":{"diffs":[]}}"#;
    let answer = br#"{"role":"assistant","parentID":"msg_1","time":{"created":1.5},"finish":"stop"}"#;
    let summary =
        br#"{"role":"assistant","parentID":"msg_2","summary":true,"time":{"created":1},"finish":"stop"}"#;
    let kinds = [&user[..], &answer[..], &summary[..]].map(|data| {
        let message = Message::read(data).unwrap();
        (message.kind(), message.is_whole(), message.is_summary())
    });
    let (prompt, said) = (Some(RecordKind::Prompt), Some(RecordKind::Answer));
    assert_eq!(kinds, [(prompt, true, false), (said, true, false), (said, true, true)]);
    assert!(!Message::read(b"{}").unwrap().is_whole());
    assert!(!Message::read(br#"{"role":"user"}"#).unwrap().is_whole());
    assert_eq!(Message::read(br#"{"role""#), None);
    assert_eq!(Message::read(b"\xff"), None);
}

#[test]
fn words_are_those_of_the_user_and_the_model() {
    let words = |data: &str| Part::words(data.as_bytes());
    assert_eq!(words(r#"{"type":"text","text":"hi"}"#).as_deref(), Some("hi"));
    for none in [
        r#"{"type":"text","text":"x","synthetic":true}"#,
        r#"{"type":"text","text":"x","ignored":true}"#,
        r#"{"type":"text","text":""}"#,
        r#"{"type":"reasoning","text":"x"}"#,
        r#"{"type":"tool"}"#,
        "garbage",
    ] {
        assert_eq!(words(none), None, "{none}");
    }
}
