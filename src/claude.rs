//! Claude Code as an agent: dialect, process and catalog, over one environment.

use adapter_claude::{ClaudeDialect, ClaudeOptions, ClaudeTranscripts};
use session_core::Agent;
use session_process::{CliAgent, Environment};
use session_transcript::FileCatalog;

/// Claude Code, with its defaults: `claude` from the `PATH`, in the environment of this process.
pub fn claude() -> Claude {
    Claude { options: ClaudeOptions::default(), environment: Environment::inherited() }
}

/// Claude Code, as an agent to be registered.
#[derive(Debug, Clone)]
#[must_use]
pub struct Claude {
    options: ClaudeOptions,
    environment: Environment,
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
}

impl From<Claude> for Agent {
    fn from(claude: Claude) -> Self {
        let Claude { options, environment } = claude;
        let transcripts = ClaudeTranscripts::new(environment.map().clone());
        let agent = CliAgent::new(ClaudeDialect::new(options)).environment(environment);
        Self::new(agent).with_catalog(FileCatalog::new(transcripts))
    }
}
