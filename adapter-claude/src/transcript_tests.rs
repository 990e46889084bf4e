use proptest::prelude::*;
use session_core::{NativeId, Version};

use super::*;

const ID: &str = "11111111-1111-4111-8111-111111111111";

fn format() -> ClaudeTranscripts {
    ClaudeTranscripts::new([("HOME", "/home/u")].into_iter().collect())
}

fn kind(line: &str) -> Option<RecordKind> {
    format().record(line.as_bytes()).map(|facts| facts.kind)
}

#[test]
fn a_folder_name_is_what_the_program_makes_of_it() {
    assert_eq!(project_name(Path::new("/home/u/my.proj_x"), true), "-home-u-my-proj-x");
    assert_eq!(project_name(Path::new("/é/😀"), true), "-----");
    let long = format!("/srv/demo/a b.c_d/é😀/{}", "long-name-".repeat(20));
    let whole = format!("-srv-demo-a-b-c-d-----{}", "long-name-".repeat(20));
    // Made by 2.1.332 and 2.1.197.
    assert_eq!(project_name(Path::new(&long), true), format!("{}-w20sum", &whole[..200]));
    assert_eq!(project_name(Path::new(&long), false), whole);
    assert_eq!(project_name(Path::new(&format!("/{}", "a".repeat(199))), true).len(), 200);
    assert!(project_name(Path::new(&format!("/{}", "a".repeat(200))), true).len() > 201);
}

#[test]
fn the_way_to_a_folder_is_known_by_the_name_of_its_place() {
    let long = format!("/srv/{}/{}", "long-name-".repeat(25), "x".repeat(30));
    for folder in ["/home/u/my.proj_x", "/é/😀", "/", &long] {
        for place in format().filed_in(Path::new(folder), None) {
            for above in Path::new(folder).ancestors() {
                assert!(format().may_lie_in(above, &place), "{} {}", above.display(), place.display());
            }
        }
    }
    let place = &format().filed_in(Path::new("/home/u/my.proj_x"), None)[0];
    for other in ["/home/u/my.proj", "/home/u2", "/hom", "/srv", "/home/u/my-proj-x/src"] {
        let may = format().may_lie_in(Path::new(other), place);
        assert_eq!(may, other == "/home/u/my.proj", "{other}: of a part of a name nobody can tell");
    }
}

fn places(env: &[(&str, &str)], cwd: &str, state: Option<&str>, version: Option<&str>, id: &str) -> Places {
    let format = ClaudeTranscripts::new(env.iter().copied().collect());
    let version = version.and_then(Version::parse);
    format.places(&SessionQuery {
        id: &NativeId::new(id),
        cwd: Path::new(cwd),
        state_dir: state.map(Path::new),
        version: version.as_ref(),
    })
}

#[test]
fn the_place_follows_environment_and_state_dir() {
    let home = places(&[("HOME", "/home/u")], "/w", None, None, ID);
    assert_eq!(home.exact, [PathBuf::from(format!("/home/u/.claude/projects/-w/{ID}.jsonl"))]);
    assert_eq!(home.below, [Below { folder: "/home/u/.claude/projects".into(), depth: 1 }]);
    let chosen = places(&[("HOME", "/home/u"), ("CLAUDE_CONFIG_DIR", "/c")], "/w", None, None, ID);
    assert_eq!(chosen.exact, [PathBuf::from(format!("/c/projects/-w/{ID}.jsonl"))]);
    let state = places(&[("CLAUDE_CONFIG_DIR", "/c")], "/w", Some("/s"), None, ID);
    assert_eq!(state.exact, [PathBuf::from(format!("/s/projects/-w/{ID}.jsonl"))]);
    let named = places(&[("CLAUDE_CODE_PROJECT_DIR_NAME", "box")], "/w", Some("/s"), None, ID);
    assert_eq!(named.exact[0], PathBuf::from(format!("/s/projects/box/{ID}.jsonl")));
    assert_eq!(places(&[], "/w", None, None, ID), Places::default());
}

#[test]
fn both_names_of_a_long_folder_are_tried() {
    let cwd = format!("/{}", "a".repeat(250));
    let new = places(&[], &cwd, Some("/s"), Some("2.1.197"), ID);
    let old = places(&[], &cwd, Some("/s"), Some("2.0.14"), ID);
    assert_eq!(new.exact.len(), 2);
    assert_eq!(new.exact[0], old.exact[1]);
    assert_eq!(new.exact[1], old.exact[0]);
}

#[test]
fn an_id_that_is_none_leads_nowhere() {
    for id in ["", "..", "../../etc/passwd", "a/b", &ID[1..]] {
        assert_eq!(places(&[], "/w", Some("/s"), None, id), Places::default(), "{id:?}");
    }
}

