//! Codex as an agent: dialect, process and catalog, over one environment.

use adapter_codex::{CodexDialect, CodexOptions, CodexTranscripts};
use session_core::Agent;
use session_process::{CliAgent, Environment};
use session_transcript::FileCatalog;

/// Codex, with its defaults: `codex` from the `PATH`, in the environment of this process.
pub fn codex() -> Codex {
    Codex { options: CodexOptions::default(), environment: Environment::inherited() }
}

/// Codex, as an agent to be registered.
#[derive(Debug, Clone)]
#[must_use]
pub struct Codex {
    options: CodexOptions,
    environment: Environment,
}

impl Codex {
    /// How the CLI is called.
    pub fn options(mut self, options: CodexOptions) -> Self {
        self.options = options;
        self
    }

    /// The environment that the CLI starts from. Run and catalog share it, so that they look at one place.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }
}

impl From<Codex> for Agent {
    fn from(codex: Codex) -> Self {
        let Codex { options, environment } = codex;
        let transcripts = CodexTranscripts::new(environment.map().clone());
        let agent = CliAgent::new(CodexDialect::new(options)).environment(environment);
        Self::new(agent).with_catalog(FileCatalog::new(transcripts))
    }
}
