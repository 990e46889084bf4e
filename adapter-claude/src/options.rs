//! What the user of the dialect can choose.

use session_core::Program;

/// Flags that the adapter sets itself, or that would take the conversation out of its hands.
const OURS: &[&str] = &[
    "--background",
    "--bg",
    "--cloud",
    "--continue",
    "--fork-session",
    "--from-pr",
    "--include-partial-messages",
    "--input-format",
    "--max-turns",
    "--model",
    "--name",
    "--no-session-persistence",
    "--output-format",
    "--permission-mode",
    "--print",
    "--remote",
    "--replay-user-messages",
    "--resume",
    "--resume-session-at",
    "--rewind-files",
    "--session-id",
    "--settings",
    "--teleport",
    "--verbose",
    "--version",
    "--help",
    "--worktree",
    "--tmux",
];

/// Their short forms. Short flags can be joined, so every letter of a group counts.
const OURS_SHORT: &[char] = &['c', 'h', 'n', 'p', 'r', 'v', 'w'];

/// Options that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A flag that the adapter sets itself.
    #[error(
        "{flag} is set by the adapter and cannot be an extra argument; use the option or the request for it"
    )]
    Reserved {
        /// The flag.
        flag: String,
    },
    /// A bare `--`, or NUL, in an extra argument.
    #[error("{arg:?} cannot be an extra argument")]
    Argument {
        /// The argument.
        arg: String,
    },
    /// The permission mode is not one word.
    #[error("{mode:?} is not a permission mode")]
    PermissionMode {
        /// The text given.
        mode: String,
    },
    /// The settings are no JSON object.
    #[error("the settings are not a JSON object")]
    Settings,
}

/// How to run Claude Code. Start from the default and set what differs; what cannot work is refused at once.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaudeOptions {
    pub(crate) program: Program,
    pub(crate) permission_mode: Option<String>,
    pub(crate) extra_args: Vec<String>,
    pub(crate) max_turns: Option<u32>,
    pub(crate) settings: serde_json::Map<String, serde_json::Value>,
    pub(crate) partial_messages: bool,
    pub(crate) retries: Option<u32>,
    pub(crate) api_base_url: Option<String>,
    pub(crate) keep_retention: bool,
    pub(crate) essential_traffic_only: bool,
}

impl Default for ClaudeOptions {
    fn default() -> Self {
        Self {
            program: Program::new("claude"),
            permission_mode: None,
            extra_args: Vec::new(),
            max_turns: None,
            settings: serde_json::Map::new(),
            partial_messages: false,
            retries: None,
            api_base_url: None,
            keep_retention: true,
            essential_traffic_only: false,
        }
    }
}

impl ClaudeOptions {
    /// The defaults: `claude` from the child's `PATH`, its own settings, no partial messages, transcripts kept.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The program to run in place of `claude`.
    #[must_use]
    pub fn program(mut self, program: Program) -> Self {
        self.program = program;
        self
    }

    /// The permission mode, such as `acceptEdits` or `bypassPermissions`. Versions differ in what they know:
    /// 2.1.332 has `manual` where 2.1.197 has `default`.
    ///
    /// # Errors
    /// [`OptionsError::PermissionMode`] when it is not one word of letters.
    pub fn permission_mode(mut self, mode: impl Into<String>) -> Result<Self, OptionsError> {
        let mode = mode.into();
        if mode.is_empty() || !mode.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(OptionsError::PermissionMode { mode });
        }
        self.permission_mode = Some(mode);
        Ok(self)
    }

    /// Adds arguments, such as `--add-dir` and its value. They stand last on the command line.
    ///
    /// # Errors
    /// [`OptionsError`] when one of them would fight with the adapter's own.
    pub fn extra_args(
        mut self,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, OptionsError> {
        for arg in args {
            let arg = arg.into();
            check(&arg)?;
            self.extra_args.push(arg);
        }
        Ok(self)
    }

    /// Ends a turn after so many of the agent's own turns; the run is then `limit_reached`.
    #[must_use]
    pub const fn max_turns(mut self, turns: u32) -> Self {
        self.max_turns = Some(turns);
        self
    }

    /// Settings for the runs, as a JSON object in the form of `settings.json`. They stand above the user's and
    /// the project's settings, and below managed ones. They are an argument of the process, which other users of the
    /// machine can see: put no secrets into them, but into the environment.
    ///
    /// # Errors
    /// [`OptionsError::Settings`] when it is no JSON object.
    pub fn settings(mut self, json: &str) -> Result<Self, OptionsError> {
        self.settings = serde_json::from_str(json).map_err(|_| OptionsError::Settings)?;
        Ok(self)
    }

    /// Whether text is passed on piece by piece while it is made. Default: no.
    #[must_use]
    pub const fn partial_messages(mut self, yes: bool) -> Self {
        self.partial_messages = yes;
        self
    }

    /// How often the agent tries a failed model call again. Its own default is 10.
    #[must_use]
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// The address of the model API, in place of the agent's own.
    #[must_use]
    pub fn api_base_url(mut self, url: impl Into<String>) -> Self {
        self.api_base_url = Some(url.into());
        self
    }

    /// Whether the agent's 30-day sweep of old transcripts is put off for these runs. Default: yes.
    ///
    /// Any run of some 20 s deletes every transcript of its configuration folder that was not touched for
    /// `cleanupPeriodDays` (2.0.14, 2.1.197, 2.1.332). The setting is passed with `--settings`, so the user's
    /// own file stays as it is; a `cleanupPeriodDays` in [`settings`](Self::settings) wins. Runs that others
    /// make in the same configuration folder still sweep: use a state dir.
    #[must_use]
    pub const fn keep_retention(mut self, yes: bool) -> Self {
        self.keep_retention = yes;
        self
    }

    /// Whether telemetry and updates are switched off for the runs. Default: as the user has it.
    #[must_use]
    pub const fn essential_traffic_only(mut self, yes: bool) -> Self {
        self.essential_traffic_only = yes;
        self
    }
}

fn check(arg: &str) -> Result<(), OptionsError> {
    if arg == "--" || arg.contains('\0') {
        return Err(OptionsError::Argument { arg: arg.to_owned() });
    }
    let flag = arg.split_once('=').map_or(arg, |(flag, _)| flag);
    let short = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    if OURS.contains(&flag) || short.is_some_and(|group| group.chars().any(|c| OURS_SHORT.contains(&c))) {
        return Err(OptionsError::Reserved { flag: flag.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_would_take_the_conversation_away_are_refused() {
        for arg in [
            "--resume",
            "--resume=x",
            "-r",
            "-c",
            "--continue",
            "--session-id=1",
            "--bg",
            "-p",
            "-dc",
            "--print",
        ] {
            assert!(
                matches!(ClaudeOptions::new().extra_args([arg]), Err(OptionsError::Reserved { .. })),
                "{arg}"
            );
        }
        assert!(matches!(ClaudeOptions::new().extra_args(["--"]), Err(OptionsError::Argument { .. })));
        let options = ClaudeOptions::new().extra_args(["--add-dir", "/srv/shared", "-d"]).unwrap();
        assert_eq!(options.extra_args, ["--add-dir", "/srv/shared", "-d"]);
    }

    #[test]
    fn settings_and_modes_are_checked() {
        assert_eq!(ClaudeOptions::new().settings("[1]"), Err(OptionsError::Settings));
        assert!(ClaudeOptions::new().settings(r#"{"env":{"A":"1"}}"#).is_ok());
        assert!(ClaudeOptions::new().permission_mode("--resume").is_err());
        assert!(ClaudeOptions::new().permission_mode("acceptEdits").is_ok());
    }
}