#[test]
fn prompts_and_answers_of_the_main_conversation_count() {
    let prompt = r#"{"type":"user","cwd":"/w","message":{"role":"user","content":"hi"}}"#;
    let facts = format().record(prompt.as_bytes()).unwrap();
    assert_eq!(facts, RecordFacts { cwd: Some("/w".into()), ..RecordFacts::new(RecordKind::Prompt) });
    let blocks =
        r#"{"type":"user","message":{"content":[{"type":"text","text":"/"},{"type":"text","text":"x"}]}}"#;
    assert_eq!(kind(blocks), Some(RecordKind::Prompt));
    let answer = r#"{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"a"}]}}"#;
    assert_eq!(kind(answer), Some(RecordKind::Answer));
}

#[test]
fn everything_else_is_a_record_that_does_not_count() {
    for line in [
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}"#,
        r#"{"type":"user","isSidechain":true,"message":{"content":"hi"}}"#,
        r#"{"type":"user","isMeta":true,"message":{"content":"hi"}}"#,
        r#"{"type":"user","isCompactSummary":true,"message":{"content":"hi"}}"#,
        r#"{"type":"user","message":{"content":"<command-name>/clear</command-name>"}}"#,
        r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#,
        r#"{"type":"assistant","isSidechain":true,"message":{"content":[]}}"#,
        r#"{"type":"assistant","isApiErrorMessage":true,"message":{"content":[]}}"#,
        r#"{"type":"assistant","message":{"model":"<synthetic>","content":[]}}"#,
        r#"{"type":"summary","summary":"s","leafUuid":"u"}"#,
        r#"{"type":"user","isSidechain":"odd","message":7}"#,
    ] {
        assert_eq!(kind(line), Some(RecordKind::Other), "{line}");
    }
    for line in
        ["", "{}", "null", "[]", "{\"a\":1}", "{\"type\":\"user\"", "{\"type\":1}", "\0\0{\"type\":\"user\"}"]
    {
        assert_eq!(kind(line), None, "{line:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = format().record(&line);
    }

    #[test]
    fn any_folder_has_a_safe_name(cwd in "\\PC{0,300}") {
        let name = project_name(Path::new(&cwd), true);
        prop_assert!(name.len() <= 208 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
    }
}

#[test]
fn only_words_of_the_main_conversation_are_said() {
    let said = |line: &str| format().said(line.as_bytes()).map(|said| (said.by, said.text));
    let user = |text: &str| Some((Speaker::User, text.to_owned()));
    assert_eq!(said(r#"{"type":"user","message":{"content":"hi\n"}}"#), user("hi\n"));
    let slashes = r#"{"type":"user","message":{"content":[{"type":"text","text":"/"},{"type":"text","text":"clear"}]}}"#;
    assert_eq!(said(slashes), user("/clear"));
    let answer = r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"Bash"},{"type":"text","text":"b"}]}}"#;
    assert_eq!(said(answer), Some((Speaker::Agent, "a\nb".to_owned())));
    for nothing in [
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"secret"}]}}"#,
        r#"{"type":"user","isMeta":true,"message":{"content":"caveat"}}"#,
        r#"{"type":"user","isSidechain":true,"message":{"content":"go"}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash"}]}}"#,
        r#"{"type":"summary","summary":"words"}"#,
        "rubbish",
    ] {
        assert_eq!(said(nothing), None, "{nothing}");
    }
}

#[test]
fn a_note_of_a_live_process_names_its_session_and_its_start() {
    let live = |note: &str| format().live(note.as_bytes());
    let whole =
        format!(r#"{{"pid":42,"sessionId":"{ID}","cwd":"/w","kind":"bg","procStart":"450222","new":[1]}}"#);
    let expected = LiveSession { id: NativeId::new(ID), pid: 42, started: Some("450222".to_owned()) };
    assert_eq!(live(&whole), Some(expected.clone()));
    let short = format!(r#"{{"pid":42,"sessionId":"{ID}"}}"#);
    assert_eq!(live(&short), Some(LiveSession { started: None, ..expected }));
    for none in
        ["", "rubbish", r#"{"pid":42,"sessionId":"../x"}"#, &format!(r#"{{"pid":-1,"sessionId":"{ID}"}}"#)]
    {
        assert_eq!(live(none), None, "{none}");
    }
    let folder = |state: Option<&str>| format().live_folder(state.map(Path::new));
    assert_eq!(folder(None).as_deref(), Some(Path::new("/home/u/.claude/sessions")));
    assert_eq!(folder(Some("/s")).as_deref(), Some(Path::new("/s/sessions")));
}

#[test]
fn the_folder_of_the_same_name_belongs_to_a_session_and_the_notes_to_the_project() {
    let file = Path::new("/s/projects/-w").join(format!("{ID}.jsonl"));
    assert_eq!(format().belongings(&file), [Path::new("/s/projects/-w").join(ID)]);
    assert_eq!(format().shared(&file), [Path::new("/s/projects/-w/memory")]);
}
