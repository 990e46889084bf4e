//! opencode as an agent: dialect, process and catalog, over one environment.

use std::sync::Arc;

use adapter_opencode::{OpencodeCatalog, OpencodeDialect, OpencodeOptions};
use session_core::Agent;
use session_process::{CliAgent, Environment, Launcher};

/// opencode, with its defaults: `opencode` from the `PATH`, in the environment of this process.
pub fn opencode() -> Opencode {
    Opencode { options: OpencodeOptions::default(), environment: Environment::inherited(), launcher: None }
}

/// opencode, as an agent to be registered.
#[derive(Debug, Clone)]
#[must_use]
pub struct Opencode {
    options: OpencodeOptions,
    environment: Environment,
    launcher: Option<Arc<dyn Launcher>>,
}

impl Opencode {
    /// How the CLI is called.
    pub fn options(mut self, options: OpencodeOptions) -> Self {
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

impl From<Opencode> for Agent {
    fn from(opencode: Opencode) -> Self {
        let Opencode { options, environment, launcher } = opencode;
        let catalog = OpencodeCatalog::new(environment.map().clone());
        let mut agent = CliAgent::new(OpencodeDialect::new(options)).environment(environment);
        if let Some(launcher) = launcher {
            agent = agent.launcher(launcher);
        }
        Self::new(agent).with_catalog(catalog)
    }
}
