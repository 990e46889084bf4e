//! What the user of the dialect can choose.

use std::path::PathBuf;

use session_core::Program;

mod checks;
mod provider;

pub use checks::OptionsError;
pub use provider::CodexProvider;
pub(crate) use provider::toml_text;

use checks::{check_args, check_key, check_path, check_word};

/// What the agent's commands may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SandboxMode {
    /// They read, and change nothing. The agent's own default.
    ReadOnly,
    /// They change what is below the folder of the run.
    WorkspaceWrite,
    /// They may do what the process may do.
    DangerFullAccess,
}

impl SandboxMode {
    pub(crate) const fn flag(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        }
    }
}

/// How to run Codex. Start from the default and set what differs; what cannot work is refused at once.
///
/// A resumed session inherits nothing of the run that began it: sandbox, model, effort and folder are those of the
/// run (0.63, 0.98, 0.130, 0.171). So all of these are stated anew every time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodexOptions {
    pub(crate) program: Program,
    pub(crate) sandbox: Option<SandboxMode>,
    pub(crate) bypass: bool,
    pub(crate) effort: Option<String>,
    pub(crate) profile: Option<String>,
    pub(crate) provider: Option<CodexProvider>,
    pub(crate) config: Vec<(String, String)>,
    pub(crate) add_dirs: Vec<PathBuf>,
    pub(crate) extra_args: Vec<String>,
    pub(crate) skip_git_repo_check: bool,
    pub(crate) trust: Option<bool>,
    pub(crate) unbounded_retries: bool,
    pub(crate) hide_secrets: bool,
    pub(crate) share_login: bool,
    pub(crate) essential_traffic_only: bool,
}

impl Default for CodexOptions {
    fn default() -> Self {
        Self {
            program: Program::new("codex"),
            sandbox: None,
            bypass: false,
            effort: None,
            profile: None,
            provider: None,
            config: Vec::new(),
            add_dirs: Vec::new(),
            extra_args: Vec::new(),
            skip_git_repo_check: true,
            trust: None,
            unbounded_retries: false,
            hide_secrets: false,
            share_login: true,
            essential_traffic_only: false,
        }
    }
}

impl CodexOptions {
    /// The defaults: `codex` from the child's `PATH`, its own settings, in any folder, with bounded retries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The program to run in place of `codex`. The native file, in place of npm's launcher, gives honest exits.
    #[must_use]
    pub fn program(mut self, program: Program) -> Self {
        self.program = program;
        self
    }

    /// What the agent's commands may touch. Default: what the user's configuration says, else nothing but to read.
    #[must_use]
    pub const fn sandbox(mut self, mode: SandboxMode) -> Self {
        self.sandbox = Some(mode);
        self
    }

    /// Whether commands run without any sandbox of the agent's, as in a container that is one. Stands above
    /// [`sandbox`](Self::sandbox). Default: no.
    #[must_use]
    pub const fn bypass_sandbox(mut self, yes: bool) -> Self {
        self.bypass = yes;
        self
    }

    /// How long the model may think, such as `low` or `high`.
    ///
    /// # Errors
    /// [`OptionsError::Word`] when it is not one word.
    pub fn reasoning_effort(mut self, effort: impl Into<String>) -> Result<Self, OptionsError> {
        self.effort = Some(check_word("reasoning effort", effort.into())?);
        Ok(self)
    }

    /// A profile of the user's configuration. 0.171 ignores one that is not there; 0.63 to 0.130 take it from
    /// `config.toml`, 0.171 from `<profile>.config.toml`.
    ///
    /// # Errors
    /// [`OptionsError::Word`] when it is not one word.
    pub fn profile(mut self, profile: impl Into<String>) -> Result<Self, OptionsError> {
        self.profile = Some(check_word("profile", profile.into())?);
        Ok(self)
    }

    /// A model provider of one's own, in place of the configured one. A session stays with the provider that it began
    /// with: 0.171 refuses to continue it with another.
    #[must_use]
    pub fn provider(mut self, provider: CodexProvider) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Sets a value of the configuration (`-c key=value`), above the user's. The value is TOML. It is an argument of
    /// the process, which other users of the machine can see: put no secrets into it.
    ///
    /// # Errors
    /// [`OptionsError`] when the key is none, or one that the adapter sets itself.
    pub fn config(
        mut self,
        key: impl Into<String>,
        toml_value: impl Into<String>,
    ) -> Result<Self, OptionsError> {
        self.config.push((check_key(key.into())?, toml_value.into()));
        Ok(self)
    }

    /// Another folder that commands may write to.
    ///
    /// # Errors
    /// [`OptionsError::Path`] when it is not absolute, as it would mean another folder in every run.
    pub fn add_dir(mut self, dir: impl Into<PathBuf>) -> Result<Self, OptionsError> {
        self.add_dirs.push(check_path(dir.into())?);
        Ok(self)
    }

    /// Adds arguments of `codex exec`, such as `--color` and its value.
    ///
    /// # Errors
    /// [`OptionsError`] when one of them would fight with the adapter's own.
    pub fn extra_args(
        mut self,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, OptionsError> {
        let args: Vec<String> = args.into_iter().map(Into::into).collect();
        check_args(&args)?;
        self.extra_args.extend(args);
        Ok(self)
    }

    /// Whether the agent runs in a folder that is no git repository. Default: yes. The agent's own default is not to.
    #[must_use]
    pub const fn skip_git_repo_check(mut self, yes: bool) -> Self {
        self.skip_git_repo_check = yes;
        self
    }

    /// Whether the folder of the run is a trusted project: its `.codex` folder is then read, which can name programs
    /// to run. Default: what the user's configuration says; but with a state dir, versions after 0.98 and before 0.171
    /// take it for untrusted where commands may write: 0.130 would otherwise note it as trusted in the user's own
    /// `config.toml`, for everybody and for good.
    #[must_use]
    pub const fn trust_project(mut self, yes: bool) -> Self {
        self.trust = Some(yes);
        self
    }

    /// Whether the agent tries for ever to reach an address that refuses it, as 0.171 does by itself. Default: no; then
    /// a dead address ends a run by the agent's own limits.
    #[must_use]
    pub const fn unbounded_retries(mut self, yes: bool) -> Self {
        self.unbounded_retries = yes;
        self
    }

    /// Whether commands of the agent do not get variables whose names speak of keys, secrets or tokens. Default: what
    /// the user's configuration says; the agent itself shows them to commands (0.98, 0.130, 0.171).
    #[must_use]
    pub const fn hide_secrets_from_tools(mut self, yes: bool) -> Self {
        self.hide_secrets = yes;
        self
    }

    /// Whether a state dir shows the user's login (`auth.json`) to the agent. Default: yes, where the agent has no other
    /// key. The agent's commands can read what the agent can read, in every sandbox mode (0.171).
    #[must_use]
    pub const fn share_login(mut self, yes: bool) -> Self {
        self.share_login = yes;
        self
    }

    /// Whether analytics, plugin synchronisation and update checks are switched off for the runs. Default: as the
    /// user has it. With the network blocked, 0.130 and 0.171 otherwise end 5 s later.
    #[must_use]
    pub const fn essential_traffic_only(mut self, yes: bool) -> Self {
        self.essential_traffic_only = yes;
        self
    }
}
