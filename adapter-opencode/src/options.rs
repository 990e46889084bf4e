//! What the user of the dialect can choose.

use session_core::Program;

/// Flags that the adapter sets itself, or that would take the conversation out of its hands.
const OURS: &[&str] = &[
    "--attach",
    "--auto",
    "--command",
    "--continue",
    "--dangerously-skip-permissions",
    "--dir",
    "--file",
    "--fork",
    "--format",
    "--help",
    "--log-level",
    "--model",
    "--password",
    "--print-logs",
    "--session",
    "--share",
    "--title",
    "--username",
    "--version",
];

/// Their short forms. Short flags can be joined, so every letter of a group counts.
const OURS_SHORT: &[char] = &['c', 'f', 'h', 'm', 'p', 's', 'u', 'v'];

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
    /// A bare `--`, NUL, or a word that would be read as the prompt, in an extra argument.
    #[error("{arg:?} cannot be an extra argument; write a flag and its value as one, as --flag=value")]
    Argument {
        /// The argument.
        arg: String,
    },
    /// The permission rules are no JSON object.
    #[error("the permission rules are not a JSON object")]
    Permission,
}

/// How to run opencode. Start from the default and set what differs; what cannot work is refused at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpencodeOptions {
    pub(crate) program: Program,
    pub(crate) permission: Option<String>,
    pub(crate) auto_approve: bool,
    pub(crate) extra_args: Vec<String>,
    pub(crate) models_fetch: bool,
}

impl Default for OpencodeOptions {
    fn default() -> Self {
        Self {
            program: Program::new("opencode"),
            permission: None,
            auto_approve: false,
            extra_args: Vec::new(),
            models_fetch: true,
        }
    }
}

impl OpencodeOptions {
    /// The defaults: `opencode` from the child's `PATH`, its own settings, nothing approved that those do not allow.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The program to run in place of `opencode`.
    #[must_use]
    pub fn program(mut self, program: Program) -> Self {
        self.program = program;
        self
    }

    /// Permission rules for the runs, as the JSON object that `permission` is in the configuration, such as
    /// `{"external_directory":"allow"}`. They stand above the user's and the project's. Without a rule that allows it,
    /// what would ask a person is rejected, and the run fails as `agent_misconfigured`.
    ///
    /// # Errors
    /// [`OptionsError::Permission`] when it is no JSON object.
    pub fn permission(mut self, json: &str) -> Result<Self, OptionsError> {
        let rules: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(json).map_err(|_| OptionsError::Permission)?;
        self.permission = Some(serde_json::Value::Object(rules).to_string());
        Ok(self)
    }

    /// Whether everything that would ask a person is approved. Default: no. Versions below 1.14.34 have no flag for
    /// it, and refuse; [`permission`](Self::permission) does it there.
    #[must_use]
    pub const fn auto_approve(mut self, yes: bool) -> Self {
        self.auto_approve = yes;
        self
    }

    /// Adds arguments, such as `--agent=plan`. A flag and its value are one argument: a word of its own would be read
    /// as a part of the prompt.
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

    /// Whether the agent fetches its list of models. Default: yes. Without a network, `no` spares a wait at every
    /// start; models that the installed version does not know are then unknown.
    #[must_use]
    pub const fn models_fetch(mut self, yes: bool) -> Self {
        self.models_fetch = yes;
        self
    }
}

fn check(arg: &str) -> Result<(), OptionsError> {
    if arg == "--" || arg.contains('\0') || !arg.starts_with('-') {
        return Err(OptionsError::Argument { arg: arg.to_owned() });
    }
    let flag = arg.split_once('=').map_or(arg, |(flag, _)| flag);
    let short = flag.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
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
        for arg in ["--session", "--session=ses_x", "-s", "-c", "--continue", "--fork", "-zc", "--attach=x"] {
            assert!(
                matches!(OpencodeOptions::new().extra_args([arg]), Err(OptionsError::Reserved { .. })),
                "{arg}"
            );
        }
        for arg in ["--", "plan", "a\0b", ""] {
            assert!(
                matches!(OpencodeOptions::new().extra_args([arg]), Err(OptionsError::Argument { .. })),
                "{arg:?}"
            );
        }
        let options = OpencodeOptions::new().extra_args(["--agent=plan", "--pure"]).unwrap();
        assert_eq!(options.extra_args, ["--agent=plan", "--pure"]);
    }

    #[test]
    fn permission_rules_are_an_object() {
        assert_eq!(OpencodeOptions::new().permission("\"allow\""), Err(OptionsError::Permission));
        let options = OpencodeOptions::new().permission(r#"{ "bash": "ask" }"#).unwrap();
        assert_eq!(options.permission.as_deref(), Some(r#"{"bash":"ask"}"#));
    }
}
