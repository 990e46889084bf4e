//! The catalog over files of Claude Code.

use std::fs;
use std::path::{Path, PathBuf};

use rejoin::NativeId;
use rejoin::adapters::{ClaudeTranscripts, CodexTranscripts, OpencodeCatalog};
use rejoin::core::{EnvMap, Inspection, Mend, Presence, SessionCatalog as _, SessionQuery};
use rejoin::transcript::FileCatalog;

const ID: &str = "11111111-1111-4111-8111-111111111111";
const PROMPT: &str = r#"{"type":"user","cwd":"/w","message":{"role":"user","content":"hi"}}"#;
const ANSWER: &str = r#"{"type":"assistant","cwd":"/w","message":{"model":"m","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":1}}}"#;
const OTHER: &str = r#"{"type":"mode","mode":"x","sessionId":"s"}"#;

struct Stage {
    state: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self { state: tempfile::tempdir().unwrap() }
    }

    fn projects(&self) -> PathBuf {
        self.state.path().join("projects")
    }

    /// Where the session of `/w` lies.
    fn path(&self) -> PathBuf {
        self.projects().join("-w").join(format!("{ID}.jsonl"))
    }

    fn write(&self, bytes: impl AsRef<[u8]>) -> &Self {
        write(&self.path(), bytes.as_ref());
        self
    }

    fn look(&self) -> Inspection {
        self.try_look().unwrap()
    }

    fn catalog(&self) -> FileCatalog<ClaudeTranscripts> {
        FileCatalog::new(ClaudeTranscripts::new(EnvMap::new()))
    }

    async fn end_last_line(&self, path: &Path, bytes: u64) -> Result<bool, rejoin::error::CatalogError> {
        let look = Inspection { path: Some(path.to_owned()), bytes, ..Inspection::MISSING };
        let (id, cwd) = (NativeId::new(ID), Path::new("/w"));
        let query = SessionQuery { id: &id, cwd, state_dir: None, version: None };
        self.catalog().mend(query, &look, Mend::EndLastLine).await
    }

    fn try_look(&self) -> Result<Inspection, rejoin::error::CatalogError> {
        let catalog = self.catalog();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(catalog.inspect(SessionQuery {
            id: &NativeId::new(ID),
            cwd: Path::new("/w"),
            state_dir: Some(self.state.path()),
            version: None,
        }))
    }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn counts(inspection: &Inspection) -> (Presence, u64, u64, u64, bool) {
    let Inspection { presence, user_turns, answers, skipped_lines, torn_tail, .. } = inspection;
    (*presence, *user_turns, *answers, *skipped_lines, *torn_tail)
}

#[test]
fn a_conversation_is_counted() {
    let stage = Stage::new();
    let text = format!("{OTHER}\n{PROMPT}\n{ANSWER}\n{PROMPT}\n{ANSWER}\n");
    let look = stage.write(&text).look();
    assert_eq!(counts(&look), (Presence::Present, 2, 2, 0, false));
    assert_eq!(look.path, Some(stage.path()));
    assert_eq!(look.bytes, text.len() as u64);
    assert_eq!(look.began_in, Some("/w".into()));
}

#[test]
fn nothing_is_missing_and_nothing_in_it_is_empty() {
    let stage = Stage::new();
    assert_eq!(stage.look(), Inspection::MISSING);
    fs::create_dir_all(stage.projects()).unwrap();
    assert_eq!(stage.look(), Inspection::MISSING);
    assert_eq!(stage.write("").look().presence, Presence::Empty);
    assert_eq!(stage.write("\n \n").look().presence, Presence::Empty);
    assert_eq!(stage.write(format!("{OTHER}\n{OTHER}")).look().presence, Presence::Empty);
}

#[test]
fn what_holds_no_record_is_damaged() {
    let stage = Stage::new();
    for bytes in [&b"garbage\n"[..], &[0; 300], b"{\"type\":\"us", b"\xff\xfe\n\xff"] {
        assert_eq!(stage.write(bytes).look().presence, Presence::Damaged, "{bytes:?}");
    }
}

