//! The environment that children start from.

use std::ffi::{OsStr, OsString};

use session_core::EnvMap;

/// The variables that a child starts from, before the dialect's own changes.
///
/// A value, taken once: what the process changes in its own environment later does not reach a child.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Environment(EnvMap);

/// The one place of the workspace that reads the process's environment.
fn snapshot() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

impl Environment {
    /// Everything that this process has at the time of the call.
    pub fn inherited() -> Self {
        Self(snapshot().collect())
    }

    /// Nothing at all. Most agents need at least `PATH` and `HOME`: see [`pass`](Self::pass).
    pub const fn bare() -> Self {
        Self(EnvMap::new())
    }

    /// Copies these variables from the process's own environment. One that is not set there is left as it is.
    pub fn pass<N: AsRef<OsStr>>(mut self, names: &[N]) -> Self {
        for (name, value) in snapshot() {
            if names.iter().any(|wanted| wanted.as_ref() == name) {
                self.0.set(name, value);
            }
        }
        self
    }

    /// Sets a variable.
    pub fn set(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.0.set(name, value);
        self
    }

    /// Removes a variable.
    pub fn remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.0.remove(name);
        self
    }

    /// The variables.
    #[must_use]
    pub const fn map(&self) -> &EnvMap {
        &self.0
    }
}
