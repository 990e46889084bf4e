use std::path::Path;

use session_core::{CliDialect, EnvMap, Installation, Limits, NativeId, RunId, SessionName, Turn, Version};

use super::*;
use crate::ClaudeDialect;

const S1: &str = "11111111-1111-4111-8111-11111111111A";
const S2: &str = "22222222-1111-4111-8111-111111111111";

struct Case {
    dialect: ClaudeDialect,
    version: Option<&'static str>,
    prompt: String,
    name: Option<&'static str>,
    model: Option<&'static str>,
    recipe: session_core::TurnRecipe<'static>,
}

impl Case {
    fn new(version: &'static str) -> Self {
        Self {
            dialect: ClaudeDialect::new(ClaudeOptions::new().keep_retention(false)),
            version: Some(version),
            prompt: "hello".to_owned(),
            name: None,
            model: None,
            recipe: session_core::TurnRecipe::default(),
        }
    }

    fn run(&self, mode: Mode<'_>) -> Result<CommandSpec, CommandError> {
        let version = self.version.and_then(Version::parse);
        let capabilities = self.dialect.capabilities(version.as_ref());
        let installation = Installation { program: "claude".into(), version, capabilities };
        let name = self.name.map(|name| SessionName::new(name).unwrap());
        let turn = Turn {
            run: serde_json::from_str::<RunId>("\"00000000-0000-4000-8000-000000000000\"").unwrap(),
            prompt: &self.prompt,
            cwd: Path::new("/w"),
            mode,
            name: name.as_ref(),
            model: self.model,
            recipe: self.recipe,
            state_dir: None,
            installation: &installation,
            limits: &Limits::default(),
            cancel: &session_core::Cancel::new(),
        };
        self.dialect.command(&turn, &EnvMap::new())
    }

    fn args(&self, mode: Mode<'_>) -> String {
        line(&self.run(mode).unwrap())
    }
}

fn line(command: &CommandSpec) -> String {
    let args: Vec<_> = command.args.iter().map(|arg| arg.to_str().unwrap()).collect();
    let start = "-p --output-format stream-json --verbose";
    let line = args.join(" ");
    assert!(line.starts_with(start), "{line}");
    line[start.len()..].trim_start().to_owned()
}

fn fresh() -> Mode<'static> {
    Mode::Fresh { id: None }
}

#[test]
fn fresh_resume_and_fork() {
    let (one, two) = (NativeId::new(S1), NativeId::new(S2));
    let case = Case::new("2.1.332");
    assert_eq!(case.args(fresh()), "");
    assert_eq!(case.args(Mode::Fresh { id: Some(&one) }), format!("--session-id {S1}"));
    assert_eq!(case.args(Mode::Resume { id: &one }), format!("--resume {S1}"));
    let fork = Mode::Fork { source: &one, transcript: None, id: Some(&two) };
    assert_eq!(case.args(fork), format!("--resume {S1} --fork-session --session-id {S2}"));
    let path = format!("/other/projects/-w/{S1}.jsonl");
    let fork = Mode::Fork { source: &one, transcript: Some(Path::new(&path)), id: None };
    assert_eq!(case.args(fork), format!("--resume {path} --fork-session"));
}

#[test]
fn a_recipe_is_one_argument_for_each_part() {
    let tools = |names: &[&str]| &*Vec::leak(names.iter().map(ToString::to_string).collect::<Vec<_>>());
    let mut case = Case::new("2.1.197");
    case.recipe.system_prompt = Some("-x\nBe brief.");
    case.recipe.tools = Some(tools(&["Read", "Bash(git *)"]));
    assert_eq!(case.args(fresh()), "--append-system-prompt=-x\nBe brief. --tools=Read,Bash(git *)");
    case.version = Some("2.1.332");
    case.recipe.tools = Some(tools(&[]));
    assert_eq!(
        case.args(fresh()),
        "--append-system-prompt=-x\nBe brief. --system-prompt-snapshot=off --tools="
    );
    for odd in ["", " ", "a,b", "a\nb"] {
        case.recipe.tools = Some(tools(&[odd]));
        assert!(matches!(case.run(fresh()), Err(CommandError::Unsupported { .. })), "{odd:?}");
    }
    case.recipe = session_core::TurnRecipe { system_prompt: Some("a\0b"), tools: None };
    assert!(matches!(case.run(fresh()), Err(CommandError::Unsupported { .. })));
}