#[test]
fn a_last_line_without_newline_counts_if_it_is_whole() {
    let stage = Stage::new();
    let whole = stage.write(format!("{PROMPT}\n{ANSWER}")).look();
    assert_eq!(counts(&whole), (Presence::Present, 1, 1, 0, false));
    for cut in 1..ANSWER.len() {
        let torn = stage.write(format!("{PROMPT}\n{}", &ANSWER[..cut])).look();
        assert_eq!(counts(&torn), (Presence::Present, 1, 0, 0, true), "cut at {cut}");
    }
}

#[test]
fn a_whole_record_behind_half_a_record_is_found() {
    let stage = Stage::new();
    for cut in 1..ANSWER.len() {
        let text = format!("{PROMPT}\n{}{PROMPT}\n{ANSWER}\n", &ANSWER[..cut]);
        assert_eq!(counts(&stage.write(text).look()), (Presence::Present, 2, 1, 1, false), "cut at {cut}");
    }
    let half = r#"{"type":"pr-link","sessionId":"S1","prNu"#;
    let tail = stage.write(format!("{PROMPT}\n{half}{ANSWER}")).look();
    assert_eq!(counts(&tail), (Presence::Present, 1, 1, 1, false));
}

#[test]
fn runs_of_nul_lose_nothing_but_themselves() {
    let stage = Stage::new();
    let nul = |count| "\0".repeat(count);
    let line = stage.write(format!("{PROMPT}\n{}\n{ANSWER}\n", nul(300))).look();
    assert_eq!(counts(&line), (Presence::Present, 1, 1, 1, false));
    let tail = stage.write(format!("{PROMPT}\n{ANSWER}\n{}", nul(1200))).look();
    assert_eq!(counts(&tail), (Presence::Present, 1, 1, 0, true));
    let before = stage.write(format!("{PROMPT}\n{}{ANSWER}\n", nul(300))).look();
    assert_eq!(counts(&before), (Presence::Present, 1, 1, 1, false));
}

#[test]
fn a_separator_of_unicode_is_no_end_of_line() {
    let stage = Stage::new();
    let text = PROMPT.replace("hi", "a\u{2028}b\u{85}c");
    assert_eq!(counts(&stage.write(format!("{text}\n")).look()), (Presence::Present, 1, 0, 0, false));
}

#[test]
fn another_folder_is_searched_and_the_own_one_wins() {
    let stage = Stage::new();
    let other = stage.projects().join("-other").join(format!("{ID}.jsonl"));
    write(&other, format!("{PROMPT}\n").as_bytes());
    let look = stage.look();
    assert_eq!((look.presence, look.path), (Presence::Present, Some(other)));
    stage.write(format!("{PROMPT}\n{ANSWER}\n"));
    assert_eq!(stage.look().path, Some(stage.path()));
}

#[test]
fn of_several_others_the_newest_is_looked_at() {
    let stage = Stage::new();
    let place = |name: &str| stage.projects().join(name).join(format!("{ID}.jsonl"));
    for (name, seconds) in [("-b", 2_000), ("-a", 3_000), ("-c", 1_000)] {
        write(&place(name), PROMPT.as_bytes());
        let written = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs::File::options().write(true).open(place(name)).unwrap().set_modified(written).unwrap();
    }
    assert_eq!(stage.look().path, Some(place("-a")));
}

