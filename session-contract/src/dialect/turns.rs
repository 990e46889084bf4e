//! Turns to ask a dialect about.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use session_core::error::CommandError;
use session_core::{
    Cancel, CliDialect, CommandSpec, EnvChange, EnvMap, Installation, Limits, Mode, NativeId, RunId,
    SessionName, Turn, Version,
};

use super::Subject;

/// A prompt that nobody could take for anything else.
pub(crate) const PLAIN: &str = "Fix the login bug in the parser";

/// What a turn stands on.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) installation: Installation,
    pub(crate) prompt: String,
    pub(crate) name: Option<SessionName>,
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) env: EnvMap,
    limits: Limits,
    cancel: Cancel,
}

impl Stage {
    pub(crate) fn new(dialect: &dyn CliDialect, version: Option<Version>) -> Self {
        let capabilities = dialect.capabilities(version.as_ref());
        let program = dialect.program().program;
        Self {
            installation: Installation { program, version, capabilities },
            prompt: PLAIN.to_owned(),
            name: None,
            state_dir: None,
            env: environment(),
            limits: Limits::default(),
            cancel: Cancel::new(),
        }
    }

    pub(crate) fn prompt(mut self, prompt: &str) -> Self {
        prompt.clone_into(&mut self.prompt);
        self
    }

    pub(crate) fn turn<'a>(&'a self, mode: Mode<'a>) -> Turn<'a> {
        Turn {
            run: RunId::new(uuid::Uuid::from_u128(7)),
            prompt: &self.prompt,
            cwd: Path::new("/home/user/project"),
            mode,
            name: self.name.as_ref(),
            model: None,
            recipe: session_core::TurnRecipe::default(),
            state_dir: self.state_dir.as_deref(),
            installation: &self.installation,
            limits: &self.limits,
            cancel: &self.cancel,
        }
    }

    /// All commands of the turn, the last one being the turn's own.
    pub(crate) fn commands(
        &self,
        dialect: &dyn CliDialect,
        mode: Mode<'_>,
    ) -> Result<Commands, CommandError> {
        let turn = self.turn(mode);
        let mut commands = dialect.preparations(&turn, &self.env)?;
        commands.push(dialect.command(&turn, &self.env)?);
        Ok(Commands(commands))
    }

    pub(crate) fn version(&self) -> String {
        self.installation
            .version
            .as_ref()
            .map_or_else(|| "an unknown version".to_owned(), ToString::to_string)
    }
}

/// A child's environment as a user has it.
pub(crate) fn environment() -> EnvMap {
    [("HOME", "/home/user"), ("PATH", "/usr/bin"), ("LANG", "C.UTF-8")].into_iter().collect()
}

/// The commands of a turn, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Commands(Vec<CommandSpec>);

impl Commands {
    pub(crate) fn last(&self) -> &CommandSpec {
        self.0.last().expect("a turn has a command of its own")
    }

    pub(crate) fn args(&self) -> impl Iterator<Item = &OsString> {
        self.0.iter().flat_map(|command| &command.args)
    }

    /// How many arguments are this text.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.args().filter(|arg| **arg == *text).count()
    }

    /// The arguments that hold this text.
    pub(crate) fn holding(&self, text: &str) -> Vec<String> {
        let shown = self.args().map(|arg| arg.to_string_lossy().into_owned());
        shown.filter(|arg| arg.contains(text)).collect()
    }

    /// The values that the child's environment gets.
    pub(crate) fn values(&self) -> impl Iterator<Item = &OsString> {
        self.0.iter().flat_map(|command| &command.env).filter_map(|change| match change {
            EnvChange::Set(_, value) => Some(value),
            EnvChange::Remove(_) => None,
        })
    }

    /// Whether this text is anywhere in what is started, as it is or as JSON writes it.
    pub(crate) fn mention(&self, text: &str) -> bool {
        let quoted = serde_json::Value::from(text).to_string();
        let quoted = &quoted.as_bytes()[1..quoted.len() - 1];
        !self.holding(text).is_empty()
            || self.values().any(|value| value.to_string_lossy().contains(text))
            || self
                .0
                .iter()
                .any(|command| contains(&command.stdin, text.as_bytes()) || contains(&command.stdin, quoted))
    }
}

pub(crate) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && bytes.windows(part.len()).any(|window| window == part)
}

impl Subject {
    /// The versions to try: those named, one that is newer than all, and none.
    pub(crate) fn tried_versions(&self) -> Vec<Option<Version>> {
        let newer = super::version("999.0.0");
        self.versions.iter().cloned().chain([newer]).map(Some).chain([None]).collect()
    }

    /// A stage for each version.
    pub(crate) fn stages(&self) -> Vec<Stage> {
        self.tried_versions().into_iter().map(|version| Stage::new(&*self.dialect, version)).collect()
    }

    /// The fresh modes that are claimed: without an id, or with one where the caller chooses it.
    pub(crate) fn fresh<'a>(stage: &Stage, id: &'a NativeId) -> Mode<'a> {
        Mode::Fresh { id: Some(id).filter(|_| stage.installation.capabilities.caller_chosen_id) }
    }

    /// Every mode that is claimed for the stage's version.
    pub(crate) fn modes<'a>(stage: &Stage, one: &'a NativeId, two: &'a NativeId) -> Vec<Mode<'a>> {
        use session_core::ForkSupport;
        let capabilities = stage.installation.capabilities;
        let mut modes = vec![Self::fresh(stage, one)];
        if capabilities.resumable_sessions && capabilities.headless_resume {
            modes.push(Mode::Resume { id: one });
        }
        if capabilities.fork != ForkSupport::No {
            let id = Some(two).filter(|_| capabilities.fork == ForkSupport::CallerChoosesId);
            modes.push(Mode::Fork { source: one, transcript: None, id });
        }
        modes
    }
}
