//! Claude Code as an agent: dialect, process and catalog, over one environment.

use std::sync::Arc;

use adapter_claude::{ClaudeDialect, ClaudeOptions, ClaudeTranscripts};
use session_core::Agent;
use session_process::{CliAgent, Environment, Launcher};
use session_transcript::FileCatalog;

/// Claude Code, with its defaults: `claude` from the `PATH`, in the environment of this process.
pub fn claude() -> Claude {
    Claude { options: ClaudeOptions::default(), environment: Environment::inherited(), launcher: None }
}

/// Claude Code, as an agent to be registered.
#[derive(Debug, Clone)]
#[must_use]
pub struct Claude {
    options: ClaudeOptions,
    environment: Environment,
    launcher: Option<Arc<dyn Launcher>>,
}

impl Claude {
    /// How the CLI is called.
    pub fn options(mut self, options: ClaudeOptions) -> Self {
        self.options = options;
        self
    }

    /// The environment that the CLI starts from. Run and catalog share it, so that they look at one place.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Has each command of the CLI started in a sandbox by this launcher, such as
    /// [`Bubblewrap`](crate::process::Bubblewrap). Session files are looked at from outside.
    pub fn launcher(mut self, launcher: impl Launcher) -> Self {
        self.launcher = Some(Arc::new(launcher));
        self
    }
}

impl From<Claude> for Agent {
    fn from(claude: Claude) -> Self {
        let Claude { options, environment, launcher } = claude;
        let transcripts = ClaudeTranscripts::new(environment.map().clone());
        let mut agent = CliAgent::new(ClaudeDialect::new(options)).environment(environment);
        if let Some(launcher) = launcher {
            agent = agent.launcher(launcher);
        }
        Self::new(agent).with_catalog(FileCatalog::new(transcripts))
    }
}