#[test]
fn a_file_where_a_folder_should_be_is_no_trouble() {
    let stage = Stage::new();
    write(&stage.projects().join("-w"), b"");
    assert_eq!(stage.look(), Inspection::MISSING);
    let stage = Stage::new();
    write(&stage.projects(), b"");
    assert_eq!(stage.look(), Inspection::MISSING);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_is_no_file_is_unreadable_and_never_waited_for() {
        let stage = Stage::new();
        fs::create_dir_all(stage.path()).unwrap();
        assert_eq!(stage.look().presence, Presence::Unreadable);
        fs::remove_dir(stage.path()).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, stage.path(), rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(stage.look().presence, Presence::Unreadable);
        fs::remove_file(stage.path()).unwrap();
        symlink("/dev/zero", stage.path()).unwrap();
        assert_eq!(stage.look().presence, Presence::Unreadable);
    }

    #[test]
    fn a_link_is_followed_to_a_file_and_a_dangling_one_is_missing() {
        let stage = Stage::new();
        fs::create_dir_all(stage.path().parent().unwrap()).unwrap();
        let target = stage.state.path().join("target");
        symlink(&target, stage.path()).unwrap();
        assert_eq!(stage.look(), Inspection::MISSING);
        write(&target, PROMPT.as_bytes());
        assert_eq!(stage.look().presence, Presence::Present);
        fs::remove_file(stage.path()).unwrap();
        symlink(stage.path(), stage.path()).unwrap();
        assert_eq!(stage.look().presence, Presence::Unreadable);
    }

    /// The agent writes the state dir, and may put a link to another mailbox's session there.
    #[test]
    fn a_link_out_of_a_state_dir_is_not_followed() {
        let (stage, other) = (Stage::new(), Stage::new());
        other.write(PROMPT);
        fs::create_dir_all(stage.path().parent().unwrap()).unwrap();
        symlink(other.path(), stage.path()).unwrap();
        assert_eq!(stage.look().presence, Presence::Unreadable);
        fs::remove_dir_all(stage.projects()).unwrap();
        symlink(other.projects(), stage.projects()).unwrap();
        assert_eq!(stage.look().presence, Presence::Unreadable, "nor one in the place of a folder");
    }

    #[test]
    fn what_may_not_be_read_is_unreadable() {
        // Root may read everything.
        let root = rustix::process::geteuid().is_root();
        let stage = Stage::new();
        stage.write(PROMPT);
        fs::set_permissions(stage.path(), fs::Permissions::from_mode(0o000)).unwrap();
        let expected = if root { Presence::Present } else { Presence::Unreadable };
        assert_eq!(stage.look().presence, expected);
    }
}

#[tokio::test]
async fn a_last_line_without_an_end_is_given_one_and_nothing_else_is_written() {
    let stage = Stage::new();
    for (before, after) in [
        (format!("{PROMPT}\n{ANSWER}"), Some(format!("{PROMPT}\n{ANSWER}\n"))),
        (format!("{PROMPT}\n{{\"half"), Some(format!("{PROMPT}\n{{\"half\n"))),
        (format!("{PROMPT}\n"), None),
        (String::new(), None),
    ] {
        let path = stage.write(&before).path();
        assert_eq!(stage.end_last_line(&path, before.len() as u64).await.unwrap(), after.is_some());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), after.unwrap_or(before));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_written_through_a_link() {
    let stage = Stage::new();
    let path = stage.write("").path();
    let other = path.with_file_name("other");
    std::fs::write(&other, "no end").unwrap();
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    assert!(stage.end_last_line(&path, 6).await.is_err());
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "no end");
}

#[test]
fn a_huge_hole_is_not_read_to_its_end() {
    let stage = Stage::new();
    stage.write(format!("{PROMPT}\n{ANSWER}\n"));
    let file = fs::File::options().write(true).open(stage.path()).unwrap();
    file.set_len(1 << 40).unwrap();
    let look = stage.look();
    assert_eq!((look.presence, look.user_turns, look.bytes), (Presence::Present, 1, 1 << 40));
}

/// Without a home, or with one that only the agent can tell from its own folder, a session may be anywhere.
#[tokio::test]
async fn where_no_home_is_known_no_session_is_missing() {
    let env = |name: &str| -> EnvMap { [(name, "relative")].into_iter().collect() };
    let claude = FileCatalog::new(ClaudeTranscripts::new(EnvMap::new()));
    let codex = FileCatalog::new(CodexTranscripts::new(env("CODEX_HOME")));
    let opencode = OpencodeCatalog::new(env("XDG_DATA_HOME"));
    let (id, ours) = (NativeId::new(ID), NativeId::new("ses_11111111111111111111111111"));
    let query = |id| SessionQuery { id, cwd: Path::new("/w"), state_dir: None, version: None };
    assert!(claude.inspect(query(&id)).await.is_err());
    assert!(codex.inspect(query(&id)).await.is_err());
    assert!(opencode.inspect(query(&ours)).await.is_err());
    let looked = SessionQuery { state_dir: Some(Path::new("/none")), ..query(&id) };
    assert_eq!(codex.inspect(looked).await.unwrap(), Inspection::MISSING);
}