#[test]
fn what_a_version_lacks_is_not_asked_of_it() {
    let (one, two) = (NativeId::new(S1), NativeId::new(S2));
    let fork = |id| Mode::Fork { source: &one, transcript: None, id };
    assert!(Case::new("2.0.14").run(fork(None)).is_ok());
    assert!(matches!(Case::new("2.0.14").run(fork(Some(&two))), Err(CommandError::Unsupported { .. })));
    assert!(matches!(Case::new("1.0.116").run(fork(None)), Err(CommandError::Unsupported { .. })));
    let with_id = Mode::Fresh { id: Some(&one) };
    assert!(matches!(Case::new("1.0.44").run(with_id), Err(CommandError::Unsupported { .. })));
}

#[test]
fn an_id_that_is_none_never_reaches_the_command_line() {
    for bad in
        ["", "-p", "issue-42", "../x", &format!("{S1} "), &S1[..35], "{11111111-1111-4111-8111-11111111111}"]
    {
        let id = NativeId::new(bad);
        let case = Case::new("2.1.332");
        assert!(matches!(case.run(Mode::Resume { id: &id }), Err(CommandError::Id { .. })), "{bad:?}");
        assert!(matches!(case.run(Mode::Fresh { id: Some(&id) }), Err(CommandError::Id { .. })), "{bad:?}");
    }
    let one = NativeId::new(S1);
    for path in ["rel/x.jsonl", "/x/no-session", "-x.jsonl"] {
        let fork = Mode::Fork { source: &one, transcript: Some(Path::new(path)), id: None };
        assert!(matches!(Case::new("2.1.332").run(fork), Err(CommandError::Id { .. })), "{path}");
    }
}

#[test]
fn a_name_is_given_once_and_cannot_be_a_flag() {
    let one = NativeId::new(S1);
    let mut case = Case::new("2.1.332");
    case.name = Some("-x y");
    case.model = Some("sonnet");
    assert_eq!(case.args(fresh()), "--name=-x y --model sonnet");
    assert_eq!(case.args(Mode::Resume { id: &one }), format!("--resume {S1} --model sonnet"));
    case.version = Some("2.1.75");
    assert_eq!(case.args(fresh()), "--model sonnet");
}

#[test]
fn the_prompt_goes_by_stdin_only() {
    for prompt in
        ["hello", "-hello", "--resume x", "  a\r\n b \n\n", "!ls", "#x", "@a.txt", " /clear", "\u{200b}/x"]
    {
        let mut case = Case::new("2.0.14");
        prompt.clone_into(&mut case.prompt);
        let command = case.run(fresh()).unwrap();
        assert_eq!(line(&command), "", "{prompt:?}");
        assert_eq!(command.stdin, prompt.as_bytes());
    }
}

