use std::path::PathBuf;

use session_core::{CliDialect, EnvMap, Installation, Limits, RunId};

use super::*;
use crate::{CodexDialect, CodexProvider, SandboxMode};

const S1: &str = "01a227c3-e394-7433-81c9-11184db5edac";

struct Case {
    dialect: CodexDialect,
    version: Option<&'static str>,
    prompt: String,
    model: Option<&'static str>,
    state_dir: Option<PathBuf>,
}

impl Case {
    fn new(version: &'static str) -> Self {
        Self {
            dialect: CodexDialect::new(CodexOptions::new().unbounded_retries(true)),
            version: Some(version),
            prompt: "hello".to_owned(),
            model: None,
            state_dir: None,
        }
    }

    fn run(&self, mode: Mode<'_>) -> Result<CommandSpec, CommandError> {
        let version = self.version.and_then(Version::parse);
        let capabilities = self.dialect.capabilities(version.as_ref());
        let installation = Installation { program: "codex".into(), version, capabilities };
        let turn = Turn {
            run: serde_json::from_str::<RunId>("\"00000000-0000-4000-8000-000000000000\"").unwrap(),
            prompt: &self.prompt,
            cwd: Path::new("/w"),
            mode,
            name: None,
            model: self.model,
            recipe: session_core::TurnRecipe::default(),
            state_dir: self.state_dir.as_deref(),
            installation: &installation,
            limits: &Limits::default(),
            cancel: &session_core::Cancel::new(),
        };
        self.dialect.command(&turn, &EnvMap::new())
    }

    fn args(&self, mode: Mode<'_>) -> String {
        let command = self.run(mode).unwrap();
        let args: Vec<_> = command.args.iter().map(|arg| arg.to_str().unwrap()).collect();
        args.join(" ")
    }
}

const FRESH: Mode<'static> = Mode::Fresh { id: None };

#[test]
fn fresh_resume_and_fork() {
    let one = NativeId::new(S1);
    for version in ["0.63.0", "0.98.0", "0.130.0", "0.171.0"] {
        let case = Case::new(version);
        assert_eq!(case.args(FRESH), "exec --json --skip-git-repo-check -");
        let resume = case.args(Mode::Resume { id: &one });
        assert_eq!(resume, format!("exec --json --skip-git-repo-check resume {S1} -"));
    }
    let fork = Mode::Fork { source: &one, transcript: None, id: None };
    let forked = Case::new("0.148.0").args(fork);
    assert_eq!(forked, format!("exec --json --skip-git-repo-check fork {S1} -"));
}

#[test]
fn what_a_version_lacks_is_not_asked_of_it() {
    let one = NativeId::new(S1);
    let unsupported = |version: &'static str, mode| {
        let found = Case::new(version).run(mode);
        assert!(matches!(found, Err(CommandError::Unsupported { .. })), "{version}: {mode:?}");
    };
    unsupported("0.39.0", FRESH);
    unsupported("0.39.0", Mode::Resume { id: &one });
    unsupported("0.146.0", Mode::Fork { source: &one, transcript: None, id: None });
    // No version takes an id, nor finds a session in another home.
    unsupported("0.171.0", Mode::Fresh { id: Some(&one) });
    unsupported("0.171.0", Mode::Fork { source: &one, transcript: None, id: Some(&one) });
    let path = Path::new("/other/sessions/2026/11/29/x.jsonl");
    unsupported("0.171.0", Mode::Fork { source: &one, transcript: Some(path), id: None });
}

/// Anything but an id in the agent's own spelling starts a new session without a word, in every version tried.
#[test]
fn an_id_that_is_none_never_reaches_the_command_line() {
    let upper = S1.to_uppercase();
    for bad in ["", "-", "--last", "issue-42", "../x", &S1[..35], &format!("{S1} "), &upper] {
        let id = NativeId::new(bad);
        for mode in [Mode::Resume { id: &id }, Mode::Fork { source: &id, transcript: None, id: None }] {
            assert!(matches!(Case::new("0.171.0").run(mode), Err(CommandError::Id { .. })), "{bad:?}");
        }
    }
}

#[test]
fn the_prompt_goes_by_stdin_only() {
    for prompt in ["hello", "-hello", "--last", "  a\r\n b \n\n", "/compact", "resume", "!ls", "@a.txt", "-"]
    {
        for version in ["0.63.0", "0.171.0"] {
            let mut case = Case::new(version);
            prompt.clone_into(&mut case.prompt);
            let command = case.run(FRESH).unwrap();
            assert_eq!(case.args(FRESH), "exec --json --skip-git-repo-check -", "{prompt:?}");
            assert_eq!(command.stdin, prompt.as_bytes());
        }
    }
}

#[test]
fn a_byte_order_mark_reaches_the_model() {
    let mut case = Case::new("0.171.0");
    case.prompt = "\u{feff}x".to_owned();
    for version in ["0.98.0", "0.130.0", "0.171.0"] {
        case.version = Some(version);
        assert_eq!(
            case.run(FRESH).unwrap().stdin,
            "\u{feff}\u{feff}x".as_bytes(),
            "{version} takes one away"
        );
    }
    case.version = Some("0.63.0");
    assert_eq!(case.run(FRESH).unwrap().stdin, "\u{feff}x".as_bytes());
}

#[test]
fn a_prompt_without_a_word_is_refused_as_the_agent_would() {
    for prompt in [" ", "\n\t ", "\u{2003}"] {
        let mut case = Case::new("0.171.0");
        prompt.clone_into(&mut case.prompt);
        assert!(matches!(case.run(FRESH), Err(CommandError::Unsupported { .. })), "{prompt:?}");
    }
}

