use std::path::Path;

use serde_json::Value;
use session_core::{CliDialect, EnvMap, Installation, Limits, SessionName};

use super::*;
use crate::OpencodeDialect;

const S1: &str = "ses_00000000000000000000000000004201";
const RUN: &str = "00000000-0000-4000-8000-000000000000";

struct Case {
    dialect: OpencodeDialect,
    version: &'static str,
    prompt: String,
    name: Option<&'static str>,
    model: Option<&'static str>,
    state_dir: Option<&'static str>,
}

impl Case {
    fn new(version: &'static str) -> Self {
        Self {
            dialect: OpencodeDialect::default(),
            version,
            prompt: "hello".to_owned(),
            name: None,
            model: None,
            state_dir: None,
        }
    }

    fn with<T>(&self, mode: Mode<'_>, ask: impl FnOnce(&Turn<'_>) -> T) -> T {
        let version = Version::parse(self.version);
        let capabilities = self.dialect.capabilities(version.as_ref());
        let installation = Installation { program: "opencode".into(), version, capabilities };
        let name = self.name.map(|name| SessionName::new(name).unwrap());
        ask(&Turn {
            run: serde_json::from_str::<RunId>(&format!("\"{RUN}\"")).unwrap(),
            prompt: &self.prompt,
            cwd: Path::new("/w"),
            mode,
            name: name.as_ref(),
            model: self.model,
            recipe: session_core::TurnRecipe::default(),
            state_dir: self.state_dir.map(Path::new),
            installation: &installation,
            limits: &Limits::default(),
            cancel: &session_core::Cancel::new(),
        })
    }

    fn run(&self, mode: Mode<'_>) -> Result<CommandSpec, CommandError> {
        self.with(mode, |turn| self.dialect.command(turn, &EnvMap::new()))
    }

    fn preparations(&self, mode: Mode<'_>) -> Result<Vec<CommandSpec>, CommandError> {
        self.with(mode, |turn| self.dialect.preparations(turn, &EnvMap::new()))
    }

    fn args(&self, mode: Mode<'_>) -> String {
        line(&self.run(mode).unwrap())
    }
}

fn line(command: &CommandSpec) -> String {
    let args: Vec<_> = command.args.iter().map(|arg| arg.to_str().unwrap()).collect();
    args.join(" ")
}

fn value<'a>(command: &'a CommandSpec, name: &str) -> Option<&'a str> {
    command.env.iter().rev().find_map(|change| match change {
        EnvChange::Set(found, value) if found == name => value.to_str(),
        _ => None,
    })
}

const FRESH: Mode<'static> = Mode::Fresh { id: None };

#[test]
fn fresh_resume_and_fork() {
    let id = NativeId::new(S1);
    let fork = Mode::Fork { source: &id, transcript: None, id: None };
    for version in ["1.1.65", "1.2.1", "1.15.13", "1.18.33"] {
        let mut case = Case::new(version);
        (case.name, case.model) = (Some("-x y"), Some("fake/m"));
        assert_eq!(case.args(FRESH), "run --format json --title=-x y --model=fake/m");
        assert_eq!(case.args(Mode::Resume { id: &id }), format!("run --format json -s {S1} --model=fake/m"));
        assert_eq!(case.args(fork), format!("run --format json -s {S1} --fork --model=fake/m"));
        assert_eq!(case.preparations(Mode::Resume { id: &id }).unwrap(), []);
        assert_eq!(case.preparations(fork).unwrap(), []);
        assert_eq!(case.preparations(FRESH).unwrap(), []);
    }
}

#[test]
fn a_chosen_id_is_brought_in_before_with_the_name_as_its_title() {
    let id = NativeId::new(S1);
    let mode = Mode::Fresh { id: Some(&id) };
    let mut case = Case::new("1.18.33");
    (case.name, case.state_dir) = (Some("agent/issue-42 \"x\""), Some("/s"));
    assert_eq!(case.args(mode), format!("run --format json -s {S1}"));
    let [import] = &case.preparations(mode).unwrap()[..] else { panic!("one") };
    assert_eq!(line(import), "import /dev/stdin");
    let session: Value = serde_json::from_slice(&import.stdin).unwrap();
    assert_eq!((&session["info"]["id"], &session["info"]["directory"]), (&S1.into(), &"/w".into()));
    assert_eq!(session["info"]["title"], "agent/issue-42 \"x\"");
    assert_eq!(session["messages"], serde_json::json!([]));
    // Both look at the same database.
    let database = format!("/s/{S1}.db");
    for command in [import, &case.run(mode).unwrap(), &case.run(Mode::Resume { id: &id }).unwrap()] {
        assert_eq!(value(command, DATABASE), Some(database.as_str()));
    }
    assert!(matches!(Case::new("1.2.1").run(mode), Err(CommandError::Unsupported { .. })));
}

#[test]
fn only_a_state_dir_of_a_version_that_takes_one_has_databases_of_its_own() {
    let id = NativeId::new(S1);
    for (version, state_dir, database) in [
        ("1.18.33", None, None),
        ("1.2.1", Some("/s"), None),
        ("1.1.65", Some("/s"), None),
        ("1.15.13", Some("/s"), Some(format!("/s/{S1}.db"))),
    ] {
        let case = Case { state_dir, ..Case::new(version) };
        let command = case.run(Mode::Resume { id: &id }).unwrap();
        assert_eq!(value(&command, DATABASE), database.as_deref(), "{version}");
    }
    let case = Case { state_dir: Some("/s"), ..Case::new("1.18.33") };
    assert_eq!(value(&case.run(FRESH).unwrap(), DATABASE), Some(format!("/s/new-{RUN}.db").as_str()));
}

