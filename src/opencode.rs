//! opencode as an agent: dialect, process and catalog, over one environment.

use adapter_opencode::{OpencodeCatalog, OpencodeDialect, OpencodeOptions};
use session_core::Agent;
use session_process::{CliAgent, Environment};

/// opencode, with its defaults: `opencode` from the `PATH`, in the environment of this process.
pub fn opencode() -> Opencode {
    Opencode { options: OpencodeOptions::default(), environment: Environment::inherited() }
}

/// opencode, as an agent to be registered.
#[derive(Debug, Clone)]
#[must_use]
pub struct Opencode {
    options: OpencodeOptions,
    environment: Environment,
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
}

impl From<Opencode> for Agent {
    fn from(opencode: Opencode) -> Self {
        let Opencode { options, environment } = opencode;
        let catalog = OpencodeCatalog::new(environment.map().clone());
        let agent = CliAgent::new(OpencodeDialect::new(options)).environment(environment);
        Self::new(agent).with_catalog(catalog)
    }
}