#[test]
fn a_prompt_that_begins_with_a_slash_is_split_so_that_it_is_no_command() {
    for prompt in ["/clear", "/etc/hosts is\nbroken \n", "//x", "/ x", "/\"\u{e9}\\"] {
        let mut case = Case::new("2.0.14");
        prompt.clone_into(&mut case.prompt);
        let command = case.run(fresh()).unwrap();
        assert_eq!(line(&command), "--input-format stream-json");
        assert_eq!(command.stdin.iter().filter(|byte| **byte == b'\n').count(), 1);
        let message: Value = serde_json::from_slice(&command.stdin).unwrap();
        let texts: Vec<_> = message["message"]["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["text"].as_str().unwrap())
            .collect();
        assert_eq!(texts.concat(), prompt);
        assert!(texts.len() == 2 && !texts[1].starts_with('/') && !texts[1].trim().is_empty());
    }
    for prompt in ["/", "//", "/ \n"] {
        let mut case = Case::new("2.0.14");
        prompt.clone_into(&mut case.prompt);
        assert!(matches!(case.run(fresh()), Err(CommandError::Unsupported { .. })), "{prompt:?}");
    }
}

#[test]
fn a_prompt_over_the_limit_is_refused_where_the_version_has_one() {
    let mut case = Case::new("2.1.332");
    case.prompt = "x".repeat(STDIN_LIMIT);
    assert!(case.run(fresh()).is_ok());
    case.prompt.push('x');
    assert!(matches!(case.run(fresh()), Err(CommandError::PromptTooLarge { .. })));
    case.version = Some("2.0.14");
    assert!(case.run(fresh()).is_ok());
}

#[test]
fn options_become_flags_settings_and_environment() {
    let options = ClaudeOptions::new()
        .permission_mode("acceptEdits")
        .and_then(|options| options.settings(r#"{"env":{"A":"1"}}"#))
        .and_then(|options| options.extra_args(["--add-dir", "/x"]))
        .unwrap()
        .max_turns(3)
        .partial_messages(true)
        .retries(1)
        .api_base_url("http://localhost:1")
        .essential_traffic_only(true);
    let mut case = Case::new("2.1.332");
    case.dialect = ClaudeDialect::new(options);
    let command = case.run(fresh()).unwrap();
    assert_eq!(
        line(&command),
        "--include-partial-messages --permission-mode acceptEdits --max-turns 3 --settings \
         {\"cleanupPeriodDays\":3650,\"env\":{\"A\":\"1\"}} --add-dir /x"
    );
    assert!(command.env.contains(&EnvChange::set("ANTHROPIC_BASE_URL", "http://localhost:1")));
    assert!(command.env.contains(&EnvChange::set("CLAUDE_CODE_MAX_RETRIES", "1")));
    assert!(command.env.contains(&EnvChange::remove("CLAUDECODE")));
}

#[test]
fn a_retention_of_the_callers_own_wins() {
    let options = ClaudeOptions::new().settings(r#"{"cleanupPeriodDays":7}"#).unwrap();
    let mut case = Case::new("2.1.332");
    case.dialect = ClaudeDialect::new(options);
    assert_eq!(case.args(fresh()), r#"--settings {"cleanupPeriodDays":7}"#);
}

#[test]
fn what_is_said_of_the_retention_is_what_is_passed() {
    let days = |options: ClaudeOptions, version: &str| {
        let retention = ClaudeDialect::new(options).capabilities(Version::parse(version).as_ref()).retention;
        let days = |time: Option<std::time::Duration>| time.map(|time| time.as_secs() / (24 * 60 * 60));
        (days(retention.in_state_dir), days(retention.in_own_place))
    };
    let set =
        |days: &str| ClaudeOptions::new().settings(&format!("{{\"cleanupPeriodDays\":{days}}}")).unwrap();
    for version in ["2.0.14", "2.1.197", "2.1.332", "no version"] {
        assert_eq!(days(ClaudeOptions::new(), version), (Some(3650), Some(30)), "{version}");
        assert_eq!(days(ClaudeOptions::new().keep_retention(false), version), (Some(30), Some(30)));
        assert_eq!(days(set("7"), version), (Some(7), Some(7)));
        assert_eq!(days(set("99999"), version), (Some(99_999), Some(30)));
        for odd in ["0", "-1", "\"x\"", "1e99"] {
            assert_eq!(days(set(odd), version), (None, Some(30)), "{odd}");
        }
    }
    // Older ones are not passed it, and were not tried.
    assert_eq!(days(ClaudeOptions::new(), "1.0.124"), (None, None));
}

#[test]
fn the_version_probe_is_not_nested_either() {
    let probe = ClaudeDialect::default().version_probe();
    assert_eq!(probe.args, ["--version"]);
    assert!(probe.env.contains(&EnvChange::remove("CLAUDECODE")));
}
