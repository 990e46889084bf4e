//! The script as it is written down.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Stop;

/// What the agent claims to be when the script does not say.
const DEFAULT_VERSION: &str = "2.1.332 (Claude Code)";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    #[serde(default = "default_version")]
    pub(super) version: String,
    pub(super) log: Option<String>,
    #[serde(default)]
    pub(super) stdin: Stdin,
    pub(super) cases: Vec<Case>,
}

fn default_version() -> String {
    DEFAULT_VERSION.to_owned()
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stdin {
    #[default]
    Read,
    Ignore,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    #[serde(default)]
    pub(super) when: When,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct When {
    has: Vec<String>,
    lacks: Vec<String>,
    nth: Option<u64>,
    prompt: Option<String>,
}

impl When {
    pub(super) fn matches(&self, argv: &[String], nth: u64, prompt: &str) -> bool {
        self.has.iter().all(|arg| argv.contains(arg))
            && !self.lacks.iter().any(|arg| argv.contains(arg))
            && self.nth.is_none_or(|wanted| wanted == nth)
            && self.prompt.as_ref().is_none_or(|part| prompt.contains(part))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Stdout(String),
    /// Kept as text: the order of the keys is part of what a reader has to cope with.
    Line(Box<RawValue>),
    StdoutBytes(Vec<u8>),
    StdoutRepeat(Repeat),
    StdoutFile(String),
    StdoutLines(String),
    Slowly(Slowly),
    CloseStdout(bool),
    Stderr(String),
    StderrRepeat(Repeat),
    Append(FileText),
    Create(FileText),
    Remove(String),
    Truncate(Truncate),
    Touch(String),
    SleepMs(u64),
    WaitForFile(String),
    Child(Child),
    IgnoreTerm(bool),
    KillSelf(Death),
    Exit(u8),
    Fixture(Recorded),
    Claude(Box<ClaudeStep>),
    Codex(CodexStep),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recorded {
    pub(super) folder: String,
    pub(super) ready: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Repeat {
    pub(super) text: String,
    pub(super) times: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slowly {
    pub(super) text: String,
    #[serde(default = "one")]
    pub(super) chunk: std::num::NonZeroUsize,
    #[serde(default)]
    pub(super) pause_ms: u64,
}

fn one() -> std::num::NonZeroUsize {
    std::num::NonZeroUsize::MIN
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileText {
    pub(super) path: String,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Truncate {
    pub(super) path: String,
    pub(super) keep_bytes: Option<u64>,
    pub(super) drop_bytes: Option<u64>,
}

/// A process that outlives the agent. It travels to that process as JSON, hence both directions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Child {
    pub(super) seconds: u64,
    #[serde(default)]
    pub(super) own_session: bool,
    #[serde(default)]
    pub(super) ignore_term: bool,
    #[serde(default)]
    pub(super) hold_stdout: bool,
    pub(super) pid_file: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Death {
    Kill,
    Term,
    Int,
    Abrt,
}

/// How one turn of `codex exec` is played: the step `{"codex": {…}}`, whose fields are all optional.
///
/// The step obeys `exec --json` and `exec resume <id>`, reads the prompt from standard input, and tolerates flags. It keeps
/// the session file below `$CODEX_HOME` or `$HOME/.codex` as 0.171 does. A refused call ends the agent with the messages of
/// 0.171; after an answered one the next step follows.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodexStep {
    /// The answer, a template; without it the answer is a [`ContextReply`](crate::ContextReply).
    pub say: Option<String>,
    /// Behave as the releases before 0.117: an id that is not known starts a new session without a word.
    pub silent: bool,
    /// Save nothing of the turn.
    pub forgets: bool,
    /// End the turn early, for tests that kill the agent in the middle of one.
    pub stop_after: Option<CodexStop>,
}

/// Where a turn of Codex ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodexStop {
    /// After the thread is named; nothing is saved.
    Started,
    /// After the prompt is saved.
    User,
}

/// How one turn of Claude Code is played: the step `{"claude": {…}}`, whose fields are all optional.
///
/// The step obeys `-p`, `--session-id`, `--resume`, `--fork-session`, `--output-format`, `--verbose`,
/// `--name`, `--model` and `--no-session-persistence`, and tolerates other flags. It keeps the transcript
/// below `$CLAUDE_CONFIG_DIR` or `$HOME/.claude` as the real CLI does. A refused call ends the agent with
/// exit 1 and the messages of 2.1.332; after an answered one the next step follows.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClaudeStep {
    /// The answer, a template; without it the answer is a [`ContextReply`](crate::ContextReply).
    pub say: Option<String>,
    /// Behave as the releases before 1.0.124: every resume copies the history to a new file with a new id.
    pub replace_id: bool,
    /// Which sessions a resume finds.
    pub lookup: Lookup,
    /// End the turn early, for tests that kill the agent in the middle of one.
    pub stop_after: Option<StopAfter>,
    /// Use a tool before the answer.
    pub tool: Option<ToolUse>,
    /// Whether the turn is saved.
    pub persist: bool,
}

impl Default for ClaudeStep {
    fn default() -> Self {
        Self {
            say: None,
            replace_id: false,
            lookup: Lookup::default(),
            stop_after: None,
            tool: None,
            persist: true,
        }
    }
}

/// Which sessions a resume finds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lookup {
    /// Those of the working directory only, as up to 2.1.220.
    Cwd,
    /// Those of every project, unless two other projects have the same id.
    #[default]
    Anywhere,
}

/// Where a turn ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopAfter {
    /// After the `init` line; nothing is saved.
    Init,
    /// After the prompt is saved.
    User,
    /// After the answer is written and saved, before the result line.
    Assistant,
}

/// A use of a tool with a fixed result.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolUse {
    /// The name of the tool.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub input: Value,
}

impl Script {
    pub(super) fn read(path: &Path) -> Result<Self, Stop> {
        let text = std::fs::read(path).map_err(|error| Stop::file("cannot read the script", path, &error))?;
        serde_json::from_slice(&text)
            .map_err(|error| Stop::broken(format!("the script {} is wrong: {error}", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Script, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn unknown_names_are_refused_by_name() {
        for (script, name) in [
            (r#"{"cases": [], "logg": "x"}"#, "logg"),
            (r#"{"cases": [{"steps": [], "wen": {}}]}"#, "wen"),
            (r#"{"cases": [{"steps": [{"std": "x"}]}]}"#, "std"),
            (r#"{"cases": [{"steps": [{"claude": {"sai": "x"}}]}]}"#, "sai"),
            (r#"{"cases": [{"when": {"is": 1}, "steps": []}]}"#, "is"),
        ] {
            let error = parse(script).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn all_conditions_of_a_case_must_hold() {
        let when: When =
            serde_json::from_str(r#"{"has": ["-p"], "lacks": ["--x"], "nth": 2, "prompt": "lo w"}"#).unwrap();
        let args = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(when.matches(&args(&["-p"]), 2, "hello world"));
        assert!(!when.matches(&args(&[]), 2, "hello world"));
        assert!(!when.matches(&args(&["-p", "--x"]), 2, "hello world"));
        assert!(!when.matches(&args(&["-p"]), 1, "hello world"));
        assert!(!when.matches(&args(&["-p"]), 2, "world"));
        assert!(When::default().matches(&args(&["anything"]), 7, ""));
    }
}
