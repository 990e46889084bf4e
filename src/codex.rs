//! Codex as an agent: dialect, process and catalog, over one environment.

use std::path::PathBuf;
use std::sync::Arc;

use adapter_codex::{CodexDialect, CodexOptions, CodexTranscripts};
use session_core::Agent;
use session_process::{CliAgent, Environment, Launcher};
use session_transcript::FileCatalog;

/// Codex, with its defaults: `codex` from the `PATH`, in the environment of this process.
pub fn codex() -> Codex {
    Codex {
        options: CodexOptions::default(),
        environment: Environment::inherited(),
        launcher: None,
        index: None,
    }
}

/// Codex, as an agent to be registered.
#[derive(Debug, Clone)]
#[must_use]
pub struct Codex {
    options: CodexOptions,
    environment: Environment,
    launcher: Option<Arc<dyn Launcher>>,
    index: Option<PathBuf>,
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

    /// Keeps what lists read in this file, a cache that may be deleted at any time: see
    /// [`FileCatalog::index`](crate::transcript::FileCatalog::index).
    pub fn index(mut self, path: impl Into<PathBuf>) -> Self {
        self.index = Some(path.into());
        self
    }

    /// Has each command of the CLI started in a sandbox by this launcher, such as
    /// [`Bubblewrap`](crate::process::Bubblewrap). Session files are looked at from outside.
    pub fn launcher(mut self, launcher: impl Launcher) -> Self {
        self.launcher = Some(Arc::new(launcher));
        self
    }
}

impl From<Codex> for Agent {
    fn from(codex: Codex) -> Self {
        let Codex { options, environment, launcher, index } = codex;
        let transcripts = CodexTranscripts::new(environment.map().clone());
        let mut agent = CliAgent::new(CodexDialect::new(options)).environment(environment);
        if let Some(launcher) = launcher {
            agent = agent.launcher(launcher);
        }
        let mut catalog = FileCatalog::new(transcripts);
        if let Some(index) = index {
            catalog = catalog.index(index);
        }
        Self::new(agent).with_catalog(catalog)
    }
}