#[test]
fn a_prompt_over_the_limit_is_refused_where_the_version_has_one() {
    let mut case = Case::new("0.171.0");
    case.prompt = "x".repeat(PROMPT_LIMIT);
    assert!(case.run(FRESH).is_ok());
    case.prompt.push('x');
    assert!(matches!(case.run(FRESH), Err(CommandError::PromptTooLarge { .. })));
    case.version = Some("0.98.0");
    assert!(case.run(FRESH).is_ok());
    // Characters are counted, not bytes.
    case.version = Some("0.171.0");
    case.prompt = "é".repeat(PROMPT_LIMIT);
    assert!(case.run(FRESH).is_ok());
}

#[test]
fn everything_is_stated_anew_before_the_word_resume() {
    let options = CodexOptions::new()
        .sandbox(SandboxMode::WorkspaceWrite)
        .reasoning_effort("high")
        .and_then(|options| options.profile("fast"))
        .and_then(|options| options.add_dir("/srv/shared"))
        .and_then(|options| options.config("tools.web_search", "true"))
        .and_then(|options| options.extra_args(["--color", "never"]))
        .unwrap()
        .trust_project(false)
        .hide_secrets_from_tools(true)
        .skip_git_repo_check(false);
    let mut case = Case::new("0.171.0");
    case.dialect = CodexDialect::new(options);
    case.model = Some("-m");
    let one = NativeId::new(S1);
    assert_eq!(
        case.args(Mode::Resume { id: &one }),
        format!(
            "-c model_reasoning_effort=\"high\" -c projects={{\"/w\"={{trust_level=\"untrusted\"}}}} \
             -c features.unbounded_connection_retries=false \
             -c shell_environment_policy.ignore_default_excludes=false -c tools.web_search=true \
             exec --color never --json --sandbox workspace-write --model=-m --profile fast --add-dir /srv/shared \
             resume {S1} -"
        )
    );
    let bypass =
        CodexOptions::new().sandbox(SandboxMode::ReadOnly).bypass_sandbox(true).unbounded_retries(true);
    case.dialect = CodexDialect::new(bypass);
    case.model = None;
    assert_eq!(
        case.args(FRESH),
        "exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -"
    );
}

#[test]
fn a_provider_is_a_table_in_one_argument() {
    let provider = CodexProvider::new("own", "http://localhost:1/\"v1").unwrap();
    let with_key = provider.clone().env_key("OWN_KEY").unwrap().retries(0);
    let mut case = Case::new("0.171.0");
    let base = CodexOptions::new().unbounded_retries(true);
    case.dialect = CodexDialect::new(base.clone().provider(with_key));
    assert_eq!(
        case.args(FRESH),
        "-c model_provider=\"own\" -c model_providers.own={name=\"own\",base_url=\"http://localhost:1/\\\"v1\",\
         wire_api=\"responses\",env_key=\"OWN_KEY\",request_max_retries=0,stream_max_retries=0} \
         exec --json --skip-git-repo-check -"
    );
    case.dialect = CodexDialect::new(base.provider(provider));
    assert!(case.args(FRESH).contains("requires_openai_auth=true"));
}

#[test]
fn the_index_of_a_state_dir_is_named_above_the_users_configuration() {
    let mut case = Case::new("0.171.0");
    case.state_dir = Some(PathBuf::from("/s \"x"));
    assert!(case.args(FRESH).starts_with("-c sqlite_home=\"/s \\\"x/index\" exec"));
}

/// 0.130 would note the folder as trusted in the user's own file, for everybody and for good.
#[test]
fn no_run_in_a_state_dir_writes_trust_into_the_users_configuration() {
    let mut case = Case::new("0.130.0");
    let noted = "projects={\"/w\"={trust_level=\"untrusted\"}}";
    assert!(!case.args(FRESH).contains("projects"), "the user's own home is used as it is");
    case.state_dir = Some(PathBuf::from("/s"));
    assert!(case.args(FRESH).contains(noted), "the configuration may let commands write");
    for version in ["0.98.0", "0.171.0"] {
        case.version = Some(version);
        assert!(!case.args(FRESH).contains("projects"), "{version} writes nothing");
    }
    case.version = Some("0.130.0");
    case.dialect = CodexDialect::new(CodexOptions::new().sandbox(SandboxMode::ReadOnly));
    assert!(!case.args(FRESH).contains("projects"));
    case.dialect = CodexDialect::new(CodexOptions::new().sandbox(SandboxMode::ReadOnly).bypass_sandbox(true));
    assert!(case.args(FRESH).contains(noted));
    case.dialect = CodexDialect::new(CodexOptions::new().trust_project(true));
    assert!(case.args(FRESH).contains("trust_level=\"trusted\""));
}

#[test]
fn traffic_that_is_not_needed_can_be_switched_off() {
    let mut case = Case::new("0.171.0");
    assert!(!case.args(FRESH).contains("analytics"));
    case.dialect = CodexDialect::new(CodexOptions::new().essential_traffic_only(true));
    for key in
        ["analytics.enabled", "features.plugins", "features.remote_models", "check_for_update_on_startup"]
    {
        assert!(case.args(FRESH).contains(&format!("-c {key}=false")), "{key}");
    }
}

#[test]
fn no_child_knows_of_an_agent_around_it() {
    let probe = CodexDialect::default().version_probe();
    assert_eq!(probe.args, ["--version"]);
    let command = Case::new("0.171.0").run(FRESH).unwrap();
    for env in [probe.env, command.env] {
        assert!(env.contains(&EnvChange::remove("CODEX_THREAD_ID")));
        assert!(env.contains(&EnvChange::remove("CODEX_SESSION_ID")));
    }
}