#[test]
fn the_session_of_another_mailbox_is_copied_before_it_is_forked() {
    let id = NativeId::new(S1);
    let path = Path::new("/other/it's.db");
    let fork = Mode::Fork { source: &id, transcript: Some(path), id: None };
    for version in ["1.15.13", "1.18.33"] {
        let case = Case { state_dir: Some("/o'k"), ..Case::new(version) };
        let [copy] = &case.preparations(fork).unwrap()[..] else { panic!("one") };
        assert_eq!(line(copy), format!("db VACUUM INTO '/o''k/new-{RUN}.db'"));
        assert_eq!(value(copy, DATABASE), path.to_str());
        let command = case.run(fork).unwrap();
        assert_eq!(value(&command, DATABASE), Some(format!("/o'k/new-{RUN}.db").as_str()));
        assert_eq!(line(&command), format!("run --format json -s {S1} --fork"));
    }
    for version in ["1.1.65", "1.2.1"] {
        let case = Case { state_dir: Some("/s"), ..Case::new(version) };
        assert!(matches!(case.run(fork), Err(CommandError::Unsupported { .. })), "{version}");
        assert_eq!(case.preparations(fork).unwrap(), []);
    }
}

#[test]
fn what_a_version_lacks_is_not_asked_of_it() {
    let id = NativeId::new(S1);
    let plain = Mode::Fork { source: &id, transcript: None, id: None };
    assert!(matches!(Case::new("1.1.11").run(plain), Err(CommandError::Unsupported { .. })));
    assert!(matches!(
        Case::new("1.1.11").run(Mode::Resume { id: &id }),
        Err(CommandError::Unsupported { .. })
    ));
    let chosen = Mode::Fork { source: &id, transcript: None, id: Some(&id) };
    assert!(matches!(Case::new("1.18.33").run(chosen), Err(CommandError::Unsupported { .. })));
    assert!(matches!(Case::new("2.0.0").run(FRESH), Err(CommandError::Unsupported { .. })));
}

#[test]
fn an_id_that_is_none_never_reaches_the_command_line() {
    let long = format!("ses_{}", "x".repeat(130));
    for bad in ["", "-s", "issue-42", "ses", "ses_a/b", "ses_../x", "ses_ü", "ses_a b", "ses_a'", &long] {
        let id = NativeId::new(bad);
        let case = Case { state_dir: Some("/s"), ..Case::new("1.18.33") };
        for mode in [
            Mode::Resume { id: &id },
            Mode::Fresh { id: Some(&id) },
            Mode::Fork { source: &id, transcript: None, id: None },
        ] {
            assert!(matches!(case.run(mode), Err(CommandError::Id { .. })), "{bad:?}");
        }
        assert!(case.preparations(Mode::Fresh { id: Some(&id) }).is_err(), "{bad:?}");
    }
}

#[test]
fn the_prompt_goes_by_stdin_only_as_it_is() {
    for prompt in ["hello", "--help", "/compact", "  a\r\n \"b\" \n\n", "@a.txt", "!ls"] {
        let mut case = Case::new("1.18.33");
        prompt.clone_into(&mut case.prompt);
        let command = case.run(FRESH).unwrap();
        assert_eq!(line(&command), "run --format json", "{prompt:?}");
        assert_eq!(command.stdin, prompt.as_bytes());
    }
}

#[test]
fn the_child_is_told_its_folder_and_nothing_of_an_outer_agent() {
    let id = NativeId::new(S1);
    let case = Case::new("1.18.33");
    let mode = Mode::Fresh { id: Some(&id) };
    let mut commands = case.preparations(mode).unwrap();
    commands.push(case.run(mode).unwrap());
    for command in &commands {
        assert_eq!(value(command, "PWD"), Some("/w"));
        assert_eq!(value(command, "OPENCODE_DISABLE_AUTOUPDATE"), Some("1"));
        for marker in ["OPENCODE_RUN_ID", "OPENCODE_SERVER_PASSWORD"] {
            assert!(command.env.contains(&EnvChange::remove(marker)), "{marker}");
        }
    }
    let probe = case.dialect.version_probe();
    assert_eq!(line(&probe), "--version");
    assert!(probe.env.contains(&EnvChange::remove("OPENCODE")));
}

#[test]
fn options_become_flags_and_environment() {
    let options = OpencodeOptions::new()
        .permission(r#"{"bash":"allow"}"#)
        .and_then(|options| options.extra_args(["--agent=plan"]))
        .unwrap()
        .auto_approve(true)
        .models_fetch(false);
    for (version, flag) in [("1.18.33", "--auto"), ("1.15.13", "--dangerously-skip-permissions")] {
        let case = Case { dialect: OpencodeDialect::new(options.clone()), ..Case::new(version) };
        let command = case.run(FRESH).unwrap();
        assert_eq!(line(&command), format!("run --format json {flag} --agent=plan"));
        assert_eq!(value(&command, "OPENCODE_PERMISSION"), Some(r#"{"bash":"allow"}"#));
        assert_eq!(value(&command, "OPENCODE_DISABLE_MODELS_FETCH"), Some("1"));
    }
    let case = Case { dialect: OpencodeDialect::new(options), ..Case::new("1.2.1") };
    assert!(matches!(case.run(FRESH), Err(CommandError::Unsupported { .. })));
}
